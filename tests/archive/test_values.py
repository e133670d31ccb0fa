"""Numbers as people write them, checks of arguments, and `NAME=VALUE`."""

from __future__ import annotations

import math

import pytest

from archive.errors import UsageError
from archive.values import assignments, require_at_least, short_settings, whole_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *[("0", 0), ("007", 7), (str(2**63 - 1), 2**63 - 1)],
        *[(text, None) for text in ("", "-1", "1.0", " 1", "²", str(2**63), "9" * 5000)],
    ],
)
def test_a_whole_number_can_be_stored(text, number):
    assert whole_number(text) == number


def test_the_bound_itself_and_arguments_left_out_pass():
    require_at_least(1, members=1, epochs=7, threads=None)


@pytest.mark.parametrize(("value", "shown"), [(0, "0"), (0.5, "0.5"), (math.nan, "nan")])
def test_a_smaller_argument_is_named_with_its_value(value, shown):
    with pytest.raises(UsageError, match=rf"^epochs must be >= 1, got {shown}$"):
        require_at_least(1, members=2, epochs=value)


def test_values_are_json_or_text():
    assert assignments(["a=1", "b=[2]", "c=x=y", "d="], "a metric") == {
        "a": 1,
        "b": [2],
        "c": "x=y",
        "d": "",
    }


def test_a_name_with_two_values_is_refused():
    with pytest.raises(UsageError, match=r"^a metric must have one value, got a=1 and a=2$"):
        assignments(["a=1", "b=1", "a=2"], "a metric")


def test_short_settings_stand_whole():
    rows = [{"depth": 4, "lr": 3e-4}, {"depth": 4}, {}]
    assert short_settings(rows) == ["depth=4 lr=0.0003", "depth=4", ""]
    assert short_settings([]) == []


def test_long_settings_show_what_differs_among_rows():
    common = {f"p{number}": number for number in range(40)}
    rows = [common, {**common, "p7": 0, "p30": "x"}, {**common, "p30": "y", "more": True}]
    del rows[2]["p9"]
    assert short_settings(rows) == [
        "p7=7 p9=9 p30=30 … 37 more",
        "p7=0 p9=9 p30=x … 37 more",
        "p7=7 p30=y more=true … 37 more",
    ]
    assert short_settings(rows, most=1)[1] == "p7=0 … 39 more"
    # A single row differs from none.
    assert short_settings([common], most=2) == ["p0=0 p1=1 … 38 more"]
