"""Training of several small feed-forward networks on sparse inputs, one thread for each member.

Notation:

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
`agents.benchmarks.table1`: 1.49 % instead of 0.74 %).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive.agents.surrogates.ensemble.descent import Positions, Singles, descend, evaluate
from archive.agents.surrogates.ensemble.inputs import SparseInputs


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
    """The random draws of a training, made beforehand, so that results do not depend on the number
    of threads.

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
