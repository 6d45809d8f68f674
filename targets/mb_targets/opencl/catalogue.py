"""What the catalogue holds to be possible, with the gains to expect before anything was learned.

The expectations are medians over the hand-written variants measured for this project on two CPU runtimes
(guide.md); they only order the first tries. What is learned on a device overrides them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod

from mb_targets.form.affine import coefficient, constant
from mb_targets.form.dependence import inline_indices
from mb_targets.form.nest import Call, DoesNotLift, Form, If, Loop, Stmt, Store
from mb_targets.form.rewrite import EXPENSIVE, NATIVE
from mb_targets.form.schedule import schedule
from mb_targets.form.traverse import expressions, loads, statements, walk
from mb_targets.model import Action, Device, Kernel, LaunchSpec, Proposal

# More copies than a CPU or GPU has vector registers for spill, and on PoCL may overrun a work item's stack.
MOST_COPIES = 16
FLOATING = re.compile(r"\b(?:float|double|half)\d*\b")
FLAGS = (
    ("-cl-mad-enable", 1.03, "a product and a sum may round once"),
    ("-cl-unsafe-math-optimizations", 1.05, "the compiler may reorder sums"),
)
RECTANGLES = {1: ("1", "16", "64", "256"), 2: ("1,1", "16,1", "8,8", "16,16"), 3: ("1,1,1", "8,8,1")}


def propose(
    form: Form | DoesNotLift,
    kernel: Kernel,
    launch: LaunchSpec,
    device: Device,
    chain: Sequence[Action],
) -> list[Proposal]:
    """List the actions worth trying on a variant with this chain, each not yet in it."""
    found = list(_local(kernel, launch, device, chain))
    if isinstance(form, DoesNotLift):
        found += _flags(kernel, chain)
    else:
        found += _rewrites(form, device, chain)
        found += _loops(form, device, chain)
        found += _axes(form, device, chain)
        found += _groups(form, device, chain)
        found += _stages(form, device, chain)
        found += _launch(form, launch, device, chain)
    return [p for p in found if p.action not in chain]


def _proposal(expected: float, reason: str, name: str, *parameters: object) -> Proposal:
    return Proposal(Action(name, tuple(map(str, parameters))), expected, reason)


def _has(chain: Sequence[Action], name: str, *first: str) -> bool:
    return any(a.id == name and a.parameters[: len(first)] == first for a in chain)


def _functions(form: Form) -> set[str]:
    return {
        e.function
        for s in statements(form.body)
        for top in expressions(s)
        for e in walk(top)
        if isinstance(e, Call)
    }


def _rewrites(form: Form, device: Device, chain: Sequence[Action]) -> Iterator[Proposal]:
    functions = _functions(form)
    cpu = device.kind == "cpu"
    if functions & {"pow", "pown", "powr"} and not _has(chain, "rewrite", "powers"):
        yield _proposal(
            8.0 if cpu else 2.0, "a power with a small exponent is a product", "rewrite", "powers"
        )
    if "tanh" in functions and not _has(chain, "rewrite", "tanh"):
        yield _proposal(2.0, "exp vectorizes, tanh does not", "rewrite", "tanh")
    if any(e.dtype == "f64" for s in statements(form.body) for t in expressions(s) for e in walk(t)):
        yield _proposal(1.5, "a literal without suffix makes float arithmetic double", "rewrite", "single")
    if not any(isinstance(s, Loop) for s in statements(form.body)):
        return
    if functions & EXPENSIVE and not _has(chain, "rewrite", "reuse"):
        yield _proposal(1.4, "the same function values are computed twice", "rewrite", "reuse")
    if not _has(chain, "rewrite", "hoist"):
        yield _proposal(1.2, "costly loop invariants", "rewrite", "hoist")
    if not _has(chain, "rewrite", "reciprocal"):
        yield _proposal(1.2, "a division by a loop invariant", "rewrite", "reciprocal")
    if sum(isinstance(s, Loop) for s in form.body) > 1 and not _has(chain, "rewrite", "one_pass"):
        gain = 1.3 if device.kind == "gpu" else 1.0
        yield _proposal(gain, "one pass over the row instead of two", "rewrite", "one_pass")
    if functions & NATIVE:
        yield _proposal(1.05, "the device's own approximations", "rewrite", "native")


def _loops(form: Form, device: Device, chain: Sequence[Action]) -> Iterator[Proposal]:
    inner = [s for s in statements(form.body) if isinstance(s, Loop)]
    plan = schedule(chain)
    chunked = bool(plan.chunks)
    if (inner or chunked) and not any(lanes > 1 for _, lanes in plan.tiles.values()):
        unit = chunked or _unit_loop(form)
        gain = (4.0 if device.kind == "cpu" else 1.3) if unit else 1.1
        if plan.rows is None:
            for lanes in (16, 8, 4):
                yield _proposal(
                    gain * (lanes / 16) ** 0.3, "the loop reads consecutive elements", "row_lanes", lanes, 1
                )
        elif plan.rows[1] < 4:
            lanes, copies = plan.rows
            yield _proposal(
                1.15, "more accumulators hide the latency of the fold", "row_lanes", lanes, 2 * copies
            )
    if inner and plan.unroll == 1:
        yield _proposal(1.05, "fewer branches", "unroll", 4)


def _unit_loop(form: Form) -> bool:
    """Tell whether some innermost loop reads nothing but consecutive elements and what does not move."""
    for s in statements(form.body):
        if isinstance(s, Loop) and not any(isinstance(x, Loop) for x in statements(s.body)):
            steps = [coefficient(load.index, s.name) for load in loads(inline_indices(s.body))]
            if steps and all(c is not None and constant(c) in {0, 1} for c in steps):
                return True
    return False


def _axes(form: Form, device: Device, chain: Sequence[Action]) -> Iterator[Proposal]:
    plan = schedule(chain)
    body = inline_indices(form.body)
    has_loop = any(isinstance(s, Loop) for s in statements(body))
    cpu = device.kind == "cpu"
    laned = [n for n, (_, lanes) in plan.tiles.items() if lanes > 1]
    for axis in form.axes:
        if axis.level != "item":
            continue
        dim = f"dim{axis.dim}"
        jam = plan.tiles.get(dim, (1, 1))[0]
        unit = _unit_axis(body, axis.name)
        if unit and not laned and plan.rows is None and dim not in plan.chunks:
            for w in (16, 8, 4):
                gain = (4.0 if cpu else 1.2) * (w / 16) ** 0.3
                yield _proposal(gain, f"consecutive {axis.name} touch consecutive elements", "lanes", dim, w)
        shared = has_loop and len(form.axes) > 1
        if jam < 8 and (plan.rows is None or (shared and jam < 4)):
            gain = 2.0 if shared else 1.15
            others = prod(j for d, (j, _) in plan.tiles.items() if d != dim)
            for r in (2 * jam, 4 * jam) if jam < 4 else (2 * jam,):
                if r * others > MOST_COPIES:
                    continue
                yield _proposal(gain, "values loaded once serve several results", "jam", dim, r)
        if dim not in plan.chunks and not plan.tiles:
            sizes = (
                ((256, 1024, 4096) if len(form.axes) == 1 and not has_loop else (4, 16)) if cpu else (2, 4)
            )
            for k in sizes:
                yield _proposal(1.5 if not has_loop else 1.1, "less work to start items", "chunk", dim, k)


def _groups(form: Form, device: Device, chain: Sequence[Action]) -> Iterator[Proposal]:
    """A work group for what one item did: how a GPU walks a row, seldom good on a CPU."""
    plan = schedule(chain)
    blocked = plan.tiles or plan.rows or plan.chunks or plan.stage or plan.group
    if blocked or not any(isinstance(s, Loop) for s in form.body):
        return
    for items in (64, 128, 256):
        gain = 1.05 if device.kind == "cpu" else 8.0
        yield _proposal(gain, "neighbouring items read neighbouring elements of a row", "group", items)


def _stages(form: Form, device: Device, chain: Sequence[Action]) -> Iterator[Proposal]:
    """Local-memory tiles; mostly a loss where local memory is only a cache (two CPU runtimes: 0.7-2x)."""
    plan = schedule(chain)
    if len(form.axes) != 2 or plan.stage or plan.halo or plan.tiles or plan.rows or plan.chunks:
        return
    has_loop = any(isinstance(s, Loop) for s in statements(form.body))
    gain = 1.1 if device.kind == "cpu" else 4.0
    if any(isinstance(s, If) for s in statements(form.body)):
        for width, height in ((16, 16), (32, 8)):
            yield _proposal(1.05, "neighbours share what they read", "halo", width, height)
    elif has_loop:
        for size, jam, depth in ((16, 4, 16), (16, 2, 16), (16, 1, 16), (8, 8, 16)):
            yield _proposal(gain, "a group's items share what they load", "stage", size, jam, depth)
    else:
        for size, rows in ((32, 8), (16, 16)):
            yield _proposal(gain, "both sides of a transposition become consecutive", "stage", size, rows)


def _unit_axis(body: tuple[Stmt, ...], name: str) -> bool:
    """Tell whether some access walks consecutive elements along an axis."""
    indices = [e.index for e in loads(body)]
    indices += [s.index for s in statements(body) if isinstance(s, Store)]
    return any((c := coefficient(i, name)) is not None and constant(c) == 1 for i in indices)


def _launch(form: Form, launch: LaunchSpec, device: Device, chain: Sequence[Action]) -> Iterator[Proposal]:
    if chain and not _has(chain, "keep_launch"):
        yield _proposal(0.9, "the user's NDRange stays as it is", "keep_launch")
    if not _has(chain, "wide_ids"):
        gain = 1.5 if "intel" in device.toolchain.lower() else 1.0
        yield _proposal(gain, "with size_t ids the compiler sees consecutive accesses", "wide_ids")
    if len(form.axes) > 1 and not _has(chain, "interchange"):
        yield _proposal(1.05, "the other axis may walk memory better", "interchange")
    if any(a.fold == "sum" for a in launch.arguments) and not _has(chain, "partials"):
        for k in (4, 16, 64):
            yield _proposal(4.0, "only the sum of the partials matters", "partials", k)


def _local(kernel: Kernel, launch: LaunchSpec, device: Device, chain: Sequence[Action]) -> Iterator[Proposal]:
    structural = any(a.id in {"lanes", "jam", "chunk", "row_lanes"} for a in chain)
    dims = len(launch.global_size)
    # a kernel as written may depend on its work-group size; a scheduled one never does
    free = structural or (launch.local_size is None and "local" not in kernel.text)
    if free and not _has(chain, "keep_launch"):
        for shape in RECTANGLES[dims]:
            if prod(map(int, shape.split(","))) <= device.max_work_group:
                gain = 1.2 if structural and set(shape) <= {"1", ","} else 1.05
                yield _proposal(gain, "another work-group size", "local", *shape.split(","))
    if any(p.space == "global" and not p.restrict for p in kernel.parameters) and not _has(chain, "restrict"):
        yield _proposal(1.05, "the compiler may assume that buffers do not overlap", "restrict")


def _flags(kernel: Kernel, chain: Sequence[Action]) -> Iterator[Proposal]:
    """Leave given to the compiler, for kernels that no step of a schedule can change.

    Weaker ones first; a later one replaces an earlier one and allows all that it did. Fast relaxed math is
    not among them: its errors of 2e-5 to 2e-3 are past what verification allows (guide.md).
    """
    if not FLOATING.search(kernel.text):
        return
    for strength, (flag, gain, reason) in enumerate(FLAGS):
        if not any(_has(chain, "flags", stronger) for stronger, _, _ in FLAGS[strength:]):
            yield _proposal(gain, reason, "flags", flag)
