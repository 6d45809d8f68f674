"""The worker process: ``python -m mb_agent.worker_main TARGET CHOICE DESCRIPTOR``, started by ``worker``.

It answers one request at a time over the socket it inherited and ends when the other end closes.
"""

from __future__ import annotations

import mmap
import os
import socket
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import assert_never

from mb_agent import sandbox, wire
from mb_targets import registry
from mb_targets.errors import BuildError, LaunchUnknown, RunError, TargetUnavailable
from mb_targets.protocol import Program, SupportsProbe, SupportsSanitize, Worker


class Session:
    """What one worker process holds: the device, the programs, and the inputs it was sent."""

    def __init__(self, channel: wire.Channel, target: str, choice: str, confined: tuple[str, ...]) -> None:
        self._confined = confined
        self._channel = channel
        self._target = target
        self._choice = choice
        self._worker: Worker | None = None
        self._programs: dict[int, Program] = {}
        self._inputs: dict[int, Mapping[str, memoryview]] = {}
        self._results = -1

    def answer(self, request: wire.Request) -> wire.Reply:
        """Do what is asked, and turn the target's errors into replies."""
        try:
            return self._do(request)
        except TargetUnavailable as error:
            return wire.Raised("unavailable", str(error))
        except BuildError as error:
            return wire.Raised("build", str(error))
        except (RunError, LaunchUnknown) as error:
            return wire.Raised("run", str(error))
        except Exception:  # noqa: BLE001  the edge around a candidate: the parent decides what it means
            return wire.Raised("internal", traceback.format_exc(limit=8))

    def _do(self, request: wire.Request) -> wire.Reply:
        match request:
            case wire.Describe():
                return wire.Described(self._open().device(), self._confined)
            case wire.Build():
                program = self._open().build(request.variant, request.options, Path(request.folder))
                self._programs[request.handle] = program
                return wire.Done()
            case wire.Run():
                return self._run(request)
            case wire.Prepare():
                inputs = self._find(request.inputs)
                self._programs[request.handle].prepare(request.launch, inputs, request.launches)
                return wire.Done()
            case wire.Time():
                return wire.Timed(self._programs[request.handle].time())
            case wire.Sanitize():
                return self._sanitize(request)
            case wire.Probe():
                return self._probe(request)
            case wire.Close():
                return self._close(request)
            case _:
                assert_never(request)

    def _open(self) -> Worker:
        if self._worker is None:
            self._worker = registry.load(self._target).worker(self._choice)
        return self._worker

    def _run(self, request: wire.Run) -> wire.Reply:
        inputs = self._find(request.inputs)  # before the results: descriptors come in this order
        if request.results:
            self._results = self._channel.take_descriptor()
        result = self._programs[request.handle].run(request.launch, inputs)
        for name, (offset, size) in request.places.items():
            data = memoryview(result.outputs[name])[:size]
            while data:
                written = os.pwrite(self._results, data, offset)
                data = data[written:]
                offset += written
        return wire.Ran(result.changed_inputs, result.slack)

    def _sanitize(self, request: wire.Sanitize) -> wire.Reply:
        inputs = self._find(request.inputs)
        worker = self._open()
        if not isinstance(worker, SupportsSanitize):
            return wire.Sanitized(None)
        finding = worker.sanitize(request.name, request.variant, request.options, request.launch, inputs)
        return wire.Sanitized(finding)

    def _probe(self, request: wire.Probe) -> wire.Reply:
        worker = self._open()
        if not isinstance(worker, SupportsProbe):
            return wire.Probed(request.launch)
        return wire.Probed(worker.probe(request.kernel, request.launch, Path(request.folder)))

    def _close(self, request: wire.Close) -> wire.Reply:
        for key in request.forget:
            self._inputs.pop(key, None)
        if request.handle is not None and request.handle in self._programs:
            self._programs.pop(request.handle).close()
        return wire.Done()

    def _find(self, shared: wire.Shared) -> Mapping[str, memoryview]:
        """Give a set of inputs as views of the parent's memory, mapped read-only when first named."""
        if shared.places is not None:
            descriptor = self._channel.take_descriptor()
            whole = memoryview(mmap.mmap(descriptor, 0, mmap.MAP_SHARED, mmap.PROT_READ))
            os.close(descriptor)
            self._inputs[shared.id] = {n: whole[at : at + size] for n, (at, size) in shared.places.items()}
        return self._inputs[shared.id]


def serve(channel: wire.Channel, target: str, choice: str, confined: tuple[str, ...]) -> None:
    """Answer requests until the other end closes."""
    session = Session(channel, target, choice, confined)
    session.answer(wire.Describe())  # to have the device open by the first request; what fails is told then
    while True:
        try:
            body = channel.receive()
            if body is not None:
                channel.send(session.answer(wire.decode_request(body)))
        except (EOFError, OSError):
            return


def main() -> None:
    """Enter the limits, then serve."""
    confined = sandbox.enter()
    target, choice, descriptor = sys.argv[1:]
    serve(wire.Channel(socket.socket(fileno=int(descriptor))), target, choice, confined)
    os._exit(0)  # runtimes' threads and destructors may hang at exit


if __name__ == "__main__":
    main()
