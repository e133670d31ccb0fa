"""Words for the names of papers: every operation of a space has one, and the glossary has the name."""

from __future__ import annotations

from pathlib import Path

from archive import words
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
