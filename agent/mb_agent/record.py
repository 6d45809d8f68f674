"""An attempt in the form that is kept of it, and where its claim came from."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from mb_agent.setup import Job
from mb_targets.model import Action, Variant
from mb_targets.outcome import MINIMUM_GAIN, Measurement, Outcome, Provenance, Speedup, Verdict


@dataclass(frozen=True, slots=True)
class Attempt:
    """A variant that was tried, and what verification made of it.

    Attributes:
        parent: Hash of the variant it was made from.
        expected: The gain that was expected.
        time: When it ended.
    """

    variant: Variant
    parent: str
    verdict: Verdict
    expected: float
    time: float

    def outcome(
        self,
        job: Job,
        note: str,
        *,
        constraint: str = "",
        step: Speedup | None = None,
        total: Measurement | None = None,
        minimum: float = MINIMUM_GAIN,
    ) -> Outcome:
        """Make the record of it.

        Args:
            job: The job it was tried in.
            note: What happened against what was expected, in words.
            constraint: The condition learned from a failure.
            step: Against its parent.
            total: Against the original.
            minimum: The smallest gain that could be claimed.
        """
        chain = self.variant.chain
        return Outcome(
            state=job.state,
            action=chain[-1] if chain else Action("none"),
            chain=chain,
            identity=job.kernel.identity,
            kernel=job.kernel.name,
            parent=self.parent,
            verdict=self.verdict,
            provenance=provenance(job, self.variant, self.time),
            step=step,
            total=total,
            expected=self.expected,
            note=note,
            constraint=constraint,
            minimum=minimum,
        )


def provenance(job: Job, variant: Variant, created: float) -> Provenance:
    """Say what was run, on what, with what, and when."""
    return Provenance(
        original=job.oracle.original.hash,
        variant=variant.hash,
        device=job.device.key,
        driver=job.device.driver,
        toolchain=job.device.toolchain,
        options=(*job.spec.options, *variant.options),
        created=created,
        tool=tool_version(),
    )


def tool_version() -> str:
    """Give our own version."""
    try:
        return version("modelblaster")
    except PackageNotFoundError:
        return "unknown"
