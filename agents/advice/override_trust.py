"""Trust in a proposer's overrides: which of them to evaluate in place of an agent's suggestion.

| symbol   | meaning                                                                       | shape  |
|----------|-------------------------------------------------------------------------------|--------|
| mu, s    | predicted mean and standard deviation of an override, before its evaluation   | scalar |
| y        | its result, larger is better                                                  | scalar |
| z        | (y - mu) / s, within `LARGEST` of 0                                           | (n,)   |
| b        | advantage: what the proposer knows beyond the model, in units of s            | scalar |
| m, v     | mean and variance of b given z                                                | scalar |
| o, p     | an override, and the agent's own suggestion                                   |        |

    b ~ N(0, TAU^2),  z_i | b ~ N(b, 1)
    v = 1 / (1 / TAU^2 + n),  m = v sum_i z_i
    o is evaluated  <=>  EI(mu_o + (m + OPTIMISM sqrt(v)) s_o, s_o) >= EI(mu_p, s_p)

A proposer that knows something the model does not has results above the predictions: b is positive,
and its overrides count as better than predicted. A proposer without knowledge has b = 0, and its
overrides are evaluated where the model itself expects as much of them. A proposer that is wrong has
results below the predictions, and after a few of them its overrides are no longer evaluated. Until
there are results, the standard deviation of b speaks for it (optimism in the face of uncertainty:
Auer, Using confidence bounds for exploitation-exploration trade-offs, JMLR 2002). The shift is in
units of s: where the model is certain, a proposer has nothing to add.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from archive.agents.acquisition.functions import ExpectedImprovement
from archive.agents.surrogates.base import Posterior

TAU = 1.0
"""Standard deviation of the advantage before the first result."""

OPTIMISM = 1.0
"""Standard deviations of the advantage that speak for a proposer."""

LARGEST = 3.0
"""Largest absolute z: one surprise must not decide alone."""

_UNUSED = np.random.default_rng(0)
"""Argument of `ExpectedImprovement.rank`, which draws no random numbers."""


class Expectation(NamedTuple):
    """Predicted score of a network, larger is better.

    Attributes:
        mean: Its mean.
        std: Its standard deviation.
    """

    mean: float
    std: float


@dataclass(frozen=True)
class OverrideVerdict:
    """Whether an override should be evaluated in place of the agent's suggestion.

    Attributes:
        accepted: Whether it should.
        override: Logarithm of its expected improvement, with the proposer's advantage.
        suggestion: Logarithm of the expected improvement of the agent's suggestion.
        advantage: Mean of the advantage, in predicted standard deviations.
        uncertainty: Standard deviation of the advantage.
        results: Number of earlier overrides with a result and a prediction.
    """

    accepted: bool
    override: float
    suggestion: float
    advantage: float
    uncertainty: float
    results: int


@dataclass(frozen=True)
class OverrideTrust:
    """Evidence about one proposer.

    Attributes:
        surprises: z of each override with a result.
    """

    surprises: tuple[float, ...] = ()

    def with_result(self, expected: Expectation, score: float) -> OverrideTrust:
        """Return the evidence with one more result.

        Args:
            expected: Prediction of the override before its evaluation, of the score with noise.
            score: Its result.
        """
        if not expected.std > 0.0:
            return self

        surprise = (score - expected.mean) / expected.std
        limited = float(np.clip(surprise, -LARGEST, LARGEST))
        return OverrideTrust((*self.surprises, limited))

    @property
    def advantage(self) -> Expectation:
        """Mean and standard deviation of b."""
        variance = 1.0 / (TAU**-2 + len(self.surprises))
        return Expectation(variance * sum(self.surprises), float(np.sqrt(variance)))

    def judge(self, override: Expectation, suggestion: Expectation, best: float) -> OverrideVerdict:
        """Return whether an override should be evaluated.

        Args:
            override: Its prediction.
            suggestion: The prediction of the agent's suggestion, by the same model.
            best: The best score so far.
        """
        advantage = self.advantage
        shift = advantage.mean + OPTIMISM * advantage.std
        shifted = Expectation(override.mean + shift * override.std, override.std)
        of_override, of_suggestion = _log_improvements([shifted, suggestion], best)
        return OverrideVerdict(
            accepted=of_override >= of_suggestion,
            override=of_override,
            suggestion=of_suggestion,
            advantage=advantage.mean,
            uncertainty=advantage.std,
            results=len(self.surprises),
        )


def _log_improvements(expected: Sequence[Expectation], best: float) -> list[float]:
    means = np.array([[entry.mean for entry in expected]])
    variances = np.square(np.array([[entry.std for entry in expected]]))
    posterior = Posterior(means, variances, np.array([best]))
    improvements: list[float] = ExpectedImprovement().rank(posterior, _UNUSED).tolist()
    return improvements
