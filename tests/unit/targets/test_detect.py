"""Kernels are found in OpenCL C and in the strings of host programs."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mb_targets.model import Parameter
from mb_targets.opencl.detect import embedded, features, find_kernels
from mb_targets.opencl.facts import facts
from mb_targets.opencl.scan import Scan

ROWSUM = """__kernel void rowsum(__global const float *restrict x, __global float *y, int n)
{
    int i = get_global_id(0);
    float s = 0.0f;
    for (int j = 0; j < n; ++j)
        s += x[i * n + j];
    y[i] = s;
}
"""
SCALE = "kernel void scale(global float4 *v, const float a) { v[get_global_id(0)] *= a; }\n"
PIECES = st.sampled_from(
    [
        ROWSUM,
        SCALE,
        "__kernel",
        "kernel void ",
        "{",
        "}",
        "/*",
        "*/",
        "//",
        "\n",
        '"',
        "'",
        "#define N 4, int m\n",
        "#if A\n",
        "#else\n",
        "#endif\n",
        "__attribute__((reqd_work_group_size(4,1,1))) ",
        "MACRO(1) ",
        "float f(float a) { return a; }\n",
        "void k(int a, N) {}",
        "é\f\r\n",
        ";",
        "x",
        " ",
    ]
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)


def names(text: str, language: str = "opencl") -> list[str]:
    return [k.name for k in find_kernels(text, language)]


def identities(text: str) -> dict[str, str]:
    return {k.name: k.identity for k in find_kernels(text, "opencl")}


def test_both_spellings_of_the_keyword_are_found_in_order() -> None:
    assert names(ROWSUM + SCALE) == ["rowsum", "scale"]


def test_parameters_carry_type_space_and_qualifiers() -> None:
    source = (
        "kernel void k(__global const float4 *restrict a, constant unsigned int *b, local half t[], "
        "read_only image2d_t im, sampler_t s, float const x) {}"
    )
    assert find_kernels(source, "opencl")[0].parameters == (
        Parameter("a", "float4", "global", const=True, restrict=True),
        Parameter("b", "unsigned int", "constant", const=True),
        Parameter("t", "half", "local"),
        Parameter("im", "image2d_t", "image"),
        Parameter("s", "sampler_t", "sampler"),
        Parameter("x", "float", "value", const=True),
    )


def test_a_kernel_spans_from_its_attribute_to_its_closing_brace() -> None:
    source = "// kernel one\n__attribute__((reqd_work_group_size(8, 1, 1)))\n" + ROWSUM + "int after;"
    found = find_kernels(source, "opencl")[0]
    assert found.text.startswith("__attribute__")
    assert found.text.endswith("y[i] = s;\n}")


def test_kernels_in_comments_strings_and_macros_are_not_kernels() -> None:
    source = (
        '// kernel void a() {}\n/* kernel void b() {} */\n#define K kernel void c() {}\nchar *d = "kernel";\n'
    )
    assert names(source + SCALE) == ["scale"]


def test_a_declaration_without_a_body_is_no_kernel() -> None:
    assert names("kernel void k(global int *a);\nvoid helper(int a) { }\n" + SCALE) == ["scale"]


@pytest.mark.parametrize("broken", ["kernel void a(global int *x) {\n", "kernel void a(", "kernel ", "{{{"])
def test_broken_syntax_leaves_the_kernels_that_are_whole(broken: str) -> None:
    assert names(broken + ROWSUM + broken + SCALE) == ["rowsum", "scale"]


@pytest.mark.parametrize("text", ["", "\n", "\ufeff", "\0", "é", "/*", '"'])
def test_text_without_a_kernel_gives_none(text: str) -> None:
    assert names(text) == []


def test_braces_of_both_branches_of_a_conditional_count_once() -> None:
    source = "kernel void k(global int *a) {\n#ifdef F\n  if (a[0]) {\n#else\n  {\n#endif\n  a[1] = 2; }\n}\n"
    assert [k.text for k in find_kernels(source, "opencl")] == [source.strip()]


def test_a_macro_that_stands_for_several_parameters_is_expanded() -> None:
    source = "#define SIZES const int w, const int h,\nkernel void k(SIZES global float *a) { }"
    assert [p.name for p in find_kernels(source, "opencl")[0].parameters] == ["w", "h", "a"]


def test_windows_line_ends_and_form_feeds_keep_offsets() -> None:
    source = "// größe\r\n\f\r\n" + ROWSUM.replace("\n", "\r\n")
    found = find_kernels(source, "opencl")[0]
    assert source[found.start : found.end] == ROWSUM.strip().replace("\n", "\r\n")


def test_comments_and_spacing_leave_the_identity_alone() -> None:
    spaced = re.sub(r"([;{(\[])", r" \1 /* é */\n", ROWSUM)
    assert identities("// top\n" + spaced) == identities(ROWSUM)


def test_another_kernel_in_the_file_leaves_the_identity_alone() -> None:
    assert identities(SCALE + ROWSUM)["rowsum"] == identities(ROWSUM)["rowsum"]


@pytest.mark.parametrize("shared", ["#define W 4\n", "float f(float a) { return a; }\n", "#pragma X\n"])
def test_a_macro_or_helper_beside_the_kernel_counts_for_its_identity(shared: str) -> None:
    assert identities(shared + ROWSUM) != identities(ROWSUM)


def test_one_changed_constant_changes_the_identity() -> None:
    assert identities(ROWSUM.replace("0.0f", "1.0f")) != identities(ROWSUM)


def test_a_cpp_raw_string_is_searched_and_maps_back_to_the_document() -> None:
    document = (
        f'// R"(kernel void no() {{}})"\nconst char *s = "x"; auto src = R"CL({ROWSUM})CL";\nint kernel;\n'
    )
    found = find_kernels(document, "cpp")[0]
    assert document[found.offset + found.start :].startswith("__kernel void rowsum")
    assert found.source == ROWSUM


def test_python_triple_quoted_strings_are_searched_and_formatted_ones_are_not() -> None:
    document = f'a = \'\'\'{SCALE}\'\'\'\n# """\nb = f"""{ROWSUM}"""\nc = r"""\n{ROWSUM}"""\n'
    assert names(document, "python") == ["scale", "rowsum"]


def test_a_python_string_with_escapes_is_not_what_is_written_and_is_left_alone() -> None:
    assert names('s = """' + SCALE.replace("v[", 'printf("\\n"); v[') + '"""', "python") == []


def test_a_c_program_without_opencl_strings_holds_no_piece() -> None:
    assert embedded("int kernel(int a) { return a; }", "c") == []


@given(TEXTS, TEXTS, st.integers(0, 400), st.integers(0, 100))
def test_an_update_finds_what_a_full_scan_finds(before: str, inserted: str, start: int, length: int) -> None:
    start = min(start, len(before))
    old_end = min(len(before), start + length)
    after = before[:start] + inserted + before[old_end:]
    scan = Scan(before)
    assert scan.update(after, start, old_end, start + len(inserted)) == Scan(after).kernels


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 30), PIECES), max_size=8))
def test_a_series_of_updates_finds_what_a_full_scan_finds(edits: list[tuple[int, int, str]]) -> None:
    text = "#define W 4\n" + (ROWSUM + SCALE) * 4
    scan = Scan(text)
    for at, length, inserted in edits:
        start = min(at, len(text))
        end = min(len(text), start + length)
        text = text[:start] + inserted + text[end:]
        scan.update(text, start, end, start + len(inserted))
    assert scan.kernels == Scan(text).kernels


def test_features_are_64_small_numbers() -> None:
    found = features(find_kernels(ROWSUM, "opencl")[0])
    assert len(found) == 64
    assert all(0 <= f <= 255 for f in found)


def test_features_do_not_depend_on_names_comments_or_spacing() -> None:
    renamed = re.sub(r"\bs\b", "total_value", re.sub(r"\bx\b", "data", ROWSUM)).replace(";", " ; // é\n")
    assert features(find_kernels(renamed, "opencl")[0]) == features(find_kernels(ROWSUM, "opencl")[0])


def test_features_tell_another_computation_apart() -> None:
    other = ROWSUM.replace("s += x[i * n + j]", "s = fmax(s, exp(x[i * n + j]))")
    assert features(find_kernels(other, "opencl")[0]) != features(find_kernels(ROWSUM, "opencl")[0])


def test_facts_follow_helpers_and_macros_that_the_kernel_reaches() -> None:
    source = (
        "#define ROW get_global_id(1)\n#define WG 8\n"
        "void sync(void) { barrier(CLK_LOCAL_MEM_FENCE); }\nint unused() { return get_global_id(2); }\n"
        "kernel __attribute__((reqd_work_group_size(WG, WG/2, 1))) void k(global int *a, local int *t)"
        "{ t[0] = ROW; sync(); atomic_add(a, 1); }"
    )
    found = facts(find_kernels(source, "opencl")[0])
    assert (found.dims, found.barriers, found.required_local) == (2, 1, (8, 4, 1))
    assert found.local_memory
    assert found.atomics
