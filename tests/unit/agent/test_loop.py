"""The loop with a policy that plants variants, on a real device."""

import os
import threading
from pathlib import Path

import planted
import pytest

from mb_agent.choose import Choice
from mb_agent.errors import AgentError
from mb_agent.events import Budget, Finished, Request, Tried
from mb_agent.optimize import Optimization
from mb_targets import registry
from mb_targets.model import Action, Variant

DATA = Path(__file__).parents[2] / "data" / "planted"
pytestmark = [pytest.mark.needs("pocl", "oclgrind"), pytest.mark.timeout(180)]

FAST = planted.NEIGHBOURS % "if (i < n) out[i] = 0.125f;"
RIGHT = """
__kernel void row_total(__global float *out, __global const float *x, int cols)
{
    if (get_local_id(0) == 0) {
        int row = get_group_id(0);
        float16 v = 0.0f;
        int c = 0;
        for (; c + 16 <= cols; c += 16)
            v += vload16(0, x + row * cols + c);
        float8 a = v.lo + v.hi;
        float4 b = a.lo + a.hi;
        float2 d = b.lo + b.hi;
        float sum = d.x + d.y;
        for (; c < cols; ++c)
            sum += x[row * cols + c];
        out[row] = sum;
    }
}
"""
# Right at the timed size and at every size that is a multiple of 16; faster too, for want of a tail.
TAILLESS = RIGHT.replace("for (; c < cols; ++c)\n            sum += x[row * cols + c];", "")


class Scripted:
    """Plants the given variants, in order."""

    def __init__(self, sources, name):
        self.left = [Variant(s, name, (Action("planted", (str(i),)),)) for i, s in enumerate(sources)]
        self.learned = []

    def next(self, nodes):
        if not self.left:
            return None
        variant = self.left.pop(0)
        return Choice(nodes[0], variant.chain, 2.0, "planted", variant)

    def learn(self, learned):
        self.learned.append(learned)


def optimize(tmp_path, name, sources, **changes):
    path = DATA / f"{name}.cl"
    text = path.read_text()
    kernel = registry.load("opencl").find_kernels(text, "opencl")[0]
    request = Request(
        "job", str(path), text, kernel, Budget(40.0), device="pocl", policy="scripted", seed=3, **changes
    )
    events, policy = [], Scripted(sources, name)
    job = Optimization(
        request, tmp_path, events.append, policies={"scripted": lambda *_: policy}, locks=tmp_path / "locks"
    )
    job.run()
    return events, policy


def outcomes(events):
    return [e.outcome for e in events if isinstance(e, Tried)]


def children():
    task = Path(f"/proc/{os.getpid()}/task")
    return {pid for t in task.iterdir() for pid in (t / "children").read_text().split()}


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """One job over a wrong, a tailless and a right variant."""
    folder = tmp_path_factory.mktemp("mixed")
    wrong = RIGHT.replace("float sum = d.x + d.y;", "float sum = d.x;")
    before = children()
    events, policy = optimize(
        folder, "row_total", [wrong, TAILLESS, RIGHT, RIGHT], knowledge=str(folder / "kb")
    )
    return events, policy, children() - before, folder


def test_a_wrong_variant_is_recorded_with_what_it_did(mixed):
    refused = outcomes(mixed[0])[0]
    assert refused.verdict.failure == "smoke"
    assert refused.constraint == "gives wrong values in this state"
    assert refused.total is None


def test_a_variant_that_is_right_at_the_timed_size_only_does_not_lead(mixed):
    tailless = outcomes(mixed[0])[1]
    assert tailless.verdict.failure == "odd sizes"
    assert tailless.verdict.counter_example.sizes["cols"] % 16


def test_only_the_right_variant_is_offered(mixed):
    finished = mixed[0][-1]
    assert isinstance(finished, Finished)
    assert [o.variant.source for o in finished.offers] == [RIGHT]
    assert finished.refused == 2


def test_the_same_variant_is_not_tried_twice(mixed):
    assert mixed[0][-1].tried == 3
    assert not mixed[1].learned[-1].applicable


def test_the_policy_learns_what_came_of_each_choice(mixed):
    gains = [learned.gain for learned in mixed[1].learned[:3]]
    assert gains[:2] == [None, None]
    assert gains[2] > 0.5


def test_no_worker_is_left_when_a_job_ends(mixed):
    assert mixed[2] == set()


def test_failures_are_kept_as_constraints(mixed):
    from mb_kb.knowledge import KnowledgeBase

    base = KnowledgeBase(mixed[3] / "kb")
    state = outcomes(mixed[0])[0].state
    conditions = {c.condition for c in base.constraints(state)}
    base.close()
    assert "gives wrong values in this state" in conditions


def test_an_endless_variant_does_not_end_the_job(tmp_path):
    body, _ = planted.WRONG_NEIGHBOURS["infinite loop"]
    events, _ = optimize(tmp_path, "neighbours", [planted.NEIGHBOURS % body, FAST])
    assert [o.verdict.failure for o in outcomes(events)] == ["time limit", "smoke"]
    assert events[-1].offers == ()


def test_a_variant_that_does_not_build_is_recorded_with_the_compilers_words(tmp_path):
    events, _ = optimize(tmp_path, "neighbours", [FAST.replace("0.125f", "nonsense")])
    outcome = outcomes(events)[0]
    assert outcome.verdict.failure == "build"
    assert "nonsense" in outcome.note


def test_a_variant_with_another_interface_is_never_built(tmp_path):
    events, _ = optimize(tmp_path, "neighbours", [FAST.replace("int n)", "long n)")])
    assert outcomes(events)[0].verdict.failure == "interface"


def test_stopping_from_another_thread_ends_the_job(tmp_path):
    path = DATA / "row_total.cl"
    text = path.read_text()
    kernel = registry.load("opencl").find_kernels(text, "opencl")[0]
    request = Request("job", str(path), text, kernel, Budget(60.0), device="pocl", seed=3)
    started, failure = threading.Event(), []

    def emit(event):
        if isinstance(event, Tried):
            started.set()

    job = Optimization(request, tmp_path, emit, locks=tmp_path / "locks")

    def run():
        try:
            job.run()
        except AgentError as error:
            failure.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(60)
    job.stop()
    thread.join(60)
    assert not thread.is_alive()
    assert failure
