"""How a study stands at one moment: what a live view shows, read without whole curves of finished trials.

Whoever looks again and again (`Follower`) keeps what is COMPLETE, and looks up all else by its id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from archive.records import State, Study
from archive.rows import CURVE, EPOCH, METRIC, proposal_id, with_prefix

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

    from archive.connection import Connection

VIEW = """
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN p.id AS id, p.number AS number, p.state AS state, p.architecture AS architecture, p.agent AS agent,
       p.acquisition AS acquisition, p.mean AS mean, p.std AS std, p.attempts AS attempts, p.rung AS rung,
       p.worker AS worker, p.reason AS reason, p.started AS started, p.finished AS finished,
       e.value AS value, e.epochs AS epochs, e.seconds AS seconds,
       [name IN keys(e) WHERE name STARTS WITH 'metric_' | [name, e[name]]] AS metrics,
       [name IN keys(p) WHERE name STARTS WITH 'curve_' | [name, p[name]]] AS curve
ORDER BY number
"""

SNAPSHOT = f"""
MATCH (:Study {{name: $name}})-[:PROPOSED]->(p:Proposal)
{VIEW}
"""

SOME = f"""
UNWIND $ids AS id
MATCH (p:Proposal {{id: id}})
USING INDEX SEEK p:Proposal(id)
{VIEW}
"""

# `next` is the first number that is free, unless somebody has written to the study who does not count.
EXTENT = """
MATCH (s:Study {name: $name})
USING INDEX SEEK s:Study(name)
RETURN CASE WHEN s.counted = s.revision THEN s.next END AS next, s.paged AS paged
"""


@dataclass(frozen=True)
class ProposalView:
    """One proposal in a live view.

    Attributes:
        id: Its id.
        number: Its number in the study.
        state: Where it stands.
        architecture_key: Key of the architecture.
        agent: Id of the agent that made it.
        acquisition: The agent's acquisition value.
        mean: The surrogate's mean.
        std: The surrogate's standard deviation.
        epochs: Epochs trained so far.
        metrics: The last epoch's metrics while it runs, the final ones afterwards.
        value: The objective, once it is known.
        seconds: Wall-clock time of the training, once it is known.
        attempts: How often a worker has lost it.
        rung: The rung that it has reached, or is on its way to, from 0 (`archive.rungs`).
        worker: Who holds it, or held it last.
        reason: Why it failed, or why it is tried again.
        started: When it was last claimed.
        finished: When it was completed or failed.
    """

    id: str
    number: int
    state: State
    architecture_key: str
    agent: str | None = None
    acquisition: float | None = None
    mean: float | None = None
    std: float | None = None
    epochs: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    value: float | None = None
    seconds: float | None = None
    attempts: int = 0
    rung: int = 0
    worker: str | None = None
    reason: str | None = None
    started: int | None = None
    finished: int | None = None


@dataclass(frozen=True)
class Snapshot:
    """A study, its proposals by number, how many are in each state, and the best evaluated one so far."""

    study: Study
    proposals: tuple[ProposalView, ...]
    counts: Mapping[State, int]
    incumbent: ProposalView | None


def read_snapshot(connection: Connection, study: Study) -> Snapshot:
    """Read the proposals of a study in one query."""
    rows = connection.read(lambda tx: tx.run(SNAPSHOT, name=study.name).data())
    return _snapshot(study, map(_view, rows))


class Follower:
    """Reads one study again and again, at a cost that does not grow with what is COMPLETE.

    That stays as it is, but for a load, which says so (`archive.pages.forget`): then all is read anew. It is kept once
    two looks in a row have found it the same: one alone may come between the writes of another transaction.

    Args:
        connection: The archive.
        name: Of the study.
    """

    def __init__(self, connection: Connection, name: str) -> None:
        """Know nothing yet."""
        self._connection, self._name = connection, name
        self._seen: dict[int, ProposalView] = {}
        self._kept: dict[int, ProposalView] = {}
        self._paged: int | None = None

    def snapshot(self, study: Study) -> Snapshot:
        """Return how the study stands now; `study` is its record, as it was just read."""
        rows, kept, self._paged = self._connection.read(self._read)
        views = {**kept, **{view.number: view for view in map(_view, rows)}}
        self._kept = {
            number: view
            for number, view in views.items()
            if view.state is State.COMPLETE and (number in kept or view == self._seen.get(number))
        }
        self._seen = views
        return _snapshot(study, (views[number] for number in sorted(views)))

    def _read(self, tx: ManagedTransaction) -> tuple[list[dict[str, Any]], dict[int, ProposalView], int | None]:
        """Return rows, what they leave out, and how often pages have been written or forgotten."""
        extent = tx.run(EXTENT, name=self._name).single()
        free, paged = (None, None) if extent is None else (extent["next"], extent["paged"])
        if not self._kept or free is None or free <= max(self._kept) or paged != self._paged:
            return tx.run(SNAPSHOT, name=self._name).data(), {}, paged
        ids = [proposal_id(self._name, number) for number in range(free) if number not in self._kept]
        return (tx.run(SOME, ids=ids).data() if ids else []), self._kept, paged


def _snapshot(study: Study, proposals: Iterable[ProposalView]) -> Snapshot:
    views = tuple(proposals)
    counts = Counter(view.state for view in views)
    return Snapshot(study, views, {state: counts[state] for state in State}, _incumbent(study, views))


_AS_READ = (
    *("id", "number", "agent", "acquisition", "mean", "std", "value", "seconds"),
    *("attempts", "worker", "reason", "started", "finished"),
)


def _view(row: Mapping[str, Any]) -> ProposalView:
    curve = with_prefix(CURVE, dict(row["curve"]))
    epochs = curve.pop(EPOCH, [])
    final = with_prefix(METRIC, dict(row["metrics"] or []))
    return ProposalView(
        **{name: row[name] for name in _AS_READ},
        state=State(row["state"]),
        rung=row["rung"] or 0,
        architecture_key=row["architecture"],
        # One that goes on from a rung has a result, and a curve that grows beyond it.
        epochs=max(row["epochs"] or 0, epochs[-1] if epochs else 0),
        metrics={name: values[-1] for name, values in curve.items() if values} or final,
    )


def _incumbent(study: Study, views: tuple[ProposalView, ...]) -> ProposalView | None:
    known = [view for view in views if view.value is not None and view.value == view.value]
    # What a whole training gives and what half of one does are not compared.
    known = [view for view in known if view.state is State.COMPLETE] or known
    sign = 1.0 if study.direction == "maximise" else -1.0
    # The first of equal values: later ones have not improved on it.
    return max(known, key=lambda view: sign * (view.value or 0.0), default=None)
