"""Compiled training of several small feed-forward networks on sparse inputs, one thread for each member.

Notation:

    symbol   meaning                                                   shape
    M        networks (members)                                        scalar
    n, F     observations, features                                    scalars
    L, W     hidden layers, width of each                              scalars
    theta    weights and biases of one member, in the order of `parts` (P,)
    h_l      max(0, h_{l-1} W_l + b_l), outputs of hidden layer l      (batch, W)
    g        gradient of mean |h_L w + b - y| over a batch             (P,)
    m, v     Adam's moments                                            (P,)

    m <- 0.9 m + 0.1 g,  v <- 0.99 v + 0.01 g^2
    theta <- theta - lr (m / (1 - 0.9^t)) / (sqrt(v / (1 - 0.99^t)) + 1e-7)

BANANAS (section 5.1) specifies Adam, the absolute loss, L = 10, W = 20 and a learning rate of 0.1. Batches (32), epochs
(200), the decay of v (0.99) and the initial weights (Glorot uniform, biases 0) are not specified; they are taken from
the authors' published code, and so is the learning rate, 0.01. With 0.1 the error after 500 networks is twice as large
(path encoding, 6 seeds of `agents.benchmarks.table1`: 1.49 % instead of 0.74 %).

Networks of width 20 are too small for a matrix library: most of the time is spent on calls. For five members, 500
observations and 364 features, compiled loops took 0.9 s of one core, batched numpy more than 2 s and batched torch 3 s.
The loops skip features and units that are 0, and members do not wait for each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive.kernels.compiled import compiled

Singles = NDArray[np.float32]
Positions = NDArray[np.int32]
Starts = NDArray[np.int64]


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
    """The random draws of a training, made beforehand, so that results do not depend on the number of threads.

    Attributes:
        thetas: (M, P) float32, initial weights.
        orders: (M, epochs, n) int32, the order of the observations in each epoch.
    """

    thetas: Singles
    orders: Positions


def plan(shape: NetworkShape, members: int, epochs: int, observations: int, rng: np.random.Generator) -> TrainingDraws:
    """Draw the initial weights and the order of the observations in each epoch."""
    fans = ((shape.features, shape.width), (shape.width, shape.width), (shape.width, 1))
    weights = [
        rng.uniform(-1.0, 1.0, (members, math.prod(part))) * math.sqrt(6.0 / sum(fan))
        for part, fan in zip(shape.parts, fans, strict=False)
    ]
    thetas = np.zeros((members, shape.size), np.float32)
    drawn = np.concatenate(weights, axis=1)
    thetas[:, : drawn.shape[1]] = drawn
    ordered = np.broadcast_to(np.arange(observations, dtype=np.int32), (members, epochs, observations))
    return TrainingDraws(thetas, rng.permuted(ordered, axis=-1))


def train(
    shape: NetworkShape, plan: TrainingDraws, inputs: Singles, targets: Singles, batch: int, rate: float, threads: int
) -> Singles:
    """Train all members and return their weights: (M, P) float32.

    Args:
        shape: Shape of each member.
        plan: Initial weights and orders; not modified.
        inputs: (n, F) float32, sparse for speed.
        targets: (n,) float32.
        batch: Observations a step.
        rate: Adam's learning rate.
        threads: Members trained at a time.
    """
    rows, columns = np.nonzero(inputs)
    starts = np.searchsorted(rows, np.arange(len(inputs) + 1))
    # numpy returns columns of one array; contiguous, so that one compiled version serves any number of entries.
    values, columns = inputs[rows, columns], np.ascontiguousarray(columns)

    def one(member: int) -> Singles:
        theta: Singles = plan.thetas[member].copy()
        _descend(theta, *shape, starts, columns, values, targets, plan.orders[member], batch, rate)
        return theta

    with ThreadPoolExecutor(threads) as pool:
        trained: Singles = np.stack(list(pool.map(one, range(len(plan.thetas)))))
    return trained


def predict(shape: NetworkShape, thetas: Singles, inputs: Singles) -> NDArray[np.float64]:
    """Return the outputs of the members for m inputs, (m, F) float32: (M, m) float64."""
    first, hidden, last, biases, bias = split(shape, thetas)
    h = np.maximum(inputs @ first + biases[:, None, 0], 0)
    for layer in range(shape.layers - 1):
        h = np.maximum(h @ hidden[:, layer] + biases[:, None, layer + 1], 0)
    return np.asarray((h @ last[:, :, None])[..., 0] + bias, dtype=np.float64)


def split(shape: NetworkShape, thetas: Singles) -> Sequence[Singles]:
    """Return the parts of (M, P) weights, each with the members first; views, not copies."""
    ends = np.cumsum([math.prod(part) for part in shape.parts])
    pieces = np.split(thetas, ends[:-1], axis=1)
    return [piece.reshape(len(thetas), *part) for piece, part in zip(pieces, shape.parts, strict=True)]


@compiled
def _descend(
    theta: Singles,
    F: int,
    L: int,
    W: int,
    starts: Starts,
    columns: Starts,
    values: Singles,
    targets: Singles,
    orders: Positions,
    batch: int,
    rate: float,
) -> None:
    n, P = len(targets), len(theta)
    g, m, v = np.zeros(P, np.float32), np.zeros(P, np.float32), np.zeros(P, np.float32)
    h = np.zeros((L, batch, W), np.float32)
    d, e = np.zeros((batch, W), np.float32), np.zeros((batch, W), np.float32)
    power1, power2 = 1.0, 1.0
    for order in orders:
        for start in range(0, n, batch):
            chosen = order[start : start + batch]
            g[:] = np.float32(0.0)
            _forward(theta, F, L, W, starts, columns, values, chosen, h)
            _backward(theta, g, F, L, W, starts, columns, values, targets, chosen, h, d, e)
            power1 *= 0.9
            power2 *= 0.99
            root = math.sqrt(1.0 - power2)
            _adam(theta, g, m, v, np.float32(rate * root / (1.0 - power1)), np.float32(1e-7 * root))


@compiled
def _forward(
    theta: Singles,
    F: int,
    L: int,
    W: int,
    starts: Starts,
    columns: Starts,
    values: Singles,
    chosen: Positions,
    h: Singles,
) -> None:
    first = theta[: F * W].reshape(F, W)
    hidden = theta[F * W : F * W + (L - 1) * W * W].reshape(L - 1, W, W)
    at = F * W + (L - 1) * W * W + W
    biases = theta[at : at + L * W].reshape(L, W)
    for i in range(len(chosen)):
        row = h[0, i]
        row[:] = biases[0]
        for entry in range(starts[chosen[i]], starts[chosen[i] + 1]):
            x, weights = values[entry], first[columns[entry]]
            for j in range(W):
                row[j] += x * weights[j]
        for j in range(W):
            row[j] = max(row[j], np.float32(0.0))
    for layer in range(1, L):
        for i in range(len(chosen)):
            before, row = h[layer - 1, i], h[layer, i]
            row[:] = biases[layer]
            for u in range(W):
                x = before[u]
                if x != 0:
                    for j in range(W):
                        row[j] += x * hidden[layer - 1, u, j]
            for j in range(W):
                row[j] = max(row[j], np.float32(0.0))


@compiled
def _backward(
    theta: Singles,
    g: Singles,
    F: int,
    L: int,
    W: int,
    starts: Starts,
    columns: Starts,
    values: Singles,
    targets: Singles,
    chosen: Positions,
    h: Singles,
    d: Singles,
    e: Singles,
) -> None:
    # d and e are (batch, W) work space: derivatives by the outputs of one layer, then of the layer before it.
    a, b = F * W, F * W + (L - 1) * W * W
    hidden, last, bias = theta[a:b].reshape(L - 1, W, W), theta[b : b + W], theta[-1]
    g_first, g_hidden, g_last = g[:a].reshape(F, W), g[a:b].reshape(L - 1, W, W), g[b : b + W]
    g_biases = g[b + W : b + W + L * W].reshape(L, W)
    share = np.float32(1.0 / len(chosen))
    for i in range(len(chosen)):
        row, output = h[L - 1, i], bias
        for u in range(W):
            output += row[u] * last[u]
        slope = share * np.sign(output - targets[chosen[i]])
        g[-1] += slope
        for u in range(W):
            g_last[u] += slope * row[u]
            d[i, u] = slope * last[u] if row[u] > 0 else np.float32(0.0)
    for layer in range(L - 1, 0, -1):
        turned = hidden[layer - 1].T.copy()
        for i in range(len(chosen)):
            before, above, below = h[layer - 1, i], d[i], e[i]
            below[:] = np.float32(0.0)
            for u in range(W):
                x = before[u]
                if x != 0:
                    for j in range(W):
                        g_hidden[layer - 1, u, j] += x * above[j]
            for j in range(W):
                x = above[j]
                if x != 0:
                    g_biases[layer, j] += x
                    for u in range(W):
                        below[u] += x * turned[j, u]
            for u in range(W):
                if before[u] <= 0:
                    below[u] = np.float32(0.0)
        d, e = e, d
    for i in range(len(chosen)):
        for j in range(W):
            g_biases[0, j] += d[i, j]
        for entry in range(starts[chosen[i]], starts[chosen[i] + 1]):
            x, row = values[entry], g_first[columns[entry]]
            for j in range(W):
                row[j] += x * d[i, j]


@compiled
def _adam(theta: Singles, g: Singles, m: Singles, v: Singles, step: np.float32, epsilon: np.float32) -> None:
    for at in range(len(theta)):
        m[at] = np.float32(0.9) * m[at] + np.float32(0.1) * g[at]
        v[at] = np.float32(0.99) * v[at] + np.float32(0.01) * g[at] * g[at]
        theta[at] -= step * m[at] / (np.sqrt(v[at]) + epsilon)
