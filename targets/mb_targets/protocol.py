"""What a target must offer, and what it may offer beyond that.

A target has two halves. The server half is pure: no device, no numpy, milliseconds. The worker half lives in
a child process, may import anything, and is the only place where a program is built or run. A target never
makes inputs, never compares, never averages, never loops: the optimizer does that once for all targets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, TypeAlias, runtime_checkable

from mb_targets.model import (
    Action,
    Device,
    DocumentEdits,
    Kernel,
    LaunchSpec,
    NotApplicable,
    Proposal,
    State,
    Variant,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]

FAULT = "fault: "
"""A worker half that dies of a kernel's stray access may print a line that begins so and names the place."""

GUARD_PAGES = "guard pages"
"""The feature of a device on which every access outside a buffer is caught, reads too; others see writes."""

Data: TypeAlias = bytes | memoryview
"""Initial bytes of a buffer; a view is of memory shared with the optimizer and read-only."""


@dataclass(frozen=True, slots=True)
class Question:
    """What has to be known before a kernel can be launched, and the text that would answer it.

    Attributes:
        text: One sentence for a person.
        comment: A ``// mb:`` line to put above the kernel, with the unknown parts left as ``?``.
    """

    text: str
    comment: str


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch with every expression worked out: what one call of ``Program.run`` needs.

    Attributes:
        scalars: Value by parameter name.
        buffers: Bytes of each buffer, by parameter name, in the parameters' order.
        local_bytes: Bytes of each local-memory argument.
        order: Parameter names in order.
        dtypes: Element type by parameter name.
        lanes: Vector lanes by parameter name.
        written: Names of the buffers that may be written.
        ranges: Smallest and largest value to fill a buffer with, for those that must stay inside one.
    """

    order: tuple[str, ...]
    dtypes: Mapping[str, str]
    lanes: Mapping[str, int]
    scalars: Mapping[str, float]
    buffers: Mapping[str, int]
    local_bytes: Mapping[str, int]
    written: tuple[str, ...]
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunResult:
    """What one run left behind.

    Attributes:
        outputs: Bytes of each written buffer after the run.
        changed_inputs: Names of the read-only buffers whose bytes changed.
        slack: Most bytes past the end of a buffer that could be read without being caught.
    """

    outputs: Mapping[str, bytes]
    changed_inputs: tuple[str, ...]
    slack: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """Device time of a batch of launches, in nanoseconds a launch."""

    event_ns: float
    launches: int


class Program(Protocol):
    """Something built that can be run; lives in a worker process only."""

    def run(self, launch: Launch, inputs: Mapping[str, Data]) -> RunResult:
        """Run once on fresh buffers at fresh addresses, each ending at a guard page.

        ``inputs`` holds the initial bytes of every buffer, outputs' poison included.

        Raises:
            RunError: The launch was refused or failed. A crash ends the process instead.
        """
        ...

    def prepare(self, launch: Launch, inputs: Mapping[str, Data], launches: int) -> None:
        """Fill the buffers of ``launches`` timed launches afresh; the first time, do one untimed launch."""
        ...

    def time(self) -> Sample:
        """Launch what was prepared, wait for the device, and give its own time."""
        ...

    def close(self) -> None:
        """Free device memory and files."""
        ...


class Worker(Protocol):
    """The worker half."""

    def device(self) -> Device:
        """Describe the device that ``build`` builds for.

        Raises:
            TargetUnavailable: There is none; the message says what to install.
        """
        ...

    def build(self, variant: Variant, options: Sequence[str], folder: Path) -> Program:
        """Build a variant.

        Args:
            variant: What to build.
            options: The launch spec's options; the variant's own follow them.
            folder: Where includes are looked up and temporary files may lie.

        Raises:
            BuildError: The compiler refused it; lines are those of ``variant.source``.
        """
        ...


class Target(Protocol):
    """One language and its devices: the server half, and the way to the worker half."""

    name: ClassVar[str]
    languages: ClassVar[frozenset[str]]
    suffixes: ClassVar[frozenset[str]]

    def find_kernels(self, text: str, language: str) -> Sequence[Kernel]:
        """Find the kernels of a document, in order; broken text gives those that are whole."""
        ...

    def infer_launch(self, kernel: Kernel, path: Path | None) -> LaunchSpec | Question:
        """Work out how to launch a kernel, from the best source there is.

        Args:
            kernel: The kernel.
            path: The document, whose workspace holds settings and host code; None for unsaved text.
        """
        ...

    def describe_launch(self, kernel: Kernel, launch: LaunchSpec) -> str:
        """Write a launch as the ``// mb:`` comment lines that would give it."""
        ...

    def state(self, kernel: Kernel, launch: LaunchSpec, device: Device) -> State:
        """Say what limits the kernel."""
        ...

    def features(self, kernel: Kernel) -> Sequence[int]:
        """Count what similar kernels have in common: 64 small non-negative numbers."""
        ...

    def propose(
        self, kernel: Kernel, launch: LaunchSpec, device: Device, variant: Variant
    ) -> Sequence[Proposal]:
        """List the actions that may be applied to a variant now, with the gain each is expected to bring."""
        ...

    def apply(
        self, kernel: Kernel, launch: LaunchSpec, device: Device, variant: Variant, action: Action
    ) -> Variant | NotApplicable:
        """Apply one action; the variant that results has it at the end of its chain."""
        ...

    def patch(
        self, kernel: Kernel, launch: LaunchSpec, variant: Variant, path: Path, text: str
    ) -> Sequence[DocumentEdits] | NotApplicable:
        """Turn a variant into edits: the kernel's, and each call site's or comment's whose launch changes."""
        ...

    def reference(
        self, kernel: Kernel, launch: LaunchSpec, concrete: Launch, inputs: Mapping[str, Array]
    ) -> Mapping[str, Array] | None:
        """Evaluate the kernel in float64 without a device; None where it does not lift. Imports numpy."""
        ...

    def sanitizers(self, kernel: Kernel, variant: Variant, guarded: bool) -> Sequence[str]:
        """Name the memory and race checks that this variant's constructs call for.

        Args:
            kernel: The original.
            variant: What is to be checked.
            guarded: Whether the device has ``GUARD_PAGES``; where not, reads are for these checks to watch.
        """
        ...

    def worker(self, choice: str = "") -> Worker:
        """Open the worker half on the user's choice of device; only called in a worker process."""
        ...

    def doctor(self) -> Sequence[Finding]:
        """Say what works here and what to install for the rest; imports nothing heavy."""
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of ``doctor``: a part, whether it is there, what was found, and what it would take."""

    part: str
    works: bool
    found: str
    remedy: str = ""


class Outline(NamedTuple):
    """A kernel in short: its name, its span in the document, its identity."""

    name: str
    start: int
    end: int
    identity: str


class Scanner(Protocol):
    """The kernels of one document, kept up to date over edits."""

    @property
    def kernels(self) -> Sequence[Kernel]:
        """The kernels that are whole, in order."""
        ...

    @property
    def outline(self) -> Sequence[Outline]:
        """The same kernels in short; cheap enough for each keystroke."""
        ...

    def follow(self, text: str, start: int, old_end: int, new_end: int) -> None:
        """Take over an edit: ``[start, old_end)`` of the text before is ``[start, new_end)`` of ``text``."""
        ...


@runtime_checkable
class SupportsScan(Protocol):
    """A target that looks only at what changed of a document."""

    def scan(self, text: str, language: str) -> Scanner | None:
        """Begin to follow a document; None for a language whose documents must be read whole each time."""
        ...


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """What a compiler's front end finds wrong; line and column of the kernel's source, counted from 1."""

    line: int
    column: int
    message: str


@runtime_checkable
class SupportsDiagnose(Protocol):
    """A target that can say without a device why a kernel does not build; never called in the server."""

    def diagnose(self, kernel: Kernel, options: Sequence[str]) -> Sequence[Diagnostic]:
        """Parse a kernel's source in a helper process; nothing where that cannot be done here."""
        ...


@runtime_checkable
class SupportsProbe(Protocol):
    """A worker that can find out by running a kernel what inference could not."""

    def probe(self, kernel: Kernel, launch: LaunchSpec, folder: Path) -> LaunchSpec:
        """Fill in the extents that a launch leaves as ``?``; the kernel runs and may end the process.

        Raises:
            LaunchUnknown: One cannot be found; the message says how to state it.
            BuildError: The compiler refused the kernel.
            RunError: The launch was refused.
        """
        ...


@runtime_checkable
class SupportsSanitize(Protocol):
    """A worker that can run memory and race checks."""

    def sanitize(
        self, name: str, variant: Variant, options: Sequence[str], launch: Launch, inputs: Mapping[str, Data]
    ) -> str | None:
        """Run the named check on one launch.

        Returns:
            The finding in words when the check failed, an empty string when it passed, None when it could not
            be made here.
        """
        ...
