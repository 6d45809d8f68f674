"""The job's event log: the wire to the server, the live display, and what a killed job resumes from.

A job is a folder: ``request.json``, and ``events.jsonl`` with one of the structs below a line. The job
(``python -m mb_agent.job FOLDER``) appends each event to the file, then writes the same line to its standard
output. The last event of a job that ended is Finished or Failed; one that has neither was killed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from mb_targets.model import Device, Kernel, LaunchSpec, Precision, State, Variant
from mb_targets.outcome import Measurement, Outcome, Speedup, Verdict


class Budget(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a job may spend: seconds of its own work (queueing not counted), and candidates."""

    seconds: float = 60.0
    candidates: int = 10_000


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """What to optimize, as it was when it was asked for.

    Attributes:
        job: The job's id, which is the folder's name.
        path: The document, empty for unsaved text.
        text: The whole document; ``kernel.source`` is the part that builds.
        offset: Where ``kernel.source`` begins in ``text``.
        device: The user's choice of device, empty for the best one.
        knowledge: Folder of the knowledge base, empty to do without.
        launch: The launch to use, None to infer it.
        policy: Name of the search policy.
        seed: Seed of the inputs and the search; None draws one.
    """

    job: str
    path: str
    text: str
    kernel: Kernel
    offset: int = 0
    budget: Budget = Budget()
    device: str = ""
    knowledge: str = ""
    launch: LaunchSpec | None = None
    precision: Precision = "same"
    policy: str = "built-in"
    seed: int | None = None


class Started(msgspec.Struct, frozen=True, tag="started"):
    """The original built and ran; ``launch_comment`` is the resolved launch as a comment."""

    time: float
    device: Device
    state: State
    launch: LaunchSpec
    launch_comment: str
    seed: int


class Queued(msgspec.Struct, frozen=True, tag="queued"):
    """Waiting for the device: this many jobs are before us."""

    time: float
    before: int


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    """Where the job is: a stage in words, candidates tried, the share done (0 to 1), the best so far."""

    time: float
    stage: str
    tried: int
    share: float
    best: Speedup | None = None


class Tried(msgspec.Struct, frozen=True, tag="tried"):
    """One attempt ended; ``variant`` is kept so that a resumed job need not make it again.

    ``conditions`` are those of an offer, where the outcome is a verified gain: what must hold for it to be
    right, and what the search has left unchecked. A cancelled job's best comes from such an event.
    """

    time: float
    outcome: Outcome
    variant: Variant
    conditions: tuple[str, ...] = ()


class Offer(msgspec.Struct, frozen=True):
    """A fully verified, measured improvement.

    Attributes:
        changes_launch: Whether the NDRange differs from the user's.
        diff: Unified diff of every document it edits.
        evidence: Path of the evidence file, which replays the claim.
        conditions: What must hold for it to be right, in words.
    """

    variant: Variant
    verdict: Verdict
    measurement: Measurement
    changes_launch: bool
    diff: str
    evidence: str
    conditions: tuple[str, ...] = ()


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """The job ended by itself.

    Attributes:
        offers: The best one first; at most one that keeps the launch and one that changes it.
        tried: Candidates tried.
        refused: Of those, how many verification refused.
        reason: Why it stopped, in words.
        control: The A/A ratio measured on this device in this job, as a note on its noise.
    """

    time: float
    offers: tuple[Offer, ...]
    tried: int
    refused: int
    reason: str
    control: Speedup | None = None


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """The job could not do its work: one sentence for the user, and a comment that may answer it.

    ``cause`` says whose turn it is: ``input`` (the file or its launch), ``device`` (a device, toolchain or
    driver is missing or refused), or ``internal`` (ours). The command line's exit code follows it.
    """

    time: float
    message: str
    comment: str = ""
    cause: Literal["input", "device", "internal"] = "internal"


Event: TypeAlias = Started | Queued | Progress | Tried | Finished | Failed

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
_requests = msgspec.json.Decoder(Request)


def encode(event: Event) -> bytes:
    """Write an event as one line, its newline included."""
    return _encoder.encode(event) + b"\n"


def decode(line: bytes) -> Event:
    """Read one line.

    Raises:
        msgspec.DecodeError: The line is torn or not an event.
    """
    return _decoder.decode(line)


def read_log(folder: Path) -> list[Event]:
    """Read a job's events; a torn last line, which a kill leaves, is dropped."""
    try:
        data = (folder / "events.jsonl").read_bytes()
    except FileNotFoundError:
        return []
    whole, _, _ = data.rpartition(b"\n")
    return [decode(line) for line in whole.splitlines() if line]


def write_request(folder: Path, request: Request) -> None:
    """Make a job's folder with its request in it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "request.json").write_bytes(_encoder.encode(request))


def read_request(folder: Path) -> Request:
    """Read a job's request."""
    return _requests.decode((folder / "request.json").read_bytes())
