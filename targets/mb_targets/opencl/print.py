"""Print a form as OpenCL C that an engineer would merge."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from mb_targets.form.affine import simplify
from mb_targets.form.dtypes import is_integer, is_signed
from mb_targets.form.nest import (
    Accumulate,
    Array,
    Assign,
    Axis,
    Barrier,
    Call,
    Cast,
    Const,
    Expr,
    Fold,
    Form,
    If,
    Lane,
    Let,
    Load,
    Loop,
    Op,
    Pack,
    Select,
    Stmt,
    Store,
    Tree,
    Var,
)
from mb_targets.model import Dtype

TYPE_NAMES = {
    "i8": "char", "u8": "uchar", "i16": "short", "u16": "ushort", "i32": "int", "u32": "uint",
    "i64": "long", "u64": "ulong", "f16": "half", "f32": "float", "f64": "double",
}  # fmt: skip
PRECEDENCE = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
ATOM, UNARY, TERNARY = 20, 15, 0
INDENT = "    "
WIDTH = 100


def type_name(dtype: str, lanes: int = 1) -> str:
    """Name a type: ``float16``."""
    return TYPE_NAMES[dtype] + (str(lanes) if lanes > 1 else "")


@dataclass(frozen=True, slots=True)
class Style:
    """How to print.

    Attributes:
        keep_launch: Print for the original's NDRange: each item takes one tile, the surplus returns.
        rounded: The NDRange may hold more items than there are tiles.
    """

    keep_launch: bool = False
    rounded: bool = False


def number(e: Const) -> str:
    """Write a literal."""
    if e.text and e.lanes == 1:
        return e.text
    if is_integer(e.dtype):
        suffix = {"u32": "u", "i64": "L", "u64": "UL"}.get(e.dtype, "")
        return f"{int(e.value)}{suffix}"
    if math.isinf(e.value):
        return "INFINITY" if e.value > 0 else "-INFINITY"
    if math.isnan(e.value):
        return "NAN"
    text = repr(float(e.value))
    return text + ("f" if e.dtype == "f32" else "")


def expression(e: Expr) -> str:
    """Write an expression."""
    return _print(e)[0]


def _inner(e: Expr, level: int) -> str:
    text, own = _print(e)
    return text if own >= level else f"({text})"


def _print(e: Expr) -> tuple[str, int]:
    """Write an expression and tell how tightly its outermost operator binds."""
    match e:
        case Const():
            text = number(e)
            return text, UNARY if text.startswith("-") else ATOM
        case Var(name=n):
            return n, ATOM
        case Load(buffer=b, index=i, lanes=1):
            return f"{b}[{expression(i)}]", ATOM
        case Load(buffer=b, index=i, lanes=w):
            return f"vload{w}(0, {_pointer(b, i)})", ATOM
        case Op(op="neg" | "!" | "~" as op, args=(a,)):
            inner = _inner(a, UNARY)
            sign = "-" if op == "neg" else op
            return (f"{sign}({inner})" if inner.startswith(sign) else f"{sign}{inner}"), UNARY
        case Op(op=op, args=(a, b)):
            own = PRECEDENCE[op]
            # mixed && / || and shifts get parentheses, as compilers ask
            guard = own + 1 if op in {"||", "<<", ">>", "&", "|", "^"} else own
            return f"{_inner(a, guard)} {op} {_inner(b, own + 1)}", own
        case Call(function=f, args=args):
            return f"{f}({', '.join(expression(a) for a in args)})", ATOM
        case Select(condition=c, yes=y, no=n):
            return f"{_inner(c, 1)} ? {_inner(y, 1)} : {_inner(n, 1)}", TERNARY
        case Cast(value=v):
            return _cast(e, v)
        case Pack(items=items):
            return f"({type_name(e.dtype, e.lanes)})({', '.join(expression(x) for x in items)})", ATOM
        case Lane(vector=v, number=k):
            return f"{_inner(v, ATOM)}.s{k:x}", ATOM
        case Fold():
            raise AssertionError("a fold is printed with its statement")
    raise AssertionError(f"no way to print {e}")


def _cast(e: Cast, v: Expr) -> tuple[str, int]:
    if e.lanes > 1 and v.lanes == e.lanes:
        return (
            (expression(v), ATOM)
            if v.dtype == e.dtype
            else (f"convert_{type_name(e.dtype, e.lanes)}({expression(v)})", ATOM)
        )
    if e.lanes > 1:
        return f"({type_name(e.dtype, e.lanes)})({expression(v)})", ATOM
    return f"({type_name(e.dtype)}){_inner(v, UNARY)}", UNARY


def _pointer(buffer: str, index: Expr) -> str:
    text = expression(simplify(index))
    return buffer if text == "0" else f"{buffer} + {text}"


class Printer:
    """Prints one form.

    Args:
        form: What to print.
        style: How.
    """

    def __init__(self, form: Form, style: Style):
        self._form = form
        self._style = style
        self._lines: list[str] = []
        self._lanes: dict[str, int] = {}
        self._dtypes: dict[str, str] = {}

    def body(self) -> str:
        """Print the kernel's body, braces included."""
        self._lines = ["{"]
        for axis in self._form.axes:
            self._axis(axis)
        self._surplus()
        self._block(self._form.body, 1)
        self._lines.append("}")
        return "\n".join(self._lines)

    def _emit(self, depth: int, text: str) -> None:
        """Add a line, broken after commas and operators where it is too long."""
        line = INDENT * depth
        pieces = re.split(r"(?<=, )", text)
        if max(map(len, pieces)) > WIDTH // 2:
            pieces = re.split(r"(?<=, )|(?<= [-+*/] )|(?<= && )|(?<= \|\| )", text)
        for piece in pieces:
            if len(line) + len(piece.rstrip()) > WIDTH and line.strip():
                self._lines.append(line.rstrip())
                line = INDENT * (depth + 2)
            line += piece
        self._lines.append(line)

    def _axis(self, axis: Axis) -> None:
        grouped = axis.level == "tile" or (axis.level == "group" and self._style.keep_launch)
        ids = "get_group_id" if grouped else "get_global_id"
        type_ = "size_t" if axis.dtype == "u64" else type_name(axis.dtype)
        times = f" * {axis.block}" if axis.block > 1 else ""
        self._emit(1, f"const {type_} {axis.name} = {ids}({axis.dim}){times};")

    def _surplus(self) -> None:
        """Send home the items that have nothing to do."""
        kept = self._style.keep_launch
        tests: list[str] = []
        for axis in self._form.axes:
            # for a tile the test is the same for all items of a group, so that none misses a barrier
            if axis.level == "group" and kept:
                tests.append(f"get_local_id({axis.dim}) != 0")
            if axis.extent is not None and (axis.guarded or kept or self._style.rounded):
                tests.append(f"{self._place(axis, axis.extent)} >= {_inner(axis.extent, 8)}")
            elif axis.extent is None and kept and axis.level == "item" and axis.block > 1:
                tests.append(f"get_global_id({axis.dim}) * {axis.block} >= get_global_size({axis.dim})")
        if tests:
            self._emit(1, f"if ({' || '.join(tests)})")
            self._emit(2, "return;")

    def _place(self, axis: Axis, extent: Expr) -> str:
        """Write an axis's value for a comparison that neither overflows nor loses the extent's sign."""
        if axis.block > 1 and self._style.keep_launch:  # there are as many items as the original had
            ids = "get_group_id" if axis.level != "item" else "get_global_id"
            return f"(long){ids}({axis.dim}) * {axis.block}"
        return axis.name if is_signed(axis.dtype) or not is_signed(extent.dtype) else f"(long){axis.name}"

    def _block(self, body: tuple[Stmt, ...], depth: int) -> None:
        for s in body:
            self._statement(s, depth)

    def _statement(self, s: Stmt, depth: int) -> None:
        match s:
            case Let(name=n, dtype=d, value=v, lanes=w):
                self._lanes[n] = w
                self._dtypes[n] = d
                start = "" if v is None else f" = {expression(simplify(v))}"
                type_ = "size_t" if d == "u64" and w == 1 else type_name(d, w)
                self._emit(depth, f"{type_} {n}{start};")
            case Assign(name=n, value=v):
                self._emit(depth, f"{n} = {expression(simplify(v))};")
            case Accumulate(value=Fold()):
                self._fold(s, depth)
            case Accumulate(name=n, op=op, value=v):
                self._emit(depth, self._accumulate(n, op, simplify(v)))
            case Store(buffer=b, index=i, value=v) if v.lanes == 1:
                self._emit(depth, f"{b}[{expression(simplify(i))}] = {expression(simplify(v))};")
            case Store(buffer=b, index=i, value=v):
                self._emit(depth, f"vstore{v.lanes}({expression(simplify(v))}, 0, {_pointer(b, i)});")
            case Loop():
                self._loop(s, depth)
            case If(condition=c, then=t, otherwise=o):
                self._emit(depth, f"if ({expression(c)}) {{")
                self._block(t, depth + 1)
                if o:
                    self._emit(depth, "} else {")
                    self._block(o, depth + 1)
                self._emit(depth, "}")
            case Array(name=n, dtype=d, length=k, space=space):
                self._emit(depth, f"{'__local ' if space == 'local' else ''}{type_name(d)} {n}[{k}];")
            case Tree():
                self._tree(s, depth)
            case Barrier(space=space):
                self._emit(depth, f"barrier(CLK_{space.upper()}_MEM_FENCE);")

    def _loop(self, s: Loop, depth: int) -> None:
        if s.unroll > 1:
            self._emit(depth, f"#pragma unroll {s.unroll}")
        step = expression(s.step)
        advance = f"++{s.name}" if step == "1" else f"{s.name} += {step}"
        type_ = "size_t" if s.dtype == "u64" else type_name(s.dtype)
        head = f"for ({type_} {s.name} = {expression(s.start)}; {s.name} < {_inner(s.stop, 8)}; {advance}) {{"
        self._emit(depth, head)
        self._block(s.body, depth + 1)
        self._emit(depth, "}")

    def _accumulate(self, name: str, op: str, v: Expr) -> str:
        if op in {"max", "min"}:
            function = op if is_integer(v.dtype) else f"f{op}"
            lanes = self._lanes.get(name, 1)
            value = Cast(v, v.dtype, lanes) if is_integer(v.dtype) and lanes > v.lanes else v
            return f"{name} = {function}({name}, {expression(value)});"
        if op == "+" and isinstance(v, Op) and v.op == "neg":
            return f"{name} -= {expression(v.args[0])};"
        return f"{name} {op}= {expression(v)};"

    def _fold(self, s: Accumulate, depth: int) -> None:
        """Fold a vector by halves, then the last pair into the variable."""
        assert isinstance(s.value, Fold)
        source, lanes, dtype = expression(s.value.vector), s.value.vector.lanes, s.value.dtype
        while lanes > 2:
            lanes //= 2
            half = f"{s.name}_{lanes}"
            while half in self._lanes:
                half += "_"
            self._lanes[half] = lanes
            pair = self._pair(s.op, f"{source}.lo", f"{source}.hi", dtype)
            self._emit(depth, f"{type_name(dtype, lanes)} {half} = {pair};")
            source = half
        last = self._pair(s.op, f"{source}.x", f"{source}.y", dtype)
        if s.op in {"max", "min"}:
            self._emit(depth, f"{s.name} = {self._pair(s.op, s.name, last, dtype)};")
        else:
            self._emit(depth, f"{s.name} {s.op}= {last};")

    def _tree(self, s: Tree, depth: int) -> None:
        """Fold a local array by halves."""
        self._emit(depth, f"for (int half_way = {s.items // 2}; half_way > 0; half_way /= 2) {{")
        self._emit(depth + 1, f"if ({s.item} < half_way)")
        pair = self._pair(s.op, f"{s.array}[{s.item}]", f"{s.array}[{s.item} + half_way]", s.dtype)
        self._emit(depth + 2, f"{s.array}[{s.item}] = {pair};")
        self._emit(depth + 1, "barrier(CLK_LOCAL_MEM_FENCE);")
        self._emit(depth, "}")

    def _pair(self, op: str, a: str, b: str, dtype: Dtype) -> str:
        if op in {"max", "min"}:
            return f"{op if is_integer(dtype) else 'f' + op}({a}, {b})"
        return f"{a} {op} {b}" if " " not in b or b.endswith("]") else f"{a} {op} ({b})"


def body(form: Form, style: Style) -> str:
    """Print a form's body as a braced block."""
    return Printer(form, style).body()
