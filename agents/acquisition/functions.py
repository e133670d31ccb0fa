"""Acquisition functions: the utility of evaluating an architecture, from its posterior.

An acquisition depends on the posterior alone. It is averaged over the members of the mixture by
their weights: over hyperparameter samples (Snoek et al., 2012, section 3.2), or over models.

    symbol   meaning                                       shape
    mu, s    mean and standard deviation of a member       (S, m)
    tau      the incumbent's (transformed) score, by member (S,)
    z        (mu - tau) / s                                (S, m)
    phi,Phi  density and distribution of the normal law

    EI   = s h(z),  h(z) = phi(z) + z Phi(z)               eq. (2) of NASBOT in closed form; with noise, c for s
    PI   = Phi(z)
    UCB  = mu + kappa s
    TS   = a joint sample of the scores
    ITS  = an independent sample of each score             BANANAS' authors' code
    c    = change of the posterior mean by one noisy evaluation (`surrogates.noisy_incumbent`)

Under constraints, PoF is the probability that a network meets them
(`archive.agents.constraints.feasibility`), and f the floor, the lowest expected score of a known
network:

    EI, PI           times PoF
    UCB, TS, ITS     f + PoF (value - f)
    any              PoF alone, while no result meets the constraints

With the posterior of an ensemble (`surrogates.ensemble`) EI, PI and UCB are eqs. (2)-(4) of
BANANAS, which minimises; its beta is kappa.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from archive.agents.surrogates.base import LEAST_STD, Array, Posterior
from archive.agents.surrogates.noisy_incumbent import mean_change, rivals
from archive.errors import UnknownNameError, UsageError
from archive.values import require_at_least

_LOG_ROOT_TWO_PI = 0.5 * np.log(2.0 * np.pi)


class Acquisition(ABC):
    """An acquisition function of a posterior.

    Attributes:
        name: Name in configurations.
        logarithmic: Whether `rank` returns logarithms, so that `value = exp(rank)`. Logarithms
            distinguish candidates with values that underflow.
        random: Whether every call of `rank` draws other ranks.
    """

    name: ClassVar[str]
    logarithmic: ClassVar[bool] = False
    random: ClassVar[bool] = False

    @abstractmethod
    def rank(self, posterior: Posterior, rng: np.random.Generator) -> Array:
        """Return the quantity to maximise, for m architectures: (m,) float64, never NaN.

        Args:
            posterior: Posterior of the m architectures, with covariances if `joint`.
            rng: Used by Thompson sampling only.
        """

    def value(self, rank: float) -> float:
        """Return the acquisition's value, in its own unit, from a rank."""
        return float(np.exp(rank)) if self.logarithmic else float(rank)

    @property
    def joint(self) -> bool:
        """Whether the posterior must hold covariances."""
        return False


class ExpectedImprovement(Acquisition):
    """E[max(0, f - tau)], in score units; ranked by its logarithm (Ament et al., 2023)."""

    name = "ei"
    logarithmic = True

    def rank(self, posterior: Posterior, rng: np.random.Generator) -> Array:
        """See `Acquisition.rank`."""
        std = np.maximum(_changes(posterior), LEAST_STD)
        z = (posterior.means - posterior.best[:, None]) / std
        return constrain(posterior.log_average(log_h(z) + np.log(std)), posterior, logarithmic=True)


def repeat_gains(posterior: Posterior) -> Array:
    """Return the logarithms of the expected gains of repeats: (u,) float64.

    Gains are in the unit of `ExpectedImprovement`.

    Args:
        posterior: Posterior of the u observed networks, with noise.
    """
    std = np.maximum(_changes(posterior), LEAST_STD)
    z = -np.abs(posterior.means - rivals(posterior.means)) / std
    return posterior.log_average(log_h(z) + np.log(std))


class ProbabilityOfImprovement(Acquisition):
    """P(f > tau), ranked by its logarithm."""

    name = "pi"
    logarithmic = True

    def rank(self, posterior: Posterior, rng: np.random.Generator) -> Array:
        """See `Acquisition.rank`."""
        std = np.maximum(np.sqrt(posterior.variances), LEAST_STD)
        ranks = posterior.log_average(log_ndtr((posterior.means - posterior.best[:, None]) / std))
        return constrain(ranks, posterior, logarithmic=True)


class UpperConfidenceBound(Acquisition):
    """Mean plus kappa standard deviations, in score units.

    Args:
        kappa: Weight of the uncertainty, at least 0.
    """

    name = "ucb"

    def __init__(self, kappa: float = 2.0) -> None:
        require_at_least(0, kappa=kappa)
        self.kappa = kappa

    def rank(self, posterior: Posterior, rng: np.random.Generator) -> Array:
        """See `Acquisition.rank`."""
        return constrain(
            posterior.average(posterior.means + self.kappa * np.sqrt(posterior.variances)),
            posterior,
        )


class ThompsonSampling(Acquisition):
    """One joint sample of the scores, in score units.

    Every call draws another function: candidates are comparable within one call only.
    """

    name = "ts"
    random = True

    @property
    def joint(self) -> bool:
        """A joint sample needs covariances."""
        return True

    def rank(self, posterior: Posterior, rng: np.random.Generator) -> Array:
        """See `Acquisition.rank`."""
        return constrain(posterior.sample(1, rng)[0], posterior)


class IndependentThompsonSampling(Acquisition):
    """An independent sample of each score: no covariances, and comparable across calls.

    Samples are in score units.
    """

    name = "its"
    random = True

    def rank(self, posterior: Posterior, rng: np.random.Generator) -> Array:
        """See `Acquisition.rank`."""
        count = posterior.means.shape[1]
        members = posterior.members(count, rng)
        drawn_from = members, np.arange(count)
        means = posterior.means[drawn_from]
        variances = posterior.variances[drawn_from]
        drawn: Array = means + np.sqrt(variances) * rng.standard_normal(count)
        return constrain(drawn, posterior)


_acquisitions: dict[str, type[Acquisition]] = {
    kind.name: kind
    for kind in (
        ExpectedImprovement,
        ProbabilityOfImprovement,
        UpperConfidenceBound,
        ThompsonSampling,
        IndependentThompsonSampling,
    )
}


def names() -> tuple[str, ...]:
    """Return the names of all acquisitions."""
    return tuple(sorted(_acquisitions))


def get(name: str, **config: float) -> Acquisition:
    """Return an acquisition by name: `ei`, `pi`, `ucb`, `ts` or `its`.

    Args:
        name: Its name.
        **config: Its settings, by name: `kappa` of `ucb`.

    Raises:
        UnknownNameError: There is no such acquisition.
    """
    if name not in _acquisitions:
        raise UnknownNameError("acquisition", name, _acquisitions)

    return _acquisitions[name](**config)


def get_marginal(agent: str, name: str, **config: float) -> Acquisition:
    """Return an acquisition for candidates in several parts, each with its posterior.

    Args:
        agent: Name of the agent, for errors.
        name: Name of the acquisition; see `get`.
        **config: Its settings; see `get`.

    Raises:
        UnknownNameError: There is no such acquisition.
        UsageError: The acquisition needs the joint posterior of all candidates, as Thompson
            sampling does.
    """
    acquisition = get(name, **config)
    if acquisition.joint:
        raise UsageError(
            f"the acquisition {name} must rank all candidates at once, "
            f"and agent {agent} ranks them in several parts: choose ei, pi, ucb or its"
        )

    return acquisition


def constrain(ranks: Array, posterior: Posterior, *, logarithmic: bool = False) -> Array:
    """Return ranks weighted by the probability of feasibility: (m,) float64.

    Args:
        ranks: (m,) float64, larger is better.
        posterior: Posterior of the architectures.
        logarithmic: Whether the ranks are logarithms.
    """
    feasibility = posterior.feasibility
    if feasibility is None:
        return ranks

    logs = feasibility.log_probability
    floor = feasibility.floor
    if not feasibility.incumbent:
        return logs if logarithmic else np.exp(logs)

    if logarithmic:
        return ranks + logs

    above = ranks - floor
    weighted: Array = floor + np.where(above > 0.0, np.exp(logs) * above, above)
    return weighted


def log_h(z: Array) -> Array:
    r"""Return log(phi(z) + z Phi(z)) without underflow or cancellation, of any shape.

    Above -1 the sum has no cancellation to speak of. Below it, with the scaled complementary error
    function, h(z) = phi(z) (1 - |z| sqrt(pi/2) erfcx(|z|/sqrt 2)). The bracket is about 1/z^2 and
    loses its digits as |z| grows; from -300 down the series of Mills' ratio, 1/z^2 (1 - 3/z^2 +
    15/z^4), holds to 1e-13 (Ament et al., 2023).
    """
    z = np.asarray(z, dtype=np.float64)
    result = np.empty_like(z)
    near = z > -1.0
    far = z < -300.0
    middle = ~(near | far)
    # Where z^2 overflows, the density is 0 and its logarithm -inf, which is correct.
    with np.errstate(over="ignore", under="ignore"):
        square = np.square(z)
        density = np.exp(-0.5 * square[near]) / np.sqrt(2.0 * np.pi)
        result[near] = np.log(density + z[near] * ndtr(z[near]))
        bracket = 1.0 + z[middle] * np.sqrt(np.pi / 2.0) * erfcx(-z[middle] / np.sqrt(2.0))
        result[middle] = -0.5 * square[middle] - _LOG_ROOT_TWO_PI + np.log(bracket)
        series = np.log1p(-3.0 / square[far] + 15.0 / square[far] ** 2)
        result[far] = -0.5 * square[far] - _LOG_ROOT_TWO_PI - 2.0 * np.log(-z[far]) + series

    return result


def _changes(posterior: Posterior) -> Array:
    """Return s, or c where evaluations have noise: (S, m) float64."""
    if posterior.noises is None:
        stds: Array = np.sqrt(posterior.variances)
        return stds

    return mean_change(posterior.variances, posterior.noises)
