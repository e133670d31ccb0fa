"""`NAME=VALUE`: values by name, each name once."""

from __future__ import annotations

import pytest

from archive.argument_checks import assignments
from archive.errors import UsageError


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
