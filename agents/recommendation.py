"""Recommendation of a study's best networks: by posterior mean where evaluations have noise, else by value.

The best of n noisy values is the luckiest one: it exceeds the network's true value, and another network may be better.
A Gaussian process averages the evaluations of each network, and of similar ones, with the noise that it estimates.

| symbol | meaning                                                                                    |
|--------|--------------------------------------------------------------------------------------------|
| mu, s  | posterior mean and standard deviation of a network's noise-free score                      |
| 95 %   | mu - 1.96 s to mu + 1.96 s                                                                 |

The model is the stacked ensemble of `archive.agents.bayesopt.portfolio`, of its members with cheap distances. Its
transform is linear near the best scores and compresses bad ones (`compress-below-median`), so that noise stays
symmetric where it matters. Noise has one variance in score units (`Scale.noise_of_scores`): with one in units of the
compressed scores, it was estimated 20 % too small on random tables of 25 and 60 networks, and 82 to 88 % of the
intervals of the best five held the true score instead of 87 to 93 %. A study whose training hyperparameters vary is
ranked by the mean of the evaluations of each configuration: the model does not know hyperparameters.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from archive.agents.base import Observation
from archive.agents.bayesopt.portfolio_members import defaults, is_cheap, member_model
from archive.agents.noise import is_noisy, replicates
from archive.agents.outliers import is_score
from archive.agents.surrogates.base import Array
from archive.agents.surrogates.outcome_transforms import CompressBelowMedian
from archive.agents.surrogates.stacking import FittedStackedGP, StackedGP
from archive.agents.transfer.source_tasks import observation, split
from archive.architecture.graph import Architecture
from archive.constraints import violation
from archive.errors import ArchiveError, NumericalError
from archive.spaces import recorded
from archive.spaces.base import Space

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.store.records import Evaluation, Study

TRANSFORM = CompressBelowMedian(noise_of_scores=True)

LEAST = 5
"""Fewest networks that a model is fitted to; of fewer, hyperparameters would be those of the prior."""

MOST = 1000
"""Most networks to fit to, the best half by mean score and the others at random, and most networks to estimate."""

WIDTH = 1.96
"""Half width of an interval of 95 %, in standard deviations."""


@dataclass(frozen=True)
class Recommendation:
    """A network with the estimate of its noise-free score.

    Attributes:
        architecture: The network.
        score: The estimate, larger is better: a posterior mean, or without noise the score itself.
        low: Lower end of its 95 % interval; None where no model could be fitted.
        high: Upper end.
        evaluations: Its evaluations.
    """

    architecture: Architecture
    score: float
    low: float | None
    high: float | None
    evaluations: tuple[Observation, ...]

    @property
    def luckiest(self) -> Observation:
        """The best of its evaluations, the first of equal ones."""
        return max(self.evaluations, key=lambda seen: seen.score)


@dataclass(frozen=True)
class Recommendations:
    """The networks of a history, the best first.

    Attributes:
        ranked: The networks; of equal estimates, the earlier one first. Of a history with noise, at most `MOST`.
        noise: Estimated standard deviation of an evaluation's noise, in score units: 0 for a history without noise,
            None where it has noise that no model could be fitted to.
    """

    ranked: tuple[Recommendation, ...]
    noise: float | None


def recommend(
    space: Space, observations: Sequence[Observation], among: Collection[str] | None = None
) -> Recommendations:
    """Rank the networks of a history by the estimates of their noise-free scores.

    Args:
        space: The space of the networks.
        observations: Whole evaluations of finite score.
        among: Functional keys of the networks to rank; None for all.
    """
    groups = replicates(observations)
    wanted = [at for at, each in enumerate(groups) if among is None or each[0].architecture.functional_key in among]
    if not is_noisy(observations):
        best = [max(seen.score for seen in groups[at]) for at in wanted]
        return Recommendations(_ranked([groups[at] for at in wanted], np.array(best), np.zeros(len(best))), 0.0)
    means = np.array([np.mean([seen.score for seen in each]) for each in groups])
    fitted = _fit(space, observations, groups, means)
    # A network of a low mean is not the best one, and the estimates of a hundred thousand would take gigabytes.
    wanted = sorted(sorted(wanted, key=lambda at: -means[at])[:MOST])
    chosen = [groups[at] for at in wanted]
    if fitted is None:
        return Recommendations(_ranked(chosen, means[wanted], None), None)
    posterior = fitted.posterior([each[0].architecture.functional for each in chosen]).in_scores()
    return Recommendations(_ranked(chosen, posterior.mean, posterior.std), _noise(fitted))


def of_study(archive: Archive, study: Study) -> Recommendations | None:
    """Rank the networks of a study, with the evaluations of its sources of the same task as further data.

    Returns:
        The networks that the study has a whole, finite result of that meets its constraints; None where its results
        have no noise, or its space is not known here: their values then are the best estimates.
    """
    evaluations = archive.studies.history(study.name)
    own, _ = split(evaluations, study)
    observations = [observation(seen, seen.score) for seen in own if _is_whole(seen)]
    if not is_noisy(observations):
        return None
    try:
        space = recorded.of_record(study.space, study.space_config, archive.connection.settings.home)
    except ArchiveError:
        return None
    # Of the evaluations, not of the observations: a copy of a source's result is the study's own result.
    of_own = [seen for seen in evaluations if seen.study == study.name and _is_whole(seen)]
    own_keys = {
        seen.architecture.functional_key
        for seen in of_own
        if not violation(study.constraints, {study.objective: seen.value, **seen.metrics})
    }
    recommended = recommend(space, observations, own_keys)
    return recommended if recommended.ranked else None


def _is_whole(seen: Evaluation) -> bool:
    return not seen.partial and is_score(seen.score)


def _fit(
    space: Space, observations: Sequence[Observation], groups: Sequence[Sequence[Observation]], means: Array
) -> FittedStackedGP | None:
    if len(groups) < LEAST or any(seen.hyperparameters for seen in observations):
        return None
    order = np.argsort(-means, kind="stable")
    if len(order) > MOST:
        # A fixed seed: the same history gives the same recommendation.
        others = np.random.default_rng(0).permutation(order[MOST // 2 :])[: MOST - MOST // 2]
        order = np.concatenate([order[: MOST // 2], others])
    seen = [one for at in np.sort(order) for one in groups[at]]
    names = [name for name in defaults(space) if is_cheap(name, space)]
    stacked = StackedGP([member_model(name, space).surrogate(TRANSFORM) for name in names])
    scores = np.array([one.score for one in seen], np.float64)
    try:
        return stacked.fit([one.architecture.functional for one in seen], scores, np.random.default_rng(0))
    except NumericalError:
        return None


def _ranked(groups: Sequence[Sequence[Observation]], scores: Array, stds: Array | None) -> tuple[Recommendation, ...]:
    half = None if stds is None else WIDTH * stds
    return tuple(
        Recommendation(
            groups[at][0].architecture,
            float(scores[at]),
            None if half is None else float(scores[at] - half[at]),
            None if half is None else float(scores[at] + half[at]),
            tuple(groups[at]),
        )
        for at in np.argsort(-scores, kind="stable").tolist()
    )


def _noise(fitted: FittedStackedGP) -> float:
    """Return the estimated standard deviation near the best scores, where the transform is the identity."""
    variances = fitted.noises()
    return float(np.sqrt(np.average(variances, weights=fitted.weights)))
