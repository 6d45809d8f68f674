"""Measure a claim once more: ``python -m mb_agent.remeasure EVIDENCE FOLDER DEVICE``.

Nothing is left of the job that made the claim but its record. The original and the variant are built anew,
each in a new worker process, and timed turn about on inputs that are drawn anew; the measurement is printed
as one line of JSON. DEVICE is the user's choice, empty for the best one.
"""

from __future__ import annotations

import secrets
import sys
from pathlib import Path

import msgspec

from mb_agent.errors import AgentError, JobRefused
from mb_agent.evidence import Evidence
from mb_agent.finish import FINAL_TURNS
from mb_agent.inputs import Fill, as_bytes, make
from mb_agent.measure import Contender, clock_of, narrow, race
from mb_agent.optimize import lock_folder
from mb_agent.queue_lock import hold
from mb_agent.worker import WorkerProcess, share
from mb_targets.concrete import concretize
from mb_targets.errors import TargetError
from mb_targets.model import Variant
from mb_targets.outcome import Measurement


def remeasure(evidence: Evidence, folder: Path, choice: str = "", seed: int | None = None) -> Measurement:
    """Time the original of a record against its variant, at the size that the record was measured at.

    Args:
        evidence: The record.
        folder: Where the kernel's includes lie.
        choice: The user's choice of device, which must lead to the record's device.
        seed: Of the inputs; None draws one.

    Raises:
        JobRefused: This is another device than the record's.
        AgentError: A worker died or hung.
        TargetError: There is no device, or one of the two no longer builds or runs.
    """
    target = evidence.kernel.target
    with WorkerProcess(target, choice) as first, WorkerProcess(target, choice) as second:
        device = first.device()
        if device.key != evidence.device.key:
            raise JobRefused(
                f"this is {device.key}, but the record was made on {evidence.device.key}; name its device"
            )
        with hold(lock_folder(), device.key, lambda before: None):
            return _race(evidence, folder, first, second, secrets.randbits(48) if seed is None else seed)


def _race(
    evidence: Evidence, folder: Path, first: WorkerProcess, second: WorkerProcess, seed: int
) -> Measurement:
    kernel, spec = evidence.kernel, evidence.launch
    contenders = []
    for side, variant in ((first, Variant(kernel.source, kernel.name)), (second, evidence.variant)):
        launch = concretize(kernel, spec, evidence.home, variant.launch)
        contenders.append(Contender(side, side.build(variant, spec.options, folder), launch))
    inputs = share(as_bytes(make(spec, contenders[0].launch, Fill("normal", seed))))
    clock = clock_of(evidence.device)
    pairs = race(contenders[0], contenders[1], inputs, clock, FINAL_TURNS, narrow(0.04, 9))
    return pairs.measurement(evidence.device)


def main() -> int:
    """Print the measurement; 1 with a sentence on standard error where there is none."""
    place, folder, choice = sys.argv[1:]
    try:
        evidence = msgspec.json.decode(Path(place).read_bytes(), type=Evidence)
        found = remeasure(evidence, Path(folder), choice)
    except (AgentError, TargetError, ValueError, OSError, msgspec.MsgspecError) as error:
        print(str(error).splitlines()[0], file=sys.stderr)
        return 1
    sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
