"""Wrong variants on a real device: each is refused by a check that sees what is wrong, and leaves nothing."""

import os
from pathlib import Path

import planted
import pytest

from mb_agent.bench import Bench
from mb_agent.events import Request
from mb_agent.setup import prepare
from mb_targets import registry
from mb_targets.model import Variant

DATA = Path(__file__).parents[2] / "data" / "planted"
pytestmark = [pytest.mark.needs("oclgrind"), pytest.mark.timeout(120)]


def prepared(name, device):
    path = DATA / f"{name}.cl"
    text = path.read_text()
    target = registry.load("opencl")
    kernel = target.find_kernels(text, "opencl")[0]
    request = Request("test", str(path), text, kernel, device=device, seed=11)
    return prepare(request, target, Bench("opencl", device, DATA))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("pocl", marks=pytest.mark.needs("pocl")),
        pytest.param("intel", marks=pytest.mark.needs("intel")),
    ],
)
def choice(request):
    return request.param


@pytest.fixture(scope="module")
def neighbours(choice):
    job = prepared("neighbours", choice)
    yield job
    job.bench.close()


@pytest.fixture(scope="module")
def row_total(choice):
    job = prepared("row_total", choice)
    yield job
    job.bench.close()


def verdict_of(job, source):
    variant = Variant(source, job.kernel.name)
    interface = job.verifier.screen(variant)
    assert interface.passed, interface.evidence
    candidate, built = job.bench.build(variant, job.spec)
    assert candidate is not None, built.evidence
    try:
        verdict = job.verifier.smoke(candidate, (interface, built))
        return verdict if verdict.refused else job.verifier.full(candidate, verdict)
    finally:
        candidate.side.kill()


def alive(pid):
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("wrong", planted.WRONG_NEIGHBOURS)
def test_a_wrong_map_is_refused(neighbours, wrong):
    body, checks = planted.WRONG_NEIGHBOURS[wrong]
    verdict = verdict_of(neighbours, planted.NEIGHBOURS % body)
    assert verdict.failure in checks, verdict
    assert verdict.checks[-1].evidence


@pytest.mark.parametrize("wrong", planted.WRONG_ROW_TOTAL)
def test_a_wrong_reduction_is_refused(row_total, wrong):
    body, checks = planted.WRONG_ROW_TOTAL[wrong]
    verdict = verdict_of(row_total, planted.ROW_TOTAL % body)
    assert verdict.failure in checks, verdict


@pytest.mark.parametrize("right", planted.RIGHT_NEIGHBOURS)
def test_a_right_map_is_accepted(neighbours, right):
    verdict = verdict_of(neighbours, planted.NEIGHBOURS % planted.RIGHT_NEIGHBOURS[right])
    assert verdict.full, verdict


@pytest.mark.parametrize("right", planted.RIGHT_ROW_TOTAL)
def test_a_right_reduction_is_accepted(row_total, right):
    verdict = verdict_of(row_total, planted.ROW_TOTAL % planted.RIGHT_ROW_TOTAL[right])
    assert verdict.full, verdict


def test_wrong_values_come_with_a_counter_example(neighbours):
    verdict = verdict_of(neighbours, planted.NEIGHBOURS % "if (i < n) out[i] = 0.125f;")
    found = verdict.counter_example
    assert (found.argument, found.got, found.sizes["n"]) == ("out", "0.125", 8192)
    assert f"seed {neighbours.seed}" in found.inputs


def test_no_worker_is_left_after_an_endless_loop(neighbours):
    body, _ = planted.WRONG_NEIGHBOURS["infinite loop"]
    variant = Variant(planted.NEIGHBOURS % body, "neighbours")
    candidate, _ = neighbours.bench.build(variant, neighbours.spec)
    pid = candidate.side.pid
    assert neighbours.verifier.smoke(candidate).failure == "time limit"
    assert not alive(pid)


def test_another_parameter_list_is_refused_before_it_is_built(neighbours):
    source = neighbours.kernel.source.replace("int n)", "int n, int more)")
    check = neighbours.verifier.screen(Variant(source, "neighbours"))
    assert not check.passed
    assert "4 parameters instead of 3" in check.evidence


def test_a_missing_entry_point_is_refused(neighbours):
    assert not neighbours.verifier.screen(Variant("__kernel void other() {}", "neighbours")).passed
