"""``modelblaster kb stats | show | export | import | verify``: look into the base, move it, check it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mb_kb import keys, transfer
from mb_kb.errors import KnowledgeError
from mb_kb.knowledge import KnowledgeBase, open_base
from mb_kb.views import Attempt, KernelPast
from mb_lsp import folders
from mb_lsp.problems import Code, CommandError

SHOWN = 20
WIDE = 200  # characters a line where it is no terminal that reads


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``kb`` and its parts."""
    parts = commands.add_parser("kb", help="look into the knowledge base").add_subparsers(
        dest="part", required=True, metavar="PART"
    )
    stats = parts.add_parser("stats", help="what it holds")
    stats.add_argument("--json", action="store_true", help="print JSON")
    show = parts.add_parser("show", help="its kernels, or the outcomes of one")
    show.add_argument(
        "kernel", nargs="?", default="", help="name of a kernel, or the beginning of its identity"
    )
    show.add_argument("--limit", type=int, default=SHOWN, metavar="N", help=f"rows to show ({SHOWN})")
    show.add_argument("--json", action="store_true", help="print one JSON object a kernel, one a line")
    export = parts.add_parser("export", help="write everything to a file of JSON lines")
    export.add_argument("file", type=Path)
    import_ = parts.add_parser("import", help="merge exports, or databases that were set aside as damaged")
    import_.add_argument("file", type=Path, nargs="+")
    verify = parts.add_parser("verify", help="check the file, and recount its tables from the outcomes")
    verify.add_argument("--repair", action="store_true", help="sum the tables up anew where they are wrong")
    for part in (stats, show, export, import_, verify):
        part.add_argument(
            "--knowledge", type=Path, metavar="DIR", help="its folder (your own in the data folder)"
        )


def run(options: argparse.Namespace) -> Code:
    """Run one of the parts."""
    folder: Path = options.knowledge or folders.knowledge()
    if options.part != "import" and not folder.is_dir():
        raise CommandError(f"there is no knowledge base in {folder} yet; optimize a kernel, or import one")
    parts: dict[str, Callable[[KnowledgeBase, argparse.Namespace], Code]] = {
        "stats": _stats,
        "show": _show,
        "export": _export,
        "import": _import,
        "verify": _verify,
    }
    try:
        base = open_base(folder)
        code = parts[options.part](base, options)
    except KnowledgeError as error:
        raise CommandError(str(error)) from error
    for notice in base.notices:
        print(f"modelblaster: {notice}", file=sys.stderr)
    base.close()
    return code


def _stats(base: KnowledgeBase, options: argparse.Namespace) -> Code:
    s = base.stats()
    if options.json:
        _json(s)
        return Code.DONE
    table = _table()
    table.add_row("folder", str(base.folder))
    table.add_row("outcomes", f"{s.outcomes:,}, {s.refused:,} of them refused, {s.gains:,} verified gains")
    table.add_row("kernels", f"{s.kernels:,}, {s.vectors:,} of them comparable with others")
    table.add_row("states", f"{s.states:,}")
    table.add_row("variants kept", f"{s.sources:,}")
    table.add_row("size", f"{s.file_bytes / 1e6:,.1f} MB")
    if s.waiting:
        table.add_row("waiting", f"{s.waiting:,} outcomes, taken in by the next writer")
    for device, count in s.devices:
        table.add_row("device", f"{device}: {count:,}")
    for check, count in s.failures:
        table.add_row("refused by", f"{check}: {count:,}")
    _console().print(table)
    return Code.DONE


def _show(base: KnowledgeBase, options: argparse.Namespace) -> Code:
    found = base.kernels(options.kernel, options.limit)
    if options.kernel and not found:
        raise CommandError(f"no kernel is named {options.kernel!r}; `modelblaster kb show` lists them")
    if options.json:
        for kernel in found:
            _json(base.past(kernel.identity, options.limit, options.limit))
    elif options.kernel:
        for kernel in found:
            _show_one(base, kernel, options.limit)
    else:
        _list(found)
    return Code.DONE


def _list(found: Sequence[KernelPast]) -> None:
    table = Table("kernel", "identity", "outcomes", "refused", "best", "device", "last", box=None)
    for k in found:
        best = k.best[0] if k.best else None
        table.add_row(
            Text(k.kernel),
            k.identity[:12],
            str(k.count),
            str(k.refused),
            _speedup(best),
            Text(best.device if best else ""),
            _date(k.last),
        )
    _console().print(table)


def _show_one(base: KnowledgeBase, kernel: KernelPast, limit: int) -> None:
    past = base.past(kernel.identity, limit, limit) or kernel
    console = _console()
    console.print(Text(f"{past.kernel} {past.identity}", style="bold"))
    for state in base.states(kernel.identity):
        console.print(Text(f"  {keys.describe(state)}"))
    for title, attempts in (("best", past.best), ("newest", past.newest)):
        table = Table("speed-up", "device", "chain", "refused by", "when", box=None)
        table.title, table.title_justify = title, "left"
        for a in attempts:
            table.add_row(_speedup(a), Text(a.device), Text(a.chain), Text(_refusal(a)), _date(a.created))
        if attempts:
            console.print(table)


def _export(base: KnowledgeBase, options: argparse.Namespace) -> Code:
    count = transfer.export(base, options.file)
    print(f"{count:,} outcomes written to {options.file}")
    return Code.DONE


def _import(base: KnowledgeBase, options: argparse.Namespace) -> Code:
    refused = 0
    for file in options.file:
        came = transfer.import_(base, file)
        refused += came.refused
        known = came.outcomes - came.added
        print(
            f"{file}: {came.added:,} outcomes added, {known:,} known already, {came.refused:,} lines refused"
        )
        for reason in came.reasons:
            print(f"  {reason}", file=sys.stderr)
    return Code.INPUT if refused else Code.DONE


def _verify(base: KnowledgeBase, options: argparse.Namespace) -> Code:
    report = base.verify(options.repair)
    print(
        f"{report.outcomes:,} outcomes read, {report.rows:,} derived rows compared, {report.found} problems"
    )
    for problem in report.problems:
        print(f"  {problem}", file=sys.stderr)
    if report.repaired:
        print("the derived tables were summed up anew from the outcomes")
    elif report.found:
        print("`modelblaster kb verify --repair` sums the derived tables up anew from the outcomes")
    return Code.INPUT if report.found else Code.DONE


def _speedup(attempt: Attempt | None) -> str:
    """Write a speed-up so that only a verified gain looks like one."""
    if attempt is None or attempt.speedup is None:
        return ""
    s = attempt.speedup
    figure = str(s)
    return figure if attempt.gain else f"({figure})"


def _refusal(attempt: Attempt) -> str:
    if attempt.failure:
        return attempt.failure
    return "" if attempt.gain or attempt.speedup is None else "not a verified gain"


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _table() -> Table:
    return Table(box=None, show_header=False, padding=(0, 1))


def _console() -> Console:
    width = None if sys.stdout.isatty() else WIDE
    return Console(highlight=False, markup=False, width=width)


def _json(value: object) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.flush()
