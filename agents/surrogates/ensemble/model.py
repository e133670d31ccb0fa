"""An ensemble of feed-forward networks on features of architectures: the surrogate of BANANAS.

Notation, with the equations of BANANAS (White, Neiswanger, Savani):

    symbol   meaning                                                             shape
    M, m     members, architectures asked about                                  scalars
    f_k      what member k says, in score units                                  (M, m)
    mu       mean over the members, f-hat                    eq. (1)             (m,)
    D        deviations (f_k - mu) / sqrt(M - 1)                                 (M, m)
    s^2      column sums of D^2, sigma-hat squared           eq. (1)             (m,)
    C        D^T A D, covariance of the scores                                   (m, m)
    A        the identity, until points are believed                             (M, M)
    tau2     mean square of mu's errors on its own observations                  scalar

The paper treats the members' answers as a Gaussian of mean mu and standard deviation s (appendix B.2): so the posterior
is one Gaussian (S = 1), and acquisitions see what the paper's see. Joint samples need covariances, which the paper does
not have; C is the members' own. Its rank is at most M - 1: five members hold four independent doubts, and a joint
sample is a random mixture of the members, where the paper's Thompson sampling (eq. 5) takes one of them.

Pending proposals: the paper ignores them and takes the best ten of one ranking. Training anew on believed scores would
cost a training for each. Here the Gaussian (mu, C) is conditioned on the believed scores with noise tau2, which is
A <- (A^-1 + D_p D_p^T / tau2)^-1 for believed points p: mu stays, the members' disagreement that shows at p is taken
out everywhere, and it costs next to nothing. After M - 1 points that differ, hardly any member_covariance is left: the rank again.

Features that no observation has are left out. The paper has an input for every path there might be; its weight stays at
its random start and adds noise to what is said of networks that have the path. Features are divided by their largest
absolute value, 1 for the binary encodings of the paper, and scores standardised: the paper trains on percent. On
the NAS-Bench-101 sample standardising lowered the mean absolute error by a tenth or more at 20, 100 and 500 networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from archive import cpu_count, kernels
from archive.agents.surrogates.base import Array, Fitted, Posterior, Surrogate, check_scores
from archive.agents.surrogates.ensemble.training import NetworkShape, Singles, plan, predict, train
from archive.agents.surrogates.outcome_transforms import Scale
from archive.agents.surrogates.threads import one_thread
from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError, NumericalError, UsageError
from archive.kernels.base import check_one_space
from archive.kernels.features.embedding import Embedded, EmbeddedDistance, matrix, vocabulary

# Believed scores are never taken for exact, even where the members know all observations by heart.
LEAST_NOISE = 1e-3


@final
class Ensemble(Surrogate):
    """Feed-forward networks that differ in initial weights and in the order of the observations.

    Results depend on the generator alone, not on `threads`.

    Args:
        encoding: Gives the features, by its name in the registry of kernels or as an object.
        members: M; at least 2, or there is no deviation.
        layers: Hidden layers of each member.
        width: Units of each.
        epochs: Passes over the observations.
        rate: Adam's learning rate.
        batch: Observations a step.
        threads: Members trained at a time; None for the processors this process may use.

    Raises:
        UsageError: A setting is out of range, or the kernel has no features.
    """

    def __init__(
        self,
        encoding: str | EmbeddedDistance = "path",
        members: int = 5,
        layers: int = 10,
        width: int = 20,
        epochs: int = 200,
        rate: float = 0.01,
        batch: int = 32,
        threads: int | None = None,
    ) -> None:
        """Check and keep the settings."""
        distance = kernels.get(encoding) if isinstance(encoding, str) else encoding
        if not isinstance(distance, EmbeddedDistance):
            raise UsageError(f"encoding must be a kernel with features, got {getattr(distance, 'name', distance)!r}")
        self.encoding = distance
        for name, value, least in (
            ("members", members, 2),
            ("layers", layers, 1),
            ("width", width, 1),
            ("epochs", epochs, 1),
            ("batch", batch, 1),
            ("threads", 1 if threads is None else threads, 1),
        ):
            if value < least:
                raise UsageError(f"{name} must be >= {least}, got {value}")
        if not 0.0 < rate < np.inf:
            raise UsageError(f"rate must be > 0 and finite, got {rate}")
        self.members, self.layers, self.width = members, layers, width
        self.epochs, self.rate, self.batch = epochs, rate, batch
        self.threads = threads or cpu_count.available()

    def fit(self, architectures: Sequence[Architecture], scores: Array, rng: np.random.Generator) -> FittedEnsemble:
        """See `Surrogate.fit`.

        Raises:
            InvalidArchitectureError: The networks are of different spaces, or have no features.
            NumericalError: Also where the weights grew without bound, as they may at a high learning rate.
        """
        check_scores(architectures, scores)
        networks = [self.encoding.prepare(architecture) for architecture in architectures]
        check_one_space(networks)
        inputs = Inputs.of(self.encoding, networks)
        scale = Scale.of(scores)
        shape = NetworkShape(inputs.size, self.layers, self.width)
        drawn = plan(shape, self.members, self.epochs, len(scores), rng)
        targets = scale.standardise(scores).astype(np.float32)
        thetas = train(shape, drawn, inputs.read(networks), targets, self.batch, self.rate, self.threads)
        fitted = FittedEnsemble(inputs, shape, thetas, scale, float(scores.max()), 1.0, np.eye(self.members))
        said = fitted.members(networks)
        if not np.isfinite(said).all():
            raise NumericalError(f"the ensemble's weights grew without bound: lower its learning rate, got {self.rate}")
        errors = np.square(said.mean(axis=0) - scores).mean()
        return replace(fitted, noise=max(float(errors), LEAST_NOISE * scale.spread**2))


@dataclass(frozen=True, eq=False)
class Inputs:
    """Which features enter, and how.

    Attributes:
        encoding: Gives the features.
        space: Of the observed networks.
        names: The features of the observed networks, for each component of the encoding.
        largest: (F,) float64, their largest absolute values.
    """

    encoding: EmbeddedDistance
    space: str
    names: tuple[tuple[str, ...], ...]
    largest: Array

    @classmethod
    def of(cls, encoding: EmbeddedDistance, networks: Sequence[Embedded]) -> Inputs:
        """Choose the features of observed networks, at least one."""
        names = tuple(vocabulary(networks, component) for component in range(len(encoding.components)))
        raw = cls(encoding, networks[0].space, names, np.ones(1))._columns(networks)
        # Networks without a single feature are all alike; one constant column lets them have a mean.
        return cls(encoding, networks[0].space, names, np.abs(raw).max(axis=0) if raw.shape[1] else np.zeros(1))

    @property
    def size(self) -> int:
        """F."""
        return len(self.largest)

    def read(self, networks: Sequence[Embedded]) -> Singles:
        """Return the inputs of m networks: (m, F) float32, in [-1, 1] for those observed."""
        raw = self._columns(networks)
        if not raw.shape[1]:
            return np.zeros((len(networks), 1), np.float32)
        return (raw / self.largest).astype(np.float32)

    def _columns(self, networks: Sequence[Embedded]) -> Array:
        parts = [matrix(networks, names, component) for component, names in enumerate(self.names)]
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True, eq=False)
class FittedEnsemble(Fitted):
    """What `Ensemble` has learnt.

    Attributes:
        inputs: From networks to inputs.
        shape: Of each member.
        thetas: (M, P) float32, the members' weights.
        scale: From scores to standardised values.
        best: The incumbent's score, believed ones included.
        noise: tau2, in squared score units.
        member_covariance: (M, M) float64: A.
    """

    inputs: Inputs
    shape: NetworkShape
    thetas: Singles
    scale: Scale
    best: float
    noise: float
    member_covariance: Array

    def posterior(self, architectures: Sequence[Architecture], *, joint: bool = False) -> Posterior:
        """See `Fitted.posterior`.

        Raises:
            InvalidArchitectureError: A network is of another space than those observed.
        """
        mean, deviations = self._moments(architectures)
        variances = np.einsum("km,kl,lm->m", deviations, self.member_covariance, deviations, optimize=True)
        covariances = (deviations.T @ self.member_covariance @ deviations)[None] if joint else None
        return Posterior(mean[None], np.maximum(variances, 0.0)[None], np.array([self.best]), covariances)

    def hallucinate(self, architectures: Sequence[Architecture]) -> FittedEnsemble:
        """See `Fitted.hallucinate`, and the head of this module."""
        if len(architectures) == 0:
            return self
        mean, deviations = self._moments(architectures)
        precision = np.linalg.inv(self.member_covariance) + deviations @ deviations.T / self.noise
        member_covariance = np.linalg.inv(precision)
        return replace(self, best=max(self.best, float(mean.max())), member_covariance=0.5 * (member_covariance + member_covariance.T))

    def members(self, networks: Sequence[Embedded]) -> Array:
        """Return what each member says of m prepared networks, in score units: (M, m) float64."""
        with np.errstate(over="ignore", invalid="ignore"), one_thread():
            said = predict(self.shape, self.thetas, self.inputs.read(networks))
        found: Array = self.scale.centre + self.scale.spread * said
        return found

    def _moments(self, architectures: Sequence[Architecture]) -> tuple[Array, Array]:
        networks = [self.inputs.encoding.prepare(architecture) for architecture in architectures]
        for network in networks:
            if network.space != self.inputs.space:
                raise InvalidArchitectureError(
                    f"the ensemble was trained on networks of space {self.inputs.space}, got one of {network.space}"
                )
        said = self.members(networks)
        mean = said.mean(axis=0)
        return mean, (said - mean) / np.sqrt(len(said) - 1)
