"""Run one job's process and follow its events; cancel kills its whole group."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from mb_agent import events
from mb_lsp import folders, processes, shelf
from mb_lsp.problems import Code, CommandError


def new_job(kernel: str) -> tuple[str, Path]:
    """Choose a job's id and folder; ids sort by time."""
    job = shelf.new_id(kernel)
    return job, folders.jobs() / job


def prepare(folder: Path, request: events.Request) -> None:
    """Write a job's folder.

    Raises:
        CommandError: The data folder cannot be written.
    """
    try:
        events.write_request(folder, request)
        (folder / "job.log").touch()
    except OSError as error:
        raise CommandError(
            f"cannot write {folder}: {error.strerror}; set MODELBLASTER_HOME to a folder that can be written"
        ) from error


def discard(folder: Path) -> None:
    """Remove a job's folder; what cannot be removed stays."""
    shutil.rmtree(folder, ignore_errors=True)


class JobProcess:
    """The process of one job, in a session and process group of its own.

    Attributes:
        folder: The job's folder, its request written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with (folder / "job.log").open("ab") as log:
            # The job ends when its standard input does: nothing is left behind should we be killed.
            self._process = subprocess.Popen(
                [*processes.job_command(), str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=folder,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id, which is also its group's."""
        return self._process.pid

    def events(self) -> Iterator[events.Event]:
        """Yield events as they come; the last is Finished or Failed, made up here should the process die."""
        assert self._process.stdout is not None
        last: events.Event | None = None
        for line in self._process.stdout:
            try:
                last = events.decode(line)
            except msgspec.DecodeError:
                continue  # a library that prints; the job's own lines are whole
            yield last
        code = self._process.wait()
        if not isinstance(last, events.Finished | events.Failed):
            yield events.Failed(time.time(), processes.death(code, self.folder / "job.log"))

    def cancel(self) -> None:
        """Kill the job with all that it started, at once; its log keeps what it had found."""
        processes.kill_tree(self._process.pid)
        self._process.wait()

    def close(self) -> None:
        """Release the pipes; ends the job if it still runs."""
        if self._process.poll() is None:
            self.cancel()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def exit_code(failed: events.Failed) -> Code:
    """Give the exit code that a failed job stands for."""
    return {"input": Code.INPUT, "device": Code.DEVICE, "internal": Code.INTERNAL}[failed.cause]
