from __future__ import annotations

import pytest

from mb_targets.form.macros import Macro, Unknown, expand, from_options


def undecided(text: str) -> bool:
    raise Unknown(text)


def text_of(source: str, *options: str) -> str:
    return " ".join(expand(source, from_options(options), undecided).text.split())


def test_a_macro_that_is_one_number_keeps_its_name() -> None:
    found = expand("#define N 512\n#define M (-2.5f)\nint x = N + M;\n", {}, undecided)
    assert found.text.split() == ["int", "x", "=", "N", "+", "M;"]
    assert found.numbers == {"N": "512", "M": "(-2.5f)"}


def test_other_macros_are_expanded_with_their_arguments() -> None:
    source = "#define AT(p, i) ((p)[(i) * W])\n#define W width\nfloat v = AT(a + 1, f(2, 3));\n"
    assert text_of(source) == "float v = ((a + 1)[(f(2, 3)) * width]);"


def test_a_macro_does_not_expand_inside_itself() -> None:
    assert text_of("#define x x + y\nint z = x;\n") == "int z = x + y;"


def test_a_name_with_parameters_is_left_alone_without_arguments() -> None:
    assert text_of("#define f(a) a\nint g = f;\n") == "int g = f;"


def test_a_long_definition_may_go_on_over_lines_and_hold_comments() -> None:
    assert text_of("#define P(a) \\\n  a /* once */ \\\n  + 1 // one\nint q = P(2);\n") == "int q = 2 + 1;"


@pytest.mark.parametrize(
    ("options", "kept"),
    [((), "int b;"), (("-DA",), "int a;"), (("-D", "A=1"), "int a;"), (("-DB=2",), "int b;")],
)
def test_conditions_on_what_is_defined_choose_a_branch(options: tuple[str, ...], kept: str) -> None:
    assert text_of("#ifdef A\nint a;\n#else\nint b;\n#endif\n", *options) == kept


def test_the_first_condition_that_holds_wins() -> None:
    source = "#if X > 3\nint a;\n#elif X > 1\nint b;\n#elif X > 0\nint c;\n#else\nint d;\n#endif\n"
    answers = {"2 > 3": False, "2 > 1": True}
    found = expand(source, {"X": Macro(None, "2")}, answers.__getitem__)
    assert found.text.split() == ["int", "b;"]


def test_a_condition_that_cannot_be_decided_is_said() -> None:
    with pytest.raises(Unknown, match="0 > 3"):
        expand("#if FOO > 3\n#endif\n", {}, undecided)


def test_an_undefined_macro_is_a_name_again() -> None:
    assert text_of("#define T float\nT a;\n#undef T\nT b;\n") == "float a; T b;"
