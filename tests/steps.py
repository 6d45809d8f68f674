"""Apply a schedule's step to a lifted kernel, and evaluate it before and after at awkward sizes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from lifted import from_text, make_inputs

from mb_targets.concrete import concretize
from mb_targets.form.evaluate import evaluate
from mb_targets.form.nest import Form
from mb_targets.model import Kernel, LaunchSpec
from mb_targets.opencl.lift import lift


@dataclass(frozen=True)
class Lifted:
    """A kernel with its launch and its form."""

    kernel: Kernel
    spec: LaunchSpec
    form: Form

    @property
    def folded(self) -> frozenset[str]:
        """Names of the outputs of which only the sum matters."""
        return frozenset(a.name for a in self.spec.arguments if a.fold == "sum")


def lifted(source: str) -> Lifted:
    """Lift a source's only kernel."""
    kernel, spec = from_text(source)
    form = lift(kernel, spec)
    assert isinstance(form, Form), form
    return Lifted(kernel, spec, form)


def agree(
    one: Lifted,
    after: Form,
    sizes: Iterable[dict[str, float]],
    local: tuple[int, ...] | None = None,
    rtol: float = 1e-6,
) -> None:
    """Assert that a form computes at each of these sizes what the lifted one does."""
    tried = 0
    for values in sizes:
        launch = concretize(one.kernel, one.spec, values, None)
        inputs = make_inputs(one.spec, launch)
        scalars, items = launch.scalars, launch.global_size
        expected = evaluate(one.form, scalars, inputs, items, launch.local_size)
        got = evaluate(after, scalars, inputs, items, local or launch.local_size)
        for name in launch.written:
            a, b = got[name], expected[name]
            if name in one.folded:
                a, b = a.sum(keepdims=True), b.sum(keepdims=True)
            np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-9, err_msg=f"{name} at {values}")
        tried += 1
    assert tried
