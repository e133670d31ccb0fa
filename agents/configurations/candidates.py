"""Candidates of a proposal: space-filling designs, all configurations, and local search.

| symbol | meaning                                                                        |
|--------|--------------------------------------------------------------------------------|
| pi(x)  | prior density of a configuration, relative to its greatest value               |
| n      | evaluations                                                                    |
| b      | weight of the prior                                                            |

Candidates are ranked by log EI(x) + b / n log pi(x): the prior's weight falls with the number of
evaluations (Hvarfner et al., piBO, 2022). The prior of a number is a normal density mixed with a
uniform one, so that a wrong prior changes no rank by more than b / n log(1 / `DOUBT`) for each
parameter. The weight is 0 where scores fall with the prior's density (`search`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from archive.agents.configurations.history import row_keys
from archive.agents.surrogates.base import Array
from archive.parameters.batches import CodeBatches
from archive.parameters.declaration import CONFIDENCES
from archive.parameters.domains import Choice
from archive.parameters.parameter_space import ParameterSpace

Rank = Callable[[Array], Array]

MOST_LISTED = 10_000
"""Most configurations of a space of which all are ranked."""
DESIGN = 256
"""Points of a Sobol sequence that a design chooses among; a power of two keeps its balance."""
_RANDOM = 600
_STARTS = 10
_VARIATIONS = 16
"""Random candidates, best ones that are varied in each round, and variations of each."""
_COMPARED = 8
"""Points of a branch among which a design takes the most distant one."""
_ALONE = 5
"""First rounds in which each candidate is replaced by its own best variation.

A local optimum is then climbed beside others, before the best candidates of all are refined."""
_SCALES = (0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01)
"""Standard deviations of the steps in each round, as shares of the scale."""
DOUBT = 0.05
"""Share of the uniform density in the prior of a number."""
_SHARE_OF_PRIOR = 0.5
"""Share of the random candidates and of the design that is drawn from the priors."""


class Candidates:
    """Candidates of one space.

    Args:
        space: The space.
    """

    def __init__(self, space: ParameterSpace) -> None:
        """Read the priors."""
        self.space = space
        self.batches = CodeBatches(space)
        self._priors = []
        for column, parameter in enumerate(space.parameters):
            if parameter.prior is not None:
                code = float(parameter.domain.encode(parameter.prior.value))
                width = CONFIDENCES[parameter.prior.confidence]
                self._priors.append((column, code, width))

    @property
    def has_prior(self) -> bool:
        """Whether a parameter has a prior."""
        return bool(self._priors)

    @cached_property
    def listed(self) -> Array | None:
        """Every configuration, (M, D) float64; None of a space with too many."""
        return self.batches.every() if self.space.size <= MOST_LISTED else None

    @cached_property
    def _listed_keys(self) -> list[bytes]:
        return [] if self.listed is None else row_keys(self.listed)

    def log_prior(self, codes: Array) -> Array:
        """Return log pi of (m, D) configurations: (m,) float64, at most 0."""
        total = np.zeros(len(codes))
        for column, code, width in self._priors:
            domain = self.space.parameters[column].domain
            values = codes[:, column]
            if self.batches.nominal[column]:
                assert isinstance(domain, Choice), "only choices have no order"
                weight = max(1.0, domain.size / (4 * width))
                part = np.where(values == code, 0.0, -np.log(weight))
            else:
                bell = np.exp(-0.5 * np.square((values - code) / width))
                part = np.log(DOUBT + (1.0 - DOUBT) * bell)

            # A parameter that does not exist is no evidence.
            total += np.where(np.isnan(values), 0.0, part)

        return total

    def sample(self, m: int, rng: np.random.Generator) -> Array:
        """Return m random configurations, half of them from the priors where there are any."""
        count = int(_SHARE_OF_PRIOR * m) if self._priors else 0
        uniform = self.batches.sample(m - count, rng)
        return np.vstack([uniform, self._from_prior(count, rng)]) if count else uniform

    def design(
        self, count: int, evaluated: Array, taken: Collection[bytes], rng: np.random.Generator
    ) -> Array:
        """Return up to `count` configurations that cover branches, and lie apart from each other.

        Each is of a branch that the fewest known ones have and, of the first points of a scrambled
        Sobol sequence there, has the greatest least distance. Few points take part: in a space of
        many parameters the most distant of many points are its corners.

        Args:
            count: Number of configurations.
            evaluated: (k, D) known configurations.
            taken: Keys of configurations that must not be returned.
            rng: Source of randomness.
        """
        pool = self._spread(rng)
        if self._priors:
            near = self._from_prior(DESIGN, rng)
            order = rng.random(DESIGN) < _SHARE_OF_PRIOR
            pool = np.vstack([pool, near]) if not len(pool) else self._mixed(pool, near, order)

        unavailable = set(taken)
        free = np.array([key not in unavailable for key in row_keys(pool)], np.bool_)
        rows = evaluated
        for _ in range(count):
            indices = np.flatnonzero(free)
            if not len(indices):
                break

            counts = _count_branches(pool[indices], rows)
            rare = indices[counts == counts.min()][:_COMPARED]
            distances = self._distances(pool[rare], rows).min(axis=1, initial=np.inf)
            best = rare[int(np.argmax(distances))]
            rows = np.vstack([rows, pool[best]])
            free &= self._distances(pool, pool[best][None])[:, 0] > 0.0

        return rows[len(evaluated) :]

    def search(
        self,
        rank: Rank,
        starts: Array,
        taken: Collection[bytes],
        most: int,
        rng: np.random.Generator,
    ) -> tuple[Array, Array]:
        """Return the best new candidates and their ranks, best first.

        Args:
            rank: Ranks (m, D) codes, larger is better: (m,).
            starts: (k, D) configurations beside which the search begins.
            taken: Keys of configurations that must not be returned.
            most: Number of candidates.
            rng: Source of randomness.

        Returns:
            (m, D) and (m,) float64, m at most `most`.
        """
        if self.listed is not None:
            free = np.array([key not in taken for key in self._listed_keys], np.bool_)
            pool = self.listed[free]
            ranks = rank(pool)
            order = np.argsort(-ranks, kind="stable")[:most]
            return pool[order], ranks[order]

        pool = np.vstack([self.sample(_RANDOM, rng), starts])
        ranks = rank(pool)
        climbers = self._spread_over_branches(pool, ranks)
        for number, scale in enumerate(_SCALES):
            if number >= _ALONE:
                climbers = np.argsort(-ranks, kind="stable")[:_STARTS]

            repeated = np.repeat(pool[climbers], _VARIATIONS, axis=0)
            varied = self.batches.vary(repeated, rng, scale=scale)
            varied_ranks = rank(varied)
            climbers = _climb(climbers, ranks, varied_ranks)
            pool = np.vstack([pool, varied])
            ranks = np.concatenate([ranks, varied_ranks])

        order = np.argsort(-ranks, kind="stable")
        seen = set(taken)
        kept = []
        for index, key in zip(order.tolist(), row_keys(pool[order]), strict=True):
            if key not in seen:
                seen.add(key)
                kept.append(index)
                if len(kept) == most:
                    break

        return pool[kept], ranks[kept]

    def _spread_over_branches(self, pool: Array, ranks: Array) -> NDArray[np.intp]:
        """Return the indices of the best configurations, half of them each of another branch.

        Configurations with the same parameters are of one branch.
        """
        order = np.argsort(-ranks, kind="stable")
        branches = np.isnan(pool[order])
        first = np.sort(np.unique(branches, axis=0, return_index=True)[1])[: _STARTS // 2]
        others = np.delete(order, first)
        return np.concatenate([order[first], others])[:_STARTS]

    def _spread(self, rng: np.random.Generator) -> Array:
        """Return allowed configurations of a scrambled Sobol sequence."""
        sobol = qmc.Sobol(len(self.space), seed=rng)
        codes = self.batches.place(sobol.random(DESIGN))
        allowed = codes[self.batches.met(codes)]
        return allowed if len(allowed) else self.batches.sample(DESIGN, rng)

    def _mixed(self, pool: Array, near: Array, order: NDArray[np.bool_]) -> Array:
        """Return a pool in which some places are of configurations from the priors."""
        size = min(len(pool), len(near))
        return np.where(order[:size, None], near[:size], pool[:size])

    def _from_prior(self, count: int, rng: np.random.Generator) -> Array:
        """Return `count` configurations, parameters with a prior drawn from it."""
        codes = self.batches.place(rng.random((count, len(self.space))))
        # A parameter that begins to exist is drawn too.
        codes = np.where(np.isnan(codes), rng.random(codes.shape), codes)
        for column, code, width in self._priors:
            if self.batches.nominal[column]:
                size = self.space.option_counts[column]
                weight = max(1.0, size / (4 * width))
                selected = rng.random(count) < weight / (weight + size - 1)
                codes[:, column] = np.where(selected, code, codes[:, column])
            else:
                moved = code + width * rng.standard_normal(count)
                codes[:, column] = np.abs(np.mod(moved + 1.0, 2.0) - 1.0)

        settled = self.batches.settle(codes)
        met = self.batches.met(settled)
        if met.all():
            return settled

        others = self.batches.sample(count, rng)
        return np.where(met[:, None], settled, others)

    def _distances(self, first: Array, second: Array) -> Array:
        """Return the mean distance of parameters between configurations: (m, k) float64."""
        apart = np.abs(first[:, None, :] - second[None])
        nominal = self.batches.nominal
        apart = np.where(nominal, np.minimum(1.0, apart), apart)
        lacking = np.isnan(first)[:, None, :] != np.isnan(second)[None]
        apart = np.where(lacking, 0.5, np.nan_to_num(apart))
        if not apart.size:
            return np.zeros(apart.shape[:2])

        distances: Array = np.sqrt(np.square(apart).mean(axis=2))
        return distances


def _climb(climbers: NDArray[np.intp], ranks: Array, varied: Array) -> NDArray[np.intp]:
    """Return the index of the best of each candidate and its variations, which follow the pool."""
    by_climber = varied.reshape(len(climbers), _VARIATIONS)
    best = by_climber.argmax(axis=1)
    rows = np.arange(len(climbers))
    better = by_climber[rows, best] > ranks[climbers]
    return np.where(better, len(ranks) + rows * _VARIATIONS + best, climbers)


def branches(codes: Array) -> list[bytes]:
    """Return the branch of each of (m, D) codes: equal where the same parameters exist."""
    return [row.tobytes() for row in np.isnan(codes)]


def _count_branches(codes: Array, evaluated: Array) -> NDArray[np.intp]:
    """Return how many known configurations are of the branch of each of (m, D) codes: (m,)."""
    counts = Counter(branches(evaluated))
    return np.array([counts[branch] for branch in branches(codes)])
