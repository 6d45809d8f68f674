"""The job process: ``python -m mb_agent.job FOLDER``.

It reads ``request.json`` in the folder, writes every event to ``events.jsonl`` and to standard output, and
leads a process group of its own. It ends at once, with its workers, on SIGTERM, SIGINT and SIGHUP, and when
its parent goes. A folder that has events already is gone on with.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import msgspec

from mb_agent.errors import AgentError, JobRefused, OriginalRefused, sentence
from mb_agent.events import Event, Failed, Finished, encode, read_log, read_request
from mb_agent.optimize import Optimization
from mb_targets.errors import TargetError, TargetUnavailable

_PR_SET_PDEATHSIG = 1
_ENDING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


class Log:
    """Appends events to the folder, then to standard output.

    Args:
        folder: The job's folder.
        gone: Called when nobody reads standard output any more.
    """

    def __init__(self, folder: Path, gone: Callable[[], None]) -> None:
        self._folder = folder
        self._file = (folder / "events.jsonl").open("ab", buffering=0)
        self._gone = gone

    def __call__(self, event: Event) -> None:
        """Write one event; whoever reads standard output gets it even where the folder takes no more.

        Raises:
            JobRefused: The folder cannot be written.
        """
        line = encode(event)
        try:
            self._append(line)
        except OSError as error:
            raise unwritable(self._folder, error) from None
        finally:
            self._print(line)

    def _append(self, data: bytes) -> None:
        while data:  # a write that meets a limit takes a part; the next one says why
            data = data[self._file.write(data) or 0 :]

    def _print(self, line: bytes) -> None:
        try:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        except (BrokenPipeError, ValueError):
            self._gone()


def unwritable(folder: Path, error: OSError) -> JobRefused:
    """Say that a job's folder takes no more."""
    return JobRefused(f"the job's folder {folder} cannot be written: {error.strerror or error}")


def main(arguments: list[str] | None = None) -> int:
    """Run the job in a folder; 0 when it finished, 1 when it failed."""
    given = sys.argv[1:] if arguments is None else arguments
    if len(given) != 1:
        print("usage: python -m mb_agent.job FOLDER", file=sys.stderr)
        return 2
    folder = Path(given[0]).resolve()
    parent = os.getppid()
    _lead_group()
    running: list[Optimization] = []
    end = _ender(running)
    _watch(parent, end)
    try:
        log = Log(folder, lambda: end(1))
    except OSError as error:
        refused = unwritable(folder, error)
        sys.stdout.buffer.write(encode(Failed(time.time(), str(refused), cause=refused.cause)))
        return 1
    failed = _run(folder, log, running)
    if failed is None:
        return 0
    with contextlib.suppress(JobRefused):  # it is printed all the same
        log(failed)
    return 1


def _run(folder: Path, log: Log, running: list[Optimization]) -> Failed | None:
    """Do the work; what went wrong comes back as one sentence."""
    try:
        before = read_log(folder)
        if before and isinstance(before[-1], Finished | Failed):
            return Failed(time.time(), "this job has ended already; start a new one")
        request = read_request(folder)
        running.append(Optimization(request, folder, log, before))
        running[0].run()
    except JobRefused as error:
        return Failed(time.time(), str(error), error.comment, error.cause)
    except OriginalRefused as error:
        return Failed(time.time(), str(error), cause="input")
    except TargetUnavailable as error:
        return Failed(time.time(), str(error), cause="device")
    except (TargetError, AgentError) as error:
        _note(folder)
        return Failed(time.time(), sentence(error))
    except (FileNotFoundError, msgspec.MsgspecError) as error:
        _note(folder)
        return Failed(time.time(), f"the job's folder {folder} cannot be used: {error}", cause="input")
    except OSError as error:
        _note(folder)
        return Failed(time.time(), str(unwritable(folder, error)), cause="input")
    except Exception as error:  # noqa: BLE001  the edge around a job: a sentence out, the rest to its log
        _note(folder)
        name = type(error).__name__
        return Failed(time.time(), f"internal error ({name}); the details are in {folder / 'job.log'}")
    return None


def _note(folder: Path) -> None:
    """Keep a traceback where it can be found and nobody is bothered by it."""
    with contextlib.suppress(OSError), (folder / "job.log").open("a", encoding="utf-8") as file:
        file.write(traceback.format_exc())


def _lead_group() -> None:
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)


def _ender(running: list[Optimization]) -> Callable[[int], None]:
    def end(code: int) -> None:
        for optimization in running:
            optimization.stop()
        os._exit(code)

    return end


def _watch(parent: int, end: Callable[[int], None]) -> None:
    """End on a signal, or when the parent is gone; a thread waits, so a long computation delays nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    heard, told = os.pipe()
    os.set_blocking(told, False)
    for number in _ENDING:
        signal.signal(number, lambda _number, _frame: None)  # whichever thread gets it, the pipe is told
    signal.set_wakeup_fd(told)

    def wait() -> None:
        while True:
            if select.select([heard], [], [], 1.0)[0]:
                end(128 + os.read(heard, 1)[0])
            if os.getppid() != parent:
                end(1)

    threading.Thread(target=wait, daemon=True, name="watch").start()


if __name__ == "__main__":
    sys.exit(main())
