"""Child processes that leave nothing behind: a job and all that it started are killed together."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from mb_lsp.problems import Code, CommandError

# Above 64 KiB, asyncio's default: one event line carries whole sources and diffs.
LONGEST_LINE_BYTES = 1 << 27


def require_platform() -> None:
    """Refuse to start a job where its guard pages, process groups and CPU clocks do not exist.

    Raises:
        CommandError: This is not Linux.
    """
    if sys.platform != "linux":
        raise CommandError(
            "optimizing needs Linux (guard pages, process groups, CPU clocks); the editor and kb work here",
            Code.DEVICE,
        )


def job_command() -> tuple[str, ...]:
    """Give the command that runs a job, but for its folder; ``-P`` keeps the workspace's modules out."""
    return (sys.executable, "-P", "-m", "mb_agent.job")


def kill_tree(pid: int) -> None:
    """Kill a process, its group, and every group that it or a descendant made; returns at once.

    The process must be a child not yet waited for, or one known by its birth. It is stopped first, so that it
    starts nothing while its descendants are looked up: workers live in groups of their own.
    """
    if not hasattr(os, "killpg"):
        os.kill(pid, signal.SIGTERM)
        return
    _signal_group(pid, signal.SIGSTOP)
    tree = descendants(pid)
    groups = {pid, *(group for _, group in tree)}
    groups.discard(os.getpgrp())
    for group in groups:
        _signal_group(group, signal.SIGKILL)
    for process, _ in tree:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)


def descendants(pid: int) -> list[tuple[int, int]]:
    """List the descendants of a process as pairs of process and group; empty where there is no ``/proc``."""
    children: dict[int, list[tuple[int, int]]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat") if Path("/proc").is_dir() else ():
        if fields := _stat(entry):
            children.setdefault(int(fields[1]), []).append((int(entry.parent.name), int(fields[2])))
    found: list[tuple[int, int]] = []
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            found.append(child)
            waiting.append(child[0])
    return found


def birth(pid: int) -> str:
    """Tell one life of a process id from another; empty when not alive, or where there is no ``/proc``."""
    fields = _stat(Path(f"/proc/{pid}/stat"))
    return fields[19] if fields and fields[0] != "Z" else ""


def alive(pid: int, born: str) -> bool:
    """Tell whether the process of this id and birth still lives."""
    return bool(born) and birth(pid) == born


def death(code: int, log: Path) -> str:
    """Say in one sentence how a job died that said nothing itself, and where its log is."""
    how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    said = f" ({lines[-1][:200]})" if lines else ""
    return f"the optimizer {how} before it was done{said}; its log is {log}"


def _stat(path: Path) -> Sequence[str]:
    """Read the fields of a stat file from the state on; the name before them may hold anything."""
    try:
        return path.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ()


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
