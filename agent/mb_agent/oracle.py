"""Know what the original gives: its outputs, the float64 reference and the allowed error, for each case.

All this lives in the job's process only and is worked out once. The original runs in the baseline's worker; a
candidate's worker is sent inputs and nothing else.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mb_agent import inputs as make_inputs
from mb_agent.errors import AgentError, OriginalRefused, TimedOut, WorkerDied, sentence
from mb_agent.inputs import Fill, Values, as_bytes, poisoned
from mb_agent.sizes import Sizes
from mb_agent.tolerance import Expected, Mask, expect, unwritten, written_by
from mb_agent.worker import SharedInputs, WorkerProcess, share
from mb_targets.concrete import concretize
from mb_targets.errors import RunError, TargetError
from mb_targets.model import Argument, Kernel, LaunchChange, LaunchSpec, Precision, Variant
from mb_targets.protocol import Launch, Target

SHAKES = 2
# Past this, one run more or less is felt.
LARGE_BYTES = 1 << 22
SHARES_CHANGED = (1 / 64, 1 / 4096, 1 / 262144)
# A float64 evaluation longer than this costs more than it tells; so many steps show how long one is.
REFERENCE_SECONDS = 0.3
REFERENCE_STEPS = 1 << 14


@dataclass(slots=True, eq=False)
class Case:
    """One set of inputs with what the original makes of it.

    Attributes:
        expected: By output.
        seconds: What one run of the original took, with everything around it.
    """

    sizes: Sizes
    fill: Fill
    launch: Launch
    expected: Mapping[str, Expected]
    seconds: float
    _buffers: dict[str, Values]
    _shared: dict[int, SharedInputs]

    def before(self, name: str, poison: int) -> Values:
        """Give what an output holds before a run."""
        values = self._buffers[name]
        argument = self.expected[name].argument
        kept = argument.role != "out" or poison == 0  # they were made over the first poison
        return values if kept else poisoned(argument.dtype, values.size, poison)

    def shared(self, poison: int) -> SharedInputs:
        """Give the initial bytes as workers read them."""
        if poison not in self._shared:
            outputs = {name: self.before(name, poison) for name in self.expected}
            self._shared[poison] = share(as_bytes({**self._buffers, **outputs}))
        return self._shared[poison]


class Oracle:
    """The original, its worker and what is known of it.

    Args:
        target: The target.
        kernel: The kernel.
        spec: Its launch.
        side: The baseline's worker.
        precision: What error is allowed.
        folder: Where the original's includes lie.
        limit: Seconds that one run of the original may take.

    Attributes:
        device: What the original runs on.
        lifts: Whether there is a float64 reference of it, as far as was seen.
    """

    def __init__(
        self,
        target: Target,
        kernel: Kernel,
        spec: LaunchSpec,
        side: WorkerProcess,
        precision: Precision,
        folder: Path,
        limit: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.target = target
        self.kernel = kernel
        self.spec = spec
        self.side = side
        self.precision: Precision = precision
        self.original = Variant(kernel.source, kernel.name)
        self.lifts = True
        self.limit = limit
        self._folder = folder
        self._clock = clock
        self._cases: dict[tuple[tuple[tuple[str, float], ...], Fill], Case | str] = {}
        self._fans: dict[tuple[tuple[str, float], ...], float] = {}
        self._step_seconds = 1e-7
        self.device = side.device()
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
                self._cases[key] = _fault(error)
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

    def judge_original(self, sizes: Sizes, fill: Fill) -> None:
        """Run the original twice on the same bytes, and refuse it when the results differ.

        Raises:
            OriginalRefused: It crashes, is not deterministic, or its roles are not as the launch says.
        """
        case = self.case(sizes, fill)
        if isinstance(case, str):
            raise OriginalRefused(self.refusal(case, sizes))
        again = self._run(case.launch, case.shared(0))
        for name, expected in case.expected.items():
            if again[name].tobytes() != expected.original.tobytes():
                raise OriginalRefused(
                    f"{self.kernel.name} is not deterministic: two runs on the same inputs differ in "
                    f"{name}, so no variant can be told right from wrong"
                )

    def refusal(self, reason: str | Exception, sizes: Sizes) -> str:
        """Say why the original cannot be worked with at these sizes."""
        said = reason if isinstance(reason, str) else _fault(reason)
        at = " ".join(f"{name}={value:g}" for name, value in sizes.items())
        return f"{self.kernel.name} cannot be optimized: {said}{', at ' if at else ''}{at}"

    def _build(self) -> int:
        return self.side.build(self.original, self.spec.options, self._folder)

    def _work_out(self, sizes: Sizes, fill: Fill) -> Case:
        launch = self.launch(sizes, fill)
        buffers = make_inputs.make(self.spec, launch, fill)
        shared = share(as_bytes(buffers))
        started = self._clock()
        result = self._run(launch, shared)
        seconds = self._clock() - started
        outputs = [a for a in self.spec.arguments if a.name in launch.written]
        written = self._written(launch, outputs, buffers, result)
        shaken = self._shaken(launch, buffers, fill.seed)
        reduced = self._fan_in(sizes, launch, buffers, result)
        reference = self._reference(launch, buffers, reduced)
        expected = {
            a.name: expect(
                a,
                result[a.name],
                written[a.name],
                reference.get(a.name),
                [s[a.name] for s in shaken],
                self.precision,
                reduced * (result[a.name].size if a.fold else 1),
                self.spec.tolerance,
            )
            for a in outputs
        }
        return Case(dict(sizes), fill, launch, expected, seconds, buffers, {0: shared})

    def _run(self, launch: Launch, shared: SharedInputs) -> dict[str, Values]:
        result = self.side.run(self.handle, launch, shared, limit=self.limit)
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
        launch: Launch,
        outputs: Sequence[Argument],
        buffers: Mapping[str, Values],
        result: Mapping[str, Values],
    ) -> dict[str, Mask]:
        """Find what the original writes; a second run over another poison only where poison is left."""
        masks = {a.name: np.ones(result[a.name].size, dtype=np.bool_) for a in outputs}
        poisons = {a.name: buffers[a.name] for a in outputs if a.role == "out"}
        if all(not unwritten(p, result[n]).any() for n, p in poisons.items()) and _large(launch):
            return masks
        others = {a.name: poisoned(a.dtype, poisons[a.name].size, 1) for a in outputs if a.name in poisons}
        again = self._run(launch, share(as_bytes({**buffers, **others})))
        for name, poison in poisons.items():
            masks[name], depends = written_by((poison, result[name]), (others[name], again[name]))
            if depends.any():
                raise OriginalRefused(
                    f"{self.kernel.name} reads {name} before it writes it (at {int(np.argmax(depends))}), or "
                    "is not deterministic: if it is meant to read it, give it as inout"
                )
        return masks

    def _shaken(self, launch: Launch, buffers: Mapping[str, Values], seed: int) -> list[dict[str, Values]]:
        if self.precision == "bitwise" or not any(a.dtype[0] == "f" for a in self.spec.arguments):
            return []
        draws = 1 if _large(launch) else SHAKES  # where there are many elements, one draw says enough
        moved = [make_inputs.perturbed(self.spec, buffers, seed + k) for k in range(1, draws + 1)]
        return [self._run(launch, share(as_bytes(m))) for m in moved]

    def _fan_in(
        self, sizes: Sizes, launch: Launch, buffers: Mapping[str, Values], result: Mapping[str, Values]
    ) -> float:
        """Measure how many inputs meet in one output: change a few inputs and see how many outputs move.

        Where a share q of the inputs changes, an output of n inputs stays as it was with probability (1-q)^n.
        """
        key = tuple(sorted(sizes.items()))
        if key not in self._fans:
            self._fans[key] = 1.0
            for share_changed in SHARES_CHANGED:
                changed = make_inputs.changed(self.spec, buffers, share_changed)
                moved = self._run(launch, share(as_bytes(changed)))
                same = min((float(np.mean(r == result[n])) for n, r in moved.items() if r.size), default=1.0)
                if same > 0.02:
                    self._fans[key] = max(1.0, math.log(same) / math.log1p(-share_changed))
                    break
                self._fans[key] = 4 / share_changed
        return self._fans[key]

    def _reference(
        self, launch: Launch, buffers: Mapping[str, Values], reduced: float
    ) -> Mapping[str, Values]:
        """Evaluate in float64 where the kernel lifts and it takes no longer than it tells."""
        steps = math.prod(launch.global_size) * reduced
        if not self.lifts or steps * self._step_seconds > REFERENCE_SECONDS:
            return {}
        started = self._clock()
        with np.errstate(all="ignore"):
            found = self.target.reference(self.kernel, self.spec, launch, buffers)
        if steps >= REFERENCE_STEPS:  # a short evaluation is mostly overhead
            self._step_seconds = (self._clock() - started) / steps
        if found is None:
            self.lifts = False
            return {}
        return found


def _fault(error: Exception) -> str:
    """Say what the original did, so that nobody takes it for a candidate's doing."""
    if isinstance(error, WorkerDied) and error.touched_memory:
        place = f": {error.place}" if error.place else ""
        return f"your own kernel, not a variant of it, touched memory outside a buffer{place}"
    if isinstance(error, TimedOut):
        return f"the original fails: {sentence(error)}; give smaller sizes, or see whether its loops end"
    return f"the original fails: {str(error).splitlines()[0]}"


def _large(launch: Launch) -> bool:
    return sum(launch.buffers.values()) > LARGE_BYTES
