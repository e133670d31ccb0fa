"""What a surrogate has learnt about decisions: effects of their values, and where it is uncertain.

| symbol | meaning                                                                       | shape   |
|--------|-------------------------------------------------------------------------------|---------|
| C      | candidates: random networks of the space                                      | scalar  |
| X      | an intercept and an indicator of each level of each decision                  | (C, p)  |
| F      | joint samples of the candidates' noise-free scores                            | (S, C)  |
| b      | least-squares coefficients of each sample, X^+ F^T                             | (p, S)  |
| w_l    | share of the candidates at level l of a decision                              | scalar  |
| e_l    | effect of a level: b_l minus the mean of b over its decision, weighted by w    | (S,)    |

e_l is what a network gains, in the mean, by level l in place of the usual level of that decision,
other decisions being equal. The interval of 95 % has the variance of e_l over the samples, which is
the surrogate's uncertainty, and the variance of the projection, which is what decisions do together
and not alone. A region is a level at which the mean standard deviation of the candidates is large.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive.agents.advice.decisions import Level, decisions_of, levels_of, memberships
from archive.agents.advice.study_surrogate import StudySurrogate
from archive.agents.observations import Observation
from archive.agents.recommendation import WIDTH
from archive.agents.surrogates.base import Array
from archive.architecture.graph import Architecture
from archive.spaces.base import Space, distinct_sample

SAMPLES = 400
CANDIDATES = 300
"""Fewest candidates; `FOR_LEVEL` for each level, at most `MOST_CANDIDATES`."""

FOR_LEVEL = 4
MOST_CANDIDATES = 1000

FEW = 5
"""Fewest candidates of a level with an effect."""


@dataclass(frozen=True)
class LevelEffect:
    """What one level of a decision brings, in score units.

    Attributes:
        level: The level.
        mean: Mean effect, larger is better.
        low: Lower end of the interval of 95 %.
        high: Upper end.
        results: Number of evaluated networks at this level.
    """

    level: Level
    mean: float
    low: float
    high: float
    results: int


@dataclass(frozen=True)
class LevelUncertainty:
    """How uncertain the surrogate is about networks at one level of a decision.

    Attributes:
        level: The level.
        std: Mean standard deviation of the candidates at this level, in score units.
        usual: Mean standard deviation of all candidates.
        results: Number of evaluated networks at this level.
    """

    level: Level
    std: float
    usual: float
    results: int


@dataclass(frozen=True)
class LearntEffects:
    """Effects and uncertain regions.

    Attributes:
        effects: Effects that differ from 0 first, the largest first.
        regions: Levels of larger uncertainty than usual, the most uncertain first.
        candidates: Number of random networks that they are means over.
    """

    effects: list[LevelEffect]
    regions: list[LevelUncertainty]
    candidates: int


def learn(
    space: Space, surrogate: StudySurrogate, observations: Sequence[Observation]
) -> LearntEffects:
    """Return the effects and the uncertain regions of a surrogate.

    Args:
        space: The space of the study.
        surrogate: The surrogate of one objective.
        observations: The observations that it is fitted to.
    """
    rng = np.random.default_rng(0)
    networks, rows, levels = _candidates(space, rng)
    if not levels:
        return LearntEffects([], [], len(networks))

    evaluated = {seen.architecture.functional_key: seen.architecture for seen in observations}
    observed = [decisions_of(space, network) for network in evaluated.values()]
    flat = [level for of_decision in levels.values() for level in of_decision]
    counts = memberships(flat, observed).sum(axis=0).tolist()
    table = memberships(flat, rows)
    samples = surrogate.sample(networks, SAMPLES, rng)
    _, stds = surrogate.predict(networks)

    effects = _effects(levels, table, samples, counts)
    regions = _regions(flat, table, stds, counts)
    return LearntEffects(effects, regions, len(networks))


def _candidates(
    space: Space, rng: np.random.Generator
) -> tuple[list[Architecture], list[Mapping[str, Any]], dict[str, list[Level]]]:
    """Return random networks, their decisions, and the levels of these."""
    networks = _draw(space, CANDIDATES, rng)
    rows: list[Mapping[str, Any]] = [decisions_of(space, network) for network in networks]
    levels = levels_of(rows)
    enough = min(FOR_LEVEL * sum(map(len, levels.values())), MOST_CANDIDATES)
    is_exhausted = len(networks) < CANDIDATES
    if enough > len(networks) and not is_exhausted:
        networks = _draw(space, enough, rng)
        rows = [decisions_of(space, network) for network in networks]
        levels = levels_of(rows)

    return networks, rows, levels


def _draw(space: Space, count: int, rng: np.random.Generator) -> list[Architecture]:
    """Return random networks, or every network of a space that has fewer."""
    members = space.members()
    if members is None:
        return distinct_sample(space, count, rng)

    positions = rng.permutation(len(members))[:count]
    return [members[position] for position in positions.tolist()]


def _effects(
    levels: Mapping[str, Sequence[Level]],
    table: NDArray[np.bool_],
    samples: Array,
    counts: Sequence[int],
) -> list[LevelEffect]:
    inputs = np.column_stack([np.ones(len(table)), table.astype(np.float64)])
    inverse = np.linalg.pinv(inputs)
    coefficients = inverse @ samples.T
    centre = samples.mean(axis=0)
    residuals = centre - inputs @ (inverse @ centre)
    freedom = max(len(inputs) - int(np.linalg.matrix_rank(inputs)), 1)
    misfit = float(residuals @ residuals) / freedom

    effects = []
    begin = 1
    for of_decision in levels.values():
        end = begin + len(of_decision)
        shares = inputs[:, begin:end].mean(axis=0)
        # Levels that overlap or leave candidates out have shares of another sum than 1.
        shares = shares / shares.sum()
        contrasts = np.eye(len(of_decision)) - shares
        drawn = contrasts @ coefficients[begin:end]
        weights = contrasts @ inverse[begin:end]
        variances = drawn.var(axis=1) + misfit * np.square(weights).sum(axis=1)
        means = drawn.mean(axis=1)
        for row, level in enumerate(of_decision):
            if inputs[:, begin + row].sum() < FEW:
                continue

            mean = float(means[row])
            margin = WIDTH * float(np.sqrt(variances[row]))
            results = counts[begin - 1 + row]
            effects.append(LevelEffect(level, mean, mean - margin, mean + margin, results))

        begin = end

    effects.sort(key=lambda effect: (effect.low <= 0.0 <= effect.high, -abs(effect.mean)))
    return effects


def _regions(
    levels: Sequence[Level], table: NDArray[np.bool_], stds: Array, counts: Sequence[int]
) -> list[LevelUncertainty]:
    usual = float(stds.mean())
    regions = []
    for column, level in enumerate(levels):
        inside = table[:, column]
        if inside.sum() < FEW:
            continue

        std = float(stds[inside].mean())
        if std > usual:
            regions.append(LevelUncertainty(level, std, usual, counts[column]))

    regions.sort(key=lambda region: -region.std)
    return regions
