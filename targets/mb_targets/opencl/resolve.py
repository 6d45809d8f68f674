"""Turn what the sources say into a launch, or into the question that is left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from mb_targets import expression
from mb_targets.model import Argument, Kernel, LaunchSpec, Parameter, Role, Symbol
from mb_targets.opencl import elements
from mb_targets.opencl.comment import default_range
from mb_targets.opencl.fragment import BufferPart, Fragment, SymbolPart
from mb_targets.protocol import Question


def resolve(kernel: Kernel, parts: Fragment) -> LaunchSpec | Question:
    """Make a launch from parts that say everything; a thing not said is a question."""
    if any(p.space in ("image", "sampler") for p in kernel.parameters):
        return Question(f"`{kernel.name}` takes images, which cannot be launched from here yet", "")
    if parts.global_size is None:
        return Question(f"Over which sizes does `{kernel.name}` run?", "// mb: global=(?,)")
    listed = [_argument(kernel, p, parts) for p in kernel.parameters]
    for made in listed:
        if isinstance(made, Question):
            return made
    arguments = tuple(a for a in listed if isinstance(a, Argument))
    sizes = tuple(_plain(parts, s) for s in parts.global_size)
    local = tuple(_plain(parts, s) for s in parts.local_size) if parts.local_size else None
    if local and len(local) != len(sizes):
        return Question(
            f"`{kernel.name}` has {len(sizes)} global and {len(local)} local sizes; give as many of each",
            f"// mb: local=({','.join('?' * len(sizes))})",
        )
    used = list(dict.fromkeys(_names(sizes, local or (), arguments)))
    missing = [n for n in used if n not in parts.symbols or parts.symbols[n].value is None]
    if missing:
        stub = " ".join(f"{name}=?" for name in missing)
        return Question(
            f"Which value do {', '.join(missing)} have? Give sizes to measure with", f"// mb: {stub}"
        )
    return LaunchSpec(
        symbols=tuple(_symbol(n, s) for n, s in parts.symbols.items() if s.value is not None),
        arguments=arguments,
        global_size=sizes,
        local_size=local,
        options=parts.options or (),
        tolerance=parts.tolerance,
        origin=parts.origin,
    )


def _plain(parts: Fragment, text: str) -> str:
    """Put in what names stand for that are neither symbols nor parameters, and write the result."""
    tree = expression.parse(text)
    for _ in range(8):
        known = {n: expression.parse(parts.scalars[n]) for n in expression.names(tree) if n in parts.scalars}
        known = {n: e for n, e in known.items() if e != expression.Name(n)}
        if not known:
            break
        tree = expression.substitute(tree, known)
    return expression.text(tree)


def _argument(kernel: Kernel, parameter: Parameter, parts: Fragment) -> Argument | Question:
    declared = elements.element(parameter.type_name, kernel.source, parts.options or ())
    if parameter.space == "value":
        if not declared:
            return Question(
                f"`{parameter.name}` of `{kernel.name}` has the type {parameter.type_name}, which is neither "
                "a number nor a macro or typedef for one; define it, or pass it with opts",
                f'// mb: opts="-D{parameter.type_name}=?"',
            )
        name = parameter.name
        part = parts.symbols.get(name)
        origin = parts.origin if name in parts.scalars or not part else part.origin
        extent = _plain(parts, parts.scalars.get(name, name))
        return Argument(name, "scalar", declared[0], extent, declared[1], origin=origin)
    part_of = parts.buffers.get(parameter.name)
    if not part_of:
        kind = declared[0] if declared else "f32"
        return Question(
            f"How many elements does `{parameter.name}` of `{kernel.name}` have?",
            f"// mb: {parameter.name}={kind}[?]",
        )
    return _buffer(parameter, part_of, parts, declared[1] if declared else part_of.lanes)


def _buffer(parameter: Parameter, part: BufferPart, parts: Fragment, lanes: int) -> Argument:
    role: Role = (
        "local" if parameter.space == "local" else (part.role or ("in" if parameter.const else "inout"))
    )
    return Argument(
        name=parameter.name,
        role=role,
        dtype=part.dtype,
        extent=_plain(parts, part.extent) if part.extent != "?" else part.extent,
        lanes=part.lanes if part.lanes > 1 else lanes,
        fold=part.fold,
        low=_plain(parts, part.low) if part.low else "",
        high=_plain(parts, part.high) if part.high else "",
        origin=part.origin,
    )


def _names(sizes: tuple[str, ...], local: tuple[str, ...], arguments: tuple[Argument, ...]) -> Iterator[str]:
    for text in (*sizes, *local):
        yield from expression.names(text)
    for argument in arguments:
        for text in (argument.extent, argument.low, argument.high):
            if text not in ("", "?"):
                yield from expression.names(text)


def _symbol(name: str, part: SymbolPart) -> Symbol:
    value = cast("float", part.value)
    low, high = default_range(value)
    return Symbol(
        name=name,
        value=value,
        low=low if part.low is None else part.low,
        high=high if part.high is None else part.high,
        multiple=part.multiple or 1,
        origin=part.origin,
    )
