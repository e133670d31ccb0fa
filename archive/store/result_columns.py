"""Results of studies as columns of the read model (`archive.store.studies.rows`).

The texts `operations` and `motifs` of the networks are further columns.

Nothing is cached: the next call returns a value that any client has changed in the database. Only
the requested columns are read, in about 10 µs a result for a few numbers, 30 µs for a whole
evaluation.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import compress
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from archive.architecture import compact
from archive.architecture.graph import Architecture
from archive.errors import QueryError
from archive.store.properties import METRIC, plain
from archive.store.studies.rows import OF_PROPOSALS, read_rows

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.constraints import Constraint
    from archive.database.connection import Connection

Row = dict[str, Any]
Column = list[Any]
Columns = dict[str, Column]

_ALWAYS = ("number", "id", "agent", "functional_key", "based_on", "resultless_state")
_NUMBER = _ALWAYS.index("number")
_ID = _ALWAYS.index("id")

STUDIES = """
UNWIND $studies AS name
MATCH (s:Study {name: name})
USING INDEX SEEK s:Study(name)
MATCH (s)-[:ON]->(t:Task)
RETURN name AS study, s.objective AS objective, s.direction AS direction, t.name AS task, t.protocol AS protocol
ORDER BY study
"""

AT_ONCE = 100
"""Studies that one transaction reads.

Its begin and end take ArcadeDB as long as reading two thousand results.
"""

_SEPARATOR = "|"


@dataclass(frozen=True)
class StudyResults:
    """Results of one study, by number.

    Attributes:
        study: Name of the study.
        objective: Name of its objective, the first one of several.
        direction: Whether larger or smaller values are better.
        task: Name of its task.
        protocol: Name of its training protocol.
        columns: `number` and the requested columns of its n results.
        others: Proposals without a result: `number`, `agent`, `functional_key`, `based_on`, `state`
            and the requested columns of proposals of each. A commit that is seen half-way may lack
            the result of an evaluated one; the state is None where a user's query has deleted the
            result.
    """

    study: str
    objective: str
    direction: str
    task: str
    protocol: str
    columns: Columns
    others: list[Row]


def read(
    connection: Connection,
    studies: Sequence[str],
    columns: Iterable[str],
    deadline: float = math.inf,
) -> list[StudyResults]:
    """Return the results of studies, by name; unknown names are left out.

    Args:
        connection: Connection to the archive.
        studies: Names of studies.
        columns: Names of columns besides `number`; a result without such a property has None.
        deadline: Time of `time.monotonic` after which no further study is read.

    Raises:
        QueryError: The deadline has passed.
    """
    names = [name for name in dict.fromkeys(columns) if name != "number"]
    ordered = sorted(set(studies))
    parts = [ordered[begin : begin + AT_ONCE] for begin in range(0, len(ordered), AT_ONCE)]
    results: list[StudyResults] = []
    for part in parts:
        results += connection.read(
            partial(read_within, studies=part, names=names, deadline=deadline)
        )

    return results


def read_within(
    tx: ManagedTransaction, studies: Sequence[str], names: Sequence[str], deadline: float = math.inf
) -> list[StudyResults]:
    """Return the results of studies within a transaction, as `read` does.

    `names` are columns besides `number`.
    """
    results = []
    for about in plain(tx.run(STUDIES, studies=sorted(set(studies)))):
        if time.monotonic() > deadline:
            raise QueryError(
                "the query took longer than its limit: narrow it, or allow it more time"
            )

        results.append(_study_results(tx, about, names))

    return results


def _study_results(tx: ManagedTransaction, about: Row, names: Sequence[str]) -> StudyResults:
    selected = list(dict.fromkeys([*_ALWAYS, *names]))
    stored = [_OF_CODE.get(name, (name, None)) for name in selected]
    rows = read_rows(tx, [column for column, _ in stored], study=about["study"])
    rows.sort(key=itemgetter(_NUMBER))
    done = [row for row in rows if row[_ID] is not None]
    columns: Columns = {}
    for name in ("number", *names):
        position = selected.index(name)
        _, convert = stored[position]
        columns[name] = [row[position] for row in done]
        if convert is not None:
            columns[name] = list(map(convert, columns[name]))

    others = []
    for row in rows:
        if row[_ID] is None:
            every = dict(zip(selected, row, strict=True))
            other = {name: every[name] for name in selected if name in OF_PROPOSALS}
            others.append({**other, "state": every["resultless_state"]})

    return StudyResults(**about, columns=columns, others=others)


@lru_cache(maxsize=2**18)
def _operations_text(code: str) -> str:
    return _SEPARATOR.join(operations(compact.decode("", "", "", code)))


@lru_cache(maxsize=2**18)
def _motifs_text(code: str) -> str:
    return _SEPARATOR.join(motifs(compact.decode("", "", "", code)))


_OF_CODE: Mapping[str, tuple[str, Callable[[Any], Any] | None]] = {
    "operations": ("code", _operations_text),
    "motifs": ("code", _motifs_text),
    "evaluation_without_curves": ("evaluation_without_curves", dict),
}
"""Columns that are computed from another column."""


def operations(network: Architecture) -> list[str]:
    """Return the operations of a network's layers, input and output left out."""
    return sorted({layer.op for layer in network.layers} - {"ip", "op"})


def motifs(network: Architecture) -> list[str]:
    """Return the skips around two consecutive layers with the operations `one` and `two`.

    A skip joins the layer before the two and the layer after them. It is `one>two>` for an edge,
    and `one>two>past` for a path through one layer with the operation `past`.
    """
    ops = [layer.op for layer in network.layers]
    heads: list[list[int]] = [[] for _ in ops]
    for tail, head in network.edges:
        heads[tail].append(head)

    skips = set()
    for feeds in heads:
        ways: dict[int, set[str]] = {head: {""} for head in feeds}
        for skip in feeds:
            for after in heads[skip]:
                ways.setdefault(after, set()).add(ops[skip])

        for first in feeds:
            for second in heads[first]:
                for after in heads[second]:
                    if past := ways.get(after):
                        skips |= {(ops[first], ops[second], name) for name in past}

    return sorted(">".join(names) for names in skips)


def parts(text: str) -> list[str]:
    """Return the names in a text of the columns `operations` and `motifs`."""
    return text.split(_SEPARATOR) if text else []


def feasible(constraints: Iterable[Constraint], columns: Columns) -> list[bool]:
    """Return whether each result meets constraints; the columns of their metrics must be there."""
    met = [True] * len(columns["number"])
    for constraint in constraints:
        for row, value in enumerate(columns[METRIC + constraint.name]):
            if constraint.violation(value):
                met[row] = False

    return met


def compressed(columns: Columns, selected: Iterable[Any]) -> Columns:
    """Return the rows of columns that are selected, by one truth value each."""
    mask = list(selected)
    return {name: list(compress(column, mask)) for name, column in columns.items()}


def joined(several: Iterable[Columns]) -> Columns:
    """Return the concatenation of columns with the same names."""
    concatenated: Columns = {}
    for columns in several:
        for name, column in columns.items():
            concatenated.setdefault(name, []).extend(column)

    return concatenated


def by_objective(
    results: Iterable[StudyResults], name: str | None = None
) -> list[list[StudyResults]]:
    """Return the results of studies in one group for each objective, by its name.

    If a name is given, only the results of that objective.
    """
    groups: dict[str, list[StudyResults]] = {}
    for study in results:
        groups.setdefault(study.objective, []).append(study)

    return [groups[objective] for objective in sorted(groups) if name in (None, objective)]
