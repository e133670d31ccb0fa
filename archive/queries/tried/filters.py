"""Which runs on record are asked for: by words, by values, by what they are.

The server looks for words and for exact values; a condition on the values of runs is an expression of
`archive.parameters.expressions`, which is computed here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from archive.errors import UnknownNameError
from archive.parameters.expressions import UNKNOWN, ExpressionError
from archive.store.properties import Row, from_json, read_column
from archive.store.records import Direction, State

if TYPE_CHECKING:
    from archive.database.connection import Connection
    from archive.parameters.expressions import Expression

_END = 2**62
"""Time after all times, in milliseconds since 1970."""

_CONDITIONS = """
WHERE p.created >= $since AND p.created < $until AND ($study IS NULL OR p.study = $study)
  AND ($program IS NULL OR p.program = $program) AND ($state IS NULL OR p.state = $state)
  AND (p.program IS NOT NULL OR p.motivation IS NOT NULL)
"""

# The words are in lower case. Lines of `changed` are in `diff`, arguments of `command` in the values.
# Long texts are read for words alone.
_HAS_WORDS = """
OPTIONAL MATCH (p)-[:HAS_TEXT]->(t:RunText)
WITH p, toLower(coalesce(p.motivation, '') + '\\n' + coalesce(p.program, '') + '\\n' + coalesce(p.reason, '')
       + '\\n' + coalesce(p.configuration, '') + '\\n' + coalesce(p.hyperparameters, '')
       + '\\n' + coalesce(t.diff, '') + '\\n' + coalesce(t.log_end, '')
       + '\\n' + coalesce(p.code_branch, '')) AS text
WHERE all(word IN $words WHERE text CONTAINS word)
"""

# One row a study, program and state: both servers spend more time on a row than on its content.
_GROUPED = """
RETURN p.study AS study, p.program AS program, p.state AS state, collect([p.created, p.id]) AS runs
"""

_GROUPED_WITH_VALUES = """
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN p.study AS study, p.program AS program, p.state AS state,
       collect([p.created, p.id, p.configuration, p.hyperparameters, e.value, e.seed, e.seconds]) AS runs
"""

_ALL = "MATCH (p:Proposal)"
_OF_STUDY = "MATCH (p:Proposal {study: $study}) USING INDEX SEEK p:Proposal(study)"
LISTED = """
UNWIND $ids AS id
MATCH (p:Proposal {id: id})
USING INDEX SEEK p:Proposal(id)
"""

# A configuration may have built two networks that compute the same.
IDS_OF_NETWORK = """
UNWIND $keys AS key
MATCH (n:Architecture {functional_key: key})
USING INDEX SEEK n:Architecture(functional_key)
MATCH (n)<-[:BUILDS]-(a:Architecture)
MATCH (a)<-[:OF]-(p:Proposal)
RETURN DISTINCT p.id AS id
"""

DIRECTIONS = """
UNWIND $studies AS name
MATCH (s:Study {name: name})
RETURN name, s.objective AS objective, s.direction AS direction
"""


@dataclass(frozen=True)
class RunFilter:
    """Which runs are asked for.

    Attributes:
        words: Words that a run must hold, all of them, in any case, in motivation, difference of
            the source files, arguments, end of the log, reason of a failure, program or branch.
        study: Name of a study.
        program: Name of a program.
        state: State of the proposals.
        since: Earliest start, in milliseconds since 1970.
        until: Start before which runs began.
        network: Functional key of the network that they trained.
        ids: Ids of the runs among which they are looked for.
        where: Condition on their values, and on `value` or the study's metric, `seed`, `seconds`.
    """

    words: Sequence[str] = ()
    study: str | None = None
    program: str | None = None
    state: State | None = None
    since: int = 0
    until: int | None = None
    network: str | None = None
    ids: Sequence[str] | None = None
    where: Expression | None = None


class RunGroup(NamedTuple):
    """Runs of one study, program and state.

    Attributes:
        study: Name of the study.
        program: Name of the program; None for ideas.
        state: State of the proposals.
        runs: Start, in milliseconds since 1970, and id of each.
    """

    study: str
    program: str | None
    state: State
    runs: list[tuple[int, str]]


def matching_groups(connection: Connection, sought: RunFilter) -> list[RunGroup]:
    """Return the runs that are asked for by study, program and state; no group is empty.

    Raises:
        UnknownNameError: No such run has a value that the condition names.
        ExpressionError: The condition has no value for any run, as in `'relu' < 3`.
    """
    asked = {
        "words": [word.lower() for word in sought.words],
        "study": sought.study,
        "program": sought.program,
        "state": None if sought.state is None else sought.state.value,
        "since": sought.since,
        "until": _END if sought.until is None else sought.until,
    }
    begin = _ALL if sought.study is None else _OF_STUDY
    if sought.ids is not None:
        begin = LISTED
        asked["ids"] = list(sought.ids)
    elif sought.network is not None:
        begin = LISTED
        asked["ids"] = ids_of_network(connection, sought.network)

    words = _HAS_WORDS if sought.words else ""
    end = _GROUPED if sought.where is None else _GROUPED_WITH_VALUES
    statement = begin + _CONDITIONS + words + end
    rows = connection.read(lambda tx: tx.run(statement, asked).data())
    kept = [row["runs"] for row in rows]
    if sought.where is not None:
        kept = _where_it_holds(connection, rows, sought.where)

    groups = []
    for row, runs in zip(rows, kept, strict=True):
        if runs:
            pairs = [(run[0], run[1]) for run in runs]
            groups.append(RunGroup(row["study"], row["program"], State(row["state"]), pairs))

    return groups


def ids_of_network(connection: Connection, functional_key: str) -> list[str]:
    """Return the ids of the proposals that trained a network, by its functional key."""
    keys = [functional_key]
    rows = connection.read(lambda tx: tx.run(IDS_OF_NETWORK, keys=keys).data())
    return read_column(rows, "id")


def _where_it_holds(
    connection: Connection, rows: Sequence[Row], where: Expression
) -> list[list[list[Any]]]:
    """Return the runs of each row for which a condition holds."""
    objectives = objectives_of(connection, rows)
    names: set[str] = set()
    error = None
    is_defined = False
    groups = []
    for row in rows:
        objective, _ = objectives[row["study"]]
        kept = []
        for run in row["runs"]:
            _, _, configuration, hyperparameters, result, seed, seconds = run
            measured = {"value": result, objective: result, "seed": seed, "seconds": seconds}
            values = {name: number for name, number in measured.items() if number is not None}
            values |= values_of(configuration, hyperparameters)
            names |= values.keys()
            try:
                value = where.value(values)
            except ExpressionError as failure:
                # One run may have a text where the others have a number.
                error = failure
                continue

            is_defined = is_defined or value is not UNKNOWN
            if value is True:
                kept.append(run)

        groups.append(kept)

    for name in where.names:
        if names and name not in names:
            raise UnknownNameError("value", name, names)

    if error is not None and not is_defined:
        raise error

    return groups


def objectives_of(connection: Connection, rows: Iterable[Row]) -> dict[str, tuple[str, Direction]]:
    """Return objective and direction of the studies of some rows."""
    names = sorted({row["study"] for row in rows})
    studies: dict[str, tuple[str, Direction]] = dict.fromkeys(names, ("value", "maximise"))
    if names:
        for row in connection.read(lambda tx: tx.run(DIRECTIONS, studies=names).data()):
            studies[row["name"]] = (row["objective"], row["direction"])

    return studies


def values_of(configuration: str | None, hyperparameters: str | None) -> dict[str, Any]:
    """Return the values of a run by name, from the stored texts."""
    named = json.loads(configuration) if configuration else {}
    return {**named, **from_json(hyperparameters)}
