import numpy as np
import pytest

from mb_agent.inputs import FLOATS, Fill, make, perturbed, poisoned
from mb_targets.model import Argument, LaunchSpec
from mb_targets.protocol import Launch

SPEC = LaunchSpec(
    symbols=(),
    arguments=(
        Argument("x", "in", "f32", "100"),
        Argument("i", "in", "i32", "100", low="0", high="9"),
        Argument("out", "out", "f32", "100"),
        Argument("y", "inout", "f64", "100"),
    ),
    global_size=("100",),
)
LAUNCH = Launch(
    order=("x", "i", "out", "y"),
    dtypes={"x": "f32", "i": "i32", "out": "f32", "y": "f64"},
    lanes={},
    scalars={},
    buffers={"x": 400, "i": 400, "out": 400, "y": 800},
    local_bytes={},
    written=("out", "y"),
    global_size=(100,),
    local_size=None,
    ranges={"i": (0.0, 9.0)},
)


def test_the_same_fill_gives_the_same_bytes():
    first, second = (make(SPEC, LAUNCH, Fill("normal", 5)) for _ in range(2))
    assert all(first[name].tobytes() == second[name].tobytes() for name in first)


def test_another_seed_gives_other_values():
    first, second = (make(SPEC, LAUNCH, Fill("normal", seed)) for seed in (5, 6))
    assert not np.array_equal(first["x"], second["x"])


def test_two_inputs_of_one_fill_differ():
    filled = make(SPEC, LAUNCH, Fill("normal", 5))
    assert not np.allclose(filled["x"], filled["y"])


@pytest.mark.parametrize("distribution", FLOATS)
def test_an_index_stays_inside_its_range_under_every_distribution(distribution):
    values = make(SPEC, LAUNCH, Fill(distribution, 1))["i"]
    assert 0 <= values.min() <= values.max() <= 9


@pytest.mark.parametrize("distribution", FLOATS)
def test_a_bounded_float_stays_inside_its_range(distribution):
    launch = Launch(("x",), {"x": "f32"}, {}, {}, {"x": 400}, {}, (), (100,), None, {"x": (0.5, 2.0)})
    values = make(
        LaunchSpec((), (Argument("x", "in", "f32", "100"),), ("100",)), launch, Fill(distribution, 1)
    )["x"]
    assert np.float32(0.5) <= values.min() <= values.max() <= 2.0


def test_an_output_holds_nothing_but_poison():
    filled = make(SPEC, LAUNCH, Fill("normal", 5), poison=0)["out"]
    assert set(filled.view(np.uint32)) == {0x7FE5A5A5}


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "i8", "u32", "i64"])
def test_the_two_poisons_differ_in_every_element(dtype):
    first, second = (poisoned(dtype, 5, pattern) for pattern in (0, 1))
    assert not (first == second).any()


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_one_poison_is_finite_because_fmax_drops_nan(dtype):
    assert np.isnan(poisoned(dtype, 1, 0)[0])
    assert np.isfinite(poisoned(dtype, 1, 1)[0])


def test_perturbing_moves_each_float_by_one_unit_in_the_last_place():
    filled = make(SPEC, LAUNCH, Fill("normal", 5))
    steps = np.abs(filled["x"].view(np.int32) - perturbed(SPEC, filled, 1)["x"].view(np.int32))
    assert set(steps) == {1}


def test_perturbing_leaves_zeros_infinities_and_integers():
    filled = make(SPEC, LAUNCH, Fill("infinities", 5))
    filled["x"][:3] = 0.0
    after = perturbed(SPEC, filled, 1)
    keep = (filled["x"] == 0) | np.isinf(filled["x"])
    assert np.array_equal(after["x"][keep], filled["x"][keep])
    assert after["i"] is filled["i"]
