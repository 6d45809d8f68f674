"""Outcomes for tests: made whole, with what matters to the test said and the rest left plain."""

from __future__ import annotations

import random
from dataclasses import replace

from mb_targets.model import Action, State, digest
from mb_targets.outcome import Check, Level, Measurement, Outcome, Provenance, Speedup, Verdict

STATE = State("contraction", ("strided", "unit"), "f32", 10, 2, "memory", "opencl", "cpu-amd-zen4-pocl")
JAM = Action("jam", ("y", "8"))
TILE = Action("tile", ("16",))
VECTORS = {"saxpy": [3, 1, 0, 2] * 16, "matmul": [9, 4, 7, 1] * 16, "matmul again": [9, 4, 6, 1] * 16}


def on(device: str) -> State:
    """Give the plain state on another device."""
    return replace(STATE, device=device)


def speedup(value: float) -> Speedup:
    """Give a speed-up with a narrow interval."""
    return Speedup(value, value * 0.98, value * 1.02)


def outcome(
    value: float = 2.0,
    *,
    number: int = 0,
    kernel: str = "matmul",
    state: State = STATE,
    action: Action = JAM,
    chain: tuple[Action, ...] | None = None,
    step: float | None = None,
    level: Level = Level.SANITIZED,
) -> Outcome:
    """Give an attempt that was not refused; ``number`` is its time and its variant."""
    measured = Measurement("cpu", speedup(value), value, 1e6 * value, 1e6, 20, state.device, "turn about")
    verdict = Verdict(level, True, (Check("values", True, 0.1, "12 of 12"),), basis="the original's error")
    return Outcome(
        state,
        action,
        (action,) if chain is None else chain,
        digest(kernel),
        kernel,
        "parent",
        verdict,
        provenance(number, state),
        None if step is None else speedup(step),
        measured,
        1.5,
        "as expected",
    )


def refused(
    failure: str = "race",
    constraint: str = "",
    *,
    number: int = 0,
    kernel: str = "matmul",
    state: State = STATE,
    action: Action = JAM,
) -> Outcome:
    """Give an attempt that verification refused."""
    verdict = Verdict(Level.COMPILED, False, (Check(failure, False, 0.1, "item 3"),), failure)
    return Outcome(
        state,
        action,
        (action,),
        digest(kernel),
        kernel,
        "parent",
        verdict,
        provenance(number, state),
        constraint=constraint,
    )


def provenance(number: int, state: State) -> Provenance:
    """Give a provenance whose time and variant follow from a number."""
    variant = digest("variant", str(number))
    return Provenance("original", variant, state.device, "driver", "clang", ("-O3",), 1e9 + number, "0.1.0")


def crowd(count: int, seed: int = 1) -> list[Outcome]:
    """Give many different outcomes: several kernels, states, actions, chains, failures."""
    draw = random.Random(seed)
    made = []
    for n in range(count):
        state = replace(
            STATE,
            family=draw.choice(("contraction", "map")),
            size_class=draw.randrange(8, 11),
            device=draw.choice(("cpu-amd-zen4-pocl", "cpu-amd-zen5-pocl", "gpu-nvidia-h200")),
        )
        action = draw.choice((JAM, TILE, Action("unroll", (str(draw.randrange(4)),))))
        kernel = f"kernel {draw.randrange(6)}"
        if draw.random() < 0.3:
            failure = draw.choice(("build", "values", "race"))
            condition = draw.choice(("", "N % 8 != 0", "local memory above 32 KiB"))
            made.append(refused(failure, condition, number=n, kernel=kernel, state=state, action=action))
        else:
            chain = (*draw.sample((JAM, TILE), draw.randrange(3)), action)
            level = draw.choice((Level.VALUES, Level.SANITIZED))
            value = draw.lognormvariate(0.3, 0.5)
            step = draw.choice((None, draw.lognormvariate(0.1, 0.2)))
            made.append(
                outcome(
                    value,
                    number=n,
                    kernel=kernel,
                    state=state,
                    action=action,
                    chain=chain,
                    step=step,
                    level=level,
                )
            )
    return made
