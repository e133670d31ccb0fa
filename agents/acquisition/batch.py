"""Batch selection: several candidates to evaluate at the same time.

Notation:

    symbol   meaning                                                              shape
    m, B     candidates, size of the batch                                        scalars
    mu, C    mean and joint covariance of the candidates' scores                  (m,), (m, m)
    K        similarity matrix of the k-DPP                                       (m, m)

    rule             batch                                                                paper
    `top`            the B candidates of largest acquisition                              BANANAS, section 5.1
    `believer`       kriging believer: one by one, the chosen ones fantasised             Ginsbourger et al., 2010
    `bucb`           GP-BUCB: the same with UCB, only the deviations change               Desautels et al., 2014
    `thompson`       the best of each of B joint samples                                  Hernández-Lobato et al., 2017
    `kdpp`           a k-DPP sample, K = C                                                Kathuria et al., 2016
    `quality-kdpp`   a k-DPP sample, K_ij = q_i C_ij q_j                                  tree-Wasserstein, eq. (12)

C is conditioned on the observations, as the k-DPP requires (tree-Wasserstein, Proposition 2). For a
mixture, C is the total covariance: the mean covariance of the members plus the covariance of their
means.

Eq. (12) reads q_i = exp(-mu_i), for errors that are minimised; scores are maximised here, hence
exp(+mu_i). The paper does not give the unit of mu. With accuracies in [0, 1] the qualities would be
nearly equal, in percent the best would dominate all others: mu is taken in units of its standard
deviation over the candidates.

Under constraints, `thompson` and all rules with an acquisition weight it by the probability of
feasibility PoF (`acquisition.functions`). A k-DPP without an acquisition has sqrt(PoF_i PoF_j) K_ij
for K_ij, so that the probability of a batch is multiplied by the PoF of each of its networks. While
no result meets the constraints, their scores are ignored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np

from archive.agents.acquisition import functions as acquisitions
from archive.agents.acquisition.functions import Acquisition, UpperConfidenceBound, constrain
from archive.agents.surrogates.base import Array, Fitted, Posterior
from archive.architecture.graph import Architecture
from archive.errors import UnknownNameError, UsageError
from archive.kernels.covariance.dpp import KDPP
from archive.kernels.covariance.spectrum import repair
from archive.values import require_at_least

ADDED_VARIANCE = 1e-6
"""Variance added to each candidate in a k-DPP, as a fraction of the mean variance.

Without it covariances of low rank (five networks give rank four) have no larger subsets of nonzero
probability."""
LEAST_LOG_QUALITY = -10.0
"""Least log q: exp(-10)^2 is 2e-9 of the best.

Candidates far below that would be lost to rounding in the eigendecomposition."""


class BatchSelection(ABC):
    """A rule that selects several architectures at once.

    Attributes:
        name: Name in configurations.
    """

    name: ClassVar[str]

    def select(
        self,
        fitted: Fitted,
        candidates: Sequence[Architecture],
        count: int,
        rng: np.random.Generator,
    ) -> list[int]:
        """Return the positions of the selected candidates, all different.

        Args:
            fitted: The fitted surrogate, conditioned on fantasies of pending proposals.
            candidates: m distinct networks; duplicates could both be selected.
            count: B, at least 1.
            rng: Source of randomness.

        Returns:
            min(B, m) positions in the order in which they were selected; all m, ascending, where B
            >= m.

        Raises:
            UsageError: `count` is less than 1.
        """
        require_at_least(1, count=count)
        if count >= len(candidates):
            return list(range(len(candidates)))

        return self._select(fitted, candidates, count, rng)

    @abstractmethod
    def _select(
        self,
        fitted: Fitted,
        candidates: Sequence[Architecture],
        count: int,
        rng: np.random.Generator,
    ) -> list[int]:
        """Select fewer candidates than there are."""


@final
class Top(BatchSelection):
    """The candidates of largest acquisition, in one ranking; the cheapest rule, without diversity.

    Args:
        acquisition: Acquisition to rank by, a name or an object.
    """

    name = "top"

    def __init__(self, acquisition: str | Acquisition = "ucb") -> None:
        self.acquisition = _acquisition(acquisition)

    def _select(
        self,
        fitted: Fitted,
        candidates: Sequence[Architecture],
        count: int,
        rng: np.random.Generator,
    ) -> list[int]:
        ranks = self.acquisition.rank(
            fitted.posterior(candidates, joint=self.acquisition.joint), rng
        )
        return [int(row) for row in np.argsort(-ranks, kind="stable")[:count]]


@final
class KrigingBeliever(BatchSelection):
    """Sequential selection with a fantasy of each selected candidate; B posteriors.

    Args:
        acquisition: Acquisition to rank by, a name or an object.
    """

    name = "believer"

    def __init__(self, acquisition: str | Acquisition = "ei") -> None:
        self.acquisition = _acquisition(acquisition)

    def _select(
        self,
        fitted: Fitted,
        candidates: Sequence[Architecture],
        count: int,
        rng: np.random.Generator,
    ) -> list[int]:
        selected: list[int] = []
        while True:
            ranks = self.acquisition.rank(
                fitted.posterior(candidates, joint=self.acquisition.joint), rng
            )
            selected.append(_best_other(ranks, selected))
            if len(selected) == count:
                return selected

            fitted = fitted.hallucinate([candidates[selected[-1]]])


@final
class GpBucb(BatchSelection):
    """The kriging believer with UCB: fantasies reduce the deviations, not the means.

    Args:
        kappa: Weight of the uncertainty, at least 0.
    """

    name = "bucb"

    def __init__(self, kappa: float = 2.0) -> None:
        self.kappa = kappa
        self._believer = KrigingBeliever(UpperConfidenceBound(kappa))

    def _select(
        self,
        fitted: Fitted,
        candidates: Sequence[Architecture],
        count: int,
        rng: np.random.Generator,
    ) -> list[int]:
        return self._believer.select(fitted, candidates, count, rng)


@final
class Thompson(BatchSelection):
    """The best candidate of each of B joint samples, without those already selected."""

    name = "thompson"

    def _select(
        self,
        fitted: Fitted,
        candidates: Sequence[Architecture],
        count: int,
        rng: np.random.Generator,
    ) -> list[int]:
        selected: list[int] = []
        posterior = fitted.posterior(candidates, joint=True)
        for drawn in posterior.sample(count, rng):
            selected.append(_best_other(constrain(drawn, posterior), selected))

        return selected


@final
class KDpp(BatchSelection):
    """Diverse and uncertain candidates, regardless of their expected scores; O(m^3)."""

    name = "kdpp"

    def _select(
        self,
        fitted: Fitted,
        candidates: Sequence[Architecture],
        count: int,
        rng: np.random.Generator,
    ) -> list[int]:
        posterior = fitted.posterior(candidates, joint=True)
        return list(
            KDPP(_weight(_similarity(posterior), _log_feasibility(posterior)), count).sample(rng)
        )


@final
class QualityKDpp(BatchSelection):
    """Diverse, uncertain and good candidates; O(m^3).

    Args:
        quality: log q: `mean` for eq. (12), an acquisition, or the name of one. Values that are not
            logarithms (the mean, and the ranks of some acquisitions) are divided by their standard
            deviation over the candidates.
        weight: Factor of log q, at least 0: with 0 this is `KDpp`.
    """

    name = "quality-kdpp"

    def __init__(self, quality: str | Acquisition = "mean", weight: float = 1.0) -> None:
        if not 0.0 <= weight < np.inf:
            raise UsageError(f"weight must be >= 0 and finite, got {weight}")

        self.quality = None if quality == "mean" else _acquisition(quality)
        self.weight = weight

    def _select(
        self,
        fitted: Fitted,
        candidates: Sequence[Architecture],
        count: int,
        rng: np.random.Generator,
    ) -> list[int]:
        posterior = fitted.posterior(candidates, joint=True)
        log_quality = self.weight * self._log_quality(posterior, rng)
        if self.quality is None:
            log_quality += _log_feasibility(posterior)

        return list(KDPP(_weight(_similarity(posterior), log_quality), count).sample(rng))

    def _log_quality(self, posterior: Posterior, rng: np.random.Generator) -> Array:
        """Return log q of each candidate, 0 for the best: (m,) float64."""
        if (
            self.quality is None
            and posterior.feasibility is not None
            and not posterior.feasibility.incumbent
        ):
            return np.zeros(len(posterior.mean))

        ranks = posterior.mean if self.quality is None else self.quality.rank(posterior, rng)
        logarithmic = self.quality is not None and self.quality.logarithmic
        spread = 1.0 if logarithmic else float(ranks.std())
        # The log acquisition of a candidate may be -inf; where all are, all qualities are equal.
        best = float(ranks.max())
        if not np.isfinite(best) or not spread > 0.0:
            return np.zeros(len(ranks))

        quality: Array = np.maximum((ranks - best) / spread, -1e6)
        return quality


_rules: dict[str, type[BatchSelection]] = {
    kind.name: kind for kind in (Top, KrigingBeliever, GpBucb, Thompson, KDpp, QualityKDpp)
}


def names() -> tuple[str, ...]:
    """Return the names of all rules."""
    return tuple(sorted(_rules))


def get(name: str, **config: Any) -> BatchSelection:
    """Return a rule by name, with its settings.

    Raises:
        UnknownNameError: There is no such rule.
    """
    if name not in _rules:
        raise UnknownNameError("batch selection", name, _rules)

    return _rules[name](**config)


def _acquisition(acquisition: str | Acquisition) -> Acquisition:
    return acquisitions.get(acquisition) if isinstance(acquisition, str) else acquisition


def _best_other(ranks: Array, taken: Sequence[int]) -> int:
    """Return the position of the largest rank that is not taken, also if all are -inf."""
    free = np.setdiff1d(np.arange(len(ranks)), taken)
    return int(free[np.argmax(ranks[free])])


def _log_feasibility(posterior: Posterior) -> Array:
    """Return log sqrt(PoF) of each candidate, 0 for the most feasible: (m,) float64."""
    if posterior.feasibility is None:
        return np.zeros(posterior.means.shape[1])

    logs = posterior.feasibility.log_probability
    half: Array = 0.5 * (logs - logs.max())
    return half


def _weight(similarity: Array, log_quality: Array) -> Array:
    """Return q_i K_ij q_j: (m, m) float64, with q of at least `LEAST_LOG_QUALITY` below the best."""
    quality = np.exp(np.maximum(log_quality - log_quality.max(), LEAST_LOG_QUALITY))
    weighted: Array = quality[:, None] * similarity * quality
    return weighted


def _similarity(posterior: Posterior) -> Array:
    """Return the covariance of the mixture, repaired, of full rank and mean variance 1.

    Shape: (m, m) float64.
    """
    covariance = posterior.covariance
    scale = float(np.diagonal(covariance).mean())
    if not scale > 0.0:
        return np.eye(len(covariance))

    sound: Array = repair(covariance / scale, warn=False).matrix
    return sound + ADDED_VARIANCE * np.eye(len(sound))
