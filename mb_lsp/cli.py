"""The command line: ``modelblaster optimize | doctor | kb | bench | lsp``."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import sys
from collections.abc import Sequence
from importlib import metadata
from types import FrameType
from typing import NoReturn, cast

from mb_lsp.problems import Code, CommandError
from mb_targets.model import Precision

_UNITS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}

# Anything above is a slip of the finger, and would not fit what is passed to a job.
_MOST = 1_000_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the answer is the exit code (``docs/cli.md``)."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        options = parser(given[0] if given else "").parse_args(given)
        return _flushed(int(_dispatch(options)))
    except CommandError as error:
        return _refused(str(error), error.code)
    except KeyboardInterrupt:
        return _refused("cancelled", Code.CANCELLED)
    except BrokenPipeError:
        _drop_output()
        return int(Code.DONE)
    except OSError as error:
        _drop_output()
        where = error.filename or "standard output"
        return _refused(f"cannot use {where}: {error.strerror}", Code.INTERNAL)


def parser(command: str) -> argparse.ArgumentParser:
    """Build the parser; the subcommands of ``command`` alone are filled in, so that starting stays fast."""
    top = argparse.ArgumentParser(
        prog="modelblaster", description="Optimize accelerator kernels, verified and measured."
    )
    top.add_argument("--version", action="version", version=_version())
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_optimize(commands)
    doctor = commands.add_parser("doctor", help="say what works here and what to install for the rest")
    doctor.add_argument("--json", action="store_true", help="print one JSON list")
    if command == "kb":
        from mb_lsp import kb_cli

        kb_cli.add_parser(commands)
    else:
        commands.add_parser("kb", help="look into the knowledge base")
    if command == "bench":
        from mb_lsp import bench

        bench.add_parser(commands)
    else:
        commands.add_parser("bench", help="measure the server, or the examples")
    commands.add_parser("lsp", help="run the language server on standard input and output")
    return top


def seconds(text: str) -> float:
    """Read a duration: ``60``, ``60s``, ``2m``, ``1h``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h)?", text.strip())
    value = float(match[1]) * _UNITS[match[2] or ""] if match else 0.0
    if not 0 < value < _MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration; write it as 60s or 2m")
    return value


def _add_optimize(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    add = commands.add_parser(
        "optimize",
        help="search a verified, measured, faster variant of a kernel",
        description="Optimize the named kernel, or each kernel of the file in turn.",
    ).add_argument
    add("file", metavar="FILE[:KERNEL]", help="a .cl file, or a C, C++ or Python file with OpenCL C in it")
    add("--budget", type=seconds, default=60.0, metavar="TIME", help="time a kernel may take: 60s, 2m (60s)")
    add("--candidates", type=_count, default=10_000, metavar="N", help="try at most this many")
    add("--device", default="", metavar="NAME", help="pocl, intel, gpu, or part of a device's name")
    add("--apply", action="store_true", help="write the best verified variant to the files it edits")
    add("--json", action="store_true", help="print the result as JSON (docs/cli.md)")
    add(
        "--seed",
        type=_seed,
        metavar="N",
        help="seed of inputs and search; otherwise one is drawn, and printed",
    )
    add("--knowledge", metavar="DIR", help="folder of the knowledge base (your own in the data folder)")
    add("--no-knowledge", action="store_true", help="neither read nor write a knowledge base")
    add("--precision", choices=["same", "bitwise"], default="same", help="what error is allowed (same)")
    add("--keep-job", action="store_true", help="keep the job's folder even if nothing was found")


def _dispatch(options: argparse.Namespace) -> int:
    match options.command:
        case "optimize":
            return _optimize(options)
        case "doctor":
            from mb_lsp import doctor

            return doctor.run(options.json)
        case "kb":
            from mb_lsp import kb_cli

            return kb_cli.run(options)
        case "bench":
            from mb_lsp import bench

            return bench.run(options)
        case _:
            from mb_lsp import server

            server.main()
            return Code.DONE


def _optimize(options: argparse.Namespace) -> int:
    from mb_lsp import optimize

    if options.knowledge and options.no_knowledge:
        raise CommandError("--knowledge and --no-knowledge exclude each other; give one", Code.USAGE)
    knowledge = "" if options.no_knowledge else options.knowledge or optimize.default_knowledge()
    return optimize.run(
        optimize.Options(
            file=options.file,
            seconds=options.budget,
            candidates=options.candidates,
            device=options.device,
            apply=options.apply,
            as_json=options.json,
            seed=options.seed,
            knowledge=knowledge,
            precision=cast("Precision", options.precision),
            keep_job=options.keep_job,
        )
    )


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= _MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is no count; give a whole number from 1 to {_MOST}")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal() or not int(text) < 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is no seed; give a whole number from 0 to {2**63 - 1}")
    return int(text)


def _flushed(code: int) -> int:
    """Write what is still buffered, while a failure can still be told."""
    sys.stdout.flush()
    return code


def _refused(sentence: str, code: Code) -> int:
    with contextlib.suppress(OSError):
        print(f"modelblaster: {sentence}", file=sys.stderr)
    return int(code)


def _drop_output() -> None:
    """Let what is still buffered go nowhere: Python would fail on it again as it ends."""
    with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _version() -> str:
    return f"modelblaster {metadata.version('modelblaster')}"


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
