"""``modelblaster bench examples``: the ratio that each example reaches, against its bar."""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mb_agent import events
from mb_lsp import follow, optimize, pick
from mb_lsp.problems import Code, CommandError
from mb_targets.outcome import Measurement

# The least CPU-time ratio promised for each file, by toolchain. For files of tests/data/relatives it is half
# the bar of the example they resemble.
BARS: dict[str, dict[str, float]] = {
    "matmul": {"pocl": 40, "intel": 10},
    "reduce_sum": {"pocl": 20, "intel": 6},
    "reduce_partials": {"pocl": 60, "intel": 6},
    "transpose": {"pocl": 3, "intel": 3},
    "conv3x3": {"pocl": 8},
    "softmax": {"pocl": 8, "intel": 10},
    "layernorm": {"pocl": 4, "intel": 12},
    "gelu": {"pocl": 90},
    "saxpy": {"intel": 3},
    "vadd": {"intel": 1.8},
    "matmul_bt": {"pocl": 20},
    "matmul_bias_relu": {"pocl": 20},
    "matmul_int": {"pocl": 20},
    "matmul_double": {"pocl": 20},
    "stencil5x5": {"pocl": 4},
    "reduce_max": {"pocl": 10},
    "sum_int": {"pocl": 10},
    "masked_softmax": {"pocl": 4},
    "rms_norm": {"pocl": 2},
    "transpose_int": {"pocl": 1.5},
}

# Stages of a job, as its events name them.
SEARCHING = "searching"
AFTER_SEARCHING = frozenset({"timing the original against itself", "verifying a finalist"})


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run.

    Attributes:
        names: File names without suffix; empty for all of the folder.
        seconds: Budget of each kernel.
    """

    folder: Path
    names: tuple[str, ...] = ()
    device: str = ""
    seconds: float = 60.0
    seed: int | None = None


class Row(msgspec.Struct, frozen=True):
    """One kernel's line: the best variant that keeps the launch, and the best that changes it.

    Attributes:
        first_seconds: From the start of the job to the first verified improvement.
        seconds: Of the whole job.
        search_rate: Candidates a second of the search, without what comes before and after it.
    """

    name: str
    kernel: str
    device: str = ""
    bar: float | None = None
    kept: Measurement | None = None
    changed: Measurement | None = None
    first_seconds: float | None = None
    tried: int = 0
    refused: int = 0
    seconds: float = 0.0
    search_rate: float = 0.0
    problem: str = ""

    @property
    def best(self) -> float:
        """The larger ratio, 1.0 where nothing was faster."""
        return max([m.speedup.value for m in (self.kept, self.changed) if m is not None], default=1.0)

    @property
    def met(self) -> bool:
        """Whether the bar is met; a kernel without one only has to run."""
        return not self.problem and (self.bar is None or self.best >= self.bar)


def run(plan: Plan, as_json: bool) -> Code:
    """Optimize every example from an empty knowledge base; exit code 1 where a bar is not met."""
    files = [f for f in sorted(plan.folder.glob("*.cl")) if not plan.names or f.stem in plan.names]
    missing = set(plan.names) - {f.stem for f in files}
    if missing or not files:
        raise CommandError(f"there is no {', '.join(sorted(missing)) or '.cl file'} in {plan.folder}")
    rows: list[Row] = []
    for file in files:
        rows.append(_measure(plan, file))
        print(_line(rows[-1]), file=sys.stderr if as_json else sys.stdout, flush=True)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(rows), indent=2) + b"\n")
    return Code.DONE if all(r.met for r in rows) else Code.INPUT


def _measure(plan: Plan, file: Path) -> Row:
    """Optimize one file's first kernel."""
    document = pick.read(file)
    kernel = pick.kernels(document)[0]
    job, folder = follow.new_job(kernel.name)
    with tempfile.TemporaryDirectory(prefix="modelblaster-bench-") as knowledge:
        options = optimize.Options(
            str(file), seconds=plan.seconds, device=plan.device, seed=plan.seed, knowledge=knowledge
        )
        request = optimize.request_for(options, document, kernel, job)
        begun = time.time()
        log, cancelled = optimize.run_job(request, folder, lambda event: None)
    follow.discard(folder)
    if cancelled:
        raise KeyboardInterrupt
    return row(file.stem, kernel.name, log, begun)


def row(name: str, kernel: str, log: list[events.Event], begun: float) -> Row:
    """Read a job's events into its line; ``begun`` is when the job was started, in seconds of the epoch."""
    started = next((e for e in log if isinstance(e, events.Started)), None)
    last = log[-1]
    device = started.device.key if started is not None else ""
    if not isinstance(last, events.Finished):
        problem = last.message if isinstance(last, events.Failed) else "the job did not end by itself"
        return Row(name, kernel, device, problem=problem)
    kept = [o.measurement for o in last.offers if not o.changes_launch]
    changed = [o.measurement for o in last.offers if o.changes_launch]
    better = [e.time for e in log if isinstance(e, events.Progress) and e.best is not None]
    return Row(
        name,
        kernel,
        device,
        bar=bar(name, device),
        kept=kept[0] if kept else None,
        changed=changed[0] if changed else None,
        first_seconds=better[0] - begun if better else None,
        tried=last.tried,
        refused=last.refused,
        seconds=last.time - begun,
        search_rate=_search_rate(log),
    )


def bar(name: str, device: str) -> float | None:
    """Give the bar of the device's runtime, the last part of a CPU's key; the others name the processor."""
    kind, _, rest = device.partition("-")
    runtime = rest.rpartition("-")[2]
    bars = BARS.get(name, {}) if kind == "cpu" else {}
    return next((least for key, least in bars.items() if runtime.startswith(key)), None)


def _search_rate(log: list[events.Event]) -> float:
    """Give the candidates a second of the search alone: without preparing, and without the finalists."""
    progress = [e for e in log if isinstance(e, events.Progress)]
    begin = next((e for e in progress if e.stage == SEARCHING), None)
    end = next((e for e in progress if e.stage in AFTER_SEARCHING), None)
    if begin is None or end is None or end.time <= begin.time:
        return 0.0
    return (end.tried - begin.tried) / (end.time - begin.time)


def _line(r: Row) -> str:
    if r.problem:
        return f"{r.name:18} {r.problem}"
    against = f"bar {r.bar:g}x {'met' if r.met else 'MISSED'}" if r.bar is not None else "no bar"
    first = f"first after {r.first_seconds:.1f} s" if r.first_seconds is not None else "none faster"
    return (
        f"{r.name:18} kept {_figures(r.kept):24} changed {_figures(r.changed):24} {against:16} {first:18} "
        f"{r.tried} tried, {r.refused} refused, {r.search_rate:.1f}/s searching  {r.device}"
    )


def _figures(m: Measurement | None) -> str:
    if m is None:
        return "-"
    return str(m.speedup)
