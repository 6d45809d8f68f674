"""Print a result for a person: the diff, the speed-up, the evidence, and what was not checked."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mb_lsp.results import LaunchResult, OfferResult, Result, SpeedupResult
from mb_targets.outcome import Check

PIPED_WIDTH = 110
_CLOCKS = {"cpu": "CPU time", "event": "device time"}


def open_console() -> Console:
    """Write to standard output, in lines that fit a page where that is no terminal."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)


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
        how = "--apply writes the first" if result.verdict == "faster" else "the diff is there to be applied"
        console.print(Text(f"Nothing was written; {how}.", style="dim"))


def _headline(result: Result) -> Text:
    counted = f" {result.tried} candidates tried, {result.refused} refused." if result.tried else ""
    on = f" on {result.device}" if result.device else ""
    if result.verdict == "faster" and result.speedup is not None:
        return Text.assemble(("verified faster", "bold green"), f"{on}.{counted} {_sentence(result.reason)}")
    if result.verdict == "nothing faster":
        return Text(f"no faster variant was found{on}.{counted} {_sentence(result.reason)}")
    if result.verdict == "nothing tried":
        return Text(f"not optimized{on}. {_sentence(result.reason)}")
    if result.verdict == "cancelled":
        kept = "the best verified so far is below" if result.offers else "nothing was verified as faster yet"
        return Text(f"cancelled; {kept}.{counted}")
    kept = "; the best verified until then is below" if result.offers else ""
    return Text(f"{result.reason}{kept}", style="red")


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:].rstrip('.')}." if words else ""


def _offer(console: Console, offer: OfferResult) -> None:
    line = Text.assemble("  ", (str(offer.speedup), "bold green"))
    line.append(f" {_CLOCKS[offer.speedup.clock]}, {times(offer.speedup)}, {offer.speedup.samples} pairs; ")
    line.append(_launch_words(offer))
    console.print(line)
    if not offer.final:
        console.print(Text("    verified, not finally re-measured: the search was cut short", style="yellow"))
    console.print(Text(f"    by {' > '.join(offer.chain)}", style="dim"))
    if offer.diff_file:
        console.print(Text(f"    diff: {offer.diff_file}", style="dim"), soft_wrap=True)
    for condition in offer.conditions:
        if not condition.startswith("not checked"):  # those have a line of their own
            console.print(Text(f"    {condition}"))


def _launch_words(offer: OfferResult) -> str:
    if not offer.changes_launch:
        return "keeps the NDRange"
    return f"changes the NDRange; {launch_places(offer.diff)}"


def launch_places(diff: str) -> str:
    """Say where a diff edits what states or makes the launch."""
    files: dict[str, int] = {}
    name = ""
    for line in diff.splitlines():
        if line.startswith("+++ "):
            name = line.removeprefix("+++ ").removeprefix("b/")
            files[name] = 0
        elif line.startswith("@@") and name:
            files[name] += 1
    own, *others = files or [""]
    if others:
        places = ", ".join(f"{other} ({files[other]} place{'s' * (files[other] > 1)})" for other in others)
        return f"calls that launch it are edited in {places}"
    if own.endswith((".cl", ".clh", ".ocl")):
        return "no call was found, so only the `// mb:` comment is edited"
    return f"what is edited for that is in {own or 'the diff'}"


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
        console.print(Text(f"Record: {offer.evidence}", style="dim"), soft_wrap=True)


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
