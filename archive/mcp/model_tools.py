"""Tool about the graph itself: labels, relationships, properties, and how many nodes there are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from archive.errors import UnknownNameError
from archive.queries import data_model

if TYPE_CHECKING:
    from archive.queries.data_model import PartModel

from archive.api import Archive

HIDDEN = ("SchemaMigration",)


@dataclass(frozen=True)
class GraphPart:
    """A label, or a type of relationship that has properties."""

    name: str
    summary: str
    nodes: int | None
    properties: dict[str, str]


@dataclass(frozen=True)
class GraphSchema:
    """The data model of the graph."""

    server: str
    patterns: list[str]
    conventions: list[str]
    labels: list[GraphPart]
    relationships: list[GraphPart]


def schema(
    archive: Archive,
    label: Annotated[
        str | None,
        Field(
            description="A label or type of relationship, for the meaning of each "
            "of its properties."
        ),
    ] = None,
) -> GraphSchema:
    """Describe the graph for Cypher queries: labels, relationships, properties with their types,
    numbers of nodes.

    Without `label`: all parts with the types of their properties. With it: one part with types and
    meanings.
    """
    model = data_model.read()
    parts = {**model["labels"], **model["relationships"]}
    if label is not None and label not in parts:
        raise UnknownNameError("label", label, parts)

    names = [name for name in parts if name not in HIDDEN and label in (None, name)]
    described = {
        name: _part(archive, name, parts[name], meanings=label is not None) for name in names
    }
    return GraphSchema(
        archive.connection.dialect,
        [
            pattern
            for pattern in model["patterns"]
            if label is None or re.search(rf":{label}\b", pattern)
        ],
        model["conventions"],
        [part for name, part in described.items() if name in model["labels"]],
        [part for name, part in described.items() if name in model["relationships"]],
    )


def _part(archive: Archive, name: str, part: PartModel, *, meanings: bool) -> GraphPart:
    types = {
        each: f"{about['type']}: {about['meaning']}" if meanings else about["type"]
        for each, about in part["properties"].items()
    }
    nodes = None
    if name in data_model.read()["labels"]:
        # The only clause of its query: both servers then answer it without counting.
        ((nodes,),) = archive.query(f"MATCH (n:{name}) RETURN count(n) AS nodes").rows

    return GraphPart(name, part["summary"], nodes, types)
