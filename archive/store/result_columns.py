"""Results of studies as columns, read from their nodes at each call.

    number, agent, architecture, mean, …          of the proposals
    value, seconds, metric_accuracy, …            of the evaluations
    space, network_params, operations, motifs     of the networks
    evaluation, hyperparameters, code             whole evaluations and networks, as their nodes have them

Nothing is copied: a value that any client changes in the database is what the next call returns. Only the columns that
are asked for are read, a thousand proposals in one list, since both servers and the driver take longer over a row than
over what is in it: about 10 µs a result for a few numbers, 30 µs for a whole evaluation.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from archive.architecture import compact
from archive.architecture.graph import Architecture
from archive.errors import QueryError
from archive.store.properties import plain

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

Row = dict[str, Any]
Column = list[Any]
Columns = dict[str, Column]

OF_PROPOSALS = ("number", "agent", "architecture", "functional_key", "mean", "std", "based_on", "hyperparameters")
NETWORK = "network_"
"""Prefix of the columns that are properties of networks."""

STUDIES = """
UNWIND $studies AS name
MATCH (s:Study {name: name})
USING INDEX SEEK s:Study(name)
MATCH (s)-[:ON]->(t:Task)
RETURN name AS study, s.direction AS direction, t.name AS task, t.protocol AS protocol
ORDER BY study
"""

# By the property of proposals, not by way of the study: ArcadeDB may find no relationship of a node for an instant
# while another transaction that writes to it commits, and everybody writes to studies.
ROWS = """
MATCH (p:Proposal {{study: $study}})
USING INDEX SEEK p:Proposal(study)
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
{network}WITH p.number / 1000 AS part,
     collect([p.number, e.id, p.agent, p.functional_key, p.based_on, {columns}]) AS rows
RETURN rows
"""
OF_NETWORK = "MATCH (p)-[:OF]->(a:Architecture)\n"

_SEPARATOR = "|"


@dataclass(frozen=True)
class StudyResults:
    """Results of one study, by number.

    Attributes:
        study: Its name.
        direction: Whether it wants large values or small ones.
        task: Name of its task.
        protocol: How that is measured.
        columns: Of its n results: `number`, and the columns that were asked for.
        others: The proposals without a result: `number`, `agent`, `functional_key`, `based_on` of each.
    """

    study: str
    direction: str
    task: str
    protocol: str
    columns: Columns
    others: list[Row]


def read(
    connection: Connection, studies: Sequence[str], columns: Iterable[str], deadline: float = math.inf
) -> list[StudyResults]:
    """Return the results of studies, by name; names that are no study's are left out.

    Args:
        connection: The archive.
        studies: Names.
        columns: Names of columns beside `number`; None stands where a result has no such property.
        deadline: Time of `time.monotonic` after which no further study is read.

    Raises:
        QueryError: The deadline has passed.
    """
    names = [name for name in dict.fromkeys(columns) if name != "number"]
    results = []
    for about in connection.read(lambda tx: plain(tx.run(STUDIES, studies=sorted(set(studies))))):
        if time.monotonic() > deadline:
            raise QueryError("the query took longer than its limit: narrow it, or allow it more time")
        results.append(connection.read(partial(_study_results, about=about, names=names)))
    return results


def _study_results(tx: ManagedTransaction, about: Row, names: Sequence[str]) -> StudyResults:
    parts = tx.run(_query(names), study=about["study"])
    rows = sorted((row for part in parts for row in part["rows"]), key=lambda row: int(row[0]))
    done = [row for row in rows if row[1] is not None]
    columns = {"number": [row[0] for row in done]}
    for at, name in enumerate(names, 5):
        convert = _CONVERSIONS.get(name)
        columns[name] = [row[at] for row in done] if convert is None else [convert(row[at]) for row in done]
    others = [
        {"number": number, "agent": agent, "functional_key": key, "based_on": basis}
        for number, result, agent, key, basis, *_ in rows
        if result is None
    ]
    return StudyResults(**about, columns=columns, others=others)


def _query(names: Sequence[str]) -> str:
    """Return the text that reads these columns."""
    expressions = [_expression(name) for name in names]
    of_network = any(expression.startswith("a.") for expression in expressions)
    return ROWS.format(network=OF_NETWORK if of_network else "", columns=", ".join([*expressions, "null"]))


def _expression(name: str) -> str:
    if name in OF_PROPOSALS:
        return f"p.{name}"
    if name in ("operations", "motifs"):
        return "a.code"
    if name in ("space", "code"):
        return f"a.{name}"
    if name.startswith(NETWORK):
        return f"a.{_quoted(name.removeprefix(NETWORK))}"
    return "properties(e)" if name == "evaluation" else f"e.{_quoted(name)}"


def _quoted(name: str) -> str:
    """Return the name of a property as Cypher takes any, such as that of a metric."""
    return "`" + name.replace("`", "``") + "`"


@lru_cache(maxsize=2**18)
def _operations_text(code: str) -> str:
    return _SEPARATOR.join(operations(compact.decode("", "", "", code)))


@lru_cache(maxsize=2**18)
def _motifs_text(code: str) -> str:
    return _SEPARATOR.join(motifs(compact.decode("", "", "", code)))


_CONVERSIONS: Mapping[str, Callable[[str], str]] = {"operations": _operations_text, "motifs": _motifs_text}


def operations(network: Architecture) -> list[str]:
    """Return the operations of a network's layers, input and output left out."""
    return sorted({layer.op for layer in network.layers} - {"ip", "op"})


def motifs(network: Architecture) -> list[str]:
    """Return what a network does beside two layers in a row: `one>two>`, or `one>two>past` by a layer of its own.

    An edge from what feeds the two to what they feed has no layer; `past` is the operation of one that is there.
    """
    ops = [layer.op for layer in network.layers]
    heads: list[list[int]] = [[] for _ in ops]
    for tail, head in network.edges:
        heads[tail].append(head)
    found = set()
    for feeds in heads:
        ways: dict[int, set[str]] = {head: {""} for head in feeds}
        for skip in feeds:
            for after in heads[skip]:
                ways.setdefault(after, set()).add(ops[skip])
        for one in feeds:
            for two in heads[one]:
                for after in heads[two]:
                    if past := ways.get(after):
                        found |= {(ops[one], ops[two], name) for name in past}
    return sorted(">".join(names) for names in found)


def parts(text: str) -> list[str]:
    """Return the names in a text of the columns `operations` and `motifs`."""
    return text.split(_SEPARATOR) if text else []


def joined(several: Iterable[Columns]) -> Columns:
    """Return columns of the same names, one after the other."""
    found: Columns = {}
    for columns in several:
        for name, column in columns.items():
            found.setdefault(name, []).extend(column)
    return found
