"""Count what similar kernels have in common, whatever their names and spacing."""

from __future__ import annotations

import re
from collections import Counter

from mb_targets.model import Kernel
from mb_targets.opencl.signature import plain
from mb_targets.opencl.tokens import tokens

LENGTH = 64
_LARGEST = 255

_OPERATORS = {
    "+": 0, "-": 1, "*": 2, "/": 3, "%": 4, "<": 5, ">": 5, "<=": 5, ">=": 5, "==": 6, "!=": 6, "&&": 7,
    "||": 7, "&": 8, "|": 8, "^": 8, "~": 8, "!": 7, "<<": 9, ">>": 9, "=": 10, "+=": 11, "-=": 11, "*=": 12,
    "/=": 12, "%=": 12, "&=": 12, "|=": 12, "^=": 12, "<<=": 12, ">>=": 12, "++": 13, "--": 13, "?": 14,
    ".": 15,
}  # fmt: skip
_WORDS = {"for": 16, "while": 17, "do": 17, "if": 18, "switch": 18, "return": 19, "continue": 19, "break": 19}
_CALLS: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(pattern), slot)
    for slot, pattern in enumerate(
        (
            "get_global_id", "get_local_id", "get_group_id", "get_(global|local)_size|get_num_groups",
            "(work_group_)?barrier|mem_fence", "atom(ic)?_", "(native_|half_)?exp", "(native_|half_)?log",
            "(native_|half_)?(r?sqrt|cbrt)", "(native_|half_)?pow", "(native_|half_|a)?(sin|cos|tan)|erf",
            "(fma|mad)", "f?(min|max)|clamp|step|sign", "fabs|abs|floor|ceil|round|trunc|rint|fract|fmod",
            "vload", "vstore", "convert_|as_", "read_image", "write_image", "dot|cross|length|normalize",
            "select|bitselect|any|all|mix", "sub_group_|work_group_", "native_|half_",
        ),
        start=20,
    )
)  # fmt: skip
_TYPES = {"float": 43, "double": 44, "half": 45, "int": 46, "uint": 46, "long": 47, "ulong": 47, "size_t": 47}
_SMALL = {"char": 48, "uchar": 48, "short": 48, "ushort": 48}
_VECTOR = re.compile(r"(?:float|double|half|u?int|u?long|u?short|u?char)(2|3|4|8|16)$")
_SPACES = {"global": 50, "constant": 51, "local": 52, "image": 53, "sampler": 53, "value": 54}
_LOCAL_WORD, _UNROLL, _INTEGERS, _FLOATS, _DEPTH, _LOOPS = 55, 56, 57, 58, 59, 60
_INDEX_PLAIN, _INDEX_SUM, _INDEX_PRODUCT = 61, 62, 63
_CONST_POINTER = 49


def features(kernel: Kernel) -> list[int]:
    """Count 64 things of a kernel; names of parameters and variables, comments and spacing do not matter."""
    own = {p.name for p in kernel.parameters}
    text = tokens(kernel.text)
    counted: Counter[int] = Counter(_SPACES[p.space] for p in kernel.parameters)
    counted[_CONST_POINTER] = sum(p.const for p in kernel.parameters)
    for token, following in zip(text, [*text[1:], ""], strict=True):
        counted.update(_slots(token, following, own))
    counted[_DEPTH], counted[_LOOPS] = _depths(text)
    counted.update(_indexes(text))
    return [min(counted[slot], _LARGEST) for slot in range(LENGTH)]


def _slots(token: str, following: str, own: set[str]) -> list[int]:
    if token in _OPERATORS:
        return [_OPERATORS[token]]
    if token in _WORDS:
        return [_WORDS[token]]
    if token[0].isdigit() or (token[0] == "." and len(token) > 1):
        return [_FLOATS if _is_float(token) else _INTEGERS]
    if token.startswith("#"):
        return [_UNROLL] if "unroll" in token else []
    if following == "(" and token not in own:
        return [slot for pattern, slot in _CALLS if pattern.match(token)]
    if plain(token) == "local":
        return [_LOCAL_WORD]
    vector = _VECTOR.match(token)
    base = token[: vector.start(1)] if vector else token
    slot = _TYPES.get(base) or _SMALL.get(base)
    return [slot] * (2 if vector else 1) if slot else []


def _is_float(token: str) -> bool:
    return "." in token or (token[:2].lower() != "0x" and any(c in "eEfF" for c in token))


def _depths(text: list[str]) -> tuple[int, int]:
    """Give the deepest brace nesting, and the deepest nesting of loops with or without braces."""
    deepest = braces = loops = parentheses = 0
    open_loops: list[int] = []
    for token in text:
        if token in ("for", "while"):
            open_loops.append(braces)
            loops = max(loops, len(open_loops))
        elif token == "(":
            parentheses += 1
        elif token == ")":
            parentheses -= 1
        elif token == "{":
            braces += 1
            deepest = max(deepest, braces)
        elif token == "}" or (token == ";" and parentheses == 0):
            braces -= token == "}"
            while open_loops and open_loops[-1] >= braces:
                open_loops.pop()
    return deepest, loops


def _indexes(text: list[str]) -> Counter[int]:
    """Tell the subscripts apart: one term, a sum, or with a product in it."""
    counted: Counter[int] = Counter()
    opened: list[int] = []
    for i, token in enumerate(text):
        if token == "[":
            opened.append(i)
        elif token == "]" and opened:
            inner = set(text[opened.pop() + 1 : i])
            index = _INDEX_SUM if inner & {"+", "-"} else _INDEX_PLAIN
            counted[_INDEX_PRODUCT if "*" in inner else index] += 1
    return counted
