"""What the checks say of what they could not run, on a real device."""

from dataclasses import replace
from pathlib import Path

import pytest

from mb_agent.bench import Bench
from mb_agent.errors import AgentError, sentence
from mb_agent.events import Request
from mb_agent.setup import prepare
from mb_agent.verify import Verifier
from mb_targets import registry
from mb_targets.model import Variant
from mb_targets.outcome import Level
from mb_targets.protocol import GUARD_PAGES

DATA = Path(__file__).parents[2] / "data" / "planted"
pytestmark = [pytest.mark.needs("pocl", "oclgrind"), pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def job():
    path = DATA / "neighbours.cl"
    text = path.read_text()
    target = registry.load("opencl")
    kernel = target.find_kernels(text, "opencl")[0]
    bench = Bench("opencl", "pocl", DATA)
    yield prepare(Request("test", str(path), text, kernel, device="pocl", seed=11), target, bench)
    bench.close()


def verdict_of(job, oracle=None, **plan):
    verifier = Verifier(job.target, oracle or job.oracle, replace(job.plan, **plan), job.seed)
    candidate, _ = job.bench.build(Variant(job.kernel.source, job.kernel.name), job.spec)
    try:
        return verifier.full(candidate, verifier.smoke(candidate))
    finally:
        job.bench.discard(candidate)


def names(verdict):
    return [check.name for check in verdict.checks]


def test_without_other_sizes_none_are_said_to_be_checked(job):
    verdict = verdict_of(job, tries=())
    assert "sizes" not in names(verdict)
    assert any(u.startswith("other sizes") for u in verdict.unchecked)


def test_a_signed_size_that_was_tried_from_one_on_says_so(job):
    assert "sizes below zero" in verdict_of(job).unchecked


def test_the_sizes_that_were_run_are_named(job):
    sizes = next(c for c in verdict_of(job).checks if c.name == "sizes")
    assert all(str(int(value)) in sizes.evidence for value in job.plan.tries[0].values())


def test_a_cpu_device_watches_every_access(job):
    assert GUARD_PAGES in job.device.features
    assert "guard pages" in names(verdict_of(job))


def test_a_device_without_guard_pages_claims_no_more_than_writes_and_calls_for_the_simulator(job):
    unguarded, guarded = replace(job.device, features=()), job.oracle.device
    job.oracle.device = unguarded
    try:
        found = names(verdict_of(job))
    finally:
        job.oracle.device = guarded
    assert "guard pages" not in found
    assert {"write fences", "oclgrind"} <= set(found)


def test_a_memory_check_that_could_not_be_made_keeps_a_variant_from_the_full_level(job):
    job.oracle.device, guarded = replace(job.device, features=()), job.oracle.device
    try:
        verdict = verdict_of(job, simulated=())
    finally:
        job.oracle.device = guarded
    assert verdict.level == Level.VALUES
    assert not verdict.full


def test_a_memory_check_at_one_size_says_that_the_other_is_missing(job):
    job.oracle.device, guarded = replace(job.device, features=()), job.oracle.device
    try:
        verdict = verdict_of(job, simulated=job.plan.simulated[:1])
    finally:
        job.oracle.device = guarded
    assert any("at one size only" in u for u in verdict.unchecked)


def test_a_workers_traceback_is_told_by_what_it_ends_with():
    trace = "Traceback (most recent call last):\n  File 'x', line 1\nValueError: no such thing"
    assert sentence(AgentError(trace)) == "ValueError: no such thing"
    assert sentence(AgentError("one line\nmore")) == "one line"
