"""Runs on record: by the words in them, by what they were given, and by the network they trained.

A run is a proposal with a program (`archive.runs`). Ideas of persons and language models, which are
proposals with a motivation, are found by their words as well.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archive.objectives import sign
from archive.store.properties import Row, from_json
from archive.store.records import Direction, State, StateName
from archive.values import timestamp

if TYPE_CHECKING:
    from archive.database.connection import Connection

_COLUMNS = """
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN p.id AS id, p.study AS study, p.state AS state, p.created AS created, p.program AS program,
       p.motivation AS motivation, p.changed AS changed, p.reason AS reason, p.derived_from AS parent,
       p.configuration AS configuration, p.hyperparameters AS hyperparameters, e.value AS value,
       e.seed AS seed, e.seconds AS seconds
"""

# The words are in lower case. Lines of `changed` are in `diff`, arguments of `command` in the values.
FOUND = """
MATCH (p:Proposal)
WHERE p.created >= $since AND ($study IS NULL OR p.study = $study)
  AND (p.program IS NOT NULL OR p.motivation IS NOT NULL)
WITH p, toLower(coalesce(p.motivation, '') + '\\n' + coalesce(p.program, '') + '\\n' + coalesce(p.reason, '')
       + '\\n' + coalesce(p.configuration, '') + '\\n' + coalesce(p.hyperparameters, '')
       + '\\n' + coalesce(p.diff, '') + '\\n' + coalesce(p.log_end, '')
       + '\\n' + coalesce(p.code_branch, '')) AS text
WHERE all(word IN $words WHERE text CONTAINS word)
RETURN p.created AS created, p.id AS id
"""

BY_ID = (
    """
UNWIND $ids AS id
MATCH (p:Proposal {id: id})
USING INDEX SEEK p:Proposal(id)
"""
    + _COLUMNS
)

OF_NETWORK = (
    """
UNWIND $keys AS key
MATCH (n:Architecture {functional_key: key})
USING INDEX SEEK n:Architecture(functional_key)
MATCH (n)<-[:BUILDS]-(a:Architecture)
MATCH (a)<-[:OF]-(p:Proposal)
"""
    + _COLUMNS
)

REPEATS = """
MATCH (a:Architecture {key: $key})
USING INDEX SEEK a:Architecture(key)
MATCH (a)<-[:OF]-(p:Proposal)
WHERE p.study = $study
MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN e.value AS value ORDER BY p.number
"""

ENDED_BEFORE = """
MATCH (p:Proposal)
WHERE p.study = $study AND p.finished <= $moment
MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN p.id AS id, p.finished AS finished, e.value AS value
"""

DIRECTIONS = """
UNWIND $studies AS name
MATCH (s:Study {name: name})
RETURN name, s.objective AS objective, s.direction AS direction
"""


@dataclass(frozen=True)
class TriedRun:
    """A run on record.

    Attributes:
        run: Id of its proposal.
        study: Name of its study.
        state: State of the proposal.
        started: When it began (ISO 8601, UTC).
        program: Name of the program; null for an idea without a recorded program.
        motivation: Reason for it in words; null without one.
        changed: Source files that it changes, as `train.py +3 -1`.
        values: Values by name.
        objective: Name of the metric that the study judges by.
        direction: Whether larger or smaller values are better.
        value: That metric; null without a result.
        parent: Id of the run that it is a change of; null without one.
        parent_value: The metric of that run; null without a result.
        gain: What it brought over its parent, larger is better; null where either has no result.
        seed: Seed; null where it is unknown.
        seconds: Time of the run; null where it is unknown.
        reason: Why it failed; null where it did not.
    """

    run: str
    study: str
    state: StateName
    started: str | None
    program: str | None
    motivation: str | None
    changed: list[str]
    values: dict[str, Any]
    objective: str
    direction: Direction
    value: float | None
    parent: str | None
    parent_value: float | None
    gain: float | None
    seed: int | None
    seconds: float | None
    reason: str | None


def find_runs(
    connection: Connection,
    words: Sequence[str],
    *,
    study: str | None = None,
    since: int = 0,
    most: int = 20,
) -> tuple[list[TriedRun], int]:
    """Return the newest runs that hold all of some words, and the number of all such runs.

    Words are looked for in motivation, difference of the source files, arguments, end of the log,
    reason of a failure, program and branch, whatever their case.

    Args:
        connection: Connection to the archive.
        words: The words; none finds all runs.
        study: Name of a study; None for all.
        since: Earliest start, in milliseconds since 1970.
        most: Largest number of runs.
    """
    asked = {"words": [word.lower() for word in words], "since": since, "study": study}
    rows = connection.read(lambda tx: tx.run(FOUND, asked).data())
    matches = [(row["created"], row["id"]) for row in rows]
    matches.sort(reverse=True)
    ids = [id_ for _, id_ in matches[:most]]
    return runs_by_id(connection, ids), len(matches)


def runs_by_id(connection: Connection, ids: Sequence[str]) -> list[TriedRun]:
    """Return runs by the ids of their proposals, newest first."""
    return _runs(connection, BY_ID, {"ids": list(ids)})


def repeats_of(connection: Connection, study: str, architecture: str) -> list[float]:
    """Return the values of all runs of a configuration in a study, oldest first.

    Args:
        connection: Connection to the archive.
        study: Name of the study.
        architecture: Key of the configuration.
    """
    rows = connection.read(lambda tx: tx.run(REPEATS, study=study, key=architecture).data())
    return [row["value"] for row in rows if math.isfinite(row["value"])]


def best_and_last(
    connection: Connection, study: str, direction: Direction, moment: int
) -> tuple[str, str] | None:
    """Return the ids of the best run and of the last one that had a result at a moment.

    Args:
        connection: Connection to the archive.
        study: Name of the study.
        direction: Whether larger or smaller values are better.
        moment: Milliseconds since 1970.

    Returns:
        The two ids; None if no run had a result.
    """
    asked = {"study": study, "moment": moment}
    rows = connection.read(lambda tx: tx.run(ENDED_BEFORE, asked).data())
    if not rows:
        return None

    rows.sort(key=lambda row: (row["finished"], row["id"]))
    best = max(rows, key=lambda row: sign(direction) * row["value"])
    return best["id"], rows[-1]["id"]


def runs_of_network(connection: Connection, functional_key: str) -> list[TriedRun]:
    """Return the runs that trained a network, by its functional key, newest first."""
    return _runs(connection, OF_NETWORK, {"keys": [functional_key]})


def _runs(connection: Connection, query: str, parameters: dict[str, Any]) -> list[TriedRun]:
    rows = connection.read(lambda tx: tx.run(query, parameters).data())
    rows.sort(key=lambda row: (row["created"], row["id"]), reverse=True)
    parents = {row["parent"] for row in rows if row["parent"]}
    values = {}
    if parents:
        for row in connection.read(lambda tx: tx.run(BY_ID, ids=sorted(parents)).data()):
            values[row["id"]] = row["value"]

    names = sorted({row["study"] for row in rows})
    studies: dict[str, tuple[str, Direction]] = {}
    if names:
        for row in connection.read(lambda tx: tx.run(DIRECTIONS, studies=names).data()):
            studies[row["name"]] = (row["objective"], row["direction"])

    runs = []
    for row in rows:
        objective, direction = studies.get(row["study"], ("value", "maximise"))
        runs.append(_run(row, objective, direction, values.get(row["parent"])))

    return runs


def _run(row: Row, objective: str, direction: Direction, parent_value: float | None) -> TriedRun:
    named = json.loads(row["configuration"]) if row["configuration"] else {}
    gain = None
    if row["value"] is not None and parent_value is not None:
        # A difference of nothing has no sign.
        gain = sign(direction) * (row["value"] - parent_value) or 0.0

    return TriedRun(
        run=row["id"],
        study=row["study"],
        state=State(row["state"]).label,
        started=timestamp(row["created"]),
        program=row["program"],
        motivation=row["motivation"],
        changed=list(row["changed"] or ()),
        values={**named, **from_json(row["hyperparameters"])},
        objective=objective,
        direction=direction,
        value=row["value"],
        parent=row["parent"],
        parent_value=parent_value,
        gain=gain,
        seed=row["seed"],
        seconds=row["seconds"],
        reason=row["reason"],
    )
