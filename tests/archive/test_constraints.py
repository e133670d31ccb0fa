"""Constraints as text, and how far values are from meeting them."""

from __future__ import annotations

import math

import pytest

from archive.constraints import Constraint, parse, violation
from archive.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("params<=1e6", ("params", "<=", 1e6)),
        (" latency_ms < 0.5 ", ("latency_ms", "<", 0.5)),
        ("params<=0.3M", ("params", "<=", 3e5)),
        ("peak_memory_bytes<2GiB", ("peak_memory_bytes", "<", 2.0 * 2**30)),
        ("valid_accuracy>=0.9", ("valid_accuracy", ">=", 0.9)),
        ("margin>-1.5", ("margin", ">", -1.5)),
    ],
)
def test_a_constraint_is_read_and_written(text, expected):
    read = parse(text)
    assert (read.name, read.operator, read.bound) == expected
    assert parse(str(read)) == read


@pytest.mark.parametrize(
    "text",
    [
        "params",
        "params=1e6",
        "params<=",
        "<=3",
        "a<=1<=2",
        "params<=many",
        "params<=inf",
        "params<=nan",
    ],
)
def test_texts_that_are_none(text):
    with pytest.raises(UsageError) as error:
        parse(text)

    assert repr(text) in str(error.value)


def test_violations_are_relative_and_zero_exactly_where_met():
    at_most = Constraint("a", "<=", 200.0)
    below = Constraint("a", "<", 200.0)
    at_least = Constraint("b", ">=", -4.0)
    above = Constraint("b", ">", 0.0)
    assert (at_most.violation(200.0), at_most.violation(250.0)) == (0.0, 0.25)
    assert below.violation(199.9) == 0.0 < below.violation(200.0) < 1e-300
    assert (at_least.violation(-4.0), at_least.violation(-6.0)) == (0.0, 0.5)
    # Of a bound of 0 in the quantity's own unit.
    assert (above.violation(1.0), above.violation(-3.0)) == (0.0, 3.0)
    assert at_most.violation(None) == at_most.violation(math.nan) == math.inf
    assert violation([at_most, at_least], {"a": 250.0, "b": -6.0}) == 0.75
    assert violation([at_most, at_least], {"a": 1.0}) == math.inf
    assert violation([], {}) == 0.0
