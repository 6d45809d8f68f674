"""Element types: from a type's name in the source to dtype and lanes, and how ``// mb:`` lines write them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import cast, get_args

from mb_targets.model import Dtype
from mb_targets.opencl.expand import defined
from mb_targets.opencl.tokens import blank

_SCALARS: dict[str, Dtype] = {
    "char": "i8", "uchar": "u8", "short": "i16", "ushort": "u16", "int": "i32", "uint": "u32", "long": "i64",
    "ulong": "u64", "half": "f16", "float": "f32", "double": "f64", "size_t": "u64", "uintptr_t": "u64",
    "ptrdiff_t": "i64", "intptr_t": "i64", "bool": "u8", "unsigned": "u32", "signed": "i32",
    "int8_t": "i8", "uint8_t": "u8", "int16_t": "i16", "uint16_t": "u16", "int32_t": "i32", "uint32_t": "u32",
    "int64_t": "i64", "uint64_t": "u64",
}  # fmt: skip
_VECTOR = re.compile(r"(char|uchar|short|ushort|int|uint|long|ulong|half|float|double)(2|3|4|8|16)")
_COMMENT_TYPE = re.compile(r"([iuf](?:8|16|32|64))(?:x(2|4|8|16))?")
_TYPEDEF = re.compile(r"\btypedef\s+([\w\s]+?)\s+(\w+)\s*;")


def element(type_name: str, source: str, options: tuple[str, ...] = ()) -> tuple[Dtype, int] | None:
    """Give dtype and lanes of a type as declared, macros and typedefs followed.

    A vector of three counts as four: that is how it lies in memory. None for a type that is none of ours.

    Args:
        type_name: The type.
        source: Where it is used.
        options: Compiler options, which may define macros.
    """
    names = _aliases(source, options)
    for _ in range(8):
        found = _known(type_name)
        if found or type_name not in names:
            return found
        type_name = names[type_name]
    return None


def written(text: str) -> tuple[Dtype, int] | None:
    """Read a type of a ``// mb:`` line: ``f32``, ``f32x4``, or one of C such as ``float``."""
    found = _COMMENT_TYPE.fullmatch(text)
    if not found:
        return _known(text)
    name = found.group(1)
    return (cast("Dtype", name), int(found.group(2) or 1)) if name in get_args(Dtype) else None


def _known(type_name: str) -> tuple[Dtype, int] | None:
    vector = _VECTOR.fullmatch(type_name)
    if vector:
        lanes = int(vector.group(2))
        return _SCALARS[vector.group(1)], 4 if lanes == 3 else lanes
    words = type_name.split()
    if len(words) > 1:
        unsigned = "unsigned" in words
        rest = [w for w in words if w not in ("unsigned", "signed")]
        rest = rest[:-1] if len(rest) > 1 and rest[-1] == "int" else rest
        if len(rest) > 1:
            return None
        type_name = ("u" if unsigned else "") + (rest[0] if rest else "int")
    return (_SCALARS[type_name], 1) if type_name in _SCALARS else None


@lru_cache(maxsize=64)
def _aliases(source: str, options: tuple[str, ...]) -> dict[str, str]:
    known = defined(source, options)
    names = {name: m.body for name, m in known.items() if m.parameters is None and m.body}
    if "typedef" in source:
        names |= {name: " ".join(kind.split()) for kind, name in _TYPEDEF.findall(blank(source))}
    return names
