"""Completion: the only code that gives a proposal its result.

A result may come from the worker that holds the proposal, from a worker that has lost it, from a
rung, or with the creation of the proposal. Each of them is a `ProposalResult`. One statement writes
any number of results: the proposal's state and the properties that depend on it, the Evaluation,
and its relationships.

    (:Proposal {state: COMPLETE | PRUNED}) -[:RESULTED_IN]-> (:Evaluation) -[:OF]-> (:Architecture)
                                                                   ├-[:ON]-> (:Task)
                                                                   └-[:SAVED]-> (:Weights)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from archive.database import messages
from archive.database.statements import by_column, follows_from_state, write_all
from archive.store.properties import CURVE, METRIC, curve_properties, result_properties, study_of
from archive.store.records import Result, State

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

# Locks, tests, changes and records in one step. Rows that do not match are left unchanged: every
# MATCH precedes the first CREATE. The path to the task leads through the study node, which many
# transactions write to: a missing row is noticed by the count.
COMPLETE = f"""
UNWIND $rows AS row
MATCH (p:Proposal {{id: row.id}})
USING INDEX SEEK p:Proposal(id)
MATCH (a:Architecture {{key: p.architecture}})
USING INDEX SEEK a:Architecture(key)
MATCH (s:Study {{name: row.study}})
USING INDEX SEEK s:Study(name)
MATCH (s)-[:ON]->(t:Task)
SET p.touched = timestamp()
WITH p, a, t, row
WHERE row.holder IS NULL
   OR (p.state = 'RUNNING' AND p.token = row.holder AND p.rung_values IS NULL
       AND p.architecture = coalesce(row.architecture, p.architecture)
       AND none(name IN keys(p) WHERE name STARTS WITH 'curve_' AND NOT name IN row.curve))
SET p += row.changes
{follows_from_state("coalesce(row.finished, timestamp())")}
CREATE (e:Evaluation {{id: row.id}})
SET e += row.properties, e.created = timestamp()
CREATE (p)-[:RESULTED_IN]->(e)
CREATE (e)-[:OF]->(a)
CREATE (e)-[:ON]->(t)
FOREACH (file IN row.weights |
    MERGE (w:Weights {{uri: file.uri}})
    SET w.sha256 = file.sha256, w.bytes = file.bytes
    CREATE (e)-[:SAVED]->(w))
RETURN count(*) AS written
"""

# A promoted proposal has the result of its earlier rung already, which the new one replaces.
COMPLETE_AGAIN = f"""
UNWIND $rows AS row
MATCH (p:Proposal {{id: row.id}})
USING INDEX SEEK p:Proposal(id)
MATCH (e:Evaluation {{id: row.id}})
USING INDEX SEEK e:Evaluation(id)
SET p += row.changes
{follows_from_state("timestamp()")}
SET e += row.properties, e.created = timestamp()
RETURN count(*) AS written
"""

# A user may have deleted the evaluation of a rung.
RECORDED = """
UNWIND $ids AS id
MATCH (e:Evaluation {id: id})
USING INDEX SEEK e:Evaluation(id)
RETURN e.id AS id, keys(e) AS keys
"""

WEIGHTS = """
UNWIND $rows AS row
MATCH (e:Evaluation {id: row.id})
USING INDEX SEEK e:Evaluation(id)
MERGE (w:Weights {uri: row.uri})
SET w.sha256 = row.sha256, w.bytes = row.bytes
CREATE (e)-[:SAVED]->(w)
RETURN count(*) AS written
"""


@dataclass(frozen=True, slots=True)
class ProposalResult:
    """The result of a proposal.

    Attributes:
        id: Id of the proposal and of its evaluation.
        state: The proposal's new state.
        result: The result.
        changes: Further properties of the proposal to set; None removes one. Its curve is always
            removed.
        finished: Time of the result, in milliseconds of the server's clock; None for now.
        again: Whether the proposal may have a result of an earlier rung, which this one replaces.
        holder: Token of the claim that has to hold the proposal; None where the caller has created
            or locked it.
        architecture: With a holder, key of the network that was trained; None where the sender does
            not know.
    """

    id: str
    state: State
    result: Result
    changes: Mapping[str, Any] = field(default_factory=dict)
    finished: int | None = None
    again: bool = False
    holder: str | None = None
    architecture: str | None = None


def complete(tx: ManagedTransaction, results: Sequence[ProposalResult]) -> None:
    """Store the results of proposals.

    The caller has created or locked them, and has found them ready for a result.

    Raises:
        IncompleteWriteError: A node that belongs to a proposal was not found.
    """
    candidates = sorted(result.id for result in results if result.again)
    recorded = by_column(tx.run(RECORDED, ids=candidates).data(), "id") if candidates else {}
    first = []
    later = []
    weights = []
    for result in results:
        earlier = recorded.get(result.id)
        if earlier is None:
            first.append(_row(result))
            continue

        later.append(_row(result, earlier["keys"]))
        if result.result.weights:
            weights.append({"id": result.id, **vars(result.result.weights)})

    for part in messages.parts(first):
        write_all(tx, COMPLETE, part)

    for part in messages.parts(later):
        write_all(tx, COMPLETE_AGAIN, part)

    if weights:
        write_all(tx, WEIGHTS, weights)


def complete_held(tx: ManagedTransaction, results: Sequence[ProposalResult]) -> int:
    """Store in one statement the results of the proposals that their workers still hold.

    Return the number of these proposals.

    The other proposals stay as they are. So do proposals whose reports had curves that the result
    lacks.
    """
    rows = list(map(_row, sorted(results, key=attrgetter("id"))))
    return int(tx.run(COMPLETE, rows=rows).single(strict=True)["written"])


def _row(result: ProposalResult, recorded: Iterable[str] = ()) -> dict[str, Any]:
    """Return the row of a result.

    The row removes the `recorded` curves and metrics of an earlier result.
    """
    # The curve moves to the evaluation.
    curve = list(curve_properties(result.result.curve))
    earlier = dict.fromkeys(name for name in recorded if name.startswith((CURVE, METRIC)))
    return {
        "id": result.id,
        "study": study_of(result.id),
        "holder": result.holder,
        "architecture": result.architecture,
        "curve": curve,
        "changes": {
            "state": result.state.value,
            "reason": None,
            "cause": None,
            **dict.fromkeys(curve),
            **result.changes,
        },
        "finished": result.finished,
        "properties": {**earlier, **result_properties(result.result)},
        "weights": [vars(result.result.weights)] if result.result.weights else [],
    }
