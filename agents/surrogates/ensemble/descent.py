"""Compiled gradient descent for one small feed-forward network on sparse inputs, by backpropagation and Adam.

Notation:

    symbol   meaning                                                   shape
    n, F     observations, features                                    scalars
    L, W     hidden layers, width of each                              scalars
    theta    weights and biases, in the order of `NetworkShape.parts`  (P,)
    h_l      max(0, h_{l-1} W_l + b_l), outputs of hidden layer l      (batch, W)
    g        gradient of mean |h_L w + b - y| over a batch             (P,)
    m, v     Adam's moments                                            (P,)

    m <- 0.9 m + 0.1 g,  v <- 0.99 v + 0.01 g^2
    theta <- theta - rate (m / (1 - 0.9^t)) / (sqrt(v / (1 - 0.99^t)) + 1e-7)

Networks of width 20 are too small for a matrix library: most of the time is spent on calls. For five members, 500
observations and 364 features, compiled loops took 0.9 s of one core, batched numpy more than 2 s and batched torch 3 s.
The loops skip features and units that are 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive.kernels.compiled import compiled

Singles = NDArray[np.float32]
Positions = NDArray[np.int32]
Starts = NDArray[np.int64]


@compiled
def descend(
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
    """Train one network, in place.

    Args:
        theta: (P,), initial weights and biases; overwritten by the trained ones.
        F: Number of features.
        L: Number of hidden layers.
        W: Width of each hidden layer.
        starts: (n + 1,), position of each observation's first entry in `columns` and `values`.
        columns: (entries,), features that are not 0.
        values: (entries,), their values.
        targets: (n,), y.
        orders: (epochs, n), order of the observations in each epoch.
        batch: Observations a step.
        rate: Adam's learning rate.
    """
    n, P = len(targets), len(theta)
    g, m, v = np.zeros(P, np.float32), np.zeros(P, np.float32), np.zeros(P, np.float32)
    h = np.zeros((L, batch, W), np.float32)
    d, e = np.zeros((batch, W), np.float32), np.zeros((batch, W), np.float32)
    weights, gradient = _views(theta, F, L, W), _views(g, F, L, W)
    power1, power2 = 1.0, 1.0
    for order in orders:
        for start in range(0, n, batch):
            chosen = order[start : start + batch]
            g[:] = np.float32(0.0)
            _forward(weights, starts, columns, values, chosen, h)
            _backward(weights, gradient, starts, columns, values, targets, chosen, h, d, e)
            power1 *= 0.9
            power2 *= 0.99
            root = math.sqrt(1.0 - power2)
            _adam(theta, g, m, v, np.float32(rate * root / (1.0 - power1)), np.float32(1e-7 * root))


class _ThetaViews(NamedTuple):
    """Views of the parts of theta, or of its gradient: weights by layer, then biases."""

    first: Singles
    hidden: Singles
    last: Singles
    biases: Singles
    bias: Singles


@compiled
def _views(theta: Singles, F: int, L: int, W: int) -> _ThetaViews:
    a = F * W
    b = a + (L - 1) * W * W
    c = b + W
    d = c + L * W
    return _ThetaViews(
        theta[:a].reshape(F, W), theta[a:b].reshape(L - 1, W, W), theta[b:c], theta[c:d].reshape(L, W), theta[d:]
    )


@compiled
def _forward(
    weights: _ThetaViews, starts: Starts, columns: Starts, values: Singles, chosen: Positions, h: Singles
) -> None:
    """Write the outputs of all hidden layers for a batch."""
    L, W = weights.biases.shape
    for i in range(len(chosen)):
        row = h[0, i]
        row[:] = weights.biases[0]
        for entry in range(starts[chosen[i]], starts[chosen[i] + 1]):
            x, of_feature = values[entry], weights.first[columns[entry]]
            for j in range(W):
                row[j] += x * of_feature[j]
        for j in range(W):
            row[j] = max(row[j], np.float32(0.0))
    for layer in range(1, L):
        for i in range(len(chosen)):
            below, row = h[layer - 1, i], h[layer, i]
            row[:] = weights.biases[layer]
            for u in range(W):
                x = below[u]
                if x != 0:
                    for j in range(W):
                        row[j] += x * weights.hidden[layer - 1, u, j]
            for j in range(W):
                row[j] = max(row[j], np.float32(0.0))


@compiled
def _backward(
    weights: _ThetaViews,
    gradient: _ThetaViews,
    starts: Starts,
    columns: Starts,
    values: Singles,
    targets: Singles,
    chosen: Positions,
    h: Singles,
    d: Singles,
    e: Singles,
) -> None:
    """Add the gradient of a batch to `gradient`.

    d and e, (batch, W), are work space: derivatives of the loss by the outputs of one layer, and of the layer below.
    """
    L = len(weights.biases)
    _backward_output(weights, gradient, targets, chosen, h[L - 1], d)
    for layer in range(L - 1, 0, -1):
        _backward_hidden(weights.hidden[layer - 1], gradient, layer, h[layer - 1], d, e, len(chosen))
        d, e = e, d
    _backward_input(gradient, starts, columns, values, chosen, d)


@compiled
def _backward_output(
    weights: _ThetaViews, gradient: _ThetaViews, targets: Singles, chosen: Positions, h: Singles, d: Singles
) -> None:
    W = len(weights.last)
    share = np.float32(1.0 / len(chosen))
    for i in range(len(chosen)):
        row, output = h[i], weights.bias[0]
        for u in range(W):
            output += row[u] * weights.last[u]
        slope = share * np.sign(output - targets[chosen[i]])
        gradient.bias[0] += slope
        for u in range(W):
            gradient.last[u] += slope * row[u]
            d[i, u] = slope * weights.last[u] if row[u] > 0 else np.float32(0.0)


@compiled
def _backward_hidden(
    hidden: Singles, gradient: _ThetaViews, layer: int, h: Singles, d: Singles, e: Singles, count: int
) -> None:
    W = len(hidden)
    transposed = hidden.T.copy()
    for i in range(count):
        outputs, above, below = h[i], d[i], e[i]
        below[:] = np.float32(0.0)
        for u in range(W):
            x = outputs[u]
            if x != 0:
                for j in range(W):
                    gradient.hidden[layer - 1, u, j] += x * above[j]
        for j in range(W):
            x = above[j]
            if x != 0:
                gradient.biases[layer, j] += x
                for u in range(W):
                    below[u] += x * transposed[j, u]
        for u in range(W):
            if outputs[u] <= 0:
                below[u] = np.float32(0.0)


@compiled
def _backward_input(
    gradient: _ThetaViews, starts: Starts, columns: Starts, values: Singles, chosen: Positions, d: Singles
) -> None:
    W = d.shape[1]
    for i in range(len(chosen)):
        for j in range(W):
            gradient.biases[0, j] += d[i, j]
        for entry in range(starts[chosen[i]], starts[chosen[i] + 1]):
            x, row = values[entry], gradient.first[columns[entry]]
            for j in range(W):
                row[j] += x * d[i, j]


@compiled
def _adam(theta: Singles, g: Singles, m: Singles, v: Singles, step: np.float32, epsilon: np.float32) -> None:
    for at in range(len(theta)):
        m[at] = np.float32(0.9) * m[at] + np.float32(0.1) * g[at]
        v[at] = np.float32(0.99) * v[at] + np.float32(0.01) * g[at] * g[at]
        theta[at] -= step * m[at] / (np.sqrt(v[at]) + epsilon)
