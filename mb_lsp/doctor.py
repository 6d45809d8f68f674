"""``modelblaster doctor``: which targets work here, and what to install for the others."""

from __future__ import annotations

import sys

import msgspec

from mb_agent import confine
from mb_lsp.problems import Code
from mb_targets import registry
from mb_targets.errors import TargetError
from mb_targets.protocol import Finding


class TargetReport(msgspec.Struct, frozen=True):
    """What one target found; ``problem`` is set where it could not even be loaded."""

    target: str
    findings: tuple[Finding, ...]
    problem: str = ""

    @property
    def works(self) -> bool:
        """True when some part works."""
        return any(f.works for f in self.findings)


def run(as_json: bool) -> Code:
    """Print every target's findings; the exit code says whether any target has a device."""
    targets = [examine(name) for name in registry.names()]
    reports = [*targets, confinement()] if targets else []
    if as_json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(reports), indent=2) + b"\n")
        sys.stdout.flush()
    else:
        _print(reports)
    return Code.DONE if any(r.works for r in targets) else Code.DEVICE


def examine(name: str) -> TargetReport:
    """Load one target and ask it."""
    try:
        return TargetReport(name, tuple(registry.load(name).doctor()))
    except (ImportError, TargetError) as error:
        return TargetReport(name, (), f"cannot be loaded: {error}")


def confinement() -> TargetReport:
    """Say what this machine has to confine the processes that generated code runs in."""
    offered = confine.offered()
    return TargetReport("workers", tuple(_layer(layer, layer in offered) for layer in confine.LAYERS))


def _layer(layer: str, there: bool) -> Finding:
    found = "in use" if there else "not in this kernel; variants run without it, and results say so"
    return Finding(layer, there, found)


def _print(reports: list[TargetReport]) -> None:
    from rich.table import Table
    from rich.text import Text

    from mb_lsp.report import open_console

    console = open_console()
    if not reports:
        console.print(
            "No target is installed; install modelblaster again: pip install --force-reinstall modelblaster"
        )
    for report in reports:
        console.print(Text(report.target, style="bold"))
        if report.problem:
            console.print(Text(f"  {report.problem}", style="red"))
        table = Table(box=None, show_header=False, padding=(0, 1))
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for finding in report.findings:
            mark = Text("works", style="green") if finding.works else Text("missing", style="yellow")
            text = Text(finding.found)
            if finding.remedy:
                text.append(f"\n{finding.remedy}", style="cyan")
            table.add_row(Text(f"  {finding.part}"), mark, text)
        console.print(table)
