"""The declarations of OpenCL C that clang expects of a header which the wheel of libclang does not bring.

Clang declares the built-in functions itself; types, constants and conversions come from here.
"""

from __future__ import annotations

from collections.abc import Iterator

_INTEGERS = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong")
_LANES = (2, 3, 4, 8, 16)
_FEATURES = (
    "__opencl_c_generic_address_space", "__opencl_c_int64", "__opencl_c_images",
    "__opencl_c_read_write_images",
    "__opencl_c_atomic_order_acq_rel", "__opencl_c_atomic_order_seq_cst", "__opencl_c_atomic_scope_device",
    "__opencl_c_atomic_scope_all_devices", "__opencl_c_subgroups",
    "__opencl_c_work_group_collective_functions", "__opencl_c_integer_dot_product_input_4x8bit",
    "__opencl_c_integer_dot_product_input_4x8bit_packed", "__opencl_subgroup_builtins",
    "__opencl_c_named_address_space_builtins", "cl_khr_subgroups",
    "cl_khr_subgroup_extended_types",
    "cl_khr_subgroup_non_uniform_vote", "cl_khr_subgroup_ballot", "cl_khr_subgroup_non_uniform_arithmetic",
    "cl_khr_subgroup_shuffle", "cl_khr_subgroup_shuffle_relative", "cl_khr_subgroup_clustered_reduce",
    "cl_khr_subgroup_rotate", "cl_khr_extended_bit_ops", "cl_khr_integer_dot_product", "cl_ext_float_atomics",
)  # fmt: skip
_SCALARS = """
typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint;
typedef unsigned long ulong; typedef __SIZE_TYPE__ size_t; typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INTPTR_TYPE__ intptr_t; typedef __UINTPTR_TYPE__ uintptr_t;
"""
_CONSTANTS = {
    "INFINITY": "(__builtin_inff())", "NAN": '(__builtin_nanf(""))', "HUGE_VALF": "(__builtin_huge_valf())",
    "HUGE_VAL": "(__builtin_huge_val())", "MAXFLOAT": "0x1.fffffep127f", "FLT_MAX": "0x1.fffffep127f",
    "FLT_MIN": "0x1.0p-126f", "FLT_EPSILON": "0x1.0p-23f", "FLT_DIG": "6",
    "DBL_MAX": "0x1.fffffffffffffp1023",
    "DBL_MIN": "0x1.0p-1022", "DBL_EPSILON": "0x1.0p-52", "HALF_MAX": "0x1.ffcp15h",
    "M_E_F": "2.71828183f", "M_LOG2E_F": "1.44269504f", "M_LOG10E_F": "0.43429448f", "M_LN2_F": "0.69314718f",
    "M_LN10_F": "2.30258509f", "M_PI_F": "3.14159265f", "M_PI_2_F": "1.57079633f", "M_PI_4_F": "0.78539816f",
    "M_1_PI_F": "0.31830989f", "M_2_PI_F": "0.63661977f", "M_2_SQRTPI_F": "1.12837917f",
    "M_SQRT2_F": "1.41421356f", "M_SQRT1_2_F": "0.70710678f",
    "M_E": "2.718281828459045", "M_LOG2E": "1.442695040888963", "M_LN2": "0.693147180559945",
    "M_PI": "3.141592653589793", "M_SQRT2": "1.414213562373095", "M_SQRT1_2": "0.707106781186548",
    "CHAR_BIT": "8", "CHAR_MAX": "127", "CHAR_MIN": "(-128)", "SCHAR_MAX": "127", "UCHAR_MAX": "255",
    "SHRT_MAX": "32767", "SHRT_MIN": "(-32768)", "USHRT_MAX": "65535", "INT_MAX": "2147483647",
    "INT_MIN": "(-2147483647-1)", "UINT_MAX": "0xffffffffU", "LONG_MAX": "0x7fffffffffffffffL",
    "LONG_MIN": "(-0x7fffffffffffffffL-1)", "ULONG_MAX": "0xffffffffffffffffUL", "NULL": "((void*)0)",
    "CLK_LOCAL_MEM_FENCE": "1", "CLK_GLOBAL_MEM_FENCE": "2", "CLK_IMAGE_MEM_FENCE": "4",
    "CLK_ADDRESS_NONE": "0", "CLK_ADDRESS_CLAMP_TO_EDGE": "2", "CLK_ADDRESS_CLAMP": "4",
    "CLK_ADDRESS_REPEAT": "6", "CLK_ADDRESS_MIRRORED_REPEAT": "8", "CLK_NORMALIZED_COORDS_FALSE": "0",
    "CLK_NORMALIZED_COORDS_TRUE": "1", "CLK_FILTER_NEAREST": "0x10", "CLK_FILTER_LINEAR": "0x20",
    "CLK_R": "0x10B0", "CLK_RG": "0x10B2", "CLK_RGBA": "0x10B5", "CLK_FLOAT": "0x10DE",
    "CLK_HALF_FLOAT": "0x10DD",
}  # fmt: skip
_MEMORY_MODEL = """
typedef uint cl_mem_fence_flags;
typedef enum memory_scope { memory_scope_work_item = 0, memory_scope_work_group = 1, memory_scope_device = 2,
  memory_scope_all_svm_devices = 3, memory_scope_sub_group = 4 } memory_scope;
typedef enum memory_order { memory_order_relaxed = 0, memory_order_acquire = 2, memory_order_release = 3,
  memory_order_acq_rel = 4, memory_order_seq_cst = 5 } memory_order;
int printf(__constant const char *format, ...) __attribute__((format(printf, 1, 2)));
"""


def header() -> str:
    """Write the header."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    for feature in _FEATURES:
        yield f"#ifndef {feature}\n#define {feature} 1\n#endif"
    yield _SCALARS
    for kind in (*_INTEGERS, "float"):
        yield from _vectors(kind)
    for kind, extension in (("half", "cl_khr_fp16"), ("double", "cl_khr_fp64")):
        yield f"#ifdef {extension}\n#pragma OPENCL EXTENSION {extension} : enable"
        yield from _vectors(kind)
        yield "#endif"
    for name, value in _CONSTANTS.items():
        yield f"#define {name} {value}"
    yield _MEMORY_MODEL
    for kind in (*_INTEGERS, "float", "half", "double", "size_t"):
        for lanes in ("", *(_LANES if kind != "size_t" else ())):
            yield f"#define as_{kind}{lanes}(x) __builtin_astype((x), {kind}{lanes})"


def _vectors(kind: str) -> Iterator[str]:
    for lanes in _LANES:
        yield f"typedef {kind} {kind}{lanes} __attribute__((ext_vector_type({lanes})));"
