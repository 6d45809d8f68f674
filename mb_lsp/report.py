"""Print a result for a person: the diff, the speed-up, the evidence, and what was not checked."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mb_lsp.results import LaunchResult, OfferResult, Result, SpeedupResult
from mb_targets.outcome import Check

_CLOCKS = {"cpu": "CPU time", "event": "device time"}


def show(console: Console, result: Result) -> None:
    """Print all that was found for one kernel; what matters most comes last, where a terminal stays."""
    for offer in result.offers[:1]:
        _diff(console, offer.diff)
    if result.launch is not None:
        _launch(console, result.launch)
    for offer in result.offers[:1]:
        _evidence(console, offer)
    if result.control is not None:
        c = result.control
        console.print(Text(f"The original against itself: {c.value:.3f}x [{c.low:.3f}-{c.high:.3f}]\n"))
    console.print(Text.assemble((f"{result.kernel}: ", "bold"), _headline(result)))
    for offer in result.offers:
        _offer(console, offer)
    _closing(console, result)


def _closing(console: Console, result: Result) -> None:
    if result.question:
        console.print(Text(f"A line like this above the kernel would answer it:\n{result.question}"))
    if result.applied:
        console.print(Text(f"Written: {', '.join(result.applied)}", style="green"))
    elif result.problem:
        console.print(Text(f"Not written: {result.problem}", style="red"))
    elif result.offers:
        console.print(Text("Nothing was written; --apply writes the first.", style="dim"))


def _headline(result: Result) -> Text:
    counted = f" {result.tried} candidates tried, {result.refused} refused." if result.tried else ""
    on = f" on {result.device}" if result.device else ""
    if result.verdict == "faster" and result.speedup is not None:
        return Text.assemble(("verified faster", "bold green"), f"{on}.{counted} {_sentence(result.reason)}")
    if result.verdict == "nothing faster":
        return Text(f"no faster variant was found{on}.{counted} {_sentence(result.reason)}")
    if result.verdict == "cancelled":
        kept = "the best verified so far is below" if result.offers else "nothing was verified as faster yet"
        return Text(f"cancelled; {kept}.{counted}")
    return Text(result.reason, style="red")


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:].rstrip('.')}." if words else ""


def _offer(console: Console, offer: OfferResult) -> None:
    line = Text.assemble("  ", (figures(offer.speedup), "bold green"))
    line.append(f" {_CLOCKS[offer.speedup.clock]}, {times(offer.speedup)}, {offer.speedup.samples} pairs; ")
    line.append(_launch_words(offer))
    console.print(line)
    console.print(Text(f"    by {' > '.join(offer.chain)}", style="dim"))
    if offer.diff_file:
        console.print(Text(f"    diff: {offer.diff_file}", style="dim"), soft_wrap=True)
    for condition in offer.conditions:
        if not condition.startswith("not checked"):  # those have a line of their own
            console.print(Text(f"    {condition}"))


def _launch_words(offer: OfferResult) -> str:
    if offer.changes_launch:
        return "changes the NDRange and each call that launches it"
    return "keeps the NDRange"


def figures(s: SpeedupResult) -> str:
    """Write a speed-up with its interval."""
    return f"{s.value:.2f}x [{s.low:.2f}-{s.high:.2f}]"


def times(s: SpeedupResult) -> str:
    """Write both times, in the unit that suits the longer one."""
    unit, size = ("ms", 1e6) if max(s.baseline_ns, s.variant_ns) >= 1e6 else ("us", 1e3)
    return f"{s.baseline_ns / size:.3g} -> {s.variant_ns / size:.3g} {unit}"


def _diff(console: Console, diff: str) -> None:
    styles = {"+": "green", "-": "red", "@": "cyan"}
    for line in diff.splitlines():
        bold = line.startswith(("+++", "---"))
        console.print(Text(line, style="bold" if bold else styles.get(line[:1], "")), soft_wrap=True)
    console.print()


def _evidence(console: Console, offer: OfferResult) -> None:
    table = Table(title=f"Evidence ({offer.level})", title_justify="left", box=None, pad_edge=False)
    for heading in ("check", "passed", "s", "what it saw"):
        table.add_column(heading, justify="right" if heading == "s" else "left")
    for check in offer.checks:
        table.add_row(Text(check.name), _passed(check), f"{check.seconds:.2f}", Text(check.evidence))
    console.print(table)
    if offer.basis:
        console.print(Text(f"Largest error: {offer.error:.2g} of what is allowed; {offer.basis}"))
    if offer.unchecked:
        console.print(Text("Not checked: " + "; ".join(offer.unchecked), style="yellow"))
    if offer.evidence:
        console.print(Text(f"Replay: {offer.evidence}", style="dim"), soft_wrap=True)


def _passed(check: Check) -> Text:
    if check.passed is None:
        return Text("not made", style="yellow")
    return Text("yes", style="green") if check.passed else Text("NO", style="bold red")


def _launch(console: Console, launch: LaunchResult) -> None:
    table = Table(title="Launch", title_justify="left", box=None, pad_edge=False)
    for heading in ("name", "value", "from"):
        table.add_column(heading)
    for value in launch.values:
        table.add_row(Text(value.name), Text(value.value), Text(value.origin))
    console.print(table)
    console.print()
