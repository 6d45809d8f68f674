"""Outcomes as they lie on disk: MessagePack arrays.

A field may only be added at the end, with a default: then old rows read in a new program and new rows in
an old one. These structs mirror the values of ``mb_targets.model`` so that a change there cannot change
the disk.
"""

from __future__ import annotations

import math
import sys
from typing import Literal, TypeAlias

import msgspec

from mb_targets.model import Action, State
from mb_targets.outcome import MINIMUM_GAIN as MINIMUM_GAIN
from mb_targets.outcome import (
    Check,
    CounterExample,
    Label,
    Level,
    Measurement,
    Outcome,
    Provenance,
    Speedup,
    Verdict,
)

LONGEST_TEXT = 2000  # characters kept of a note, a condition or a piece of evidence

ActionRow: TypeAlias = tuple[str, tuple[str, ...]]
SpeedupRow: TypeAlias = tuple[float, float, float]


class CheckRow(msgspec.Struct, array_like=True, frozen=True):
    """One check of a variant."""

    name: str
    passed: bool | None
    seconds: float
    evidence: str = ""


class CounterRow(msgspec.Struct, array_like=True, frozen=True):
    """Where a wrong variant differed."""

    inputs: str
    sizes: dict[str, float]
    argument: str
    index: int
    got: str
    expected: str


class VerdictRow(msgspec.Struct, array_like=True, frozen=True):
    """What verification found."""

    level: int
    smoke: bool
    checks: tuple[CheckRow, ...]
    failure: str
    counter_example: CounterRow | None
    error: float
    basis: str
    unchecked: tuple[str, ...]


class MeasurementRow(msgspec.Struct, array_like=True, frozen=True):
    """Paired times."""

    clock: Literal["cpu", "event"]
    speedup: SpeedupRow
    event_ratio: float
    baseline_ns: float
    variant_ns: float
    samples: int
    device: str
    method: str
    label: Label


class ProvenanceRow(msgspec.Struct, array_like=True, frozen=True):
    """Where the claim came from."""

    original: str
    variant: str
    device: str
    driver: str
    toolchain: str
    options: tuple[str, ...]
    created: float
    tool: str


class StateRow(msgspec.Struct, array_like=True, frozen=True):
    """The performance state."""

    family: str
    access: tuple[str, ...]
    dtype: str
    size_class: int
    intensity: int
    bottleneck: str
    target: str
    device: str


class Row(msgspec.Struct, array_like=True, frozen=True):
    """One attempt."""

    state: StateRow
    action: ActionRow
    chain: tuple[ActionRow, ...]
    identity: str
    kernel: str
    parent: str
    verdict: VerdictRow
    provenance: ProvenanceRow
    step: SpeedupRow | None
    total: MeasurementRow | None
    expected: float
    note: str
    constraint: str
    minimum: float = MINIMUM_GAIN


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Row)


def encode(outcome: Outcome) -> bytes:
    """Write an outcome as a row.

    Raises:
        ValueError: It claims a speed-up that is no positive number, or has no time.
    """
    o = outcome
    _check(o)
    s = o.state
    state = StateRow(s.family, s.access, s.dtype, s.size_class, s.intensity, s.bottleneck, s.target, s.device)
    p = o.provenance
    provenance = ProvenanceRow(
        p.original, p.variant, p.device, p.driver, p.toolchain, p.options, p.created, p.tool
    )
    row = Row(
        state,
        (o.action.id, o.action.parameters),
        tuple((a.id, a.parameters) for a in o.chain),
        o.identity,
        o.kernel,
        o.parent,
        _verdict_row(o.verdict),
        provenance,
        None if o.step is None else (o.step.value, o.step.low, o.step.high),
        None if o.total is None else _measurement_row(o.total),
        o.expected,
        o.note[:LONGEST_TEXT],
        o.constraint[:LONGEST_TEXT],
        o.minimum,
    )
    return _encoder.encode(row)


def decode(raw: bytes) -> Row:
    """Read a row.

    Raises:
        msgspec.DecodeError: These bytes are no row.
    """
    return _decoder.decode(raw)


def outcome(row: Row) -> Outcome:
    """Turn a row back into the value that it was made of."""
    p = row.provenance
    return Outcome(
        state(row.state),
        Action(*row.action),
        chain(row),
        row.identity,
        row.kernel,
        row.parent,
        _verdict(row.verdict),
        Provenance(p.original, p.variant, p.device, p.driver, p.toolchain, p.options, p.created, p.tool),
        None if row.step is None else Speedup(*row.step),
        None if row.total is None else _measurement(row.total),
        row.expected,
        row.note,
        row.constraint,
        row.minimum,
    )


def state(s: StateRow) -> State:
    """Give the state of a row."""
    return State(s.family, s.access, s.dtype, s.size_class, s.intensity, s.bottleneck, s.target, s.device)


def chain(row: Row) -> tuple[Action, ...]:
    """Give the chain of a row."""
    return tuple(Action(*a) for a in row.chain)


def full(row: Row) -> bool:
    """Tell whether everything that the variant called for passed, as ``Verdict.full`` does."""
    return not row.verdict.failure and row.verdict.level >= Level.SANITIZED


def gain(row: Row) -> bool:
    """Tell whether the row is a verified gain, as ``Outcome.gain`` does of its own ``minimum``."""
    t = row.total
    if t is None or not full(row):
        return False
    return t.speedup[1] > max(MINIMUM_GAIN, row.minimum) and (t.clock == "event" or t.event_ratio > 1.0)


def effect(row: Row) -> float | None:
    """Give what the last action alone brought: the step, or the total where the chain is that one action."""
    if row.verdict.failure:
        return None
    if row.step is not None:
        return row.step[0]
    return row.total.speedup[0] if row.total is not None and len(row.chain) <= 1 else None


def _check(o: Outcome) -> None:
    claims = [s for s in (o.step, o.total.speedup if o.total else None) if s is not None]
    numbers = [n for s in claims for n in (s.value, s.low, s.high)]
    if not all(math.isfinite(n) and n > 0 for n in numbers):
        raise ValueError("a speed-up must be a finite number above zero")
    if not all(map(math.isfinite, (o.provenance.created, o.expected, o.minimum))):
        raise ValueError("an outcome needs a time, a finite expectation and a finite smallest gain")


def _finite(error: float) -> float:
    """Hold an error figure to what JSON can carry."""
    return error if math.isfinite(error) else sys.float_info.max


def _verdict_row(v: Verdict) -> VerdictRow:
    c = v.counter_example
    counter = None
    if c is not None:
        counter = CounterRow(c.inputs, c.sizes, c.argument, c.index, c.got, c.expected)
    checks = tuple(CheckRow(k.name, k.passed, k.seconds, k.evidence[:LONGEST_TEXT]) for k in v.checks)
    return VerdictRow(
        int(v.level), v.smoke, checks, v.failure, counter, _finite(v.error), v.basis, v.unchecked
    )


def _verdict(v: VerdictRow) -> Verdict:
    c = v.counter_example
    counter = None
    if c is not None:
        counter = CounterExample(c.inputs, c.sizes, c.argument, c.index, c.got, c.expected)
    checks = tuple(Check(k.name, k.passed, k.seconds, k.evidence) for k in v.checks)
    return Verdict(Level(v.level), v.smoke, checks, v.failure, counter, v.error, v.basis, v.unchecked)


def _measurement_row(m: Measurement) -> MeasurementRow:
    return MeasurementRow(
        m.clock,
        (m.speedup.value, m.speedup.low, m.speedup.high),
        m.event_ratio,
        m.baseline_ns,
        m.variant_ns,
        m.samples,
        m.device,
        m.method,
        m.label,
    )


def _measurement(m: MeasurementRow) -> Measurement:
    return Measurement(
        m.clock,
        Speedup(*m.speedup),
        m.event_ratio,
        m.baseline_ns,
        m.variant_ns,
        m.samples,
        m.device,
        m.method,
        m.label,
    )
