"""Words for the names of papers: every operation of a space has one, and the glossary has the name."""

from __future__ import annotations

from pathlib import Path

from archive import words
from archive.cli.query import _in_words
from archive.database.user_query import QueryResult
from archive.spaces.modifiers.choices import EVERY

GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"


def test_every_modifier_has_a_word():
    assert set(EVERY) <= set(words.OPERATIONS)


def test_the_glossary_has_every_name():
    glossary = GLOSSARY.read_text(encoding="utf-8")
    for name in words.OPERATIONS:
        assert f"`{name}`" in glossary, name


def test_an_unknown_operation_keeps_its_name():
    assert words.operation("swap_label") == "change an operation"
    assert words.operation("own_operation") == "own_operation"


def test_saved_queries_about_edits_show_words():
    columns = ["step", "operations", "operation"]
    rows = [(0, [], None), (1, ["inc_en_masse", "own"], "swap_label")]
    assert _in_words(QueryResult(columns, rows)) == [
        [0, None, None],
        [1, "widen several layers, own", "change an operation"],
    ]
    assert (words.layer("ip"), words.layer("relu")) == ("input", "relu")
