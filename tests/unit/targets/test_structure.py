"""Syntax trees of OpenCL C at the source's own offsets."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st
from tree_sitter import Node

from mb_targets.opencl import structure

KERNEL = """// größe
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
REQD_SG(64) __kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void mm(__global const float *restrict A, read_only image2d_t im, __local float4* t, int n) {
  __local float tile[16][17], *q;
  #pragma unroll 4
  for (int i = 0; i < n; ++i) { barrier(CLK_LOCAL_MEM_FENCE); t[i] += (float4)(A[i], 1.f, 2.f, 3.f); }
  __global float4 *p = (__global float4*)(A + 4);
  t[0].xy = vload4(0, A).s01;
}
"""


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _nodes(child)


def test_opencl_that_the_c_grammar_does_not_know_parses_without_an_error() -> None:
    assert not structure.parse(KERNEL).root_node.has_error


def test_offsets_are_characters_of_the_source_after_a_letter_that_is_not_ascii() -> None:
    function = next(n for n in _nodes(structure.parse(KERNEL).root_node) if n.type == "function_declarator")
    assert structure.text(KERNEL, function).startswith("mm(__global const float *restrict A")


def test_an_address_space_is_a_qualifier_in_the_tree() -> None:
    nodes = _nodes(structure.parse(KERNEL).root_node)
    found = [structure.qualifier(KERNEL, n) for n in nodes if n.type == "type_qualifier"]
    assert found == [
        "kernel",
        "global",
        "const",
        "restrict",
        "read_only",
        "local",
        "local",
        "global",
        "global",
    ]


def test_broken_syntax_keeps_the_other_functions_in_the_tree() -> None:
    source = "kernel void a(global int *x) { x[0] = ; }\n" + KERNEL
    tree = structure.parse(source)
    assert tree.root_node.has_error
    assert [n.type for n in tree.root_node.children].count("function_definition") == 2


def test_empty_text_parses() -> None:
    assert structure.parse("").root_node.child_count == 0


@given(st.text(alphabet=st.sampled_from("kernel_global(){};/*\"'\\\r\n #é𝄞pragma attribute")))
def test_masking_keeps_every_character_in_its_place(source: str) -> None:
    masked = structure.mask(source)
    assert len(masked) == len(source)
    assert masked.isascii()
    assert [i for i, c in enumerate(source) if c == "\n"] == [i for i, c in enumerate(masked) if c == "\n"]
