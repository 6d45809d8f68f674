"""Every action that the catalogue proposes declines, or computes what the kernel does, at awkward sizes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from mb_agent.errors import WorkerDied
from mb_agent.inputs import Fill, as_bytes, dtype_of, make
from mb_agent.worker import SharedInputs, WorkerProcess, share
from mb_targets import registry
from mb_targets.concrete import concretize
from mb_targets.errors import TargetError
from mb_targets.model import Device, Kernel, LaunchSpec, NotApplicable, Variant
from mb_targets.protocol import Launch, Target

ROOT = Path(__file__).parents[4]
FILES = sorted([*(ROOT / "examples").glob("*.cl"), *(ROOT / "tests/data/relatives").glob("*.cl")])
SIZES = (1, 3, 37, 130, 256)
PAIRS = {
    "lanes": ("jam", "chunk", "local"),
    "row_lanes": ("unroll", "restrict", "jam"),
    "chunk": ("row_lanes", "wide_ids"),
    "jam": ("keep_launch", "interchange"),
    "partials": ("row_lanes", "group"),
    "rewrite": ("row_lanes", "group"),
}


@pytest.fixture(scope="module")
def side() -> Iterator[WorkerProcess]:
    with WorkerProcess("opencl", "intel") as worker:
        yield worker


def sizes(spec: LaunchSpec) -> Iterator[dict[str, float]]:
    """Vary every size of a launch at once, each by another amount."""
    names = [s for s in spec.symbols if s.value == int(s.value) and s.value > 8]
    for base in SIZES:
        values = {s.name: s.value for s in spec.symbols}
        for k, s in enumerate(names):
            wanted = max(1, base - 7 * k) if base > 8 else base
            values[s.name] = max(s.low, s.multiple * max(1, wanted // s.multiple))
        yield values


def folded(spec: LaunchSpec, outputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    folds = {a.name for a in spec.arguments if a.fold == "sum"}
    return {n: v.sum(keepdims=True) if n in folds else v for n, v in outputs.items()}


def outputs(side: WorkerProcess, handle: int, launch: Launch, inputs: SharedInputs) -> dict[str, np.ndarray]:
    result = side.run(handle, launch, inputs)
    assert result.changed_inputs == ()
    return {n: np.frombuffer(b, dtype_of(launch, n)).astype(np.float64) for n, b in result.outputs.items()}


def depth_two(
    target: Target, kernel: Kernel, spec: LaunchSpec, device: Device, first: Variant
) -> Iterator[Variant]:
    wanted = PAIRS.get(first.chain[-1].id, ())
    seen: set[str] = set()
    for p in target.propose(kernel, spec, device, first):
        if p.action.id in wanted and p.action.id not in seen:
            made = target.apply(kernel, spec, device, first, p.action)
            if isinstance(made, Variant):
                seen.add(p.action.id)
                yield made


def same(spec: LaunchSpec, got: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> bool:
    got, wanted = folded(spec, got), folded(spec, wanted)
    return all(np.allclose(got[n], wanted[n], rtol=2e-4, atol=2e-5, equal_nan=True) for n in wanted)


@pytest.mark.needs("intel")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_every_proposed_action_computes_the_same(path: Path, side: WorkerProcess, tmp_path: Path) -> None:
    target = registry.load("opencl")
    device = side.device()
    [kernel] = target.find_kernels(path.read_text(), "opencl")
    spec = target.infer_launch(kernel, path)
    assert isinstance(spec, LaunchSpec)
    original = Variant(kernel.source, kernel.name)
    variants = []
    for p in target.propose(kernel, spec, device, original):
        made = target.apply(kernel, spec, device, original, p.action)
        if not isinstance(made, NotApplicable):
            variants += [made, *depth_two(target, kernel, spec, device, made)]
    assert variants
    base = side.build(original, spec.options, tmp_path)
    cases = []
    for values in sizes(spec):
        launch = concretize(kernel, spec, values, None)
        inputs = share(as_bytes(make(spec, launch, Fill("normal", 1))))
        cases.append((values, inputs, outputs(side, base, launch, inputs)))
    wrong: list[tuple[str, dict[str, float]]] = []
    for variant in variants:
        chain = "; ".join(map(str, variant.chain))
        handle = side.build(variant, spec.options, tmp_path)
        for values, inputs, wanted in cases:
            try:
                launch = concretize(kernel, spec, values, variant.launch)
            except TargetError as refused:
                assert "multiples" in str(refused)  # noqa: PT017 - other refusals are failures
                continue
            try:
                right = same(spec, outputs(side, handle, launch, inputs), wanted)
            except WorkerDied as crash:
                wrong.append((f"{chain}: {crash}", values))
                side.restart()
                handle = side.build(variant, spec.options, tmp_path)
                break
            if not right:
                wrong.append((chain, values))
                break
        side.close(handle)
    assert wrong == []
