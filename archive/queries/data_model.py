"""Data model of the graph for programs that explain it.

It has labels, relationships, and properties with type and meaning.

    read()["labels"]["Evaluation"]["properties"]["value"]   # {"type": "FLOAT", "meaning": …}

`data_model.json` is made from `docs/data-model.md` by `docs/scripts/data_model.py`. A test compares
that page with an archive after real searches.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TypedDict


class PropertyModel(TypedDict):
    """A property: its type, and its meaning in one sentence.

    `metric_*` stands for all names of that prefix.
    """

    type: str
    meaning: str


class PartModel(TypedDict):
    """A label or a type of relationship."""

    summary: str
    properties: dict[str, PropertyModel]


class DataModel(TypedDict):
    """The whole graph.

    `patterns` are the relationships with the labels at their ends; `conventions` hold for all
    properties; `relationships` are the types that have properties.
    """

    patterns: list[str]
    conventions: list[str]
    labels: dict[str, PartModel]
    relationships: dict[str, PartModel]


@cache
def read() -> DataModel:
    """Return the data model; it is shared, and callers must not change it."""
    model: DataModel = json.loads(
        (files("archive.queries") / "data_model.json").read_text(encoding="utf-8")
    )
    return model


def count_nodes(label: str) -> str:
    """Return the statement that counts the nodes of a label.

    It has one clause: both servers then answer it without a scan.
    """
    return f"MATCH (n:{label}) RETURN count(n) AS nodes"
