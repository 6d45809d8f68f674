"""Know what the original gives: its outputs, the float64 reference and the allowed error, for each case.

All this lives in the job's process only and is worked out once. The original runs in the baseline's worker; a
candidate's worker is sent inputs and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mb_agent import inputs as make_inputs
from mb_agent.errors import AgentError, OriginalRefused
from mb_agent.inputs import POISONS, Fill, Values, as_bytes
from mb_agent.tolerance import Expected, Mask, expect, written_by
from mb_agent.worker import SharedInputs, WorkerProcess, share
from mb_targets.concrete import concretize
from mb_targets.errors import RunError, TargetError
from mb_targets.model import Argument, Kernel, LaunchChange, LaunchSpec, Precision, Variant
from mb_targets.protocol import Launch, Target

SHAKES = 3
# Past this many work items, and buffer bytes, the float64 evaluation costs more than it tells.
REFERENCE_ITEMS = 1 << 17
REFERENCE_BYTES = 1 << 22

Sizes = Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One set of inputs with what the original makes of it.

    Attributes:
        before: Initial values of the written buffers, one mapping a poison.
        shared: The initial bytes as workers read them, one a poison.
        expected: By output.
        seconds: What one run of the original took, with everything around it.
    """

    sizes: Sizes
    fill: Fill
    launch: Launch
    before: tuple[Mapping[str, Values], ...]
    shared: tuple[SharedInputs, ...]
    expected: Mapping[str, Expected]
    seconds: float

    def __str__(self) -> str:
        """Write it as evidence shows it."""
        return f"{', '.join(f'{k}={v:g}' for k, v in self.sizes.items())}; {self.fill}"


class Oracle:
    """The original, its worker and what is known of it.

    Args:
        target: The target.
        kernel: The kernel.
        spec: Its launch.
        side: The baseline's worker.
        precision: What error is allowed.
        folder: Where the original's includes lie.
    """

    def __init__(
        self,
        target: Target,
        kernel: Kernel,
        spec: LaunchSpec,
        side: WorkerProcess,
        precision: Precision,
        folder: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.target = target
        self.kernel = kernel
        self.spec = spec
        self.side = side
        self.precision: Precision = precision
        self.original = Variant(kernel.source, kernel.name)
        self.lifts = True
        self._folder = folder
        self._clock = clock
        self._cases: dict[tuple[tuple[tuple[str, float], ...], Fill], Case | str] = {}
        self._handle = self._build()

    @property
    def handle(self) -> int:
        """The original's program in the baseline's worker, built again where that had to restart."""
        if self.side.pid is None:
            self.side.restart()
            self._handle = self._build()
        return self._handle

    def case(self, sizes: Sizes, fill: Fill) -> Case | str:
        """Work out a case; a text says why the original itself cannot be run on it."""
        key = (tuple(sorted(sizes.items())), fill)
        if key not in self._cases:
            try:
                self._cases[key] = self._work_out(sizes, fill)
            except (RunError, AgentError, TargetError) as error:
                if isinstance(error, OriginalRefused):
                    raise
                self._cases[key] = f"the original fails: {str(error).splitlines()[0]}"
        return self._cases[key]

    def launch(self, sizes: Sizes, fill: Fill, change: LaunchChange | None = None) -> Launch:
        """Work out the launch of a case, for the original or for a variant that changes it.

        Floating-point scalars are multiplied by the fill's factor, so that a candidate which holds one fixed
        shows.

        Raises:
            TargetError: It cannot be launched at these sizes.
        """
        launch = concretize(self.kernel, self.spec, sizes, change)
        if fill.scalars == 1.0:
            return launch
        floats = {a.name for a in self.spec.arguments if a.role == "scalar" and a.dtype[0] == "f"}
        scaled = {k: v * fill.scalars if k in floats else v for k, v in launch.scalars.items()}
        return replace(launch, scalars=scaled)

    def forget(self, sizes: Sizes) -> None:
        """Drop the cases of a size; large ones hold much memory."""
        key = tuple(sorted(sizes.items()))
        self._cases = {k: v for k, v in self._cases.items() if k[0] != key}

    def judge_original(self, sizes: Sizes, fill: Fill) -> None:
        """Run the original twice on the same bytes, and refuse it when the results differ.

        Raises:
            OriginalRefused: It crashes, is not deterministic, or its roles are not as the launch says.
        """
        case = self.case(sizes, fill)
        if isinstance(case, str):
            raise OriginalRefused(f"{self.kernel.name} cannot be optimized: {case} at {dict(sizes)}")
        again = self._run(case.launch, case.shared[0])
        for name, expected in case.expected.items():
            if again[name].tobytes() != expected.original.tobytes():
                raise OriginalRefused(
                    f"{self.kernel.name} is not deterministic: two runs on the same inputs differ in "
                    f"{name}, so no variant can be told right from wrong"
                )

    def _build(self) -> int:
        return self.side.build(self.original, self.spec.options, self._folder)

    def _work_out(self, sizes: Sizes, fill: Fill) -> Case:
        started = self._clock()
        launch = self.launch(sizes, fill)
        buffers = [make_inputs.make(self.spec, launch, fill, p) for p in range(POISONS)]
        shared = tuple(share(as_bytes(b)) for b in buffers)
        results = [self._run(launch, s) for s in shared]
        seconds = (self._clock() - started) / POISONS
        outputs = [a for a in self.spec.arguments if a.name in launch.written]
        written = self._written(outputs, buffers, results)
        shaken = self._shaken(launch, buffers[0], fill.seed)
        reference = self._reference(launch, buffers[0])
        reduced = self._reduced(launch, outputs)
        expected = {
            a.name: expect(
                a,
                results[0][a.name],
                written[a.name],
                reference.get(a.name),
                [s[a.name] for s in shaken],
                self.precision,
                reduced * (results[0][a.name].size if a.fold else 1),
                self.spec.tolerance,
            )
            for a in outputs
        }
        before = tuple({a.name: b[a.name] for a in outputs} for b in buffers)
        return Case(dict(sizes), fill, launch, before, shared, expected, seconds)

    def _run(self, launch: Launch, shared: SharedInputs) -> dict[str, Values]:
        result = self.side.run(self.handle, launch, shared, limit=30.0)
        if result.changed_inputs:
            raise OriginalRefused(
                f"{self.kernel.name} writes to {', '.join(result.changed_inputs)}, which its launch gives as "
                "an input: give it as inout"
            )
        return {
            name: np.frombuffer(data, make_inputs.dtype_of(launch, name))
            for name, data in result.outputs.items()
        }

    def _written(
        self,
        outputs: list[Argument],
        buffers: list[dict[str, Values]],
        results: list[dict[str, Values]],
    ) -> dict[str, Mask]:
        masks: dict[str, Mask] = {}
        for argument in outputs:
            name = argument.name
            if argument.role != "out":
                masks[name] = np.ones(results[0][name].size, dtype=np.bool_)
                continue
            pairs = [(b[name], r[name]) for b, r in zip(buffers, results, strict=True)]
            masks[name], depends = written_by(pairs[0], pairs[1])
            if depends.any():
                raise OriginalRefused(
                    f"{self.kernel.name} reads {name} before it writes it (at "
                    f"{int(np.argmax(depends))}), or is not deterministic: if it is meant to read it, give it "
                    "as inout"
                )
        return masks

    def _shaken(self, launch: Launch, buffers: Mapping[str, Values], seed: int) -> list[dict[str, Values]]:
        if self.precision == "bitwise" or not any(a.dtype[0] == "f" for a in self.spec.arguments):
            return []
        moved = [make_inputs.perturbed(self.spec, buffers, seed + k) for k in range(1, SHAKES + 1)]
        return [self._run(launch, share(as_bytes(m))) for m in moved]

    def _reference(self, launch: Launch, buffers: Mapping[str, Values]) -> Mapping[str, Values]:
        items = int(np.prod(launch.global_size))
        if not self.lifts or items > REFERENCE_ITEMS or sum(launch.buffers.values()) > REFERENCE_BYTES:
            return {}
        with np.errstate(all="ignore"):
            found = self.target.reference(self.kernel, self.spec, launch, buffers)
        if found is None:
            self.lifts = False
            return {}
        return found

    def _reduced(self, launch: Launch, outputs: list[Argument]) -> float:
        """Estimate how many inputs meet in one output element."""
        taken = sum(
            launch.buffers[a.name] // make_inputs.dtype_of(launch, a.name).itemsize
            for a in self.spec.arguments
            if a.name in launch.buffers and a.role != "out"
        )
        given = sum(launch.buffers[a.name] // make_inputs.dtype_of(launch, a.name).itemsize for a in outputs)
        return max(1.0, taken / max(1, given))
