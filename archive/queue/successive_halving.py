"""Asynchronous successive halving (ASHA): trainings pause at rungs, and only the best of a rung continue.

    rung 1 (2 epochs)    o o o o o o o o o      every proposal is trained to the first rung
    rung 2 (6 epochs)    o o o                  the best third of those continue from their checkpoint
    rung 3 (18 epochs)   o                      the best third of these; the top rung is the whole training

A proposal that pauses at a rung is PRUNED, with a `partial` evaluation. The transaction that stores a result also
decides about promotions: of the n proposals that have finished a rung, those among the best floor(n / reduction) that
have not been promoted yet. Promoted proposals are WAITING again, with a priority larger by 1 than before, so that
trainers claim them before new proposals. Proposals without a promotion stay PRUNED. A proposal that finishes the top
rung, or whose training stops earlier by the protocol's rule, is COMPLETE. If a promoted proposal fails for good, it
keeps the result of the rung before and is PRUNED with the reason.

Promotions do not wait for a rung to be full: this is the asynchronous form of Li et al., "A System for Massively
Parallel Hyperparameter Tuning" (MLSys 2020, arXiv:1810.05934), algorithm 2. There a free worker searches for a
promotable proposal. Here each result triggers the search, which is equivalent, because it is a result that makes a
worker free. The decision locks the study, so it is made once, however many trainers finish at the same time. It is in
the transaction of the result, so a kill cannot lose it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from archive.database.statements import lock as lock_nodes
from archive.errors import UsageError
from archive.queue import leases
from archive.queue.leases import Change
from archive.store.properties import from_json
from archive.store.records import Result, State, Study

if TYPE_CHECKING:
    from neo4j import ManagedTransaction

REDUCTION = 3
"""Default reduction: one of this many proposals is promoted."""

CONFIGS = """
UNWIND $studies AS name
MATCH (s:Study {name: name})
USING INDEX SEEK s:Study(name)
RETURN name, s.config AS config, s.direction AS direction
"""

STANDINGS = """
MATCH (s:Study {name: $study})-[:PROPOSED]->(p:Proposal)
USING INDEX SEEK s:Study(name)
WHERE p.rung_values IS NOT NULL
RETURN p.id AS id, p.number AS number, p.state AS state, coalesce(p.rung, 0) AS rung, p.rung_values AS rung_values,
       coalesce(p.priority, 0.0) AS priority
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


@dataclass(frozen=True)
class Rungs:
    """The rungs of a study.

    Attributes:
        epochs: Increasing epoch counts at which trainings pause; the last is that of the whole protocol.
        reduction: One of this many proposals is promoted from each rung.
    """

    epochs: tuple[int, ...]
    reduction: int = REDUCTION

    def __post_init__(self) -> None:
        """Validate the rungs."""
        if len(self.epochs) < 2 or self.epochs[0] < 1 or list(self.epochs) != sorted(set(self.epochs)):
            shown = ", ".join(map(str, self.epochs))
            raise UsageError(f"rungs must be at least two increasing numbers of epochs, got {shown}")
        if self.reduction < 2:
            raise UsageError(f"the reduction of rungs must be at least 2, got {self.reduction}")

    @classmethod
    def below(cls, whole: int, epochs: Sequence[int], reduction: int = REDUCTION) -> Rungs:
        """Return rungs at these epochs and at the end of a training of `whole` epochs.

        Raises:
            UsageError: They do not increase, or reach beyond the whole.
        """
        if epochs and epochs[-1] > whole:
            raise UsageError(f"rungs must not reach beyond the protocol's {whole} epochs, got {epochs[-1]}")
        return cls((*epochs, *([] if epochs and epochs[-1] == whole else [whole])), reduction)

    @classmethod
    def geometric(cls, whole: int, count: int, reduction: int = REDUCTION) -> Rungs:
        """Return `count` rungs, each `reduction` times as long as the one below, the last one of `whole` epochs.

        Raises:
            UsageError: The training is too short for this many rungs.
        """
        if count < 2 or whole < reduction ** (count - 1):
            raise UsageError(f"{whole} epochs, reduced by {reduction} at each rung, have no {count} rungs")
        return cls(tuple(round(whole / reduction**below) for below in range(count - 1, -1, -1)), reduction)

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Rungs | None:
        """Return the rungs of a study's configuration; None for a study without rungs.

        Raises:
            UsageError: The configuration holds no valid rungs.
        """
        rungs = config.get("rungs")
        if rungs is None:
            return None
        try:
            return cls(tuple(map(int, rungs["epochs"])), int(rungs["reduction"]))
        except (TypeError, KeyError, ValueError):
            raise UsageError(f"the study's rungs must be epochs and a reduction, got {rungs!r}") from None

    def as_config(self) -> dict[str, Any]:
        """Return the entry `rungs` of a study's configuration."""
        return {"epochs": list(self.epochs), "reduction": self.reduction}

    def describe(self) -> str:
        """Return a description of the rungs."""
        return f"{', '.join(map(str, self.epochs))} epochs, one of {self.reduction} continues"


@dataclass(frozen=True)
class RungStanding:
    """Progress of a proposal through the rungs.

    Attributes:
        id: Id of the proposal.
        number: Number in the study.
        state: State of the proposal.
        rung: Index of the rung that it has reached, or is training to.
        values: Objective at the end of each finished rung.
        priority: Priority in the queue.
    """

    id: str
    number: int
    state: State
    rung: int
    values: tuple[float, ...]
    priority: float = 0.0


@dataclass(frozen=True)
class RungResult:
    """Result of a training to a rung, or of a whole training.

    Attributes:
        id: Id of the proposal.
        token: Token of the claim.
        rung: Index of the rung; None for a training without rungs.
        result: The result; `partial` if the training can continue.
        before: Objective at the end of each rung that was finished before.
    """

    id: str
    token: str
    rung: int | None
    result: Result
    before: tuple[float, ...]

    def change(self, change: Change, of_study: tuple[Rungs, bool] | None) -> Change:
        """Add the rung to a change of the proposal; `of_study` is the entry of its study as returned by `lock`."""
        if of_study is None or self.rung is None:
            return change
        value, top = float(self.result.value), len(of_study[0].epochs) - 1
        # A training that stopped by the protocol's rule would have the same value at all rungs above.
        values = [*self.before, *([value] if self.result.partial else [value] * (top + 1 - self.rung))]
        rung = {"rung": self.rung if self.result.partial else top, "rung_values": values}
        return replace(change, properties={**change.properties, **rung})


def epochs_of(study: Study, rung: int) -> int | None:
    """Return the number of epochs up to a rung; None means the whole training."""
    rungs = Rungs.of(study.config)
    return None if rungs is None or rung >= len(rungs.epochs) - 1 else rungs.epochs[rung]


def promotable(rungs: Rungs, standings: Iterable[RungStanding], *, maximise: bool) -> list[RungStanding]:
    """Return the proposals to promote: paused at their rung, and among its best.

    Of equal values, those of earlier proposals count as better. Values that are not finite are never among the best.
    """
    every, promoted = list(standings), []
    for rung in range(len(rungs.epochs) - 1):
        finished = [one for one in every if len(one.values) > rung]
        usable = [one for one in finished if math.isfinite(one.values[rung])]
        sign = -1.0 if maximise else 1.0
        usable.sort(key=lambda one, rung=rung: (sign * one.values[rung], one.number))  # type: ignore[misc]
        best = usable[: len(finished) // rungs.reduction]
        promoted += [
            one for one in best if one.state is State.PRUNED and one.rung == rung and len(one.values) == rung + 1
        ]
    return promoted


def lock(tx: ManagedTransaction, studies: Iterable[str]) -> dict[str, tuple[Rungs, bool]]:
    """Lock studies before any of their proposals; return the rungs of those that have some, and whether they maximise.

    Additions to a study lock it first, too: transactions that lock in one order cannot deadlock.
    """
    names = sorted({*studies})
    if not names:
        return {}
    lock_nodes(tx, "Study", names)
    rows = tx.run(CONFIGS, studies=names)
    read = {row["name"]: (Rungs.of(from_json(row["config"])), row["direction"] == "maximise") for row in rows}
    return {name: (rungs, maximise) for name, (rungs, maximise) in read.items() if rungs is not None}


def pause(tx: ManagedTransaction, ended: Sequence[RungResult]) -> None:
    """Record rung, value and epochs on the claims of results at a rung."""
    paused = [
        {"id": one.id, "token": one.token, "rung": one.rung, "value": one.result.value, "epochs": one.result.epochs}
        for one in ended
        if one.rung is not None and one.result.partial
    ]
    if paused:
        tx.run(PAUSED, rows=paused).consume()


def promote(tx: ManagedTransaction, study: str, rungs: Rungs, maximise: bool) -> list[str]:
    """Promote the proposals of a locked study that can be promoted, and return their ids."""
    rows = tx.run(STANDINGS, study=study).data()
    standings = [RungStanding(**{k: row[k] for k in ("id", "number", "rung", "priority")},
                          state=State(row["state"]), values=tuple(row["rung_values"])) for row in rows]  # fmt: skip
    chosen = promotable(rungs, standings, maximise=maximise)
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
