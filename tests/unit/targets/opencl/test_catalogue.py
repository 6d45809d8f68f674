"""What the catalogue proposes, and for which kernels."""

from __future__ import annotations

import pytest
from lifted import from_text

from mb_targets.model import Action, Device, NotApplicable, Variant
from mb_targets.opencl import actions

DEVICE = Device("cpu-test", "", "cpu", "", "", "OpenCL 3.0 PoCL 3.1", 2, 512, 1 << 15, 4096)
LIFTS = """// mb: global=(n,) n=64 x=f32[n] y=out f32[n]
__kernel void k(__global const float *x, __global float *y, const int n)
{
    int i = get_global_id(0);
    if (i < n)
        y[i] = 2.0f * x[i];
}
"""
REFUSED = """// mb: global=(n,) n=64 x=f32[n] y=out f32[n]
__kernel void k(__global const float *x, __global float *y, const int n)
{
    int i = get_global_id(0);
    float v = x[i];
    while (v > 1.0f)
        v *= 0.5f;
    y[i] = v;
}
"""
WHOLE = (
    REFUSED.replace("float", "int").replace("f32", "i32").replace("1.0f", "1").replace("v *= 0.5f", "v /= 2")
)
MAD, UNSAFE = Action("flags", ("-cl-mad-enable",)), Action("flags", ("-cl-unsafe-math-optimizations",))


def proposed(source: str, *chain: Action) -> list[Action]:
    kernel, launch = from_text(source)
    variant = Variant(kernel.source, kernel.name, chain)
    return [p.action for p in actions.propose(kernel, launch, DEVICE, variant)]


def flags(source: str, *chain: Action) -> list[Action]:
    return [a for a in proposed(source, *chain) if a.id == "flags"]


def applied(source: str, *chain: Action) -> Variant:
    kernel, launch = from_text(source)
    variant = Variant(kernel.source, kernel.name)
    for action in chain:
        made = actions.apply(kernel, launch, DEVICE, variant, action)
        assert isinstance(made, Variant), made
        variant = made
    return variant


def test_a_kernel_that_does_not_lift_is_offered_compiler_flags() -> None:
    assert flags(REFUSED) == [MAD, UNSAFE]


def test_a_kernel_that_lifts_is_not() -> None:
    assert flags(LIFTS) == []


def test_a_kernel_without_floating_point_is_not() -> None:
    assert flags(WHOLE) == []


@pytest.mark.parametrize(("chain", "left"), [((MAD,), [UNSAFE]), ((UNSAFE,), []), ((MAD, UNSAFE), [])])
def test_only_stronger_flags_follow_weaker_ones(chain: tuple[Action, ...], left: list[Action]) -> None:
    assert flags(REFUSED, *chain) == left


def test_a_kernel_that_does_not_lift_is_offered_no_step_of_a_schedule() -> None:
    assert {a.id for a in proposed(REFUSED)} <= actions.LOCAL


def test_flags_become_options_and_leave_the_text() -> None:
    made = applied(REFUSED, MAD)
    assert (made.options, made.source, made.launch) == (MAD.parameters, REFUSED, None)


def test_a_later_flag_takes_the_place_of_an_earlier_one() -> None:
    assert applied(REFUSED, MAD, UNSAFE).options == UNSAFE.parameters


def test_local_actions_go_together() -> None:
    made = applied(REFUSED, MAD, Action("restrict"), Action("local", ("16",)))
    assert made.options == MAD.parameters
    assert "*restrict x" in made.source
    assert made.launch is not None
    assert made.launch.local_size == (16,)


def test_a_step_of_a_schedule_says_why_the_kernel_does_not_lift() -> None:
    kernel, launch = from_text(REFUSED)
    original = Variant(kernel.source, kernel.name)
    made = actions.apply(kernel, launch, DEVICE, original, Action("unroll", ("4",)))
    assert isinstance(made, NotApplicable)
    assert "does not lift" in made.reason
