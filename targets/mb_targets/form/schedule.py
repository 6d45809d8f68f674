"""Schedules: a chain of named steps, applied to a form in one fixed order whatever order they were chosen in.

A step sets one thing (the tile of an axis, the lanes of the loops, one rewrite). Two chains that set the same
things are the same schedule, so a search never tries the orders of one set of choices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ParamSpec, TypeVar

from mb_targets.form import rewrite
from mb_targets.form.dependence import Declined
from mb_targets.form.group import cooperate
from mb_targets.form.halo import stage_stencil
from mb_targets.form.nest import Form, Let, Stmt
from mb_targets.form.online import one_pass
from mb_targets.form.partials import regroup
from mb_targets.form.rows import unroll, vectorize_loops
from mb_targets.form.stage import stage_contraction, stage_transposition
from mb_targets.form.tile import chunk, interchange, names, tile, widen
from mb_targets.form.traverse import statements
from mb_targets.model import Action, Dtype

P = ParamSpec("P")
T = TypeVar("T")
Rewrite = Callable[[tuple[Stmt, ...], set[str]], tuple[Stmt, ...]]

REWRITES: Mapping[str, Rewrite] = {
    "powers": lambda body, taken: rewrite.powers(body),
    "tanh": lambda body, taken: rewrite.tanh_by_exp(body),
    "single": lambda body, taken: rewrite.single_precision(body),
    "one_pass": one_pass,
    "hoist": rewrite.hoist,
    "reuse": lambda body, taken: rewrite.reuse(body),
    "reciprocal": rewrite.reciprocals,
    "native": lambda body, taken: rewrite.native(body),
}
"""In the order applied."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """What to do with a form.

    Attributes:
        rewrites: Names from ``REWRITES``.
        tiles: Jam and lanes by axis: ``dim0`` is the axis along the NDRange's first dimension, so that a
            schedule means the same for a kernel that calls its ids otherwise.
        chunks: Consecutive values that an item loops over, by axis.
        rows: Lanes and accumulators of the loops; None leaves them scalar.
        unroll: Unroll count of the innermost loops.
        wide: Whether ids are held in ``size_t``.
        swap: Whether the first two axes swap dimensions.
        partials: Items among which a folded output is regrouped; 0 leaves it.
        stage: Items a side, results an item a side and depth of a contraction's local tiles; or the tile's
            side and the rows of items of a transposition's. Empty to leave local memory alone.
        halo: Items a side of a stencil's local tile; empty to leave local memory alone.
        group: Items that share the work of one; 0 leaves each its own.
        folded: The outputs of which only the sum matters.
    """

    rewrites: frozenset[str] = frozenset()
    tiles: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    chunks: Mapping[str, int] = field(default_factory=dict)
    rows: tuple[int, int] | None = None
    unroll: int = 1
    swap: bool = False
    wide: bool = False
    partials: int = 0
    stage: tuple[int, ...] = ()
    halo: tuple[int, ...] = ()
    group: int = 0
    folded: frozenset[str] = frozenset()


STEPS = frozenset(
    {
        "rewrite",
        "wide_ids",
        "interchange",
        "partials",
        "stage",
        "halo",
        "group",
        "chunk",
        "row_lanes",
        "jam",
        "lanes",
        "unroll",
    }
)
"""Ids of the actions that are steps of a schedule."""


def schedule(chain: Iterable[Action], folded: frozenset[str] = frozenset()) -> Schedule:
    """Read the steps of a chain; actions that are no steps are passed over, a later step overrides."""
    s = Schedule(folded=folded)
    for action in chain:
        p = action.parameters
        match action.id:
            case "rewrite":
                s = replace(s, rewrites=s.rewrites | {p[0]})
            case "jam":
                s = replace(s, tiles={**s.tiles, p[0]: (int(p[1]), s.tiles.get(p[0], (1, 1))[1])})
            case "lanes":
                s = replace(s, tiles={**s.tiles, p[0]: (s.tiles.get(p[0], (1, 1))[0], int(p[1]))})
            case "chunk":
                s = replace(s, chunks={**s.chunks, p[0]: int(p[1])})
            case "row_lanes":
                s = replace(s, rows=(int(p[0]), int(p[1])))
            case "unroll":
                s = replace(s, unroll=int(p[0]))
            case "interchange":
                s = replace(s, swap=True)
            case "partials":
                s = replace(s, partials=int(p[0]))
            case "group":
                s = replace(s, group=int(p[0]))
            case "wide_ids":
                s = replace(s, wide=True)
            case "halo":
                s = replace(s, halo=tuple(map(int, p)))
            case "stage":
                s = replace(s, stage=tuple(map(int, p)))
            case _:
                pass
    return s


def apply(form: Form, s: Schedule, whole: frozenset[str]) -> Form:
    """Carry out a schedule.

    Args:
        form: The lifted form.
        s: The schedule.
        whole: Axes that may be taken to hold whole tiles only.

    Raises:
        Declined: Some step does not apply; the message says which and why.
    """
    named = {f"dim{a.dim}": a.name for a in form.axes}
    for name, step in REWRITES.items():
        if name in s.rewrites:
            form = replace(form, body=_because(f"rewrite({name})", step, form.body, names(form)))
    if s.wide:
        form = widen(form)
    if s.swap:
        form = interchange(form)
    if s.partials:
        form = regroup(form, s.partials, s.folded)
    if s.halo:
        if s.chunks or s.rows or any(size != (1, 1) for size in s.tiles.values()):
            raise Declined("halo: local tiles set their own blocks and lanes")
        return _because("halo", stage_stencil, form, *s.halo)
    if s.stage:
        if s.chunks or s.rows or any(size != (1, 1) for size in s.tiles.values()):
            raise Declined("stage: local tiles set their own blocks and lanes")
        if len(s.stage) == 3:
            return _because("stage", stage_contraction, form, *s.stage)
        return _because("stage", stage_transposition, form, *s.stage)
    if s.group:
        if s.chunks or s.rows or any(size != (1, 1) for size in s.tiles.values()):
            raise Declined("group: the loops of a shared row keep their steps")
        return _because("group", cooperate, form, s.group, dtypes(form))
    for dim, size in s.chunks.items():
        form = chunk(form, _axis(named, dim), size)
    if s.rows is not None:
        lanes, copies = s.rows
        form = replace(
            form,
            body=_because("row_lanes", vectorize_loops, form.body, lanes, copies, names(form), dtypes(form)),
        )
    tiles = {_axis(named, dim): size for dim, size in s.tiles.items() if size != (1, 1)}
    if tiles:
        form = _because("tile", tile, form, tiles, whole)
    if s.unroll > 1:
        form = replace(form, body=_because("unroll", unroll, form.body, s.unroll))
    return form


def _axis(named: Mapping[str, str], dim: str) -> str:
    if dim not in named:
        raise Declined(f"the kernel has no axis {dim}")
    return named[dim]


def _because(step: str, f: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return f(*args, **kwargs)
    except Declined as e:
        raise Declined(f"{step}: {e}") from None


def dtypes(form: Form) -> dict[str, Dtype]:
    """Give the dtype of every variable of a form."""
    found = {v.name: v.dtype for v in form.scalars} | {a.name: a.dtype for a in form.axes}
    return found | {s.name: s.dtype for s in statements(form.body) if isinstance(s, Let)}
