"""Conditions and constraints: their grammar, their meaning, and their refusals."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.parameters.expressions import UNKNOWN, ExpressionError
from archive.parameters.parser import DEEPEST, LONGEST_TEXT, parse

VALUES = {"depth": 4, "width": 64, "lr": 0.01, "act": "relu", "bias": True, "none": None}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("depth >= 4", True),
        ("depth > 4", False),
        ("width * depth <= 512", True),
        ("width * depth == 256", True),
        ("2 + 3 * 4 == 14", True),
        ("(2 + 3) * 4 == 20", True),
        ("2 - 3 - 4 == -5", True),
        ("-2 ** 2 == -4", True),
        ("2 ** -1 == 0.5", True),
        ("2 ** 3 ** 2 == 512", True),
        ("7 // 2 == 3 and 7 % 2 == 1 and 7 / 2 == 3.5", True),
        ("act == 'relu'", True),
        ('act != "gelu"', True),
        ("act in ['gelu', 'relu']", True),
        ("act not in ['gelu', 'relu']", False),
        ("not act == 'relu'", False),
        ("bias", True),
        ("bias and depth < 4", False),
        ("not bias or lr < 0.1", True),
        ("bias == 1", False),
        ("depth == 4.0", True),
        ("none == null", True),
        ("1 < depth <= 4 < 5", True),
        ("1 < depth <= 3 < 5", False),
        ("min(depth, width, 2) == 2 and max(depth, 9) == 9", True),
        ("abs(-3) == 3 and floor(2.7) == 2 and ceil(2.2) == 3", True),
        ("sqrt(width) == 8 and log(1) == 0", True),
        ("lr < 1e-1", True),
        ("false or true and false", False),
        ("missing > 3", UNKNOWN),
        ("missing > 3 or true", True),
        ("missing > 3 or false", UNKNOWN),
        ("missing > 3 and false", False),
        ("missing > 3 and true", UNKNOWN),
        ("not missing > 3", UNKNOWN),
        ("missing in [1, 2]", UNKNOWN),
        ("missing + 1 == missing", UNKNOWN),
    ],
)
def test_a_text_has_the_value_that_a_reader_expects(text: str, expected: Any) -> None:
    expression = parse(text)
    assert expression.value(VALUES) is expected
    assert expression.holds(VALUES) is (expected is True)
    assert expression.forbids(VALUES) is (expected is False)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "expected a value, got the end"),
        ("depth = 4", "= is no comparison, write == at column 7"),
        ("depth >=", "expected a value, got the end"),
        ("depth 4", "unexpected '4' at column 7"),
        ("depth + 1", "a condition is a comparison"),
        ("depth + 1 and bias", "and, or and not combine comparisons, and no numbers at column 1"),
        ("(depth > 1", r"expected '\)', got the end"),
        ("depth in 3", "in needs a list, such as"),
        ("depth in [width]", "a list holds constants at column 11"),
        ("act == 'relu", "the text has no end, or a backslash at column 8"),
        ("act == 'a\\'b'", "the text has no end, or a backslash"),
        ("open('x') == 1", "there is no function open: known are min, max"),
        ("depth.real == 4", "unexpected '.' at column 6"),
        ("depth[0] == 4", r"unexpected '\['"),
        ("lambda: 1", "unexpected ':'"),
        ("abs(1, 2) == 1", "abs takes 1 value, got 2"),
        ("not", "expected a value, got the end"),
        ("depth in []", r"expected a value, got '\]'"),
        ("(" * (DEEPEST + 1) + "bias" + ")" * (DEEPEST + 1), "brackets within each other"),
        ("-" * 400 + "1 == 1", "brackets within each other"),
        ("not " * 200 + "bias", "brackets within each other"),
        ("1 + " * LONGEST_TEXT + "1 == 1", "at most 1000 characters"),
    ],
)
def test_a_text_that_is_no_condition_is_refused(text: str, fault: str) -> None:
    with pytest.raises(ExpressionError, match=fault):
        parse(text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("act < 3", "< needs numbers, got 'relu' at column 5"),
        ("bias + 1 == 2", r"\+ needs numbers, got True"),
        ("depth / (width - 64) > 1", "/ of 4, 0 has no value"),
        ("log(depth - 4) > 1", "log of 0 has no value"),
        ("9 ** 9 ** 9 ** 9 > depth", r"\*\* of 9"),
        ("act", "a condition must be true or false, got 'relu'"),
        ("depth and bias", "a condition must be true or false, got 4"),
    ],
)
def test_a_value_that_an_operation_is_not_defined_for_is_named(text: str, fault: str) -> None:
    with pytest.raises(ExpressionError, match=fault):
        parse(text).value(VALUES)


def test_an_expression_knows_its_parameters_and_its_comparisons() -> None:
    expression = parse("width * depth <= 512 and act in ['relu', 'gelu'] and 3 < depth")
    assert expression.names == ("width", "depth", "act")
    assert [(entry.name, entry.values, entry.ordered) for entry in expression.comparisons] == [
        ("act", ("relu", "gelu"), False),
        ("depth", (3,), True),
    ]


def test_names_are_resolved_where_they_stand_in_a_group() -> None:
    expression = parse("op == 'skip'", {"op": "stage_2_op"}.get)
    assert expression.names == ("stage_2_op",)
    assert expression.holds({"stage_2_op": "skip"})
    assert expression != parse("op == 'skip'")
    with pytest.raises(ExpressionError, match="there is no parameter 'kernel' at column 1"):
        parse("kernel == 3", {"op": "stage_2_op"}.get)


NUMBERS = st.integers(-50, 50) | st.sampled_from([0.5, -0.25, 1e-3])


@st.composite
def arithmetic(draw: st.DrawFn) -> str:
    """A sum of products, in brackets or not, which Python reads as we do."""
    text = draw(st.sampled_from(["depth", "width", "lr"]) | NUMBERS.map(str))
    for _ in range(draw(st.integers(0, 5))):
        operator = draw(st.sampled_from(["+", "-", "*", "//", "%", "/"]))
        operand = draw(st.sampled_from(["depth", "width", "lr"]) | NUMBERS.map(str))
        text = f"{text} {operator} {operand}"
        if draw(st.booleans()):
            text = f"({text})"

    return text


@given(left=arithmetic(), right=arithmetic(), comparison=st.sampled_from(["<", "<=", "==", "!="]))
def test_arithmetic_and_comparisons_agree_with_python(
    left: str, right: str, comparison: str
) -> None:
    text = f"{left} {comparison} {right}"
    try:
        expected = eval(text, {"__builtins__": {}}, VALUES)
    except ArithmeticError:
        with pytest.raises(ExpressionError):
            parse(text).value(VALUES)
        return

    assert parse(text).value(VALUES) is expected


@given(st.text(st.sampled_from("ab01.'\"()[],<>=!*/+-%_ \n\té") | st.characters(), max_size=60))
def test_any_text_is_a_condition_or_one_line_of_error(text: str) -> None:
    try:
        expression = parse(text)
    except ExpressionError as error:
        assert "\n" not in str(error)
        return

    try:
        value = expression.value({"a": 1, "b": math.pi})
    except ExpressionError:
        return

    assert value is True or value is False or value is UNKNOWN
