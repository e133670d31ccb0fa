"""Tools that query: the data model of the graph, read-only Cypher, and the saved queries."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from archive.api import Archive
from archive.database.user_query import QueryResult
from archive.errors import ReadOnlyError, UnknownNameError, UnknownStatementError
from archive.mcp.arguments import RowCount
from archive.mcp.limits import QUERY_SECONDS, ROWS, fitting, largest, plain
from archive.queries import catalogue, data_model, saved

if TYPE_CHECKING:
    from archive.queries.data_model import PartModel

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
    labels = []
    relationships = []
    for name in names:
        part = _part(archive, name, parts[name], meanings=label is not None)
        if name in model["labels"]:
            labels.append(part)

        if name in model["relationships"]:
            relationships.append(part)

    patterns = model["patterns"]
    if label is not None:
        patterns = list(filter(re.compile(rf":{label}\b").search, patterns))

    return GraphSchema(
        archive.connection.dialect, patterns, model["conventions"], labels, relationships
    )


def _part(archive: Archive, name: str, part: PartModel, *, meanings: bool) -> GraphPart:
    types = {}
    for property_name, about in part["properties"].items():
        types[property_name] = about["type"]
        if meanings:
            types[property_name] += f": {about['meaning']}"

    nodes = None
    if name in data_model.read()["labels"]:
        # The only clause of its query: both servers then answer it without counting.
        ((nodes,),) = archive.query(data_model.count_nodes(name)).rows

    return GraphPart(name, part["summary"], nodes, types)


SkippedRows = Annotated[
    int, Field(ge=0, description="Rows to skip, for the next page; the query then needs ORDER BY.")
]
QueryParameters = Annotated[
    dict[str, Any] | None, Field(description="Values of the query's parameters by name.")
]


@dataclass(frozen=True)
class QueryAnswer:
    """Rows of a query, one list a row, in the order of `columns`."""

    columns: list[str]
    rows: list[list[Any]]
    truncated: bool
    note: str | None = None


@dataclass(frozen=True)
class QueryParameter:
    """Parameter of a saved query; `default` holds unless it is required."""

    name: str
    meaning: str
    required: bool
    default: Any = None


@dataclass(frozen=True)
class SavedQueryEntry:
    """A saved query."""

    name: str
    summary: str
    parameters: list[QueryParameter] = field(default_factory=list)


@dataclass(frozen=True)
class SavedQueryEntries:
    """The saved queries."""

    queries: list[SavedQueryEntry]


def query(
    archive: Archive,
    cypher: Annotated[
        str,
        Field(description="One Cypher statement that only reads; `schema` describes the graph."),
    ],
    parameters: QueryParameters = None,
    limit: RowCount = ROWS,
    skip: SkippedRows = 0,
) -> QueryAnswer:
    """Run a read-only Cypher query; one that could write is refused.

    Return single properties rather than whole nodes, and aggregate in Cypher: answers are cut at
    `limit` rows and at 60 kB. A query that takes longer than 30 seconds is ended.
    """
    try:
        answer = archive.query(cypher, parameters, limit=limit, skip=skip, timeout=QUERY_SECONDS)
    except UnknownStatementError:
        raise
    except ReadOnlyError as error:
        # The rest of the message has the option of another command.
        raise ReadOnlyError(f"{str(error).partition(';')[0]}; this tool only reads") from None

    return _answer(answer, skip)


def saved_queries(archive: Archive) -> SavedQueryEntries:
    """List the saved queries with their parameters: frontier, lineage, calibration and others."""
    return SavedQueryEntries(list(map(_item, map(catalogue.get, catalogue.names()))))


def run_saved_query(
    archive: Archive,
    name: Annotated[str, Field(description="Name of a saved query.")],
    parameters: QueryParameters = None,
    limit: RowCount = ROWS,
    skip: SkippedRows = 0,
) -> QueryAnswer:
    """Run a saved query by its name; `saved_queries` lists them with their parameters."""
    values = parameters or {}
    answer = saved.run(
        archive.connection, name, values, limit=limit, skip=skip, timeout=QUERY_SECONDS
    )
    why = (
        saved.why_empty(archive.connection, name, values) if not answer.rows and not skip else None
    )
    return _answer(answer, skip, why)


def _answer(answer: QueryResult, skip: int, why_empty: str | None = None) -> QueryAnswer:
    rows = fitting([list(map(plain, row)) for row in answer.rows])

    def first(count: int) -> QueryAnswer:
        cut = answer.truncated or count < len(answer.rows)
        note = None if rows else why_empty or "no rows"
        if cut:
            note = (
                f"cut off after {count} rows: narrow the query, or continue with "
                f"skip={skip + count}"
            )

        return QueryAnswer(answer.columns, rows[:count], cut, note)

    return largest(first, len(rows), least=1)


def _item(query: catalogue.SavedQuery) -> SavedQueryEntry:
    parameters = [
        QueryParameter(parameter.name, parameter.help, parameter.needed, parameter.default)
        for parameter in query.parameters.values()
    ]
    return SavedQueryEntry(query.name, query.summary, parameters)
