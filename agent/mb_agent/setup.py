"""Get a job ready: the device, the launch, the sizes, an original that runs and can be judged against."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mb_agent.bench import Bench
from mb_agent.errors import AgentError, JobRefused, OriginalRefused, TimedOut, WorkerDied, sentence
from mb_agent.events import Request
from mb_agent.inputs import Fill, as_bytes, make
from mb_agent.measure import Contender, clock_of, narrow, one_launch_ns
from mb_agent.oracle import Case, Oracle
from mb_agent.sizes import Cost, Plan, Sizes, plan
from mb_agent.trial import Candidate
from mb_agent.verify import Verifier
from mb_agent.worker import share
from mb_targets.errors import BuildError, RunError, TargetError
from mb_targets.model import Device, Kernel, LaunchSpec, State
from mb_targets.outcome import Speedup
from mb_targets.protocol import Question, SupportsDiagnose, Target

CONTROL_TURNS = 12
# One call to the original may take so long beyond the budget, and never longer than the second.
GRACE_S, MOST_S = 10.0, 30.0
# An original that takes longer for one launch is said to.
SLOW_NS = 1e9
# How many of a diagnosis's findings are named when the original does not compile.
DIAGNOSTICS = 2


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """Everything that stays the same while a job runs.

    Attributes:
        features: The kernel's vector in the knowledge base.
        seed: Root of every draw.
    """

    request: Request
    target: Target
    kernel: Kernel
    spec: LaunchSpec
    device: Device
    state: State
    features: Sequence[int]
    plan: Plan
    oracle: Oracle
    bench: Bench
    verifier: Verifier
    seed: int

    def timed_case(self) -> Case:
        """Give the case that candidates are smoke-tested and timed on.

        Raises:
            OriginalRefused: The original no longer runs on it.
        """
        case = self.oracle.case(self.plan.screen, Fill("normal", self.seed))
        if isinstance(case, str):
            raise OriginalRefused(f"{self.kernel.name} cannot be timed: {case}")
        return case


def launch_of(target: Target, request: Request) -> LaunchSpec:
    """Settle the launch.

    Raises:
        JobRefused: Nothing says how to launch the kernel; its comment would.
    """
    if request.launch is not None:
        return request.launch
    found = target.infer_launch(request.kernel, Path(request.path) if request.path else None)
    if isinstance(found, Question):
        raise JobRefused(found.text, found.comment)
    return found


def _probed(spec: LaunchSpec, request: Request, bench: Bench) -> LaunchSpec:
    """Find the lengths that nothing states by running the kernel, where there are such.

    Raises:
        JobRefused: They cannot be found; the message says how to state them.
    """
    if all(a.extent != "?" for a in spec.arguments):
        return spec
    try:
        return bench.baseline.probe(request.kernel, spec, bench.folder, limit=_limit(request))
    except (BuildError, RunError, AgentError) as error:
        raise JobRefused(f"{request.kernel.name}: {sentence(error)}") from None


def _limit(request: Request) -> float:
    return min(MOST_S, GRACE_S + max(0.0, request.budget.seconds))


def prepare(
    request: Request,
    target: Target,
    bench: Bench,
    seed: int | None = None,
    slow: Callable[[float], None] = lambda seconds: None,
) -> Job:
    """Build and judge the original, and choose the sizes.

    Args:
        request: What to optimize.
        target: Its target.
        bench: The processes.
        seed: A seed to take up again; None takes the request's, or draws one.
        slow: Told what one launch of the original takes, in seconds, where that is long.

    Raises:
        JobRefused: The kernel cannot be optimized as it stands; the message says why.
        TargetUnavailable: There is no device.
    """
    kernel = request.kernel
    device = bench.baseline.device()
    bench.warm_up()
    spec = _probed(launch_of(target, request), request, bench)
    chosen = next(s for s in (seed, request.seed, secrets.randbits(48)) if s is not None)
    try:
        oracle = Oracle(
            target, kernel, spec, bench.baseline, request.precision, bench.folder, _limit(request)
        )
    except BuildError as error:
        raise JobRefused(f"{kernel.name} does not compile: {_why(target, kernel, spec, error)}") from None
    except AgentError as error:
        raise JobRefused(f"{kernel.name} cannot be built: {sentence(error)}") from None
    try:
        sizes = plan(spec, lambda at: _original_cost(oracle, device, at, slow))
        if sizes.small != sizes.screen:
            oracle.judge_original(sizes.small, Fill("normal", chosen + 1))
        oracle.judge_original(sizes.screen, Fill("normal", chosen))
    except (RunError, AgentError, TargetError) as error:
        raise JobRefused(sentence(error)) from None
    return Job(
        request=request,
        target=target,
        kernel=kernel,
        spec=spec,
        device=device,
        state=target.state(kernel, spec, device),
        features=target.features(kernel),
        plan=sizes,
        oracle=oracle,
        bench=bench,
        verifier=Verifier(target, oracle, sizes, chosen),
        seed=chosen,
    )


def _original_cost(oracle: Oracle, device: Device, at: Sizes, slow: Callable[[float], None]) -> Cost:
    """Time one launch of the original; where it fails, a run between guard pages says what it touched."""
    try:
        cost = launch_cost(oracle, device, at)
    except (WorkerDied, TimedOut) as error:
        if isinstance(error, WorkerDied) and error.touched_memory:
            oracle.judge_original(at, Fill("normal", 0))
        raise OriginalRefused(oracle.refusal(error, at)) from None
    if cost.ns > SLOW_NS:
        slow(cost.ns / 1e9)
    return cost


def control(job: Job, case: Case) -> Speedup | None:
    """Time the original against itself, each in its own process: what noise alone makes of no gain at all.

    A process that ends is started again, once; None when it could not be timed.
    """
    for _ in range(2):
        original, _ = job.bench.build(job.oracle.original, job.spec)
        if original is None:
            continue
        stop = narrow(0.03, 6)
        try:
            return job.bench.race(job.oracle, None, original, case, job.device, CONTROL_TURNS, stop).speedup()
        except (AgentError, TargetError, ValueError):
            continue
        finally:
            job.bench.discard(original)
    return None


def _why(target: Target, kernel: Kernel, spec: LaunchSpec, error: BuildError) -> str:
    """Say why the original does not compile: what the compiler said first, and what a diagnosis names."""
    said = sentence(error)
    if not isinstance(target, SupportsDiagnose):
        return said
    found = target.diagnose(kernel, spec.options)[:DIAGNOSTICS]
    return "; ".join(
        dict.fromkeys([said, *(f"line {d.line}, column {d.column}: {d.message}" for d in found)])
    )


def launch_cost(oracle: Oracle, device: Device, sizes: Sizes, candidate: Candidate | None = None) -> Cost:
    """Time one launch of a candidate, or of the original, roughly.

    Raises:
        AgentError: The worker died or hung.
        TargetError: It cannot be launched at these sizes.
    """
    launch = oracle.launch(sizes, Fill("normal", 0), candidate.variant.launch if candidate else None)
    contender = (
        Contender(candidate.side, candidate.handle, launch)
        if candidate
        else Contender(oracle.side, oracle.handle, launch, oracle.limit)
    )
    inputs = share(as_bytes(make(oracle.spec, launch, Fill("normal", 0))))
    ns = one_launch_ns(contender, inputs, clock_of(device))
    return Cost(ns, sum(launch.buffers.values()))
