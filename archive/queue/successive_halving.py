"""Rungs: trainings that pause early, and go on only if they are among the best there (successive halving, ASHA).

    rung 1 (2 epochs)    o o o o o o o o o      every proposal is trained to the first rung
    rung 2 (6 epochs)    o o o                  the best third of those go on from their state
    rung 3 (18 epochs)   o                      the best third of these; the top rung is the whole training

A proposal that pauses at a rung is PRUNED, with an evaluation of what it had by then (`partial`). Whenever a result
comes in, the transaction that stores it also decides who goes on: of the n that have finished a rung, those among the
best floor(n / reduction) that have not gone on yet. They are WAITING again, with a priority larger by 1 than before,
so that trainers take them before new proposals. What never goes on stays PRUNED; whoever finishes the top
rung, or whose training ends before by the protocol's own rule, is COMPLETE. A promotion that fails for good leaves
what was found at the rung before, PRUNED with the reason.

Nobody waits for a rung to be full: this is the asynchronous form of Li et al., "A System for Massively Parallel
Hyperparameter Tuning" (MLSys 2020, arXiv:1810.05934), algorithm 2. There a worker that is free looks for who can go on;
here each result does, which comes to the same, for it is a result that makes a worker free. The decision locks the
study, so it is made once, however many trainers finish at the same moment, and has no moment in which a kill could
lose it.
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
"""One of so many goes on, unless a study says otherwise."""

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

# Each step starts from what is bound: in one pattern, the embedded server visits the claims of all workers.
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
        epochs: At which trainings pause, increasing; the last are those of the whole protocol.
        reduction: One of so many goes on from each rung.
    """

    epochs: tuple[int, ...]
    reduction: int = REDUCTION

    def __post_init__(self) -> None:
        """Refuse what are no rungs."""
        if len(self.epochs) < 2 or self.epochs[0] < 1 or list(self.epochs) != sorted(set(self.epochs)):
            shown = ", ".join(map(str, self.epochs))
            raise UsageError(f"rungs must be at least two increasing numbers of epochs, got {shown}")
        if self.reduction < 2:
            raise UsageError(f"the reduction of rungs must be at least 2, got {self.reduction}")

    @classmethod
    def below(cls, whole: int, epochs: Sequence[int], reduction: int = REDUCTION) -> Rungs:
        """Return rungs at these epochs, and at the end of a training of `whole` epochs.

        Raises:
            UsageError: They do not increase, or reach beyond the whole.
        """
        if epochs and epochs[-1] > whole:
            raise UsageError(f"rungs must not reach beyond the protocol's {whole} epochs, got {epochs[-1]}")
        return cls((*epochs, *([] if epochs and epochs[-1] == whole else [whole])), reduction)

    @classmethod
    def geometric(cls, whole: int, count: int, reduction: int = REDUCTION) -> Rungs:
        """Return so many rungs, each `reduction` times as long as the one below, the last one of `whole` epochs.

        Raises:
            UsageError: The whole is too short for so many.
        """
        if count < 2 or whole < reduction ** (count - 1):
            raise UsageError(f"{whole} epochs, reduced by {reduction} at each rung, have no {count} rungs")
        return cls(tuple(round(whole / reduction**below) for below in range(count - 1, -1, -1)), reduction)

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Rungs | None:
        """Return those of a study's configuration; None where its proposals are trained at once.

        Raises:
            UsageError: What stands there are no rungs.
        """
        given = config.get("rungs")
        if given is None:
            return None
        try:
            return cls(tuple(map(int, given["epochs"])), int(given["reduction"]))
        except (TypeError, KeyError, ValueError):
            raise UsageError(f"the study's rungs must be epochs and a reduction, got {given!r}") from None

    def as_config(self) -> dict[str, Any]:
        """Return what stands in a study's configuration under `rungs`."""
        return {"epochs": list(self.epochs), "reduction": self.reduction}

    def describe(self) -> str:
        """Return the rungs in words."""
        return f"{', '.join(map(str, self.epochs))} epochs, one of {self.reduction} goes on"


@dataclass(frozen=True)
class Standing:
    """Where a proposal stands among the rungs.

    Attributes:
        id: Its id.
        number: Its number in the study.
        state: Its state.
        rung: The rung that it has reached, or is on its way to, from 0.
        values: The objective at the end of each rung that it has finished.
        priority: Its priority in the queue.
    """

    id: str
    number: int
    state: State
    rung: int
    values: tuple[float, ...]
    priority: float = 0.0


@dataclass(frozen=True)
class Ended:
    """A result, at a rung or of a whole training.

    Attributes:
        id: Of the proposal.
        token: Of whoever trained it.
        rung: Which rung, from 0; None where it was trained as if there were none.
        result: What was found; `partial` where the training can go on.
        before: The objective at the end of each rung that was finished before.
    """

    id: str
    token: str
    rung: int | None
    result: Result
    before: tuple[float, ...]

    def change(self, change: Change, of_study: tuple[Rungs, bool] | None) -> Change:
        """Return a change of the proposal that notes the rung, too; `of_study` is what `lock` returned for it."""
        if of_study is None or self.rung is None:
            return change
        value, top = float(self.result.value), len(of_study[0].epochs) - 1
        # A training that ended by itself would have the same value at all rungs above.
        values = [*self.before, *([value] if self.result.partial else [value] * (top + 1 - self.rung))]
        noted = {"rung": self.rung if self.result.partial else top, "rung_values": values}
        return replace(change, properties={**change.properties, **noted})


def epochs_of(study: Study, rung: int) -> int | None:
    """Return how far a proposal of a study is trained; None means to the end."""
    rungs = Rungs.of(study.config)
    return None if rungs is None or rung >= len(rungs.epochs) - 1 else rungs.epochs[rung]


def promotable(rungs: Rungs, standings: Iterable[Standing], *, maximise: bool) -> list[Standing]:
    """Return the proposals that go on from their rung: paused there, and among its best.

    Of equal values, those of earlier proposals count as better; what is no finite number is never among the best.
    """
    every, chosen = list(standings), []
    for rung in range(len(rungs.epochs) - 1):
        finished = [one for one in every if len(one.values) > rung]
        usable = [one for one in finished if math.isfinite(one.values[rung])]
        sign = -1.0 if maximise else 1.0
        usable.sort(key=lambda one, rung=rung: (sign * one.values[rung], one.number))  # type: ignore[misc]
        best = usable[: len(finished) // rungs.reduction]
        chosen += [
            one for one in best if one.state is State.PRUNED and one.rung == rung and len(one.values) == rung + 1
        ]
    return chosen


def lock(tx: ManagedTransaction, studies: Iterable[str]) -> dict[str, tuple[Rungs, bool]]:
    """Lock studies before any of their proposals; return the rungs of those that have some, and whether they maximise.

    Everyone who adds to a study locks it first, too: what is locked in one order cannot wait for each other.
    """
    names = sorted({*studies})
    if not names:
        return {}
    lock_nodes(tx, "Study", names)
    rows = tx.run(CONFIGS, studies=names)
    found = {row["name"]: (Rungs.of(from_json(row["config"])), row["direction"] == "maximise") for row in rows}
    return {name: (rungs, maximise) for name, (rungs, maximise) in found.items() if rungs is not None}


def pause(tx: ManagedTransaction, ended: Sequence[Ended]) -> None:
    """Note on the claims of results at a rung how far the training came."""
    paused = [
        {"id": one.id, "token": one.token, "rung": one.rung, "value": one.result.value, "epochs": one.result.epochs}
        for one in ended
        if one.rung is not None and one.result.partial
    ]
    if paused:
        tx.run(PAUSED, rows=paused).consume()


def promote(tx: ManagedTransaction, study: str, rungs: Rungs, maximise: bool) -> list[str]:
    """Let go on who can, and return their ids; the study is locked."""
    rows = tx.run(STANDINGS, study=study).data()
    standings = [Standing(**{k: row[k] for k in ("id", "number", "rung", "priority")},
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
