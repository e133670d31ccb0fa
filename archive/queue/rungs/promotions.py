"""Promotions in the store: the transaction of a result at a rung decides which proposals of its
study continue.

    lock the study -> lock its proposals -> store the results -> pause -> promote

The choice itself is arithmetic (`archive.queue.rungs.borders`, `archive.queue.successive_halving`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from archive.database.statements import lock as lock_nodes
from archive.queue import leases
from archive.queue.leases import Change
from archive.queue.rungs.borders import StudyBorders
from archive.queue.successive_halving import RungResult, Rungs, RungStanding, RungStudy
from archive.store.properties import from_json, proposal_id, study_of
from archive.store.records import Constraint, State

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

CONFIGS = """
UNWIND $studies AS name
MATCH (s:Study {name: name})
USING INDEX SEEK s:Study(name)
RETURN name, s.config AS config, s.direction AS direction, s.objective AS objective,
       s.constrained AS constrained, s.operators AS operators, s.bounds AS bounds, s.rung_borders AS borders
"""

STANDINGS = """
MATCH (s:Study {name: $study})-[:PROPOSED]->(p:Proposal)
USING INDEX SEEK s:Study(name)
WHERE p.rung_values IS NOT NULL
RETURN p.id AS id, p.number AS number, p.state AS state, coalesce(p.rung, 0) AS rung, p.rung_values AS rung_values,
       p.rung_constrained AS constrained
"""

KEEP = """
MATCH (s:Study {name: $study})
USING INDEX SEEK s:Study(name)
SET s.rung_borders = $borders
"""

# Each MATCH starts from a bound node: with a single pattern, ArcadeDB scans the claims of all
# workers.
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
        {
            "id": one.id,
            "token": one.token,
            "rung": one.rung,
            "value": one.result.value,
            "epochs": one.result.epochs,
        }
        for one in ended
        if one.rung is not None and one.result.partial
    ]
    if paused:
        tx.run(PAUSED, rows=paused).consume()


def promote(
    tx: ManagedTransaction, studies: Mapping[str, RungStudy], ended: Sequence[RungResult]
) -> None:
    """Promote the proposals that can be promoted, in the locked studies of these results.

    Args:
        tx: The transaction.
        studies: The studies with rungs by name.
        ended: The results that this transaction has stored.
    """
    for name in sorted({study_of(one.id) for one in ended} & studies.keys()):
        study = studies[name]
        own = [one for one in ended if one.rung is not None and study_of(one.id) == name]
        promoted, borders = _near(study, own) or _of_all(tx, name, study)
        _wait(tx, [proposal_id(name, number) for number in promoted])
        tx.run(KEEP, study=name, borders=borders.dump()).consume()


def _near(study: RungStudy, ended: Sequence[RungResult]) -> tuple[list[int], StudyBorders] | None:
    """Return the numbers to promote by the stored borders, and the borders;

    None if these do not tell.
    """
    if study.borders is None:
        return None

    borders = StudyBorders.parse(study, study.borders)
    for one in ended:
        borders.insert(one.standing(study), len(one.before))

    promoted = borders.promote()
    return None if promoted is None else (promoted, borders)


def _of_all(tx: ManagedTransaction, name: str, study: RungStudy) -> tuple[list[int], StudyBorders]:
    """Return the numbers to promote by all results of a study, and its borders."""
    borders = StudyBorders.of(
        study, [_standing(row, study) for row in tx.run(STANDINGS, study=name)]
    )
    return borders.promote() or [], borders


def _wait(tx: ManagedTransaction, ids: Sequence[str]) -> None:
    """Put proposals back into the queue for their next rung."""
    if not ids:
        return

    changes = [
        Change(
            id_,
            {
                "state": State.WAITING.value,
                "rung": row["rung"] + 1,
                "priority": row["priority"] + 1,
                "attempts": 0,
            },
        )
        for id_, row in sorted(leases.lock(tx, ids).items())
    ]
    leases.apply(tx, changes)
    tx.run(PROMOTED, ids=ids).consume()


def _study(row: Mapping[str, Any]) -> RungStudy | None:
    """Return the study of a row; None without rungs."""
    rungs = Rungs.of(from_json(row["config"]))
    if rungs is None:
        return None

    constraints = map(
        Constraint, *(row[name] or () for name in ("constrained", "operators", "bounds"))
    )
    maximise = row["direction"] == "maximise"
    objective = row["objective"]
    return RungStudy(rungs, maximise, objective, tuple(constraints), borders=row["borders"])


def _standing(row: Mapping[str, Any], study: RungStudy) -> RungStanding:
    values = tuple(row["rung_values"])
    violations = study.violations(row["constrained"] or (), len(values))
    about = {name: row[name] for name in ("id", "number", "rung")}
    return RungStanding(**about, state=State(row["state"]), values=values, violations=violations)
