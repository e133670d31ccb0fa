"""Trained weights: their addresses, and the retention that decides which may be deleted.

The trainer keeps the files (`archive.trainer.storage`).

Weights are kept for any of these reasons:

    best        they belong to one of the best evaluations of a study (the best `keep_best` with weights; of several
                objectives also the whole Pareto set), as `archive study best` ranks them: results
                that meet the constraints first, and whole ones before partial ones
    in use      a waiting or running proposal may start from them: its architecture is the one with the weights or a
                descendant of it (`archive.store.lineage`), or the proposal names the weights
    young       they were saved, or reserved for a training, less than `grace_seconds` ago

All other weights may be deleted. First a transaction checks again and removes their nodes, then the
files are removed (`archive.trainer.storage.garbage_collection`), so no reader finds an address
without a file. A trainer reserves weights before it uses them (`Lineage.reserve`). The reservation conflicts
with the removal, so one of the two comes first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archive.database.statements import lock
from archive.store.lineage import ancestors
from archive.store.properties import UNSAVED_WEIGHTS, read_column
from archive.store.ranking import best_results
from archive.store.records import Weights
from archive.store.snapshots import snapshot_within
from archive.store.studies import studies
from archive.values import require_at_least

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.database.connection import Connection

OF_EVALUATION = """
MATCH (:Evaluation {id: $id})-[:SAVED]->(w:Weights)
RETURN w.uri AS uri, w.sha256 AS sha256, w.bytes AS bytes
"""

ENVIRONMENT = """
MATCH (e:Evaluation {id: $id})
RETURN e.environment AS environment
"""


class WeightsLookup:
    """Reader of the addresses of weights.

    `Proposals.complete` stores them, together with their evaluation.
    """

    def __init__(self, connection: Connection) -> None:
        """Read through this connection."""
        self._connection = connection

    def of_evaluation(self, evaluation: str) -> Weights | None:
        """Return the weights of an evaluation, or None."""
        row = self._connection.read(lambda tx: tx.run(OF_EVALUATION, id=evaluation).single())
        return None if row is None else Weights(row["uri"], row["sha256"], row["bytes"])

    def unsaved(self, evaluation: str) -> str | None:
        """Return why the weights of an evaluation could not be saved.

        None if they were saved, or if the evaluation has no weights.
        """
        row = self._connection.read(lambda tx: tx.run(ENVIRONMENT, id=evaluation).single())
        environment = {} if row is None else json.loads(row["environment"] or "{}")
        reason = environment.get(UNSAVED_WEIGHTS)
        return None if reason is None else str(reason)


KEEP_BEST = 5
GRACE_SECONDS = 24 * 3600.0

EVERY = """
MATCH (w:Weights)
OPTIONAL MATCH (w)<-[:SAVED]-(e:Evaluation)
OPTIONAL MATCH (e)-[:OF]->(a:Architecture)
OPTIONAL MATCH (e)<-[:RESULTED_IN]-(:Proposal)<-[:PROPOSED]-(s:Study)
RETURN w.uri AS uri, w.sha256 AS sha256, w.bytes AS bytes, e.id AS evaluation, s.name AS study, a.key AS architecture,
       coalesce(CASE WHEN w.used > e.created THEN w.used ELSE e.created END, w.used, 0) > timestamp() - $grace AS young
ORDER BY uri, evaluation
"""

UNDER_WAY = """
MATCH (p:Proposal) WHERE p.state IN ['WAITING', 'RUNNING']
RETURN DISTINCT p.architecture AS key
"""

FORGET = """
UNWIND $uris AS uri
MATCH (w:Weights {uri: uri})
USING INDEX SEEK w:Weights(uri)
DETACH DELETE w
"""

DIGESTS = "MATCH (w:Weights) RETURN DISTINCT w.sha256 AS sha256"


@dataclass(frozen=True)
class Policy:
    """Settings of the retention.

    Attributes:
        keep_best: Number of the best evaluations of each study with protected weights; of several
            objectives, the whole Pareto set is protected as well, unless it is 0.
        grace_seconds: Age, by the server's clock, up to which all weights are protected.
    """

    keep_best: int = KEEP_BEST
    grace_seconds: float = GRACE_SECONDS

    def __post_init__(self) -> None:
        """Validate the settings."""
        require_at_least(0, keep_best=self.keep_best, grace_seconds=self.grace_seconds)


@dataclass(frozen=True)
class Holding:
    """Stored weights with the reason for keeping them.

    Attributes:
        weights: Address and digest of the weights.
        evaluations: Ids of the evaluations that saved them; none if their study was deleted.
        reason: `best`, `in use` or `young`; empty if they may be deleted.
    """

    weights: Weights
    evaluations: tuple[str, ...]
    reason: str


class Retention:
    """Selection of the weights to keep, and removal of others from the store."""

    def __init__(self, connection: Connection) -> None:
        """Read and write through this connection."""
        self._connection = connection

    def holdings(self, policy: Policy, under: str) -> list[Holding]:
        """Return all weights with an address that begins with `under`, by address.

        Each has the reason to keep it.
        """
        return self._connection.read(lambda tx: _holdings(tx, policy, under))

    def forget(self, policy: Policy, uris: Sequence[str]) -> list[str]:
        """Remove weights from the store, and return their addresses.

        Weights that must be kept by now stay.
        """

        def work(tx: ManagedTransaction) -> list[str]:
            lock(tx, "Weights", uris)
            free = set()
            for holding in _holdings(tx, policy, ""):
                if not holding.reason:
                    free.add(holding.weights.uri)

            removed = sorted(free & {*uris})
            tx.run(FORGET, uris=removed).consume()
            return removed

        return self._connection.write(work) if uris else []

    def digests(self) -> set[str]:
        """Return the SHA-256 of all weights at any address."""
        return set(read_column(self._connection.read(lambda tx: tx.run(DIGESTS).data()), "sha256"))


def _holdings(tx: ManagedTransaction, policy: Policy, under: str) -> list[Holding]:
    # All weights are read, because the best of a study may be at any address.
    rows = tx.run(EVERY, grace=round(1000 * policy.grace_seconds)).data()
    running = read_column(tx.run(UNDER_WAY), "key")
    used = {*running, *ancestors(tx, running)}
    best = _best(tx, rows, policy.keep_best)
    by_uri: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["uri"].startswith(under):
            by_uri.setdefault(row["uri"], []).append(row)

    return [
        Holding(
            Weights(uri, rows[0]["sha256"], rows[0]["bytes"]),
            tuple(row["evaluation"] for row in rows if row["evaluation"] is not None),
            _reason(rows, best, used),
        )
        for uri, rows in by_uri.items()
    ]


def _reason(rows: Sequence[dict[str, Any]], best: set[str], used: set[str]) -> str:
    if any(row["architecture"] in used for row in rows):
        return "in use"

    if any(row["evaluation"] in best for row in rows):
        return "best"

    return "young" if any(read_column(rows, "young")) else ""


def _best(tx: ManagedTransaction, rows: Iterable[dict[str, Any]], count: int) -> set[str]:
    """Return the ids of the best results of each study with weights."""
    saved: dict[str, set[str]] = {}
    for row in rows:
        if row["study"] is not None:
            saved.setdefault(row["study"], set()).add(row["evaluation"])

    best: set[str] = set()
    for study in studies.within(tx):
        if study.name in saved:
            best.update(best_results(snapshot_within(tx, study), saved[study.name], count))

    return best
