"""Asynchronous successive halving (ASHA): trainings pause at rungs, and the best continue.

    rung 1 (2 epochs)    o o o o o o o o o      every proposal is trained to the first rung
    rung 2 (6 epochs)    o o o                  the best third of those continue from their checkpoint
    rung 3 (18 epochs)   o                      the best third of these; the top rung is the whole training

A proposal that pauses at a rung is PRUNED, with a `partial` evaluation. The transaction that stores
a result also decides about promotions: of the n proposals that have finished a rung, those among
the best floor(n / reduction) that have not been promoted yet. Promoted proposals are WAITING again,
with a priority larger by 1 than before, so that trainers claim them before new proposals. Proposals
without a promotion stay PRUNED. A proposal that finishes the top rung, or whose training stops
earlier by the protocol's rule, is COMPLETE. If a promoted proposal fails for good, it keeps the
result of the rung before and is PRUNED with the reason.

Under constraints the best of a rung are those that meet them at that rung, by value; then the
others, by the sum of their violations (`archive.constraints`): the rule of Deb (An efficient
constraint handling method for genetic algorithms, 2000), by which Optuna ranks as well. A quantity
that is unknown at the rung violates its constraint without a limit. Networks that violate a
constraint are promoted only into places that the others leave free. They are not
excluded: a quantity such as the accuracy may meet its bound later in the training, and a rung
without any network that meets the constraints must promote its nearest ones.

Promotions do not wait for a rung to be full: this is the asynchronous form of Li et al., "A System
for Massively Parallel Hyperparameter Tuning" (MLSys 2020, arXiv:1810.05934), algorithm 2. There a
free worker searches for a promotable proposal. Here each result triggers the search, which is
equivalent, because it is a result that makes a worker free. The decision locks the study, so it is
made once, however many trainers finish at the same time. It is in the transaction of the result, so
a kill cannot lose it (`archive.queue.promotions`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from archive.constraints import violation
from archive.queue.leases import ProposalChange
from archive.rungs import Rungs
from archive.store.properties import number_of
from archive.store.records import Constraint, Result, State


@dataclass(frozen=True)
class RungStudy:
    """The properties of a study that promotions depend on.

    Attributes:
        rungs: Its rungs.
        maximise: Whether larger values of the objective are better.
        objective: Name of the objective.
        constraints: Its K constraints.
        borders: Stored borders of its rungs (`archive.queue.promotions`); None where they are
            unknown.
    """

    rungs: Rungs
    maximise: bool = True
    objective: str = "accuracy"
    constraints: tuple[Constraint, ...] = ()
    borders: str | None = None

    @property
    def top(self) -> int:
        """Index of the top rung."""
        return len(self.rungs.epochs) - 1

    def constrained(self, result: Result) -> list[float]:
        """Return the values of the constrained quantities of a result: K, NaN where unknown."""
        metrics = {self.objective: result.value, **result.metrics}
        return [float(metrics.get(constraint.name, math.nan)) for constraint in self.constraints]

    def violations(self, values: Sequence[float], count: int) -> tuple[float, ...]:
        """Return the violations at the first rungs; empty without constraints.

        Args:
            values: K values of each rung, one rung after the other; missing ones are unknown.
            count: Number of rungs.
        """
        names = [constraint.name for constraint in self.constraints]
        size = len(names)
        if not size:
            return ()

        violations = []
        for rung in range(count):
            part = values[rung * size : (rung + 1) * size]
            violations.append(violation(self.constraints, dict(zip(names, part, strict=False))))

        return tuple(violations)


@dataclass(frozen=True)
class RungStanding:
    """Progress of a proposal through the rungs.

    Attributes:
        id: Id of the proposal.
        number: Number in the study.
        state: State of the proposal.
        rung: Index of the rung that it has reached, or is training to.
        values: Objective at the end of each finished rung.
        violations: Violation of the study's constraints at the end of each finished rung; empty
            without constraints.
    """

    id: str
    number: int
    state: State
    rung: int
    values: tuple[float, ...]
    violations: tuple[float, ...] = ()

    def paused_at(self, rung: int) -> bool:
        """Whether the proposal has paused at a rung, and was not promoted from it."""
        return self.state is State.PRUNED and self.rung == rung and len(self.values) == rung + 1


@dataclass(frozen=True)
class RungResult:
    """Result of a training to a rung, or of a whole training.

    Attributes:
        id: Id of the proposal.
        token: Token of the claim.
        rung: Index of the rung; None for a training without rungs.
        result: The result; `partial` if the training can continue.
        before: Objective at the end of each rung that was finished before.
        constrained: Values of the constrained quantities at these rungs, one rung after the other.
    """

    id: str
    token: str
    rung: int | None
    result: Result
    before: tuple[float, ...]
    constrained: tuple[float, ...] = ()

    def change(self, change: ProposalChange, study: RungStudy | None) -> ProposalChange:
        """Add the rung to a change of the proposal; `study` is None for a study without rungs."""
        if study is None or self.rung is None:
            return change

        standing = self.standing(study)
        rung: dict[str, Any] = {"rung": standing.rung, "rung_values": list(standing.values)}
        if study.constraints:
            rung["rung_constrained"] = self._constrained(study)

        return replace(change, properties={**change.properties, **rung})

    def standing(self, study: RungStudy) -> RungStanding:
        """Return the standing of the proposal with this result at a rung."""
        state, rung = (
            (State.PRUNED, self.rung or 0) if self.result.partial else (State.COMPLETE, study.top)
        )
        values = (*self.before, *[float(self.result.value)] * self._count(study))
        violations = study.violations(self._constrained(study), len(values))
        return RungStanding(self.id, number_of(self.id), state, rung, values, violations=violations)

    def _count(self, study: RungStudy) -> int:
        """Return the number of rungs that this result is the value of."""
        # A training that stopped by the protocol's rule would have the same values at all rungs
        # above.
        return 1 if self.result.partial else study.top + 1 - (self.rung or 0)

    def _constrained(self, study: RungStudy) -> list[float]:
        return [
            *self._constrained_before(study),
            *study.constrained(self.result) * self._count(study),
        ]

    def _constrained_before(self, study: RungStudy) -> list[float]:
        """Return `constrained`, with NaN for rungs with results of an earlier release."""
        missing = len(study.constraints) * len(self.before) - len(self.constrained)
        return [*[math.nan] * missing, *self.constrained]


def promotable(
    rungs: Rungs, standings: Iterable[RungStanding], *, maximise: bool
) -> list[RungStanding]:
    """Return the proposals to promote: paused at their rung, and among its best.

    The smaller violation comes first, then the better value, then the earlier proposal. Values that
    are not finite are never among the best.
    """
    every = list(standings)
    promoted = []
    for rung in range(len(rungs.epochs) - 1):
        finished = [standing for standing in every if len(standing.values) > rung]
        usable = [standing for standing in finished if math.isfinite(standing.values[rung])]
        usable.sort(key=partial(rank, rung=rung, maximise=maximise))
        for standing in usable[: len(finished) // rungs.reduction]:
            if standing.paused_at(rung):
                promoted.append(standing)

    return promoted


def rank(standing: RungStanding, rung: int, *, maximise: bool) -> tuple[float, float, int]:
    """Return the key that sorts the usable standings at a rung, the best first.

    It has violation, loss and number.
    """
    violation = standing.violations[rung] if len(standing.violations) > rung else 0.0
    return violation, -standing.values[rung] if maximise else standing.values[rung], standing.number
