import math
import random

from mb_agent.choose import BuiltIn, Learned, Node, beam
from mb_agent.memory import Advice, Value
from mb_targets.model import Action, LaunchChange, Proposal, Variant

CHANGE = LaunchChange(("G0",), (1,))


def proposals(**expected):
    return [Proposal(Action(name), gain, "because") for name, gain in expected.items()]


def node(name="k", gain=0.0, launch=None, given=()):
    return Node(Variant(name, "k", launch=launch), gain, tuple(given))


def drain(policy, nodes):
    while choice := policy.next(nodes):
        yield choice


def test_winning_chains_of_the_past_are_tried_first():
    chain = (Action("tile", ("8",)), Action("vec", ("4",)))
    policy = BuiltIn(Advice(elites=((chain, 12.0),)), random.Random(1))
    assert policy.next([node(given=proposals(a=2.0))]).actions == chain


def test_every_proposal_is_tried_once():
    policy = BuiltIn(Advice(), random.Random(1))
    tried = [c.actions[0].id for c in drain(policy, [node(given=proposals(a=2.0, b=1.0, c=0.5))])]
    assert sorted(tried) == ["a", "b", "c"]


def test_what_promises_more_is_usually_tried_first():
    first = [
        BuiltIn(Advice(), random.Random(seed)).next([node(given=proposals(a=1.0, b=8.0))]).actions[0].id
        for seed in range(50)
    ]
    assert first.count("b") >= 45


def test_what_was_learned_elsewhere_moves_the_choice():
    advice = Advice(values={"a()": Value(math.log(8), 0.1), "b()": Value(math.log(0.5), 0.1)})
    first = [
        BuiltIn(advice, random.Random(seed)).next([node(given=proposals(a=1.0, b=1.0))]).actions[0].id
        for seed in range(100)
    ]
    assert first.count("a") >= 80


def test_a_constrained_action_is_left_to_the_cold_draws():
    advice = Advice(constrained={"a()": "does not build"})
    first = [
        BuiltIn(advice, random.Random(seed)).next([node(given=proposals(a=9.0, b=1.0))]).actions[0].id
        for seed in range(200)
    ]
    assert 0.1 < first.count("a") / 200 < 0.4


def test_a_failure_makes_the_same_action_elsewhere_less_likely():
    policy = BuiltIn(Advice(), random.Random(3))
    root = node(given=proposals(a=3.0))
    policy.learn(Learned(policy.next([root]), None))
    child = node("child", 0.1, given=proposals(a=3.0, b=1.2))
    assert policy.next([root, child]).actions[0].id == "b"


def test_an_improved_variant_becomes_a_parent():
    policy = BuiltIn(Advice(), random.Random(1))
    nodes = [node(given=proposals(a=1.1)), node("better", 2.0, given=proposals(b=1.1))]
    assert policy.next(nodes).parent is nodes[1]


def test_the_beam_keeps_the_best_variant_that_keeps_the_launch():
    nodes = [node(), node("a", 1.0), node("b", 3.0, CHANGE), node("c", 2.0, CHANGE)]
    assert [n.variant.source for n in beam(nodes)] == ["b", "a"]


def test_the_beam_takes_the_runner_up_where_the_best_keeps_the_launch():
    nodes = [node(), node("a", 3.0), node("b", 2.0, CHANGE)]
    assert [n.variant.source for n in beam(nodes)] == ["a", "b"]


def test_the_same_seed_gives_the_same_choices():
    def run():
        policy = BuiltIn(Advice(), random.Random(7))
        return [c.actions for c in drain(policy, [node(given=proposals(a=2.0, b=1.9, c=1.8, d=1.7))])]

    assert run() == run()


def lanes(width):
    return Action("lanes", ("x", str(width)))


def revisions(seed, nodes):
    policy = BuiltIn(Advice(), random.Random(seed))
    return {c.actions for c in drain(policy, nodes) if c.parent is nodes[0] and len(c.actions) != 1}


def test_the_best_chain_is_tried_with_other_numbers_and_with_less():
    root = Node(Variant("k", "k"), 0.0, tuple(Proposal(lanes(w), 2.0, "") for w in (4, 16)))
    jam = Action("jam", ("y", "2"))
    best = Node(Variant("best", "k", (lanes(4), jam)), 3.0, tuple(proposals(a=1, b=1, c=1, d=1, e=1, f=1)))
    assert revisions(1, [root, best]) >= {(lanes(16), jam)}


def test_an_action_on_something_else_is_no_other_number():
    other = Action("lanes", ("y", "16"))
    root = Node(Variant("k", "k"), 0.0, (Proposal(other, 2.0, ""),))
    best = Node(Variant("best", "k", (lanes(4), Action("jam"))), 3.0, tuple(proposals(a=1, b=1, c=1, d=1)))
    assert not any(other in chain for chain in revisions(1, [root, best]))
