"""Surrogate of a study: one model of one objective, whichever agent searches.

| symbol | meaning                                                                  | shape   |
|--------|--------------------------------------------------------------------------|---------|
| f      | noise-free scores of m networks, larger is better                        | (m,)    |
| mu, s  | mean and standard deviation of f (`Posterior.in_scores`)                 | (m,)    |
| F      | joint samples of f                                                       | (S, m)  |

Predictions for an agent's suggestions, for other candidates and for whole regions are comparable
because they come from this model: for configurations, the mixture of Gaussian processes and a
forest (`archive.agents.configurations`); for networks, also with parameters beside them, the
stacked Gaussian processes of `archive.agents.recommendation`. Neither uses source studies or
zero-cost proxies, which an agent's own model may.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from archive.agents.base import History
from archive.agents.configurations.history import Coder
from archive.agents.configurations.mixture import CodeMixture
from archive.agents.configurations.mixture import fit as fit_mixture
from archive.agents.configurations.search import EXACT_TRANSFORM, NOISY_TRANSFORM
from archive.agents.observations import Observation, is_noisy, replicates, scores_of
from archive.agents.recommendation import LEAST, fit_networks, most_of
from archive.agents.surrogates import outcome_transforms
from archive.agents.surrogates.base import Array, Posterior
from archive.agents.surrogates.gp.fitted import FittedGP
from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError, NumericalError
from archive.spaces.base import Space
from archive.spaces.parameters import Parameters
from archive.values import counted

if TYPE_CHECKING:
    from archive.agents.surrogates.stacking import FittedStackedGP


@dataclass(frozen=True)
class LeftOutScores:
    """Each observed network, predicted from all others.

    Hyperparameters are fitted once, to all results.

    Attributes:
        observed: (u,) mean score of each network.
        means: (u,) predicted means.
        stds: (u,) predicted standard deviations of the observed means, noise included.
    """

    observed: Array
    means: Array
    stds: Array


class StudySurrogate(ABC):
    """A fitted model of one objective; immutable.

    Attributes:
        model: Its name in words.
        networks: Number of different networks that it is fitted to.
        noise: Estimated standard deviation of the noise of an evaluation, in score units; 0 for
            results without noise.
    """

    model: ClassVar[str]
    networks: int
    noise: float

    @abstractmethod
    def predict(self, networks: Sequence[Architecture]) -> tuple[Array, Array]:
        """Return mu and s of m members of the space: (m,), (m,) float64."""

    @abstractmethod
    def sample(
        self, networks: Sequence[Architecture], count: int, rng: np.random.Generator
    ) -> Array:
        """Draw F for m members of the space: (count, m) float64."""

    @abstractmethod
    def left_out(self) -> LeftOutScores:
        """Return each observed network, predicted from all others."""


@dataclass(frozen=True)
class SurrogateFit:
    """A surrogate, or the reason why there is none.

    Attributes:
        surrogate: The surrogate; None for none.
        reason: Why there is none; None with one.
    """

    surrogate: StudySurrogate | None
    reason: str | None

    @property
    def model(self) -> str | None:
        """Name of the surrogate in words; None without one."""
        return None if self.surrogate is None else self.surrogate.model


def fit(space: Space, observations: Sequence[Observation]) -> SurrogateFit:
    """Return the surrogate of observations.

    The fit has a fixed seed: the same observations give the same predictions.

    Args:
        space: The space of the study.
        observations: Whole evaluations of finite score, larger is better; in a space with
            parameters beside networks, of both.
    """
    if not space.searchable:
        return _none(f"networks of the space {space.name} are recorded, and no model compares them")

    if any(seen.hyperparameters for seen in observations):
        return _none("trainings differ in hyperparameters, which the model does not know")

    groups = replicates(observations)
    if len(groups) < LEAST:
        return _none(f"a prediction needs results of {LEAST} different networks, got {len(groups)}")

    means = np.array([np.mean(scores_of(group)) for group in groups])
    kept = list(chain.from_iterable(most_of(groups, means)))
    noisy = is_noisy(observations)
    if isinstance(space.whole, Parameters):
        surrogate = _fit_configurations(space.whole, kept, noisy=noisy)
    else:
        surrogate = _fit_networks(space, kept, noisy=noisy)

    if surrogate is None:
        return _none(f"no model fits the {counted(len(observations), 'result')}")

    return SurrogateFit(surrogate, None)


def _none(reason: str) -> SurrogateFit:
    return SurrogateFit(None, reason)


def _fit_configurations(
    space: Parameters, observations: Sequence[Observation], *, noisy: bool
) -> StudySurrogate | None:
    coder = Coder(space)
    coded = coder.read(History(tuple(observations)))
    if len(coded.scores) < LEAST:
        return None

    transform = outcome_transforms.get(NOISY_TRANSFORM if noisy else EXACT_TRANSFORM)
    try:
        mixture = fit_mixture(space.parameters, coded, transform, np.random.default_rng(0))
    except NumericalError:
        return None

    return ConfigurationSurrogate(coder, mixture, mixture.noise if noisy else 0.0)


def _fit_networks(
    space: Space, observations: Sequence[Observation], *, noisy: bool
) -> StudySurrogate | None:
    stacked = fit_networks(space, observations, noisy=noisy)
    if stacked is None:
        return None

    noise = 0.0
    if noisy:
        noise = float(np.sqrt(np.average(stacked.noises(), weights=stacked.weights)))

    return NetworkSurrogate(stacked, len(replicates(observations)), noise)


@final
class NetworkSurrogate(StudySurrogate):
    """Stacked Gaussian processes of networks.

    Args:
        stacked: The fitted processes.
        networks: Number of different networks.
        noise: Standard deviation of the noise.
    """

    model = "stacked Gaussian processes"

    def __init__(self, stacked: FittedStackedGP, networks: int, noise: float) -> None:
        self.networks = networks
        self.noise = noise
        self._stacked = stacked

    def predict(self, networks: Sequence[Architecture]) -> tuple[Array, Array]:
        """See `StudySurrogate.predict`."""
        functional = [network.functional for network in networks]
        return _moments(self._stacked.posterior(functional))

    def sample(
        self, networks: Sequence[Architecture], count: int, rng: np.random.Generator
    ) -> Array:
        """See `StudySurrogate.sample`."""
        functional = [network.functional for network in networks]
        posterior = self._stacked.posterior(functional, joint=True)
        # All members have one transform.
        drawn: Array = posterior.scales[0].restore(posterior.sample(count, rng))
        return drawn

    def left_out(self) -> LeftOutScores:
        """See `StudySurrogate.left_out`."""
        # None has sources: all are plain processes.
        members = [member for member in self._stacked.members if isinstance(member, FittedGP)]
        parts = [member.left_out() for member in members]
        first = members[0]
        scale = first.scale
        observed, _ = first.observations.merge(first.processes[0].noise)
        means = np.concatenate([part.means for part in parts])
        posterior = Posterior(
            means,
            np.concatenate([part.variances for part in parts]),
            np.zeros(len(means)),
            weights=self._stacked.weights,
            scales=(scale,) * len(means),
        )
        scores = scale.restore(scale.centre + scale.spread * observed)
        return LeftOutScores(scores, *_moments(posterior))


@final
class ConfigurationSurrogate(StudySurrogate):
    """Gaussian processes and a forest of configurations.

    Args:
        coder: Codes of the space's configurations.
        mixture: The fitted models.
        noise: Standard deviation of the noise.
    """

    model = "Gaussian processes and a forest"

    def __init__(self, coder: Coder, mixture: CodeMixture, noise: float) -> None:
        self.networks = len(mixture.incumbents)
        self.noise = noise
        self._coder = coder
        self._mixture = mixture

    def predict(self, networks: Sequence[Architecture]) -> tuple[Array, Array]:
        """See `StudySurrogate.predict`."""
        return _moments(self._mixture.posterior(self._codes(networks)))

    def sample(
        self, networks: Sequence[Architecture], count: int, rng: np.random.Generator
    ) -> Array:
        """See `StudySurrogate.sample`."""
        standardised = self._mixture.sample(self._codes(networks), count, rng)
        return self._restore(standardised)

    def left_out(self) -> LeftOutScores:
        """See `StudySurrogate.left_out`."""
        parts = [model.left_out() for model in self._mixture.models]
        means = np.array([mean for mean, _ in parts])
        variances = np.array([variance for _, variance in parts])
        scale = self._mixture.scale
        posterior = Posterior.of_standardised(scale, means, variances, np.zeros(len(means)))
        weighted = Posterior(
            posterior.means,
            posterior.variances,
            posterior.best,
            weights=self._mixture.weights,
            scales=posterior.scales,
        )
        return LeftOutScores(self._restore(self._mixture.values), *_moments(weighted))

    def _restore(self, standardised: Array) -> Array:
        scale = self._mixture.scale
        restored: Array = scale.restore(scale.centre + scale.spread * standardised)
        return restored

    def _codes(self, networks: Sequence[Architecture]) -> Array:
        rows = []
        for network in networks:
            row = self._coder.encode(network)
            if row is None:
                raise InvalidArchitectureError(
                    f"the configuration {network.key[:8]} is not in the space of the study"
                )

            rows.append(row)

        return np.array(rows, np.float64).reshape(len(rows), len(self._coder.space.parameters))


def _moments(posterior: Posterior) -> tuple[Array, Array]:
    scores = posterior.in_scores()
    return scores.mean, scores.std
