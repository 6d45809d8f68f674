"""Launches are worked out at given sizes, and sizes are chosen to be wrong at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mb_targets.concrete import concretize, sizes_to_try, work
from mb_targets.errors import LaunchUnknown, TargetError
from mb_targets.model import Argument, Kernel, LaunchChange, LaunchSpec, Parameter, Symbol

KERNEL = Kernel(
    target="opencl",
    language="opencl",
    name="mm",
    source="",
    start=0,
    end=0,
    parameters=(
        Parameter("A", "float", "global", const=True),
        Parameter("C", "float", "global"),
        Parameter("t", "float", "local"),
        Parameter("n", "int", "value"),
        Parameter("alpha", "float", "value"),
    ),
    identity="",
)
LAUNCH = LaunchSpec(
    symbols=(Symbol("N", 512), Symbol("M", 384), Symbol("K", 256), Symbol("alpha", 1.5, 1.5, 1.5)),
    arguments=(
        Argument("A", "in", "f32", "M*K"),
        Argument("C", "out", "f32", "M*N"),
        Argument("t", "local", "f32", "256"),
        Argument("n", "scalar", "i32", "N"),
        Argument("alpha", "scalar", "f32", "alpha"),
    ),
    global_size=("(N+15)//16*16", "(M+15)//16*16"),
    local_size=("16", "16"),
)


def test_every_expression_is_worked_out_at_the_values_to_measure_with() -> None:
    made = concretize(KERNEL, LAUNCH, None, None)
    assert (made.global_size, made.local_size) == ((512, 384), (16, 16))
    assert made.buffers == {"A": 384 * 256 * 4, "C": 384 * 512 * 4}
    assert made.local_bytes == {"t": 1024}
    assert made.scalars == {"n": 512, "alpha": 1.5}
    assert made.written == ("C",)


def test_sizes_given_replace_those_to_measure_with() -> None:
    made = concretize(KERNEL, LAUNCH, {"N": 7}, None)
    assert made.global_size == (16, 384)
    assert made.scalars["n"] == 7


def test_a_change_is_worked_out_over_the_original_sizes() -> None:
    change = LaunchChange(("(G0+63)/64", "G1/L1"), (1, 1))
    made = concretize(KERNEL, LAUNCH, {"N": 100}, change)
    assert (made.global_size, made.local_size) == (((112 + 63) // 64, 24), (1, 1))


def test_a_range_follows_the_size_it_is_written_in() -> None:
    index = Argument("A", "in", "i32", "N", low="0", high="N-1")
    launch = replace(LAUNCH, arguments=(index, *LAUNCH.arguments[1:]))
    assert concretize(KERNEL, launch, {"N": 9}, None).ranges == {"A": (0, 8)}


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ({"N": -20}, "has to be a whole number"),
        ({"N": 1e9, "M": 1e9}, "more than can be run"),
        ({"K": 1e9}, "GiB"),
    ],
)
def test_impossible_sizes_are_refused_with_a_reason(sizes: dict[str, float], says: str) -> None:
    with pytest.raises(TargetError, match=says):
        concretize(KERNEL, LAUNCH, sizes, None)


def test_a_global_size_that_its_groups_do_not_divide_says_how_to_round_it() -> None:
    launch = replace(LAUNCH, global_size=("N", "M"))
    with pytest.raises(TargetError, match=r"\(N\+15\)//16\*16"):
        concretize(KERNEL, launch, {"N": 500}, None)


def test_a_variant_for_multiples_only_refuses_other_sizes() -> None:
    with pytest.raises(TargetError, match="multiples of 32, 1"):
        concretize(KERNEL, LAUNCH, {"N": 16}, LaunchChange(("G0/32", "G1"), None, (32, 1, 1)))


def test_an_extent_that_nobody_knows_says_how_to_give_it() -> None:
    launch = replace(LAUNCH, arguments=(Argument("A", "in", "f32", "?"), *LAUNCH.arguments[1:]))
    with pytest.raises(LaunchUnknown, match=r"// mb: A=f32\[N\]"):
        concretize(KERNEL, launch, None, None)


def test_verified_sizes_are_launches_that_can_be_made() -> None:
    for sizes in sizes_to_try(LAUNCH):
        concretize(KERNEL, LAUNCH, sizes, None)


def test_verified_sizes_hold_one_an_odd_set_and_one_that_is_not_square() -> None:
    chosen = sizes_to_try(LAUNCH)
    assert {"N": 1, "M": 1, "K": 1, "alpha": 1.5} in chosen
    assert any(len({s["N"], s["M"], s["K"]}) == 3 and all(s[n] % 2 for n in "NMK") for s in chosen)
    assert any(s["N"] == 1 < s["M"] for s in chosen)
    assert any(s["M"] == 1 < s["N"] or s["K"] == 1 < s["N"] for s in chosen)


def test_verified_sizes_stay_below_a_bound_of_work() -> None:
    assert all(work(LAUNCH, s) <= 1 << 21 for s in sizes_to_try(LAUNCH))


def test_verified_sizes_keep_to_range_and_multiple() -> None:
    symbols = (Symbol("N", 512, low=32, high=600, multiple=32), Symbol("M", 384), Symbol("K", 256, 256, 256))
    chosen = sizes_to_try(replace(LAUNCH, symbols=(*symbols, LAUNCH.symbols[3])))
    assert chosen
    assert all(s["N"] % 32 == 0 and 32 <= s["N"] <= 600 and s["K"] == 256 for s in chosen)


def test_a_size_that_is_launched_as_it_is_stays_a_multiple_of_its_group() -> None:
    chosen = sizes_to_try(replace(LAUNCH, global_size=("N", "M")))
    assert len(chosen) > 2
    assert all(s["N"] % 16 == 0 and s["M"] % 16 == 0 for s in chosen)


def test_a_scalar_that_is_no_size_moves_only_inside_a_range_that_is_given() -> None:
    assert {s["alpha"] for s in sizes_to_try(LAUNCH)} == {1.5}
    ranged = replace(LAUNCH, symbols=(*LAUNCH.symbols[:3], Symbol("alpha", 1.5, 0.5, 2.5)))
    assert len({s["alpha"] for s in sizes_to_try(ranged)}) > 1


def test_a_launch_whose_sizes_are_all_fixed_has_no_others_to_try() -> None:
    assert sizes_to_try(LaunchSpec((), (), ("64",), None)) == []


def test_the_first_of_the_verified_sizes_is_a_launch_of_nothing() -> None:
    first = sizes_to_try(LAUNCH)[0]
    assert (first["N"], first["M"], first["K"]) == (0, 0, 1)
    assert concretize(KERNEL, LAUNCH, first, None).global_size == (0, 0)


def test_a_size_whose_smallest_value_is_stated_is_never_zero() -> None:
    symbols = (Symbol("N", 512, 2, 4096), Symbol("M", 384, 1, 1000), *LAUNCH.symbols[2:])
    assert all(s["N"] >= 2 and s["M"] >= 1 for s in sizes_to_try(replace(LAUNCH, symbols=symbols)))


def test_a_negative_scalar_leaves_sizes_to_try() -> None:
    symbols = (*LAUNCH.symbols[:3], Symbol("alpha", -0.5, -0.5, -0.5))
    assert len(sizes_to_try(replace(LAUNCH, symbols=symbols))) == len(sizes_to_try(LAUNCH))
