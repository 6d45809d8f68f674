"""Refuse wrong variants: one pipeline for all targets, cheap checks first, each with its cost and evidence.

``smoke`` is what a candidate needs before it may be timed, ``probe`` what it needs before others are built on
it, ``full`` what a variant needs before it may be offered. The checks are those of the tables in ``checks``;
the first that fails ends the pipeline.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from mb_agent.checks import FULL, PROBE, SMOKE, Table
from mb_agent.oracle import Oracle
from mb_agent.sizes import Plan
from mb_agent.trial import Candidate, Refused, Runner, Trial
from mb_targets.model import Kernel, Parameter, Variant
from mb_targets.outcome import Check, Level, Verdict
from mb_targets.protocol import Target


class Verifier:
    """Verify the variants of one kernel against one oracle.

    Args:
        target: The target.
        oracle: What the original gives.
        plan: The sizes.
        seed: Root of the inputs' seeds; no candidate ever sees it.
    """

    def __init__(
        self,
        target: Target,
        oracle: Oracle,
        plan: Plan,
        seed: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.target = target
        self.oracle = oracle
        self._runner = Runner(oracle, plan)
        self.seed = seed
        self._clock = clock

    def screen(self, variant: Variant) -> Check:
        """Look at the text only: the entry point and its parameters must be the original's."""
        started = self._clock()
        problem = interface_problem(self.target, self.oracle.kernel, variant)
        return Check("interface", not problem, self._clock() - started, problem or "name and parameters kept")

    def smoke(self, candidate: Candidate, built: Sequence[Check] = ()) -> Verdict:
        """Compare one run at the size that is timed; what timing needs."""
        trial = Trial(candidate, self.seed, list(built))
        return self._judge(trial, SMOKE, Level.COMPILED)

    def probe(self, candidate: Candidate, before: Verdict) -> Verdict:
        """Compare at two odd sizes as well: what a candidate needs before others are built on it."""
        trial = Trial(candidate, self.seed, list(before.checks), worst=before.error)
        return self._judge(trial, PROBE, Level.COMPILED)

    def full(self, candidate: Candidate, before: Verdict, seed: int | None = None) -> Verdict:
        """Make every check that the variant calls for.

        Args:
            candidate: The variant, smoke-tested.
            before: What the smoke run found.
            seed: Seeds nobody saw, for a final verification; None keeps this verifier's.
        """
        trial = Trial(candidate, self.seed if seed is None else seed, list(before.checks))
        trial.worst = before.error
        return self._judge(trial, FULL, Level.VALUES)

    def _judge(self, trial: Trial, stages: Table, level: Level) -> Verdict:
        counter = None
        failure = ""
        for name, stage in stages:
            started = self._clock()
            try:
                for check in stage(self._runner, trial):
                    trial.checks.append(replace(check, seconds=self._clock() - started))
                    started = self._clock()
            except Refused as refused:
                failure, counter = refused.check or name, refused.counter
                trial.checks.append(Check(failure, False, self._clock() - started, refused.evidence))
                break
        missing = [c.name for c in trial.checks if c.passed is None and stages is FULL]
        unchecked = [f"{c.name}: {c.evidence}" for c in trial.checks if c.passed is None] + trial.unchecked
        if failure:
            level = Level.COMPILED
        elif stages is FULL and not missing:
            level = Level.SANITIZED
        return Verdict(
            level=level,
            smoke=not failure or stages is not SMOKE,
            checks=tuple(trial.checks),
            failure=failure,
            counter_example=counter,
            error=trial.worst,
            basis=trial.basis,
            unchecked=tuple(dict.fromkeys(unchecked)),
        )


def interface_problem(target: Target, kernel: Kernel, variant: Variant) -> str:
    """Say how a variant's entry point differs from the original's; empty when it does not."""
    found = {k.name: k for k in target.find_kernels(variant.source, kernel.language)}
    if variant.name not in found:
        return f"there is no kernel {variant.name}"
    ours, theirs = kernel.parameters, found[variant.name].parameters
    if len(ours) != len(theirs):
        return f"{len(theirs)} parameters instead of {len(ours)}"
    for a, b in zip(ours, theirs, strict=True):
        if _interface(a) != _interface(b):
            return f"parameter {b.name} is not the original's {a.name}"
    return ""


def _interface(parameter: Parameter) -> tuple[str, str, str]:
    return parameter.name, parameter.type_name, parameter.space
