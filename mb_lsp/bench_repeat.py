"""``modelblaster bench repeat``: does a winner's ratio come back in fresh processes?"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mb_agent import events
from mb_lsp import follow, optimize, pick
from mb_lsp.problems import Code, CommandError
from mb_targets.model import Kernel, Variant
from mb_targets.outcome import Measurement

TIMES = 3
BAR = 0.15  # the most that a ratio may be off the first one, as a share of it
LIMIT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What to repeat.

    Attributes:
        file: ``FILE[:KERNEL]``, optimized first; or an evidence file that a job left.
        folder: Where includes are looked up for an evidence file.
        seconds: Budget of the job.
    """

    file: str
    folder: Path
    device: str = ""
    seconds: float = 60.0
    seed: int | None = None


class Repeat(msgspec.Struct, frozen=True):
    """A winner's first measurement, and those of fresh processes."""

    kernel: str
    chain: tuple[str, ...]
    first: Measurement
    again: tuple[Measurement, ...]

    @property
    def ratios(self) -> list[float]:
        """The speed-ups that the fresh processes found."""
        return [m.speedup.value for m in self.again]

    @property
    def spread(self) -> float:
        """The largest distance of a ratio from the first one, as a share of it."""
        return max(abs(r / self.first.speedup.value - 1) for r in self.ratios)

    @property
    def met(self) -> bool:
        """Whether the ratio came back within the bar."""
        return self.spread <= BAR


class _Claim(msgspec.Struct, frozen=True):
    """What is read here of a record; the process that measures reads it whole."""

    kernel: Kernel
    variant: Variant
    measurement: Measurement


def run(plan: Plan, as_json: bool) -> Code:
    """Find a winner, measure it again, print; 1 where its ratio does not come back."""
    with tempfile.TemporaryDirectory(prefix="modelblaster-bench-") as kept:
        found = _from_record(plan) if plan.file.endswith(".json") else _from_job(plan, Path(kept))
    print(line(found), file=sys.stderr if as_json else sys.stdout)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    return Code.DONE if found.met else Code.INPUT


def line(found: Repeat) -> str:
    """Write the ratios beside the bar."""
    ratios = ", ".join(f"{r:.2f}x" for r in found.ratios)
    clock = "CPU time" if found.first.clock == "cpu" else "device events"
    verdict = "met" if found.met else "MISSED"
    return (
        f"{found.kernel}: {found.first.speedup.value:.2f}x by {' '.join(found.chain)}; again "
        f"{ratios}: at most {found.spread:.1%} off, bar {BAR:.0%} {verdict} ({clock}, {found.first.device})"
    )


def _from_job(plan: Plan, kept: Path) -> Repeat:
    """Optimize a kernel from an empty knowledge base, and repeat its best offer."""
    path, name = pick.split(plan.file)
    document = pick.read(path)
    kernel = pick.kernels(document, name)[0]
    job, folder = follow.new_job(kernel.name)
    options = optimize.Options(
        plan.file, seconds=plan.seconds, device=plan.device, seed=plan.seed, knowledge=str(kept)
    )
    request = optimize.request_for(options, document, kernel, job)
    try:
        log, cancelled = optimize.run_job(request, folder, lambda event: None)
        if cancelled:
            raise KeyboardInterrupt
        offer = best(log)
        again = _measure(Path(offer.evidence), path.resolve().parent, plan.device)
    finally:
        follow.discard(folder)
    return Repeat(kernel.name, tuple(map(str, offer.variant.chain)), offer.measurement, again)


def best(log: list[events.Event]) -> events.Offer:
    """Give a job's best offer.

    Raises:
        CommandError: There is none.
    """
    last = log[-1]
    if isinstance(last, events.Failed):
        raise CommandError(last.message, follow.exit_code(last))
    if not isinstance(last, events.Finished):
        raise CommandError("the job did not end by itself; run it again", Code.INTERNAL)
    if not last.offers:
        raise CommandError(
            f"nothing faster was found ({last.reason}), so there is nothing to repeat; try a larger --seconds"
        )
    return last.offers[0]


def _from_record(plan: Plan) -> Repeat:
    place = Path(plan.file)
    try:
        claim = msgspec.json.decode(place.read_bytes(), type=_Claim)
    except (OSError, msgspec.MsgspecError) as error:
        raise CommandError(f"{place} is no record of a claim: {error}") from None
    again = _measure(place, plan.folder.resolve(), plan.device)
    return Repeat(claim.kernel.name, tuple(map(str, claim.variant.chain)), claim.measurement, again)


def _measure(evidence: Path, folder: Path, device: str) -> tuple[Measurement, ...]:
    """Measure in processes of their own, one after the other.

    Raises:
        CommandError: One could not; the message is its own.
    """
    command = [sys.executable, "-P", "-m", "mb_agent.remeasure", str(evidence.resolve()), str(folder), device]
    found = []
    for _ in range(TIMES):
        try:
            done = subprocess.run(command, capture_output=True, timeout=LIMIT_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise CommandError(f"not measured within {LIMIT_SECONDS:.0f} s", Code.DEVICE) from None
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines() or ["it ended without a word"]
            raise CommandError(f"it could not be measured again: {said[-1]}", Code.DEVICE)
        found.append(msgspec.json.decode(done.stdout, type=Measurement))
    return tuple(found)
