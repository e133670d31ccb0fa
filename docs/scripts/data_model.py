"""The tables of `docs/data-model.md`: what the schema says is written into the page, what the page says is read.

`python docs/scripts/data_model.py` writes the table of constraints and indexes. The tests read the tables of
properties, and compare them with an archive after a search.
"""

from __future__ import annotations

import re
from pathlib import Path

from archive.store import schema

PAGE = Path(__file__).resolve().parents[1] / "data-model.md"
BEGIN, END = "<!-- schema -->", "<!-- /schema -->"


def constraints() -> str:
    """Return the table of constraints and indexes that the migrations of the schema leave behind."""
    unique: set[tuple[str, str]] = set()
    indexed: set[tuple[str, str]] = set()
    for migration in schema.MIGRATIONS:
        unique = (unique | set(migration.unique)) - set(getattr(migration, "dropped", ()))
        indexed |= set(migration.indexed)
    lines = ["| label | unique | indexed |", "|---|---|---|"]
    for label in sorted({label for label, _ in unique | indexed}):
        lines.append(f"| `{label}` | {_of(label, unique)} | {_of(label, indexed)} |")
    return "\n".join(lines)


def replaced(text: str) -> str:
    """Return the page's text with the table of the schema between its two marks."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{constraints()}\n\n{END}{tail}"


def documented(text: str) -> dict[str, dict[str, str]]:
    """Return the properties that the page names, with their types, by label or type of relationship.

    A section `### Name` describes one label or type; its table has the columns property and type. `metric_*` stands for
    every property of that prefix.
    """
    properties: dict[str, dict[str, str]] = {}
    for name, body in re.findall(r"^### `?(\w+)`?\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL):
        rows = re.findall(r"^\| (`[^|]*`) \| ([A-Z<>]+) \|", body, re.MULTILINE)
        properties[name] = {each: kind for names, kind in rows for each in re.findall(r"`([^`]+)`", names)}
    return properties


def relationships(text: str) -> set[tuple[str, str, str]]:
    """Return (label, type, label) of every relationship that the page names."""
    return set(re.findall(r"\(:(\w+)\)-\[:(\w+)[^\]]*\]->\(:(\w+)\)", text))


def _of(label: str, pairs: set[tuple[str, str]]) -> str:
    return ", ".join(f"`{name}`" for each, name in sorted(pairs) if each == label) or "–"


if __name__ == "__main__":
    PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
