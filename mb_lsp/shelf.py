"""Jobs as they lie on disk: listed by a server that starts, offered as long as their kernel is the same."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from mb_agent import events
from mb_agent.events import Failed, Finished, Offer, Progress, Queued, Started, Tried
from mb_kb.records import MINIMUM_GAIN
from mb_lsp import processes
from mb_targets.outcome import Speedup


class Owner(msgspec.Struct, frozen=True):
    """Which document a job is of, and which server and process run it; births tell reused ids apart."""

    uri: str
    server: int
    server_birth: str
    process: int = 0
    process_birth: str = ""


class _KernelHead(msgspec.Struct, frozen=True):
    target: str
    name: str
    identity: str


class _Head(msgspec.Struct, frozen=True):
    """The part of a request that listing needs; the texts in it are skipped."""

    kernel: _KernelHead
    path: str = ""


@dataclass
class Log:
    """What a job's events say so far."""

    started: Started | None = None
    queued: Queued | None = None
    progress: Progress | None = None
    end: Finished | Failed | None = None
    partial: tuple[Offer, ...] = ()

    def absorb(self, event: events.Event) -> None:
        """Take the next event."""
        match event:
            case Started():
                self.started, self.queued = event, None
            case Queued():
                self.queued = event
            case Progress():
                self.progress, self.queued = event, None
            case Tried():
                self._keep(event)
            case Finished() | Failed():
                self.end = self.end or event

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The improvements found, the best first: those of the end, or of a search cut short."""
        return self.end.offers if isinstance(self.end, Finished) else self.partial

    @property
    def best(self) -> Speedup | None:
        """The best speed-up seen so far."""
        if self.offers:
            return self.offers[0].measurement.speedup
        return self.progress.best if self.progress else None

    def _keep(self, tried: Tried) -> None:
        """Keep the best verified gain of each kind, so that a cancelled search loses nothing."""
        outcome, variant = tried.outcome, tried.variant
        if outcome.total is None or not outcome.gain(MINIMUM_GAIN):
            return
        changes = variant.launch is not None
        offer = Offer(variant, outcome.verdict, outcome.total, changes, "", "", tried.conditions)
        best: dict[bool, Offer] = {}
        for each in (*self.partial, offer):
            known = best.get(each.changes_launch)
            if known is None or each.measurement.speedup.value > known.measurement.speedup.value:
                best[each.changes_launch] = each
        self.partial = tuple(sorted(best.values(), key=lambda o: -o.measurement.speedup.value))


# Jobs kept of one kernel, and how long one that came to nothing is.
MOST_OF_A_KERNEL = 8
KEEP_EMPTY_SECONDS = 7 * 24 * 3600.0

_SUFFIXES = {"c": ".c", "cpp": ".cpp", "python": ".py"}


class _Summary(msgspec.Struct, frozen=True):
    """What the events of a file of this size say."""

    size: int
    log: Log


Phase = Literal["running", "cancelled", "interrupted", "finished", "failed"]


class Job:
    """One optimization, running or on disk.

    Attributes:
        path: The document's file, empty for unsaved text.
        identity: Identity of the kernel as it was.
        running: Whether this server runs it.
        cancelled: Whether the user ended it.
        edited: Whether the kernel's text changed since it was asked for.
    """

    def __init__(self, folder: Path, uri: str, path: str, target: str, name: str, identity: str) -> None:
        self.folder = folder
        self.uri = uri
        self.path = path
        self.target = target
        self.name = name
        self.identity = identity
        self.running = False
        self.cancelled = (folder / "cancelled").exists()
        self.edited = False
        self._log: Log | None = None
        self._request: events.Request | None = None
        self._asked: str | None = None

    @property
    def id(self) -> str:
        """Its id; ids sort by time."""
        return self.folder.name

    @property
    def log(self) -> Log:
        """What its events say; read from disk when first asked for."""
        if self._log is None:
            self._log = self.read_log()
        return self._log

    def read_log(self) -> Log:
        """Read what its events say; once read to its end, a log has a summary that says it at once."""
        try:
            size = (self.folder / "events.jsonl").stat().st_size
            summary = _summary(self.folder)
            if summary is not None and summary.size == size:
                return summary.log
            log = Log()
            for event in events.read_log(self.folder):
                log.absorb(event)
        except FileNotFoundError:
            return Log()
        except (OSError, msgspec.MsgspecError):
            sentence = f"the job's log cannot be read; it is in {self.folder}"
            return Log(end=Failed(time.time(), sentence))
        if log.end is not None:
            _summarize(self.folder, _Summary(size, log))
        return log

    def summarize(self) -> None:
        """Keep what its events say where it is found without reading them all; for a job that finished."""
        with contextlib.suppress(OSError):
            _summarize(self.folder, _Summary((self.folder / "events.jsonl").stat().st_size, self.log))

    @property
    def final(self) -> bool:
        """Whether its offers were verified and measured once more at the end, in fresh processes."""
        return isinstance(self.log.end, Finished)

    @property
    def asked(self) -> str:
        """The launch as the user's files stated it when it was asked for; empty if that is not known."""
        if self._asked is None:
            try:
                self._asked = (self.folder / "launch.txt").read_text()
            except OSError:
                self._asked = ""
        return self._asked

    @property
    def request(self) -> events.Request:
        """What was asked for.

        Raises:
            OSError: It cannot be read.
            msgspec.MsgspecError: It is damaged.
        """
        if self._request is None:
            self._request = events.read_request(self.folder)
        return self._request

    @property
    def phase(self) -> Phase:
        """Where it is."""
        if self.running:
            return "running"
        match self.log.end:
            case Finished():
                return "finished"
            case Failed():
                return "failed"
        return "cancelled" if self.cancelled else "interrupted"

    def mark_cancelled(self, cancelled: bool) -> None:
        """Note, on disk too, whether the user ended it."""
        self.cancelled = cancelled
        mark = self.folder / "cancelled"
        with contextlib.suppress(OSError):
            mark.touch() if cancelled else mark.unlink(missing_ok=True)

    def own(self, process: int = 0) -> None:
        """Note on disk that this server runs it, in the process of this id."""
        server = os.getpid()
        owner = Owner(
            self.uri, server, processes.birth(server), process, processes.birth(process) if process else ""
        )
        (self.folder / "owner.json").write_bytes(msgspec.json.encode(owner))


def new_id(name: str) -> str:
    """Choose a job's id: when, to the microsecond, what, and a number that makes it the only one."""
    now = time.time_ns()
    second = time.strftime("%Y%m%d-%H%M%S", time.localtime(now // 10**9))
    return f"{second}-{now // 1000 % 10**6:06d}-{name[:40]}-{os.urandom(3).hex()}"


def private_path(folder: Path, language: str) -> Path:
    """Name the file that stands for unsaved text: in a workspace of its own, without host code."""
    return folder / "unsaved" / f"untitled{_SUFFIXES.get(language, '.cl')}"


def prepare(folder: Path, request: events.Request, launch: str) -> None:
    """Write a job's folder.

    Args:
        folder: The folder.
        request: What is asked for.
        launch: The launch as the user's files state it.

    Raises:
        OSError: It cannot be written.
    """
    events.write_request(folder, request)
    _make_private(folder, Path(request.path))
    (folder / "launch.txt").write_text(launch)


def outdated(jobs: Iterable[Job]) -> list[Job]:
    """List the jobs that nobody will ask for: ended with nothing a week ago, or one of too many of a kernel.

    Reads their logs, so it belongs beside the event loop.
    """
    found: list[Job] = []
    kept: Counter[tuple[str, str]] = Counter()
    for job in sorted(jobs, key=lambda each: each.id, reverse=True):
        log, key = job.read_log(), (job.uri, job.name)
        empty = (log.end is not None or job.cancelled) and not log.offers
        if not job.running and (kept[key] >= MOST_OF_A_KERNEL or (empty and _age(job) > KEEP_EMPTY_SECONDS)):
            found.append(job)
        else:
            kept[key] += 1
    return found


def _age(job: Job) -> float:
    try:
        return time.time() - (job.folder / "request.json").stat().st_mtime
    except OSError:
        return 0.0


def _summary(folder: Path) -> _Summary | None:
    """Read the summary of a log; a missing or damaged one is made anew."""
    try:
        return msgspec.json.decode((folder / "summary.json").read_bytes(), type=_Summary)
    except (OSError, msgspec.MsgspecError):
        return None


def _summarize(folder: Path, summary: _Summary) -> None:
    fresh = folder / f"summary.{os.getpid()}"
    with contextlib.suppress(OSError):
        fresh.write_bytes(msgspec.json.encode(summary))
        fresh.replace(folder / "summary.json")


def _make_private(folder: Path, path: Path) -> None:
    """Make the workspace of a job's unsaved text; a settings file marks where it ends."""
    if path.is_relative_to(folder):
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "modelblaster.toml").touch()


def load(jobs: Path) -> Iterable[Job]:
    """List the jobs on disk, the oldest first, but for those that another window runs.

    A job whose server died is taken over; should its process have outlived the server it is killed.
    """
    if not jobs.is_dir():
        return
    for folder in sorted(jobs.iterdir()):
        try:
            head = msgspec.json.decode((folder / "request.json").read_bytes(), type=_Head)
            owner = _owner(folder, head.path)
        except (OSError, msgspec.MsgspecError):
            continue
        if owner.server != os.getpid() and processes.alive(owner.server, owner.server_birth):
            continue
        if processes.alive(owner.process, owner.process_birth):
            processes.kill_tree(owner.process)
        job = Job(folder, owner.uri, head.path, head.kernel.target, head.kernel.name, head.kernel.identity)
        # Without an owner it came from the command line, where it may still run.
        if owner.server or job.phase in ("finished", "failed"):
            yield job


def remove(job: Job) -> None:
    """Remove a job from disk; what cannot be removed stays."""
    shutil.rmtree(job.folder, ignore_errors=True)


def _owner(folder: Path, path: str) -> Owner:
    """Read who runs a job; one started from the command line has no such note."""
    try:
        return msgspec.json.decode((folder / "owner.json").read_bytes(), type=Owner)
    except FileNotFoundError:
        return Owner(Path(path).as_uri() if path else "", 0, "")
