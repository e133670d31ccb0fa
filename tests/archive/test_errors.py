"""Messages of errors: the nearest existing names, and the first line of other packages'
messages."""

from __future__ import annotations

import difflib

import pytest

from archive import errors
from archive.errors import UnknownNameError, first_line


def test_the_nearest_names_are_offered():
    assert "did you mean first" in str(UnknownNameError("study", "frist", ["first", "other"]))
    assert "known: first, other" in str(UnknownNameError("study", "x", ["other", "first"]))


def test_a_long_name_is_cut():
    message = str(UnknownNameError("architecture", "[(1,2)," * 100, ["first"]))
    assert message.startswith("unknown architecture '[(1,2),") and message.endswith(
        "…': known: first"
    )
    assert len(message) < 180


def test_many_names_are_not_compared_letter_by_letter(monkeypatch):
    monkeypatch.setattr(errors, "MOST_COMPARED", 50)
    monkeypatch.setattr(
        difflib, "get_close_matches", lambda *_, **__: pytest.fail("compares all names")
    )
    keys = [f"{at:032x}" for at in range(100)]
    assert "did you mean " + keys[99] in str(UnknownNameError("architecture", keys[99][-2:], keys))
    assert "known: " + keys[0] in str(UnknownNameError("architecture", "f" * 32, keys))


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("no memory\nat 0x1", "no memory"),
        ("\n  no memory \n", "no memory"),
        ("", "AssertionError"),
        (" \n", "AssertionError"),
    ],
)
def test_the_first_line_of_a_message(message, line):
    assert first_line(AssertionError(message)) == line
    assert first_line(AssertionError(message), 4) == line[:4]
