"""Work out a launch at given sizes, and choose the sizes at which a variant has to be right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import lcm, prod

from mb_targets import expression
from mb_targets.errors import LaunchUnknown, TargetError
from mb_targets.expression import ExpressionError
from mb_targets.model import ITEM_BYTES, Argument, Kernel, LaunchChange, LaunchSpec, Symbol
from mb_targets.protocol import Launch

_LARGEST_BYTES = 1 << 32
_VERIFIED_WORK = 1 << 21
_UNSTATED = 1 << 31  # the largest value of a symbol that no one gave a range
_SMALL = (37, 61, 23, 53, 17, 29)


def concretize(
    kernel: Kernel, launch: LaunchSpec, sizes: Mapping[str, float] | None, change: LaunchChange | None
) -> Launch:
    """Work out every expression of a launch.

    Args:
        kernel: The kernel.
        launch: How to run it.
        sizes: Values of symbols that differ from those to measure with.
        change: How a variant's NDRange differs; None for the original's.

    Raises:
        TargetError: No such launch can exist at these sizes; the message says why.
    """
    values = {s.name: s.value for s in launch.symbols} | dict(sizes or {})
    global_size, local_size = _ndrange(launch, values, change)
    buffers = [a for a in launch.arguments if a.role not in ("scalar", "local")]
    return Launch(
        order=tuple(p.name for p in kernel.parameters),
        dtypes={a.name: a.dtype for a in launch.arguments},
        lanes={a.name: a.lanes for a in launch.arguments},
        scalars={a.name: _value(a, values) for a in launch.arguments if a.role == "scalar"},
        buffers={a.name: _bytes(a, values) for a in buffers},
        local_bytes={a.name: _bytes(a, values) for a in launch.arguments if a.role == "local"},
        written=tuple(a.name for a in buffers if a.role in ("out", "inout")),
        global_size=global_size,
        local_size=local_size,
        ranges={a.name: _range(a, values) for a in buffers if a.low and a.high},
    )


def sizes_to_try(launch: LaunchSpec) -> list[dict[str, float]]:
    """Choose values of the symbols at which to verify, the smallest ones first.

    Sizes vary independently of each other, so that nothing square stays square: a launch of no items, 1,
    sizes that are odd, sizes one beside a work group's, long and thin ones, and last a larger set that is no
    multiple of anything. Each keeps to its symbol's range and multiple, and to an amount of work that takes a
    slow device well under a second. The values to measure with are not among them.
    """
    moving = [s for s in launch.symbols if _moves(launch, s)]
    fixed = {s.name: s.value for s in launch.symbols if s not in moving}
    if not moving:
        return []
    step = _group(launch, fixed)
    empty = _empty(launch, moving)
    wishes: list[list[float]] = [
        [1] * len(moving),
        [_SMALL[i % len(_SMALL)] for i in range(len(moving))],
        [max(1, step - 1 + 2 * i) for i in range(len(moving))],
        [step * (i + 1) for i in range(len(moving))],
        [2 * step + 3 + 4 * i for i in reversed(range(len(moving)))],
        [s.low for s in moving],
        [1 if i == 0 else 67 for i in range(len(moving))],
        [67 if i == 0 else 1 for i in range(len(moving))],
        _larger(launch, moving, fixed, step),
    ]
    found = [fixed | empty] if empty and _possible(launch, fixed | empty) else []
    for wished in wishes:
        chosen = fixed | {s.name: _legal(launch, s, w) for s, w in zip(moving, wished, strict=True)}
        if chosen not in found and _possible(launch, chosen):
            found.append(chosen)
    return found


def work(launch: LaunchSpec, sizes: Mapping[str, float]) -> float:
    """Estimate how much a launch does: its items times the longest walk that its buffers leave to each.

    Raises:
        TargetError: An expression has no value at these sizes.
    """
    items = prod(_whole(s, sizes, "a global size") for s in launch.global_size)
    extents = [_value(a, sizes) for a in launch.arguments if a.role not in ("scalar", "local")]
    walk = [e / items for e in extents if items]
    others = [
        sizes[s.name] for s in launch.symbols if _is_size(launch, s) and s.name not in _ndrange_names(launch)
    ]
    return items * max([1.0, *walk, *others])


def _ndrange(
    launch: LaunchSpec, values: Mapping[str, float], change: LaunchChange | None
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    size = tuple(_whole(s, values, "a global size") for s in launch.global_size)
    local = tuple(_whole(s, values, "a local size") for s in launch.local_size) if launch.local_size else None
    if change is not None:
        size, local = _changed(size, local, change)
    if local is not None:
        _check(size, local)
    if prod(size) >= 1 << 40:
        raise TargetError(
            f"a launch of {'x'.join(map(str, size))} items is more than can be run; use smaller sizes"
        )
    return size, local


def _changed(
    size: tuple[int, ...], local: tuple[int, ...] | None, change: LaunchChange
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    for extent, multiple in zip(size, change.multiples, strict=False):
        if extent % multiple:
            needed = ", ".join(map(str, change.multiples[: len(size)]))
            raise TargetError(f"this variant needs global sizes that are multiples of {needed}")
    known: dict[str, float] = {f"G{i}": s for i, s in enumerate(size)}
    known |= {f"G{i}": 1 for i in range(len(size), 3)}
    known |= {f"L{i}": (local[i] if local and i < len(local) else 1) for i in range(3)}
    return tuple(_whole(s, known, "a global size") for s in change.global_size), change.local_size


def _check(size: tuple[int, ...], local: tuple[int, ...]) -> None:
    if len(local) != len(size):
        raise TargetError(f"there are {len(size)} global sizes but {len(local)} local ones")
    for g, part in zip(size, local, strict=True):
        if part < 1 or g % part:
            raise TargetError(
                f"the global size {g} is no multiple of the local size {part}; round it up, "
                f"as in global=((N+{max(part, 1) - 1})//{max(part, 1)}*{max(part, 1)},), or leave local out"
            )


def _whole(text: str, values: Mapping[str, float], what: str) -> int:
    value = expression.evaluate(text, values)
    if value < 0 or value != value // 1:
        raise TargetError(f"{what}, `{text}`, is {value} here; it has to be a whole number from 0 on")
    return int(value)


def _value(argument: Argument, values: Mapping[str, float]) -> float:
    if argument.extent == "?":
        raise LaunchUnknown(
            f"how many elements {argument.name} has is not known; "
            f"write it above the kernel, as in `// mb: {argument.name}={argument.dtype}[N]`"
        )
    return expression.evaluate(argument.extent, values)


def _bytes(argument: Argument, values: Mapping[str, float]) -> int:
    elements = _value(argument, values)
    if elements < 0 or elements != elements // 1:
        raise TargetError(
            f"{argument.name} has `{argument.extent}` = {elements} elements here; that cannot be"
        )
    size = int(elements) * ITEM_BYTES[argument.dtype]
    if size > _LARGEST_BYTES:
        raise TargetError(f"{argument.name} takes {size >> 30} GiB at these sizes; use smaller ones")
    return size


def _range(argument: Argument, values: Mapping[str, float]) -> tuple[float, float]:
    low, high = (float(expression.evaluate(t, values)) for t in (argument.low, argument.high))
    return low, max(low, high)


def _ndrange_names(launch: LaunchSpec) -> set[str]:
    return _named((*launch.global_size, *(launch.local_size or ())))


def _named(texts: Iterable[str]) -> set[str]:
    return {name for text in texts if text not in ("", "?") for name in expression.names(text)}


def _is_size(launch: LaunchSpec, symbol: Symbol) -> bool:
    extents = (a.extent for a in launch.arguments if a.role not in ("scalar", "local"))
    return symbol.name in _ndrange_names(launch) | _named(extents)


def _moves(launch: LaunchSpec, symbol: Symbol) -> bool:
    """Tell whether a symbol may take other values: sizes may, other scalars only where a range is given."""
    ranged = symbol.high < 1 << 31 or symbol.low > 1
    fixed_group = symbol.name in _named(launch.local_size or ())
    return symbol.low < symbol.high and not fixed_group and (ranged or _is_size(launch, symbol))


def _empty(launch: LaunchSpec, moving: list[Symbol]) -> dict[str, float]:
    """Make the NDRange empty where its sizes may be 0; nothing, where they may not.

    A size whose smallest value no one stated may be 0: it has the default 1 so that other sizes start there.
    The rest is 1, so that nothing but the items is missing.
    """
    named = _named(launch.global_size)
    zero = {
        s.name for s in moving if s.name in named and (s.low <= 0 or (s.low == 1 and s.high >= _UNSTATED))
    }
    return {s.name: 0 if s.name in zero else _legal(launch, s, 1) for s in moving} if zero else {}


def _group(launch: LaunchSpec, fixed: Mapping[str, float]) -> int:
    """Give a step that no work group or vector width divides unseen: the group's size, at least 16."""
    try:
        sizes = [int(expression.evaluate(s, fixed)) for s in launch.local_size or ()]
    except ExpressionError:
        sizes = []
    return min(256, max(16, lcm(*(s for s in sizes if s > 0)) if sizes else 16))


def _larger(launch: LaunchSpec, moving: list[Symbol], fixed: Mapping[str, float], step: int) -> list[float]:
    """Shrink the values to measure with, all by one factor, until they are quick; then make them odd."""
    for shift in range(40):
        wished = [max(1.0, float(int(s.value) >> shift)) for s in moving]
        odd = [w + 2 * i + 3 if w > step else w + i for i, w in enumerate(wished)]
        chosen = dict(fixed) | {s.name: _legal(launch, s, w) for s, w in zip(moving, odd, strict=True)}
        if _possible(launch, chosen):
            return odd
    return [1] * len(moving)


def _legal(launch: LaunchSpec, symbol: Symbol, wished: float) -> float:
    """Give the legal value nearest to a wish."""
    step = lcm(symbol.multiple, _implied_multiple(launch, symbol))
    value = min(max(wished, symbol.low), symbol.high)
    if step > 1:
        value = max(-(-symbol.low // step) * step, value // step * step)
    return int(value) if value == value // 1 else value


def _implied_multiple(launch: LaunchSpec, symbol: Symbol) -> int:
    """A global size that is a symbol by itself has to be a multiple of its local size."""
    pairs = zip(launch.global_size, launch.local_size or (), strict=False)
    return lcm(
        *(int(local) for size, local in pairs if size == symbol.name and local.isdigit() and int(local))
    )


def _possible(launch: LaunchSpec, sizes: Mapping[str, float]) -> bool:
    try:
        _ndrange(launch, sizes, None)
        extents = [_value(a, sizes) for a in launch.arguments if a.role != "scalar"]
        return min(extents, default=0) >= 0 and work(launch, sizes) <= _VERIFIED_WORK
    except TargetError:
        return False
