"""Ensemble of feed-forward networks on features of architectures: the surrogate of BANANAS.

Notation, with the equations of BANANAS (White, Neiswanger, Savani):

    symbol   meaning                                                             shape
    M, m     members, query architectures                                        scalars
    f_k      prediction of member k, in score units                              (M, m)
    mu       mean over the members, f-hat                    eq. (1)             (m,)
    D        deviations (f_k - mu) / sqrt(M - 1)                                 (M, m)
    s^2      column sums of D^2, sigma-hat squared           eq. (1)             (m,)
    C        D^T A D, covariance of the scores                                   (m, m)
    A        the identity, without fantasies                                     (M, M)
    tau2     mean square of mu's errors on its own observations                  scalar

The paper treats the members' predictions as a Gaussian of mean mu and standard deviation s
(appendix B.2). The posterior is therefore one Gaussian (S = 1), and acquisitions are the
paper's. Joint samples need covariances, which the paper does not define; C is the members' empirical
covariance. Its rank is at most M - 1, four for five members, and a joint sample is a random mixture
of the members, where the paper's Thompson sampling (eq. 5) takes one of them.

Pending proposals: the paper ignores them and takes the best ten of one ranking. Refitting on
fantasy scores would cost a training for each. Here the Gaussian (mu, C) is conditioned on the
fantasies with noise tau2, which is A <- (A^-1 + D_p D_p^T / tau2)^-1 for fantasised points p: mu
stays the same, and the members' disagreement at p is removed everywhere, at negligible cost. After
M - 1 distinct points hardly any variance remains, because of the rank.

Features that no observed network has are left out. The paper has an input for every possible path;
the weight of an unobserved one stays at its random initial value and adds noise to predictions for
networks that have the path. Features are divided by their largest absolute value, 1 for the binary
encodings of the paper, and scores are standardised, where the paper trains on percent. On the
NAS-Bench-101 sample standardising lowered the mean absolute error by a tenth or more at 20, 100 and
500 networks.

Training, with one thread for each member:

    symbol   meaning                                                   shape
    M        networks (members)                                        scalar
    n, F     observations, features                                    scalars
    L, W     hidden layers, width of each                              scalars
    theta    weights and biases of one member, in the order of `parts` (P,)

Each member is trained by Adam on the mean absolute error (`descent`). Members do not wait for each
other.

BANANAS (section 5.1) specifies Adam, the absolute loss, L = 10, W = 20 and a learning rate of 0.1.
Batches (32), epochs (200), the decay of v (0.99) and the initial weights (Glorot uniform, biases 0)
are not specified; they are taken from the authors' published code, and so is the learning rate,
0.01. With 0.1 the error after 500 networks is twice as large (path encoding, 6 seeds of
`tests.benchmarks.agents.table1`: 1.49 % instead of 0.74 %).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from archive import kernels, runtime
from archive.agents.surrogates.base import Array, Fitted, Posterior, Surrogate, check_scores
from archive.agents.surrogates.ensemble.descent import Positions, Singles, descend, evaluate
from archive.agents.surrogates.ensemble.inputs import Inputs, SparseInputs
from archive.agents.surrogates.many.features import SparseFeatures
from archive.agents.surrogates.outcome_transforms import Scale
from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError, NumericalError, UsageError
from archive.kernels.features.embedding import EmbeddedDistance
from archive.values import require_at_least

LEAST_NOISE = 1e-3
"""Least noise of fantasy scores, relevant where the members interpolate all observations."""


@final
class Ensemble(Surrogate):
    """Feed-forward networks that differ in initial weights and in the order of the observations.

    Results depend on the generator alone, not on `threads`.

    Args:
        encoding: Source of the features: a name in the registry of kernels, or an object.
        members: M; at least 2, as the deviation needs.
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
        distance = kernels.get(encoding) if isinstance(encoding, str) else encoding
        if not isinstance(distance, EmbeddedDistance):
            raise UsageError(
                "encoding must be a kernel with features, got "
                f"{getattr(distance, 'name', distance)!r}"
            )

        self.encoding = distance
        require_at_least(2, members=members)
        require_at_least(1, layers=layers, width=width, epochs=epochs, batch=batch, threads=threads)
        if not 0.0 < rate < np.inf:
            raise UsageError(f"rate must be > 0 and finite, got {rate}")

        self.members = members
        self.layers = layers
        self.width = width
        self.epochs = epochs
        self.rate = rate
        self.batch = batch
        self.threads = threads or runtime.count_cores()
        self._features = SparseFeatures((distance,))

    def fit(
        self,
        architectures: Sequence[Architecture],
        scores: Array,
        rng: np.random.Generator,
        variances: Array | None = None,
    ) -> FittedEnsemble:
        """See `Surrogate.fit`; variances are ignored.

        Raises:
            InvalidArchitectureError: The networks are of different spaces, or have no features.
            NumericalError: Also where the weights diverged, as they may at a high learning rate.
        """
        check_scores(architectures, scores)
        inputs = Inputs.of(self._features, architectures)
        scale = Scale.of(scores)
        shape = NetworkShape(inputs.size, self.layers, self.width)
        drawn = plan(shape, self.members, self.epochs, len(scores), rng)
        targets = scale.standardise(scores).astype(np.float32)
        rows = SparseInputs.of(inputs.read(architectures))
        thetas = train(shape, drawn, rows, targets, self.batch, self.rate, self.threads)
        fitted = FittedEnsemble(
            inputs, shape, thetas, scale, float(scores.max()), 1.0, np.eye(self.members)
        )
        predictions = fitted.members(architectures)
        if not np.isfinite(predictions).all():
            raise NumericalError(
                f"the ensemble's weights diverged: lower its learning rate, got {self.rate}"
            )

        errors = np.square(predictions.mean(axis=0) - scores).mean()
        return replace(fitted, noise=max(float(errors), LEAST_NOISE * scale.spread**2))


@dataclass(frozen=True, eq=False)
class FittedEnsemble(Fitted):
    """A fitted `Ensemble`.

    Attributes:
        inputs: Maps networks to inputs.
        shape: Shape of each member.
        thetas: (M, P) float32, the members' weights.
        scale: Maps scores to standardised values.
        best: The incumbent's score, fantasies included.
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
        variances = np.einsum(
            "km,kl,lm->m", deviations, self.member_covariance, deviations, optimize=True
        )
        covariances = (deviations.T @ self.member_covariance @ deviations)[None] if joint else None
        return Posterior(
            mean[None], np.maximum(variances, 0.0)[None], np.array([self.best]), covariances
        )

    def hallucinate(self, architectures: Sequence[Architecture]) -> FittedEnsemble:
        """See `Fitted.hallucinate`, and the head of this module."""
        if len(architectures) == 0:
            return self

        mean, deviations = self._moments(architectures)
        precision = np.linalg.inv(self.member_covariance) + deviations @ deviations.T / self.noise
        updated = np.linalg.inv(precision)
        return replace(
            self,
            best=max(self.best, float(mean.max())),
            member_covariance=0.5 * (updated + updated.T),
        )

    def members(self, architectures: Sequence[Architecture]) -> Array:
        """Return the predictions of the members for m networks, in score units: (M, m) float64."""
        with np.errstate(over="ignore", invalid="ignore"):
            outputs = predict(self.shape, self.thetas, self.inputs.rows(architectures))
            predictions: Array = self.scale.centre + self.scale.spread * outputs

        return predictions

    def _moments(self, architectures: Sequence[Architecture]) -> tuple[Array, Array]:
        for network in architectures:
            if network.space != self.inputs.space:
                raise InvalidArchitectureError(
                    f"the ensemble was trained on networks of space {self.inputs.space}, "
                    f"got one of {network.space}"
                )

        predictions = self.members(architectures)
        mean = predictions.mean(axis=0)
        return mean, (predictions - mean) / np.sqrt(len(predictions) - 1)


class NetworkShape(NamedTuple):
    """Numbers of features, hidden layers and units in each layer, all at least 1."""

    features: int
    layers: int
    width: int

    @property
    def parts(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of theta's parts: first, hidden and last weights, hidden biases, last bias."""
        return (
            (self.features, self.width),
            (self.layers - 1, self.width, self.width),
            (self.width,),
            (self.layers, self.width),
            (1,),
        )

    @property
    def size(self) -> int:
        """Number of weights and biases of a member: P."""
        return sum(map(math.prod, self.parts))


class TrainingDraws(NamedTuple):
    """Random draws of a training, made before it: threads do not change results.

    Attributes:
        thetas: (M, P) float32, initial weights.
        orders: (M, epochs, n) int32, the order of the observations in each epoch.
    """

    thetas: Singles
    orders: Positions


def plan(
    shape: NetworkShape, members: int, epochs: int, observations: int, rng: np.random.Generator
) -> TrainingDraws:
    """Draw the initial weights and the order of the observations in each epoch."""
    fans = ((shape.features, shape.width), (shape.width, shape.width), (shape.width, 1))
    weights = [
        rng.uniform(-1.0, 1.0, (members, math.prod(part))) * math.sqrt(6.0 / sum(fan))
        for part, fan in zip(shape.parts, fans, strict=False)
    ]
    thetas = np.zeros((members, shape.size), np.float32)
    drawn = np.concatenate(weights, axis=1)
    thetas[:, : drawn.shape[1]] = drawn
    ordered = np.broadcast_to(
        np.arange(observations, dtype=np.int32), (members, epochs, observations)
    )
    return TrainingDraws(thetas, rng.permuted(ordered, axis=-1))


def train(
    shape: NetworkShape,
    draws: TrainingDraws,
    inputs: SparseInputs,
    targets: Singles,
    batch: int,
    rate: float,
    threads: int,
) -> Singles:
    """Train all members and return their weights: (M, P) float32.

    Args:
        shape: Shape of each member.
        draws: Initial weights and orders; not modified.
        inputs: (n, F).
        targets: (n,) float32.
        batch: Observations a step.
        rate: Adam's learning rate.
        threads: Members trained at a time.
    """

    def train_member(member: int) -> Singles:
        theta: Singles = draws.thetas[member].copy()
        descend(theta, *shape, *inputs, targets, draws.orders[member], batch, rate)
        return theta

    with ThreadPoolExecutor(threads) as pool:
        trained: Singles = np.stack(list(pool.map(train_member, range(len(draws.thetas)))))

    return trained


def predict(shape: NetworkShape, thetas: Singles, inputs: SparseInputs) -> NDArray[np.float64]:
    """Return the outputs of the members for m inputs, (m, F): (M, m) float64."""
    outputs = np.empty((len(thetas), len(inputs.starts) - 1))
    for theta, row in zip(thetas, outputs, strict=True):
        evaluate(theta, *shape, *inputs, row)

    return outputs


def split(shape: NetworkShape, thetas: Singles) -> Sequence[Singles]:
    """Return the parts of (M, P) weights, each with the members first; views, not copies."""
    ends = np.cumsum([math.prod(part) for part in shape.parts])
    pieces = np.split(thetas, ends[:-1], axis=1)
    return [
        piece.reshape(len(thetas), *part) for piece, part in zip(pieces, shape.parts, strict=True)
    ]
