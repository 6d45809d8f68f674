import pytest

from mb_agent.conditions import APART, WHOLE, conditions
from mb_targets import registry
from mb_targets.model import Action, LaunchChange, Variant
from mb_targets.outcome import Level, Verdict

TWO = "__kernel void k(__global float *out, __global const float *x)\n{ out[0] = x[0]; }\n"
ONE = "__kernel void k(__global float *x)\n{ x[0] = 1.0f; }\n"
FULL = Verdict(Level.SANITIZED, smoke=True)


def of(source, chain, text=None, **changes):
    kernel = registry.load("opencl").find_kernels(source, "opencl")[0]
    return conditions(kernel, Variant(text or source, "k", tuple(map(Action, chain)), **changes), FULL)


def test_a_structural_step_relies_on_buffers_that_lie_apart():
    assert APART in of(TWO, ["lanes"])


@pytest.mark.parametrize("chain", [["jam"], ["jam", "keep_launch"], ["restrict", "lanes"]])
def test_items_that_do_other_work_must_be_launched_whole(chain):
    assert WHOLE in of(ONE, chain)


@pytest.mark.parametrize("action", ["local", "flags", "restrict"])
def test_items_that_do_the_work_they_did_may_be_launched_in_parts(action):
    assert WHOLE not in of(TWO, [action])


@pytest.mark.parametrize("action", ["local", "flags"])
def test_a_step_that_moves_no_access_relies_on_nothing(action):
    assert of(TWO, [action]) == ()


def test_a_promise_of_restrict_relies_on_buffers_that_lie_apart():
    assert of(TWO, ["local"], TWO.replace("float *out", "float *restrict out")) == (APART,)


def test_one_buffer_cannot_overlap_another():
    assert APART not in of(ONE, ["lanes"])


def test_what_was_not_checked_is_a_condition():
    kernel = registry.load("opencl").find_kernels(ONE, "opencl")[0]
    verdict = Verdict(Level.SANITIZED, smoke=True, unchecked=("other sizes: none",))
    assert conditions(kernel, Variant(ONE, "k"), verdict) == ("not checked: other sizes: none",)


def test_multiples_of_the_global_size_come_first():
    change = LaunchChange(("G0/4",), None, multiples=(4,))
    assert of(ONE, ["jam"], launch=change)[0] == "the original's global size must be a multiple of 4"
