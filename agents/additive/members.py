"""The members of a space with the best sums of effects, under its constraints on known costs.

The costs of the program are sums, too: the cost of the parent, and what each single replacement
changes. Whether that holds is tried on random pairs of replacements:

| pair of replacements                          | consequence                                        |
|-----------------------------------------------|----------------------------------------------------|
| cost equals the sum                           | the program is exact                               |
| off by more than `OFF` of the cost            | the decision in most such pairs keeps the parent's |
|                                               | choice, until no such pair is left                 |
| off by less, as by the norms of a block       | nothing                                            |

Every solution is built and checked against the constraints: one that does not meet them is left out,
and after `PATIENCE` such solutions in a row the program's bound falls by the largest error seen.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from archive.agents.additive.effects import Effects
from archive.agents.additive.program import ChoiceProgram, Limit
from archive.agents.additive.vectors import Replacement, VectorSpace, levels_of
from archive.architecture.graph import Architecture
from archive.constraints import Constraint
from archive.spaces.base import Space
from archive.spaces.constrained import ConstrainedSpace

OFF = 0.02
"""Least error of a sum of costs, relative to the cost, that holds a decision."""
PATIENCE = 5
PARTNERS = 3
"""Pairs that are tried for each decision."""
MOST_SOLVED = 100
"""Most solutions of a program, with the ones that are left out."""

_log = logging.getLogger(__name__)

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SumMember:
    """A member and the sum that predicts its score.

    Attributes:
        architecture: The network.
        vector: Its decisions.
        score: The predicted score.
    """

    architecture: Architecture
    vector: tuple[int, ...]
    score: float


class BestSums:
    """Members by the sum of their effects, the best first.

    Args:
        vectors: Decisions of the space.
        effects: Effects of the decisions.
        levels: Choices by decision, the parent's first; None for those that the effects know.

    Attributes:
        fixed: Decisions that keep the parent's choice, because costs are no sums with them.
    """

    def __init__(
        self,
        vectors: VectorSpace,
        effects: Effects,
        levels: dict[int, list[int]] | None = None,
    ) -> None:
        self._vectors = vectors
        self._effects = effects
        self._parent = effects.parent.tolist()
        if levels is None:
            levels = _known_levels(effects)

        self._levels = {position: choices for position, choices in levels.items() if choices[1:]}
        self.fixed: tuple[int, ...] = ()
        self._starts: dict[Constraint, float] = {}
        self._costs: dict[Constraint, dict[int, Array]] = {}
        for constraint in _constraints_of(vectors.space):
            self._starts[constraint] = float(self._cost(constraint, [self._parent])[0])
            self._costs[constraint] = self._deltas(constraint)

        self._hold()

    def best(self, count: int, taken: Collection[str] = ()) -> list[SumMember]:
        """Return members of the greatest sums, at most `count`.

        Args:
            count: Number of members.
            taken: Functional keys of networks that are left out.
        """
        positions = list(self._levels)
        program = ChoiceProgram([self._values(position) for position in positions], self._limits())
        errors = [0.0] * len(program.limits)
        unavailable = set(taken)
        members: list[SumMember] = []
        misses = 0
        for _ in range(MOST_SOLVED):
            solution = program.solve() if len(members) < count else None
            if solution is None:
                break

            vector = list(self._parent)
            for position, choice in zip(positions, solution, strict=True):
                vector[position] = self._levels[position][choice]

            network = self._vectors.build(vector)
            if network is not None and not self._vectors.space.contains(network):
                misses += 1
                self._measure(network, vector, errors)
                if misses % PATIENCE == 0:
                    for limit, error in zip(program.limits, errors, strict=True):
                        limit.bound -= error

                continue

            misses = 0
            if network is not None and network.functional_key not in unavailable:
                unavailable.add(network.functional_key)
                members.append(self._member(network))

        members.sort(key=lambda member: -member.score)
        return members

    def _member(self, network: Architecture) -> SumMember:
        encoded = self._vectors.encode([network])
        score = float(self._effects.predict(encoded)[0])
        return SumMember(network, tuple(encoded[0].tolist()), score)

    def _values(self, position: int) -> Array:
        """Return the effects of the choices of a decision."""
        rows = []
        for choice in self._levels[position]:
            rows.append(self._vectors.replace(self._parent, Replacement(position, choice)))

        return self._effects.predict(np.array(rows, np.int64)) - self._effects.centre

    def _limits(self) -> list[Limit]:
        limits = []
        for constraint, start in self._starts.items():
            deltas = self._costs[constraint]
            # The program knows upper bounds only.
            sign = -constraint.sign
            weights = [sign * deltas[position] for position in self._levels]
            weights = [np.where(np.isfinite(row), row, np.inf) for row in weights]
            limits.append(Limit(weights, sign * (constraint.bound - start)))

        return limits

    def _deltas(self, constraint: Constraint) -> dict[int, Array]:
        """Return what each replacement changes of a cost; NaN where it makes no network."""
        deltas = {}
        for position, choices in self._levels.items():
            changed = []
            for choice in choices:
                replacement = Replacement(position, choice)
                changed.append(self._vectors.replace(self._parent, replacement))

            deltas[position] = self._cost(constraint, changed) - self._starts[constraint]

        return deltas

    def _cost(self, constraint: Constraint, vectors: Sequence[Sequence[int]]) -> Array:
        space = self._vectors.space
        assert isinstance(space, ConstrainedSpace)
        costs = np.full(len(vectors), np.nan)
        built = [self._vectors.build(vector) for vector in vectors]
        rows = [row for row, network in enumerate(built) if network is not None]
        networks = [network for network in built if network is not None]
        costs[rows] = space.costs(constraint, networks)
        return costs

    def _hold(self) -> None:
        """Keep the parent's choice of the decisions whose costs do not add up with others."""
        rng = np.random.default_rng(0)
        off: set[tuple[int, int]] = set()
        positions = list(self._levels)
        for first in positions if len(positions) > 1 and self._starts else []:
            for _ in range(PARTNERS):
                others = [position for position in positions if position != first]
                second = others[int(rng.integers(len(others)))]
                if self._are_off(first, second, rng):
                    off.add((first, second))

        fixed = []
        while off:
            counts = np.bincount(np.array(list(off)).ravel())
            position = int(counts.argmax())
            fixed.append(position)
            off = {pair for pair in off if position not in pair}
            del self._levels[position]

        self.fixed = tuple(sorted(fixed))
        if fixed:
            _log.info("%d decisions keep the parent's choice: costs do not add up", len(fixed))

    def _are_off(self, first: int, second: int, rng: np.random.Generator) -> bool:
        vector = list(self._parent)
        taken = []
        for position in (first, second):
            row = int(rng.integers(1, len(self._levels[position])))
            vector[position] = self._levels[position][row]
            taken.append((position, row))

        for constraint, start in self._starts.items():
            deltas = self._costs[constraint]
            summed = start + sum(float(deltas[position][row]) for position, row in taken)
            cost = float(self._cost(constraint, [vector])[0])
            if abs(cost - summed) > OFF * max(abs(cost), abs(start)):
                return True

        return False

    def _measure(self, network: Architecture, vector: Sequence[int], errors: list[float]) -> None:
        """Raise the largest errors of the sums of costs to those of a network."""
        space = self._vectors.space
        assert isinstance(space, ConstrainedSpace)
        for index, (constraint, start) in enumerate(self._starts.items()):
            summed = start
            for position, choices in self._levels.items():
                row = choices.index(vector[position])
                summed += float(self._costs[constraint][position][row])

            cost = float(space.costs(constraint, [network])[0])
            errors[index] = max(errors[index], -constraint.sign * (cost - summed))


def _known_levels(effects: Effects) -> dict[int, list[int]]:
    vectors = effects.vectors
    if effects.prior is not None:
        vectors = np.concatenate([vectors, effects.prior.effects.vectors])

    return levels_of(vectors, effects.parent.tolist())


def _constraints_of(space: Space) -> tuple[Constraint, ...]:
    return space.constraints if isinstance(space, ConstrainedSpace) else ()
