"""Running optimizations: started as child processes, followed on the event loop, killed whole."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
from filelock import BaseFileLock, FileLock, Timeout

from mb_agent import events
from mb_agent.events import Failed, Finished, Progress, Queued
from mb_lsp import processes, shelf
from mb_lsp.editor import Editor, Reporter
from mb_lsp.problems import CommandError
from mb_lsp.shelf import Job
from mb_targets.model import Kernel

_log = logging.getLogger(__name__)

# How long a job's pipe may stay open after the job itself ended.
DRAIN_SECONDS = 2.0


class Jobs:
    """All jobs of the user that concern this server.

    Args:
        folder: Where jobs lie.
        editor: The client.
        command: The command that runs a job; its folder is appended.
        changed: Called when a job's state changed in a way that lenses show.
        ended: Called when a job of this server ended by itself or was cancelled.
    """

    def __init__(
        self,
        folder: Path,
        editor: Editor,
        command: Sequence[str],
        changed: Callable[[Job], None],
        ended: Callable[[Job], None],
    ) -> None:
        self._folder = folder
        self._editor = editor
        self._command = tuple(command)
        self._changed = changed
        self._ended = ended
        self._known: dict[str, Job] = {}
        self._by_name: dict[str, list[Job]] = {}
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._tokens: dict[str, str] = {}
        self._reporters: dict[str, Reporter] = {}
        self._locks: dict[str, BaseFileLock] = {}
        self._closing = False

    async def load(self) -> None:
        """List what earlier servers left on disk, then remove what nobody will ask for."""
        for job in shelf.load(self._folder):
            if job.id not in self._known:
                self._add(job)
        for job in await asyncio.to_thread(shelf.outdated, list(self._known.values())):
            if not job.running:
                self._remove(job)

    def get(self, job: str) -> Job | None:
        """Give a job by id."""
        return self._known.get(job)

    def of(self, uri: str, kernel: Kernel | Job) -> list[Job]:
        """List the jobs of a kernel, the newest first: of its document, or of this very kernel anywhere."""
        named = self._by_name.get(kernel.name, ())
        return [job for job in named if job.uri == uri or job.identity == kernel.identity]

    def running(self) -> Iterable[Job]:
        """List the running ones."""
        return [job for job in self._known.values() if job.running]

    def runs(self, uri: str, kernel: Kernel) -> Job | None:
        """Give the job that optimizes this kernel of this document now."""
        for job in self.of(uri, kernel):
            if job.running and job.uri == uri and job.identity == kernel.identity:
                return job
        return None

    def start(self, request: events.Request, uri: str, launch: str) -> Job:
        """Start a job; a kernel that is already being optimized gives the job that does it.

        Args:
            request: What is asked for.
            uri: The document.
            launch: The launch as the user's files state it.

        Raises:
            OSError: The job's folder cannot be written.
        """
        kernel = request.kernel
        if job := self.runs(uri, kernel):
            return job
        folder = self._folder / request.job
        shelf.prepare(folder, request, launch)
        job = Job(folder, uri, request.path, kernel.target, kernel.name, kernel.identity)
        job.own()
        self._add(job)
        self._begin(job)
        return job

    def resume(self, job: Job) -> None:
        """Go on with a job that was killed.

        Raises:
            CommandError: Another window runs it.
        """
        if not job.running:
            self._begin(job)

    def cancel(self, job: Job) -> None:
        """Kill a running job with all that it started, at once."""
        if job.running:
            job.cancelled = True
            self._kill(job.id)

    def cancel_token(self, token: str) -> None:
        """Cancel the job that a progress token belongs to."""
        job = self._known.get(self._tokens.get(token, ""))
        if job is not None:
            self.cancel(job)

    def edited(self, job: Job, edited: bool) -> None:
        """Note whether a running job's kernel still has the text that it had, and say so."""
        if job.edited != edited:
            job.edited = edited
            if job.id in self._reporters:
                self._reporters[job.id].report(*progress_words(job))

    def discard(self, job: Job) -> None:
        """Forget a job and remove it from disk."""
        self.cancel(job)
        self._remove(job)

    def kill_all(self) -> None:
        """Kill every running job; synchronous, for shutdown and signals. They can be resumed."""
        self._closing = True
        for job in list(self._processes):
            self._kill(job)

    def _add(self, job: Job) -> None:
        self._known[job.id] = job
        named = self._by_name.setdefault(job.name, [])
        named.append(job)
        named.sort(key=lambda each: each.id, reverse=True)

    def _remove(self, job: Job) -> None:
        if self._known.pop(job.id, None) is not None:
            self._by_name[job.name].remove(job)
        shelf.remove(job)

    def _begin(self, job: Job) -> None:
        lock = FileLock(job.folder / "lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise CommandError(f"another window optimizes `{job.name}` already") from None
        self._locks[job.id] = lock
        job.running = True
        job.mark_cancelled(False)
        task = asyncio.create_task(self._run(job), name=f"job {job.id}")
        self._tasks[job.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(job.id, None))

    def _kill(self, job: str) -> None:
        process = self._processes.get(job)
        if process is not None and process.returncode is None:
            processes.kill_tree(process.pid)

    async def _run(self, job: Job) -> None:
        token = f"modelblaster-{job.id}"
        self._tokens[token] = job.id
        self._changed(job)
        reporter = self._reporters[job.id] = self._editor.progress(f"Optimizing {job.name}", token)
        try:
            if not (job.cancelled or self._closing):
                await self._follow(job, reporter)
        except OSError as error:
            job.log.end = Failed(
                time.time(), f"the optimizer could not be started: {error.strerror}", cause="internal"
            )
        finally:
            job.running = False
            self._locks.pop(job.id).release()
            self._tokens.pop(token, None)
            self._reporters.pop(job.id, None)
            if not self._closing:
                reporter.end(closing_words(job))
        if not self._closing:
            self._settle(job)

    def _settle(self, job: Job) -> None:
        """Keep what a job that ended is worth, and tell."""
        if job.final:
            job.summarize()
        if job.cancelled and job.log.end is None and job.id in self._known:
            if job.log.offers:
                job.mark_cancelled(True)
            else:
                self._remove(job)
        for older in self.of(job.uri, job):
            if older.id < job.id and older.identity == job.identity and _outdone(older, job):
                self._remove(older)
        self._ended(job)

    async def _follow(self, job: Job, reporter: Reporter) -> None:
        with (job.folder / "job.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                str(job.folder),
                # A job ends when its standard input does, so none outlives a server that was killed.
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                cwd=job.folder,
                start_new_session=True,
                limit=processes.LONGEST_LINE_BYTES,
            )
        self._processes[job.id] = process
        try:
            job.own(process.pid)
            if job.cancelled or self._closing:
                self._kill(job.id)
            reading = asyncio.create_task(self._read(job, process, reporter))
            code = await process.wait()
            await asyncio.wait([reading], timeout=DRAIN_SECONDS)
            reading.cancel()
        finally:
            self._kill(job.id)
            del self._processes[job.id]
        if job.log.end is None and not (job.cancelled or self._closing):
            job.log.end = Failed(time.time(), processes.death(code, job.folder / "job.log"), cause="internal")

    async def _read(self, job: Job, process: asyncio.subprocess.Process, reporter: Reporter) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            try:
                event = events.decode(line)
            except msgspec.MsgspecError:
                _log.info("job %s printed: %.200r", job.id, line)
                continue
            job.log.absorb(event)
            if isinstance(event, Progress | Queued):
                reporter.report(*progress_words(job))
                self._changed(job)


def _outdone(older: Job, newer: Job) -> bool:
    """Tell whether an older job of the same text is of no use any more: it came to nothing."""
    if older.running or older.log.offers:
        return False
    return older.phase == "failed" or isinstance(newer.log.end, Finished)


def progress_words(job: Job) -> tuple[int, str]:
    """Say how far a job is: a percentage, and what stands after it."""
    log = job.log
    percentage = int(100 * log.progress.share) if log.progress else 0
    edited = "; source changed, the result is for the old text" if job.edited else ""
    if log.queued:
        return percentage, f"queued, {log.queued.before} before{edited}"
    if log.progress is None:
        return percentage, f"starting{edited}"
    best = f", best {log.best.value:.2f}x" if log.best else ""
    tried = f"candidate {log.progress.tried}" if log.progress.tried else log.progress.stage
    return percentage, f"{tried}{best}{edited}"


def closing_words(job: Job) -> str:
    """Say how a job ended, in one line."""
    log = job.log
    if isinstance(log.end, Failed):
        return log.end.message
    if job.cancelled and log.end is None:
        return (
            f"cancelled, best so far {log.offers[0].measurement.speedup.value:.2f}x kept"
            if log.offers
            else "cancelled"
        )
    if log.offers:
        return f"verified {log.offers[0].measurement.speedup.value:.2f}x"
    if log.end is None:
        return "interrupted"
    return f"no faster variant in {log.end.tried} tried" if log.end.tried else "no candidate was tried"
