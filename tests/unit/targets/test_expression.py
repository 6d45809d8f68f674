"""The expressions that launches are written in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mb_targets import expression
from mb_targets.expression import Binary, Expression, ExpressionError, Extreme, Name, Number, evaluate

LEAVES: st.SearchStrategy[Expression] = st.one_of(
    st.integers(0, 100).map(Number), st.sampled_from("NMK").map(Name)
)
OPERATORS = st.sampled_from(("+", "-", "*", "/", "//", "%"))
TREES: st.SearchStrategy[Expression] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(Binary, OPERATORS, inner, inner),
        st.builds(Extreme, st.sampled_from(("min", "max")), st.tuples(inner, inner)),
    ),
    max_leaves=12,
)
SIZES = {"N": 7, "M": 5, "K": 3}


def value_of(tree: Expression) -> float | None:
    try:
        return evaluate(tree, SIZES)
    except ExpressionError:
        return None


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("(N+63)//64*64", 64),
        ("N*M - K", 32),
        ("N/2", 3),
        ("N%K", 1),
        ("min(N, M, 4) + max(K, 1)", 7),
        ("1.5*M", 7.5),
        ("1.0/4", 0.25),
        ("-3 + N", 4),
        ("1e-4", 1e-4),
    ],
)
def test_sizes_are_worked_out_in_whole_numbers(written: str, value: float) -> None:
    assert evaluate(written, SIZES) == value


def test_a_whole_float_counts_as_an_integer() -> None:
    assert evaluate("N/4*4", {"N": 1023.0}) == 1020


@pytest.mark.parametrize(
    ("written", "position"),
    [("N+", 3), ("(N", 3), ("N N", 3), ("N $ 2", 3), ("", 1), ("sqrt(N)", 5), ("2**N", 3), ("N)", 2)],
)
def test_an_error_names_the_text_and_the_position(written: str, position: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        expression.parse(written)
    assert f"`{written}`, at position {position}:" in str(caught.value)


def test_a_very_deep_expression_is_refused_and_not_followed_down() -> None:
    with pytest.raises(ExpressionError, match="nested too deeply"):
        expression.parse("(" * 5000 + "N" + ")" * 5000)


def test_a_name_without_a_value_says_how_to_give_it_one() -> None:
    with pytest.raises(ExpressionError, match="`Q=1024`"):
        evaluate("Q+1", SIZES)


def test_a_division_by_zero_shows_what_divides() -> None:
    with pytest.raises(ExpressionError, match=r"`N/\(M-5\)` divides by zero"):
        evaluate("N/(M-5)", SIZES)


@given(TREES)
def test_plain_text_parses_back_to_the_same_expression(tree: Expression) -> None:
    assert expression.parse(expression.text(tree)) == tree


@given(TREES)
def test_simplifying_keeps_the_value(tree: Expression) -> None:
    before = value_of(tree)
    assert before is None or value_of(expression.simplify(tree)) == before


@given(TREES)
def test_python_text_has_the_same_value_in_python(tree: Expression) -> None:
    value = value_of(tree)
    if value is not None:
        assert eval(expression.text(tree, "python"), {}, dict(SIZES)) == value


def test_c_text_divides_and_compares_as_c_does() -> None:
    assert expression.text(expression.parse("(N+15)//16"), "c") == "(N + 15) / 16"
    assert expression.text(expression.parse("min(N, 4)"), "c") == "((N) < (4) ? (N) : (4))"


def test_substitution_puts_parentheses_where_they_are_needed() -> None:
    tree = expression.substitute(expression.parse("(G0+7)//8"), {"G0": expression.parse("n-1")})
    assert expression.text(tree) == "(n-1+7)//8"
    scaled = expression.substitute(expression.parse("G0*2"), {"G0": expression.parse("n-1")})
    assert expression.text(scaled) == "(n-1)*2"


def test_names_are_listed_once_in_order() -> None:
    assert expression.names("M*N + min(K, M)") == ("M", "N", "K")


@given(st.integers(0, 50), st.integers(0, 50))
def test_a_divisor_divides_whatever_the_names_stand_for(n: int, m: int) -> None:
    for written in (
        "n*16",
        "(n+15)//16*16",
        "n*16+m*8",
        "n*16-8",
        "max(n*4, 6)",
        "(n+m)*12",
        "n*8%12",
        "n/2",
        "0",
    ):
        value = expression.evaluate(written, {"n": n, "m": m * 6})
        by = expression.divisor(expression.parse(written), {"m": 6})
        assert value % by == 0 if by else value == 0, written


def test_a_divisor_is_as_large_as_can_be_told() -> None:
    found = [expression.divisor(expression.parse(t), {"m": 6}) for t in ("(n+15)//16*16", "m*4", "m+9", "n")]
    assert found == [16, 24, 3, 1]
