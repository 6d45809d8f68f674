from mb_agent.critic import judge
from mb_targets.outcome import Check, Level, Speedup, Verdict

GOOD = Verdict(Level.COMPILED, smoke=True)
VEC = "vec(i, 8)"


def test_a_gain_near_what_was_expected_is_as_expected():
    assert judge(VEC, 2.0, GOOD, Speedup(2.1, 2.0, 2.2)).judgement == "as expected"


def test_a_smaller_gain_says_to_expect_less():
    note = judge(VEC, 4.0, GOOD, Speedup(1.5, 1.4, 1.6))
    assert note.judgement == "less than expected"
    assert "1.50x [1.40-1.60] where 4.00x was expected" in note.text


def test_a_larger_gain_says_to_prefer_it():
    assert "prefer" in judge(VEC, 1.5, GOOD, Speedup(4.0, 3.8, 4.2)).text


def test_a_loss_says_to_avoid_it():
    note = judge(VEC, 2.0, GOOD, Speedup(0.5, 0.45, 0.55))
    assert note.judgement == "slower"
    assert "avoid" in note.text


def test_an_interval_over_one_is_no_effect():
    assert judge(VEC, 2.0, GOOD, Speedup(1.1, 0.95, 1.2)).judgement == "no effect"


def test_a_refusal_leaves_a_constraint_and_its_evidence():
    check = Check("guard pages", False, 0.1, "touched memory outside a buffer (N=37)")
    verdict = Verdict(Level.COMPILED, checks=(check,), failure="guard pages")
    note = judge(VEC, 2.0, verdict, None)
    assert note.constraint == "reads or writes outside a buffer"
    assert "N=37" in note.text


def test_a_constraint_only_comes_from_a_failure():
    assert not judge(VEC, 2.0, GOOD, Speedup(0.5, 0.45, 0.55)).constraint
