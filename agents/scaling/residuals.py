"""What designs lose against a scaling law: log L minus the law, learnt by the archive's models.

| symbol | meaning                                                                        | shape |
|--------|--------------------------------------------------------------------------------|-------|
| g      | log L minus the law, of m designs at their scale                               | (m,)  |
| N, D   | parameters; tokens of the training                                             | (m,)  |

A design of a space of parameters is modelled with log N and log D as two further parameters, by the
Gaussian processes of `archive.agents.configurations`: the best learning rate depends on the scale. A
network is modelled by the stacked Gaussian processes of its space, whose kernels see its size but not
the length of its training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from archive.agents.advice import study_surrogate
from archive.agents.advice.study_surrogate import StudySurrogate
from archive.agents.base import History
from archive.agents.configurations import mixture
from archive.agents.configurations.history import CodedHistory, Coder
from archive.agents.configurations.mixture import CodeMixture
from archive.agents.observations import Observation
from archive.agents.recommendation import LEAST
from archive.agents.surrogates import outcome_transforms
from archive.agents.surrogates.base import Array
from archive.architecture.graph import Architecture
from archive.errors import NumericalError
from archive.parameters.declaration import Declaration
from archive.parameters.parameter_space import ParameterSpace
from archive.parameters.ranges import Real
from archive.spaces.base import Space
from archive.spaces.parameters import Parameters

_MODELS = ("gaussian-process",)


@dataclass(frozen=True, eq=False)
class ScaledRuns:
    """n trainings with their results, or designs to forecast.

    Attributes:
        networks: The design of each.
        params: (n,) float64, N.
        tokens: (n,) float64, D.
        losses: (n,) float64, L; empty of a forecast.
    """

    networks: Sequence[Architecture]
    params: Array
    tokens: Array
    losses: Array

    def __len__(self) -> int:
        """Number of trainings."""
        return len(self.params)

    def take(self, rows: NDArray[np.integer[Any]]) -> ScaledRuns:
        """Return some of the runs, by their indices."""
        networks = [self.networks[row] for row in rows.tolist()]
        losses = self.losses[rows] if len(self.losses) else self.losses
        return ScaledRuns(networks, self.params[rows], self.tokens[rows], losses)


class ResidualModel(Protocol):
    """A fitted model of g."""

    @property
    def noise(self) -> float:
        """Standard deviation of a training's log L beside g."""
        ...

    def predict(self, designs: ScaledRuns) -> tuple[Array, Array]:
        """Return means and standard deviations of g: (m,), (m,) float64."""
        ...

    def sample(self, designs: ScaledRuns, count: int, rng: np.random.Generator) -> Array:
        """Draw g jointly: (count, m) float64."""
        ...


def learn(space: Space, runs: ScaledRuns, residuals: Array) -> ResidualModel | None:
    """Return the model of g; None with too few designs, or where no model fits.

    Args:
        space: Space of the designs.
        runs: The runs.
        residuals: (n,) g of each, with noise.
    """
    whole = space.whole
    if isinstance(whole, Parameters):
        return _learn_configurations(whole, runs, residuals)

    observations = []
    for number, (network, residual) in enumerate(
        zip(runs.networks, residuals.tolist(), strict=True)
    ):
        observations.append(Observation(network, -residual, str(number), seed=number))

    surrogate = study_surrogate.fit(space, observations).surrogate
    return None if surrogate is None else NetworkResiduals(surrogate)


def _learn_configurations(
    space: Parameters, runs: ScaledRuns, residuals: Array
) -> ConfigurationResiduals | None:
    if len(set(runs.networks)) < LEAST:
        return None

    scaled = ScaledCodes(space, runs)
    codes = scaled.encode(runs)
    history = CodedHistory(codes, -residuals, codes[:0], frozenset(), noisy=True)
    transform = outcome_transforms.get("none")
    try:
        fitted = mixture.fit(
            scaled.space, history, transform, np.random.default_rng(0), names=_MODELS
        )
    except NumericalError:
        return None

    return ConfigurationResiduals(scaled, fitted)


class ScaledCodes:
    """Codes of configurations with log N and log D beside the parameters.

    Args:
        space: The space.
        runs: ScaledRuns that the range of the two is from; beyond them, codes leave [0, 1].

    Attributes:
        space: The parameters, and two more.
    """

    def __init__(self, space: Parameters, runs: ScaledRuns) -> None:
        """Read the ranges."""
        self._coder = Coder(space)
        self._ranges = [_range(np.log(runs.params)), _range(np.log(runs.tokens))]
        declared = dict(space.parameters.declared)
        for name in ("scale__log_params", "scale__log_tokens"):
            declared[name] = Declaration(Real(0.0, 1.0))

        self.space = ParameterSpace(declared)

    def encode(self, designs: ScaledRuns) -> Array:
        """Return codes: (m, D + 2) float64; all designs are of the space."""
        history = History(tuple(Observation(network, 0.0, "") for network in designs.networks))
        codes = self._coder.read(history).codes
        columns = [codes]
        for values, (low, high) in zip((designs.params, designs.tokens), self._ranges, strict=True):
            columns.append(((np.log(values) - low) / (high - low))[:, None])

        return np.hstack(columns)


def _range(values: Array) -> tuple[float, float]:
    low = float(values.min())
    high = float(values.max())
    return low, high if high > low else low + 1.0


@final
@dataclass(frozen=True, eq=False)
class ConfigurationResiduals:
    """Gaussian processes of -g.

    Attributes:
        codes: Codes of designs.
        fitted: The processes.
    """

    codes: ScaledCodes
    fitted: CodeMixture

    @property
    def noise(self) -> float:
        """See `ResidualModel.noise`."""
        return self.fitted.noise

    def predict(self, designs: ScaledRuns) -> tuple[Array, Array]:
        """See `ResidualModel.predict`."""
        expected = self.fitted.posterior(self.codes.encode(designs)).in_scores()
        return -expected.mean, expected.std

    def sample(self, designs: ScaledRuns, count: int, rng: np.random.Generator) -> Array:
        """See `ResidualModel.sample`."""
        drawn = self.fitted.sample(self.codes.encode(designs), count, rng)
        scale = self.fitted.scale
        sampled: Array = -scale.restore(scale.centre + scale.spread * drawn)
        return sampled


@final
@dataclass(frozen=True, eq=False)
class NetworkResiduals:
    """The surrogate of -g of a space of networks.

    Attributes:
        surrogate: The surrogate.
    """

    surrogate: StudySurrogate

    @property
    def noise(self) -> float:
        """See `ResidualModel.noise`."""
        return self.surrogate.noise

    def predict(self, designs: ScaledRuns) -> tuple[Array, Array]:
        """See `ResidualModel.predict`."""
        means, stds = self.surrogate.predict(designs.networks)
        return -means, stds

    def sample(self, designs: ScaledRuns, count: int, rng: np.random.Generator) -> Array:
        """See `ResidualModel.sample`."""
        sampled: Array = -self.surrogate.sample(designs.networks, count, rng)
        return sampled
