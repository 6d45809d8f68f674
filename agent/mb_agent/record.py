"""Where a claim came from, in the form that is kept with it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from mb_agent.setup import Job
from mb_targets.model import Variant
from mb_targets.outcome import Provenance


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
