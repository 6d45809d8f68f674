"""``modelblaster bench``: measure what the project promises, on this machine."""

from __future__ import annotations

import argparse
from pathlib import Path

from mb_lsp.problems import Code, CommandError


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``bench server``, ``bench examples`` and ``bench repeat``."""
    bench = commands.add_parser("bench", help="measure the server, the examples, or a winner again")
    parts = bench.add_subparsers(dest="part", required=True, metavar="PART")
    server = parts.add_parser("server", help="CPU time, memory and cancel time of the language server")
    server.add_argument(
        "--outcomes", type=int, default=1_000_000, metavar="N", help="size of the knowledge base"
    )
    server.add_argument("--lines", type=int, default=10_000, metavar="N", help="lines of the open document")
    server.add_argument("--json", action="store_true", help="print one JSON list")
    examples = parts.add_parser("examples", help="optimize each example from an empty knowledge base")
    examples.add_argument("names", nargs="*", metavar="NAME", help="only these (file names without .cl)")
    examples.add_argument("--folder", type=Path, metavar="DIR", help="folder with .cl files (examples)")
    repeat = parts.add_parser("repeat", help="measure a kernel's winner again in three fresh processes")
    repeat.add_argument("file", metavar="FILE[:KERNEL]", help="the kernel, or an evidence file")
    for part in (examples, repeat):
        _add_job(part)


def _add_job(parser: argparse.ArgumentParser) -> None:
    """Add what a job is run with."""
    add = parser.add_argument
    add("--device", default="", metavar="NAME", help="as for optimize")
    add("--seconds", type=float, default=60.0, metavar="N", help="budget of each kernel (60)")
    add("--seed", type=int, metavar="N", help="seed of inputs and search")
    add("--json", action="store_true", help="print one JSON list")


def run(options: argparse.Namespace) -> Code:
    """Run one of the parts."""
    if options.part == "server":
        from mb_lsp import bench_server

        return bench_server.run(options.outcomes, options.lines, options.json)
    if options.part == "repeat":
        from mb_lsp import bench_repeat

        again = bench_repeat.Plan(
            options.file, Path.cwd(), options.device, seconds=options.seconds, seed=options.seed
        )
        return bench_repeat.run(again, options.json)
    from mb_lsp import bench_examples

    plan = bench_examples.Plan(
        folder=options.folder or _examples(),
        names=tuple(options.names),
        device=options.device,
        seconds=options.seconds,
        seed=options.seed,
    )
    return bench_examples.run(plan, options.json)


def _examples() -> Path:
    for folder in (Path("examples"), Path(__file__).parents[1] / "examples"):
        if (folder / "matmul.cl").is_file():
            return folder
    raise CommandError("the examples are not here; run this in a checkout of the project, or give --folder")
