"""C's arithmetic on dtypes: which are integers, what two operands convert to, how a value wraps."""

from __future__ import annotations

from mb_targets.model import ITEM_BYTES, Dtype

_RANK: tuple[Dtype, ...] = ("i32", "u32", "i64", "u64", "f16", "f32", "f64")


def is_integer(dtype: Dtype) -> bool:
    """Tell whether it holds whole numbers."""
    return dtype[0] in "iu"


def is_signed(dtype: Dtype) -> bool:
    """Tell whether it holds negative numbers."""
    return dtype[0] != "u"


def promote(dtype: Dtype) -> Dtype:
    """Give what an operand of this dtype becomes before any arithmetic: small integers become ``i32``."""
    return "i32" if is_integer(dtype) and ITEM_BYTES[dtype] < 4 else dtype


def common(a: Dtype, b: Dtype) -> Dtype:
    """Give the dtype in which C computes ``a op b``."""
    return max(promote(a), promote(b), key=_RANK.index)


def wrap(value: int, dtype: Dtype) -> int:
    """Bring a whole number into the dtype's range, modulo its width."""
    bits = 8 * ITEM_BYTES[dtype]
    value &= (1 << bits) - 1
    return value - (1 << bits) if is_signed(dtype) and value >> (bits - 1) else value
