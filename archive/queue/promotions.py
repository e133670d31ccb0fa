"""Promotions in the store: the transaction of a result at a rung decides which proposals of its study continue.

    lock the study -> lock its proposals -> store the results -> pause -> promote

The choice itself is arithmetic (`archive.queue.successive_halving`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from archive.database.statements import lock as lock_nodes
from archive.queue import leases
from archive.queue.leases import Change
from archive.queue.successive_halving import RungResult, Rungs, RungStanding, RungStudy, promotable
from archive.store.properties import from_json
from archive.store.records import Constraint, State

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

CONFIGS = """
UNWIND $studies AS name
MATCH (s:Study {name: name})
USING INDEX SEEK s:Study(name)
RETURN name, s.config AS config, s.direction AS direction, s.objective AS objective,
       s.constrained AS constrained, s.operators AS operators, s.bounds AS bounds
"""

STANDINGS = """
MATCH (s:Study {name: $study})-[:PROPOSED]->(p:Proposal)
USING INDEX SEEK s:Study(name)
WHERE p.rung_values IS NOT NULL
RETURN p.id AS id, p.number AS number, p.state AS state, coalesce(p.rung, 0) AS rung, p.rung_values AS rung_values,
       coalesce(p.priority, 0.0) AS priority, p.rung_constrained AS constrained
"""

# Each MATCH starts from a bound node: with a single pattern, ArcadeDB scans the claims of all workers.
PAUSED = """
UNWIND $rows AS row
MATCH (p:Proposal {id: row.id})
USING INDEX SEEK p:Proposal(id)
MATCH (p)<-[c:CLAIMED]-()
WHERE c.token = row.token
SET c.ended = timestamp(), c.outcome = 'pruned', c.rung = row.rung, c.value = row.value, c.epochs = row.epochs
"""

PROMOTED = """
UNWIND $ids AS id
MATCH (p:Proposal {id: id})
USING INDEX SEEK p:Proposal(id)
MATCH (p)<-[c:CLAIMED]-()
WHERE c.token = p.token
SET c.promoted = timestamp()
"""


def lock(tx: ManagedTransaction, studies: Iterable[str]) -> dict[str, RungStudy]:
    """Lock studies before any of their proposals, and return those with rungs by name.

    Additions to a study lock it first, too: transactions that lock in one order cannot deadlock.
    """
    names = sorted({*studies})
    if not names:
        return {}
    lock_nodes(tx, "Study", names)
    read = {row["name"]: _study(row) for row in tx.run(CONFIGS, studies=names)}
    return {name: study for name, study in read.items() if study is not None}


def pause(tx: ManagedTransaction, ended: Sequence[RungResult]) -> None:
    """Record rung, value and epochs on the claims of results at a rung."""
    paused = [
        {"id": one.id, "token": one.token, "rung": one.rung, "value": one.result.value, "epochs": one.result.epochs}
        for one in ended
        if one.rung is not None and one.result.partial
    ]
    if paused:
        tx.run(PAUSED, rows=paused).consume()


def promote(tx: ManagedTransaction, name: str, study: RungStudy) -> list[str]:
    """Promote the proposals of a locked study that can be promoted, and return their ids."""
    standings = [_standing(row, study) for row in tx.run(STANDINGS, study=name).data()]
    chosen = promotable(study.rungs, standings, maximise=study.maximise)
    ids = [one.id for one in chosen]
    locked = leases.lock(tx, ids) if ids else {}
    changes = [
        Change(
            one.id, {"state": State.WAITING.value, "rung": one.rung + 1, "priority": one.priority + 1, "attempts": 0}
        )
        for one in chosen
        if one.id in locked
    ]
    leases.apply(tx, changes)
    if ids:
        tx.run(PROMOTED, ids=ids).consume()
    return ids


def _study(row: Mapping[str, Any]) -> RungStudy | None:
    """Return the study of a row; None without rungs."""
    rungs = Rungs.of(from_json(row["config"]))
    if rungs is None:
        return None
    constraints = map(Constraint, *(row[name] or () for name in ("constrained", "operators", "bounds")))
    return RungStudy(rungs, row["direction"] == "maximise", row["objective"], tuple(constraints))


def _standing(row: Mapping[str, Any], study: RungStudy) -> RungStanding:
    values = tuple(row["rung_values"])
    violations = study.violations(row["constrained"] or (), len(values))
    about = {name: row[name] for name in ("id", "number", "rung", "priority")}
    return RungStanding(**about, state=State(row["state"]), values=values, violations=violations)
