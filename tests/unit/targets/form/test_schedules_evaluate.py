"""A scheduled form computes what the lifted one does, by the evaluation that needs no device."""

from __future__ import annotations

import numpy as np
import pytest
from lifted import ROOT, Arrays, kernels, make_inputs

from mb_targets.concrete import concretize, sizes_to_try, work
from mb_targets.form.dependence import Declined
from mb_targets.form.evaluate import evaluate
from mb_targets.form.nest import Form
from mb_targets.form.schedule import apply, schedule
from mb_targets.model import Action, Kernel, LaunchSpec
from mb_targets.opencl.lift import lift
from mb_targets.protocol import Launch

FILES = [
    *sorted((ROOT / "examples").glob("*.cl")),
    *sorted((ROOT / "tests/data/relatives").glob("*.cl")),
    *sorted((ROOT / "tests/data/lift").glob("*.cl")),
]
KERNELS = [pytest.param(k, spec, id=k.name) for path in FILES for k, spec in kernels(path)]
CHAINS: list[tuple[list[Action], tuple[int, ...] | None]] = [
    ([Action("jam", ("dim0", "3"))], None),
    ([Action("lanes", ("dim0", "4"))], None),
    ([Action("jam", ("dim1", "2")), Action("lanes", ("dim0", "4"))], None),
    ([Action("chunk", ("dim0", "5"))], None),
    ([Action("row_lanes", ("4", "2"))], None),
    ([Action("row_lanes", ("8", "1")), Action("rewrite", ("reuse",)), Action("rewrite", ("hoist",))], None),
    ([Action("rewrite", ("powers",)), Action("rewrite", ("tanh",)), Action("rewrite", ("single",))], None),
    ([Action("unroll", ("4",))], None),
    ([Action("interchange")], None),
    ([Action("group", ("8",))], (8, 1)),
    ([Action("stage", ("4", "2", "4"))], (4, 4)),
    ([Action("stage", ("8", "4"))], (8, 4)),
    ([Action("partials", ("4",))], None),
]
_LARGEST_WORK = 1 << 13


def scheduled(form: Form, chain: list[Action], spec: LaunchSpec) -> Form | None:
    """Apply each step that applies; None where none does."""
    folded = frozenset(a.name for a in spec.arguments if a.fold == "sum")
    done: list[Action] = []
    new = form
    for action in chain:
        try:
            new = apply(form, schedule([*done, action], folded), frozenset())
            done.append(action)
        except Declined:
            continue
    return new if done else None


def whole(form: Form, launch: Launch) -> bool:
    """Tell whether every axis that nothing bounds is made of whole blocks."""
    for axis in form.axes:
        dim = axis.dim if axis.source is None else axis.source
        items = launch.global_size[dim] // (form.local_size[dim] if form.local_size else 1)
        if axis.extent is None and items % axis.block:
            return False
    return True


def close(name: str, got: Arrays, expected: Arrays, spec: LaunchSpec) -> None:
    for argument in spec.arguments:
        if argument.name in expected:
            a, b = got[argument.name], expected[argument.name]
            if argument.fold == "sum":
                a, b = a.sum(keepdims=True), b.sum(keepdims=True)
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9, err_msg=f"{name}: {argument.name}")


@pytest.mark.parametrize(("kernel", "spec"), KERNELS)
def test_schedules_compute_the_same(kernel: Kernel, spec: LaunchSpec) -> None:
    form = lift(kernel, spec)
    assert isinstance(form, Form)
    for sizes in [s for s in sizes_to_try(spec) if work(spec, s) <= _LARGEST_WORK][:2]:
        launch = concretize(kernel, spec, sizes, None)
        inputs = make_inputs(spec, launch)
        expected = evaluate(form, launch.scalars, inputs, launch.global_size, launch.local_size)
        for chain, local in CHAINS:
            new = scheduled(form, chain, spec)
            if new is not None and whole(new, launch):
                got = evaluate(new, launch.scalars, inputs, launch.global_size, local or launch.local_size)
                close(f"{sizes} {' '.join(map(str, chain))}", got, expected, spec)
