"""The record behind an offer: everything that it takes to replay the claim from scratch."""

from __future__ import annotations

from pathlib import Path

import msgspec

from mb_targets.model import Device, Kernel, LaunchSpec, Precision, State, Variant
from mb_targets.outcome import Measurement, Provenance, Speedup, Verdict

VERSION = 1


class Evidence(msgspec.Struct, frozen=True):
    """One claim, whole.

    Attributes:
        kernel: The original, with the source it builds from.
        seed: Root of the search's inputs.
        final_seed: Root of the inputs of the final verification.
        home: The size that was measured at.
        small: The size that the distributions were run at.
        sizes: The odd sizes.
        cpu_ns: Pairs of (original, variant) CPU nanoseconds of one launch, a turn each; empty on a GPU.
        event_ns: Likewise by the device's events.
        launches: Launches in each sample, of the original and of the variant.
        control: The original timed against itself.
        minimum_gain: What the interval's lower end had to be above.
        confined: What kept the workers from writing elsewhere and from the network: of ``confine.LAYERS``.
    """

    kernel: Kernel
    launch: LaunchSpec
    variant: Variant
    verdict: Verdict
    measurement: Measurement
    device: Device
    state: State
    precision: Precision
    provenance: Provenance
    seed: int
    final_seed: int
    home: dict[str, float]
    small: dict[str, float]
    sizes: tuple[dict[str, float], ...]
    cpu_ns: tuple[tuple[float, float], ...]
    event_ns: tuple[tuple[float, float], ...]
    launches: tuple[int, int]
    control: Speedup | None
    minimum_gain: float
    confined: tuple[str, ...] = ()
    version: int = VERSION


def write(folder: Path, evidence: Evidence) -> Path:
    """Write a record into a job's folder; give its path."""
    place = folder / f"evidence-{evidence.variant.hash[:12]}.json"
    place.write_bytes(msgspec.json.format(msgspec.json.encode(evidence), indent=1))
    return place


def read(place: Path) -> Evidence:
    """Read a record.

    Raises:
        msgspec.DecodeError: It is none.
    """
    return msgspec.json.decode(place.read_bytes(), type=Evidence)
