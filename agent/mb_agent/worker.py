"""The parent's side of a worker process: start it, ask it, time it from outside, and kill it whole.

One process a side: what a candidate does to its own process cannot reach the baseline, the expected values or
the clock. Each call has a limit in wall seconds; a worker that dies or hangs ends, and ``restart`` makes a
fresh one, in which nothing that was built before exists.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import select
import socket
import subprocess
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from mb_agent import sandbox, wire
from mb_agent.errors import AgentError, TimedOut, WorkerDied
from mb_targets.errors import BuildError, RunError, TargetUnavailable
from mb_targets.model import Device, Kernel, LaunchSpec, Variant
from mb_targets.protocol import Launch, RunResult, Sample

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

R = TypeVar("R")

_KERNEL_RUNS = (wire.Run, wire.Prepare, wire.Time, wire.Probe)
_GRACE_SECONDS = 1.0
_PAGE = 4096
_TAIL_BYTES = 4096
_ids = itertools.count(1)


class SharedInputs:
    """One set of initial buffers in a sealed memory file, sent to each worker once and never copied again.

    The file is freed when the last reference to this object goes; workers drop theirs with their next call.
    """

    def __init__(self, buffers: Mapping[str, ReadableBuffer]) -> None:
        self.id = next(_ids)
        self.places: dict[str, wire.Place] = {}
        self.descriptor = os.memfd_create("inputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        weakref.finalize(self, os.close, self.descriptor)
        offset = 0
        for name, buffer in buffers.items():
            data = memoryview(buffer).cast("B")
            self.places[name] = (offset, len(data))
            _write_all(self.descriptor, data, offset)
            offset += -(-len(data) // _PAGE) * _PAGE
        os.ftruncate(self.descriptor, max(offset, _PAGE))
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)


def share(buffers: Mapping[str, ReadableBuffer]) -> SharedInputs:
    """Put the initial bytes of every buffer, outputs' poison included, where all workers can read them."""
    return SharedInputs(buffers)


class WorkerProcess:
    """One worker process of a target, started by the first call.

    Calls come from one thread at a time; ``kill`` may come from any. The kernel ends the worker when the
    thread that started it ends.

    Args:
        target: The target's name in the registry.
        choice: The user's choice of device, empty for the best one.

    Attributes:
        confined: Which of ``confine.LAYERS`` hold for it, as it said with its device.
    """

    def __init__(self, target: str, choice: str = "") -> None:
        self.target = target
        self.choice = choice
        self._guard = threading.Lock()
        self._child: sandbox.Child | None = None
        self._ended: AgentError | None = None
        self._handles = itertools.count(1)
        self._live: set[int] = set()
        self._sent: dict[int, weakref.ref[SharedInputs]] = {}
        self._results = -1
        self._tail = b""
        self.confined: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Kill the process."""
        self.kill()

    @property
    def pid(self) -> int | None:
        """Process id, which is also its group's; None when there is no process."""
        return self._child.pid if self._child else None

    def device(self, *, limit: float = 60.0) -> Device:
        """Describe the device.

        Raises:
            TargetUnavailable: There is none; the message says what to install.
        """
        described = self._ask(wire.Describe(), wire.Described, "opening the device", limit)
        self.confined = described.confined
        return described.device

    def build(self, variant: Variant, options: Sequence[str], folder: Path, *, limit: float = 30.0) -> int:
        """Build a variant; give the handle that the other calls want.

        Raises:
            BuildError: The compiler refused it.
        """
        handle = next(self._handles)
        request = wire.Build(handle, variant, tuple(options), str(folder))
        self._ask(request, wire.Done, f"building {variant.name}", limit)
        self._live.add(handle)
        return handle

    def run(self, handle: int, launch: Launch, inputs: SharedInputs, *, limit: float = 10.0) -> RunResult:
        """Run once on fresh buffers, each ending at a guard page where the device allows it.

        Raises:
            RunError: The launch was refused, or wrote outside its buffers.
        """
        self._check(handle)
        reference, descriptors = self._reference(inputs)
        places: dict[str, wire.Place] = {}
        offset = 0
        for name in launch.written:
            places[name] = (offset, launch.buffers[name])
            offset += launch.buffers[name]
        fresh = self._results < 0
        if fresh:
            self._results = os.memfd_create("results", os.MFD_CLOEXEC)
            descriptors += (self._results,)
        request = wire.Run(handle, launch, reference, places, fresh)
        answer = self._ask(request, wire.Ran, "running the kernel", limit, descriptors)
        outputs = {name: _read_all(self._results, *place) for name, place in places.items()}
        return RunResult(outputs, answer.changed_inputs, answer.slack)

    def prepare(
        self, handle: int, launch: Launch, inputs: SharedInputs, launches: int, *, limit: float = 30.0
    ) -> None:
        """Fill the buffers for ``launches`` timed launches; the first time, do one untimed launch.

        Raises:
            RunError: The launch was refused.
        """
        self._check(handle)
        reference, descriptors = self._reference(inputs)
        request = wire.Prepare(handle, launch, reference, launches)
        self._ask(request, wire.Done, "preparing to time", limit, descriptors)

    def time(self, handle: int, *, limit: float = 30.0) -> Sample:
        """Launch what was prepared and give the device's own time."""
        self._check(handle)
        return self._ask(wire.Time(handle), wire.Timed, "timing the kernel", limit).sample

    def time_cpu(self, handle: int, *, limit: float = 30.0) -> tuple[int, Sample]:
        """Launch what was prepared; give also the CPU nanoseconds, of all threads and launches together.

        The clock is read from outside, so that nothing in the worker can touch it.
        """
        self._check(handle)
        before = self.cpu_ns()
        sample = self._ask(wire.Time(handle), wire.Timed, "timing the kernel", limit).sample
        return self.cpu_ns() - before, sample

    def cpu_ns(self) -> int:
        """Read the worker's CPU clock: nanoseconds of all its threads since it started.

        Raises:
            WorkerDied: There is no process.
        """
        child = self._child
        if child is None:
            raise self._ended or AgentError("there is no worker process to read the CPU clock of")
        return time.clock_gettime_ns((~child.pid << 3) | 2)  # as clock_getcpuclockid(3) makes it

    def sanitize(
        self,
        name: str,
        variant: Variant,
        options: Sequence[str],
        launch: Launch,
        inputs: SharedInputs,
        *,
        limit: float = 60.0,
    ) -> str | None:
        """Run the named check on one small launch.

        Returns:
            The finding when it failed, an empty string when it passed, None when it could not be made here.
        """
        reference, descriptors = self._reference(inputs)
        request = wire.Sanitize(name, variant, tuple(options), launch, reference)
        return self._ask(request, wire.Sanitized, f"checking with {name}", limit, descriptors).finding

    def probe(self, kernel: Kernel, launch: LaunchSpec, folder: Path, *, limit: float = 60.0) -> LaunchSpec:
        """Fill in the extents that a launch leaves open, by running the kernel; it may end the process.

        Raises:
            BuildError: The compiler refused it.
            RunError: It could not be run, or its buffers' lengths could not be found.
        """
        request = wire.Probe(kernel, launch, str(folder))
        return self._ask(request, wire.Probed, "finding out what the kernel touches", limit).launch

    def close(self, handle: int, *, limit: float = 10.0) -> None:
        """Free a program; one whose process has ended is free already."""
        if handle in self._live:
            self._live.discard(handle)
            self._ask(wire.Close(handle, ()), wire.Done, "freeing a program", limit)

    def kill(self) -> None:
        """End the process with its whole group, at once; does nothing when there is none."""
        self._end(AgentError("the worker process was killed by its owner"))

    def restart(self) -> None:
        """Start a fresh process; handles of the one before are no longer good."""
        self.kill()
        self._ended = None
        self._start()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            arguments = [self.target, self.choice, str(theirs.fileno())]
            self._child = sandbox.start("mb_agent.worker_main", arguments, (theirs.fileno(),))
        self._at_exit = weakref.finalize(self, self._child.end)  # for an owner that forgets to kill it
        self._channel = wire.Channel(ours)
        self._sent.clear()
        self._results = -1
        self._tail = b""
        self._live.clear()

    def _check(self, handle: int) -> None:
        if self._ended is not None:
            raise self._ended
        if handle not in self._live:
            raise AgentError(f"program {handle} is closed, or was built in a process that has ended")

    def _reference(self, inputs: SharedInputs) -> tuple[wire.Shared, tuple[int, ...]]:
        """Name a set of inputs; the first time, say where its parts lie and send the file along."""
        if self._child is None and self._ended is None:
            self._start()
        gone = tuple(key for key, known in self._sent.items() if known() is None)
        if gone:
            for key in gone:
                del self._sent[key]
            self._ask(wire.Close(None, gone), wire.Done, "freeing inputs", 10.0)
        if inputs.id in self._sent:
            return wire.Shared(inputs.id), ()
        self._sent[inputs.id] = weakref.ref(inputs)
        return wire.Shared(inputs.id, inputs.places), (inputs.descriptor,)

    def _ask(
        self, request: wire.Request, kind: type[R], what: str, limit: float, descriptors: tuple[int, ...] = ()
    ) -> R:
        if self._ended is not None:
            raise self._ended
        if self._child is None:
            self._start()
        child = self._child
        reply = None
        if child is not None:  # else another thread has just killed it
            try:
                self._channel.send(request, descriptors, limit)
                reply = self._wait(child, time.monotonic() + limit)
            except (OSError, ValueError, EOFError):  # ValueError: another thread closed the channel
                raise self._died(what, isinstance(request, _KERNEL_RUNS)) from None
        if reply is None:
            raise self._end(TimedOut(f"{what}: not done after {limit:g} s, killed"))
        if isinstance(reply, wire.Raised):
            raise _error(reply)
        if not isinstance(reply, kind):
            raise self._end(AgentError(f"{what}: the worker gave another answer than was asked for"))
        return reply

    def _wait(self, child: sandbox.Child, end: float) -> wire.Reply | None:
        """Wait for a reply while emptying the pipe of what the worker prints; None at the end of time."""
        sources: list[int] = [self._channel.fileno(), child.output]
        while True:
            ready, _, _ = select.select(sources, [], [], max(0.0, end - time.monotonic()))
            if not ready:
                return None
            if child.output in ready and not self._drain(child):
                sources.remove(child.output)
            if self._channel.fileno() in ready:
                body = self._channel.receive()
                if body is not None:
                    return wire.decode_reply(body)

    def _drain(self, child: sandbox.Child) -> bool:
        """Read what was printed, keeping only its tail; False when the pipe is closed."""
        try:
            data = os.read(child.output, 1 << 16)
        except BlockingIOError:
            return True
        self._tail = (self._tail + data)[-_TAIL_BYTES:]
        return bool(data)

    def _died(self, what: str, in_kernel: bool) -> AgentError:
        """Find out how a process ended that no longer answers, and remember that."""
        child = self._child
        if child is None:
            return self._end(AgentError(what))
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.process.wait(_GRACE_SECONDS)
        with contextlib.suppress(OSError):
            self._drain(child)
        code = child.process.poll() or 0
        tail = self._tail.decode(errors="replace").strip()
        return self._end(WorkerDied(what, max(0, -code), tail, in_kernel))

    def _end(self, reason: AgentError) -> AgentError:
        """Kill the process with its group; later calls raise the reason, the first where there are two."""
        with self._guard:
            child, self._child = self._child, None
            if child is not None:
                self._at_exit.detach()
                child.end()
                self._channel.close()
                if self._results >= 0:
                    os.close(self._results)
                self._ended = reason
            return self._ended or reason


def _error(reply: wire.Raised) -> Exception:
    match reply.kind:
        case "unavailable":
            return TargetUnavailable(reply.message)
        case "build":
            return BuildError(reply.message)
        case "run":
            return RunError(reply.message)
        case "internal":
            return AgentError(reply.message)


def _write_all(descriptor: int, data: memoryview, offset: int) -> None:
    while data:
        written = os.pwrite(descriptor, data, offset)
        data = data[written:]
        offset += written


def _read_all(descriptor: int, offset: int, size: int) -> bytes:
    first = os.pread(descriptor, size, offset)
    if len(first) == size:
        return first
    parts = [first]
    while (missing := size - sum(map(len, parts))) > 0:
        part = os.pread(descriptor, missing, offset + size - missing)
        if not part:
            raise AgentError("the worker's results are shorter than its outputs")
        parts.append(part)
    return b"".join(parts)
