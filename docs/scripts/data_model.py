"""The tables of `docs/data-model.md`, written from the schema.

Properties that the page names are read from it.

`python docs/scripts/data_model.py` writes the table of constraints and indexes into the page, and
the page's description of the graph into the package, for programs that explain it
(`archive.queries.data_model`). The tests read the tables of properties, and compare them with an
archive after a search.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from archive.queries import data_model
from archive.store import schema

PAGE = Path(__file__).resolve().parents[1] / "data-model.md"
PACKAGED = Path(data_model.__file__).with_suffix(".json")
BEGIN = "<!-- schema -->"
END = "<!-- /schema -->"


def constraints() -> str:
    """Return the table of constraints and indexes that the schema's migrations leave behind."""
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
    """Return the properties that the page names, with their types.

    They are grouped by label or type of relationship.

    A section `### Name` describes one label or type; its table has the columns property and type.
    `metric_*` stands for every property of that prefix.
    """
    properties: dict[str, dict[str, str]] = {}
    for name, body in re.findall(
        r"^### `?(\w+)`?\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL
    ):
        rows = re.findall(r"^\| (`[^|]*`) \| ([A-Z<>]+) \|", body, re.MULTILINE)
        properties[name] = {
            each: kind for names, kind in rows for each in re.findall(r"`([^`]+)`", names)
        }

    return properties


def relationships(text: str) -> set[tuple[str, str, str]]:
    """Return (label, type, label) of every relationship that the page names."""
    return set(re.findall(r"\(:(\w+)\)-\[:(\w+)[^\]]*\]->\(:(\w+)\)", text))


def packaged(text: str) -> str:
    """Return the description of the graph in the page as the JSON text that the package carries."""
    head = text.partition("## Questions to start with")[0]
    graph = text.partition("\n## Constraints")[0]
    nodes, relationships = re.split(r"^## (?:Nodes|Relationships)\n", graph, flags=re.M)[1:]
    described = {
        "patterns": [
            "".join(pattern) for pattern in re.findall(r"(\(:\w+\))(-\[:\w+\]->)(\(:\w+\))", head)
        ],
        "conventions": [
            _plain(item) for item in re.findall(r"^- (.*?)(?=^- |\Z)", head, re.M | re.S)
        ],
        "labels": _sections(nodes),
        "relationships": _sections(relationships),
    }
    return json.dumps(described, indent=1, ensure_ascii=False) + "\n"


def _sections(text: str) -> dict[str, Any]:
    """Return summary and properties of each label or type of relationship."""
    sections = {}
    for name, body in re.findall(r"^### `?(\w+)`?\n(.*?)(?=^### |\Z)", text, re.M | re.S):
        rows = re.findall(r"^\| (`[^|]*`) \| ([A-Z<>]+) \| (.*) \|$", body, re.M)
        parts = [part.strip() for part in re.split(r"\n\s*\n", body)]
        prose = [_plain(part) for part in parts if part and not part.startswith("|")]
        properties = {
            each: {"type": kind, "meaning": _plain(meaning)}
            for names, kind, meaning in rows
            for each in re.findall(r"`([^`]+)`", names)
        }
        sections[name] = {"summary": " ".join(prose), "properties": properties}

    return sections


def _plain(text: str) -> str:
    """Return a text of the page on one line, with links reduced to their words."""
    return " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).split())


def _of(label: str, pairs: set[tuple[str, str]]) -> str:
    return ", ".join(f"`{name}`" for each, name in sorted(pairs) if each == label) or "–"


if __name__ == "__main__":
    page = replaced(PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(page, encoding="utf-8")
    PACKAGED.write_text(packaged(page), encoding="utf-8")
