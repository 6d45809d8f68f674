"""Events as a job writes them, made for tests that need no job."""

from __future__ import annotations

from mb_agent import events
from mb_targets.model import (
    Action,
    Argument,
    Device,
    Kernel,
    LaunchChange,
    LaunchSpec,
    Parameter,
    State,
    Symbol,
    Variant,
)
from mb_targets.outcome import Check, Level, Measurement, Outcome, Provenance, Speedup, Verdict

SOURCE = (
    "__kernel void twice(__global float *y, int n) { int i = get_global_id(0); if (i < n) y[i] *= 2.0f; }\n"
)
KERNEL = Kernel(
    "opencl",
    "opencl",
    "twice",
    SOURCE,
    0,
    len(SOURCE) - 1,
    (Parameter("y", "float", "global"), Parameter("n", "int", "value")),
    "1" * 32,
)
LAUNCH = LaunchSpec(
    (Symbol("n", 1024.0, multiple=16, origin="comment"),),
    (Argument("y", "inout", "f32", "n", origin="probed"), Argument("n", "scalar", "i32", "n")),
    ("n",),
    origin="comment",
)
DEVICE = Device("cpu-test-pocl", "A CPU", "cpu", "vendor", "3.1", "pocl", 2, 512, 32768, 4096)
STATE = State("map", ("unit",), "f32", 6, -2, "memory", "opencl", DEVICE.key)
PASSED = Verdict(
    Level.SANITIZED,
    smoke=True,
    checks=(Check("values", True, 0.5, "9 sizes"), Check("races", None, 0.0, "Oclgrind is not installed")),
    error=0.25,
    basis="4x the original's own error",
    unchecked=("images",),
)
REFUSED = Verdict(Level.COMPILED, checks=(Check("values", False, 0.1, "y[3]"),), failure="values")


def request(text: str = SOURCE, path: str = "") -> events.Request:
    """Ask for the kernel above."""
    return events.Request("job", path, text, KERNEL)


def started(time: float = 1.0) -> events.Started:
    """Say that it began."""
    return events.Started(time, DEVICE, STATE, LAUNCH, "// mb: global=(n,) n=1024", 7)


def measurement(value: float) -> Measurement:
    """Give a measurement with this ratio."""
    speedup = Speedup(value, value * 0.98, value * 1.02)
    return Measurement("cpu", speedup, value, 2e6, 2e6 / value, 20, DEVICE.key, "turn about")


def variant(name: str, changes_launch: bool = False) -> Variant:
    """Give a variant that one action made."""
    launch = LaunchChange(("G0 // 16",), None, (16, 1, 1)) if changes_launch else None
    return Variant(SOURCE.replace("2.0f", f"2.0f /* {name} */"), "twice", (Action(name),), launch)


def tried(name: str, value: float | None, changes_launch: bool = False) -> events.Tried:
    """Tell of one attempt; None for one that was refused."""
    made = variant(name, changes_launch)
    outcome = Outcome(
        STATE,
        Action(name),
        (Action(name),),
        KERNEL.identity,
        KERNEL.name,
        "",
        REFUSED if value is None else PASSED,
        Provenance("o", "v", DEVICE.key, "3.1", "pocl", (), 1.0, "0.1.0"),
        total=None if value is None else measurement(value),
    )
    return events.Tried(2.0, outcome, made)


def offer(value: float, changes_launch: bool = False, diff: str = "--- a\n+++ b\n-x\n+y\n") -> events.Offer:
    """Give an offer with this ratio."""
    return events.Offer(
        variant("vector", changes_launch), PASSED, measurement(value), changes_launch, diff, "/e.json"
    )


def finished(*offers: events.Offer) -> events.Finished:
    """Say that it ended."""
    return events.Finished(9.0, offers, 12, 3, "the budget is spent")
