"""Compiled backpropagation and Adam for one small feed-forward network.

Inputs are sparse.

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

Networks of this size are too small for a matrix library: most of the time is spent on calls. The
loops skip features and units that are 0. They add in the order of the formulas, so that the results
do not depend on how they are compiled.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive.kernels.compiled import compiled

Singles = NDArray[np.float32]
Doubles = NDArray[np.float64]
Positions = NDArray[np.int32]
Starts = NDArray[np.int64]


LEAST_MOMENT = np.float32(1e-36)
"""Smaller moments are set to 0.

Units that are 0 for all observations have weights without a gradient. Their moments decay below the
smallest normal number, 1e-38. Processors take a hundred times as long for such numbers: they were
85 % of the time of a training on 1,000 cells. A moment of this size changes no weight in single
precision."""


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
    n = len(targets)
    P = len(theta)
    g = np.zeros(P, np.float32)
    m = np.zeros(P, np.float32)
    v = np.zeros(P, np.float32)
    h = np.zeros((L, batch, W), np.float32)
    d = np.zeros((batch, W), np.float32)
    e = np.zeros((batch, W), np.float32)
    entries = _NonzeroEntries(
        np.zeros(max(batch, W), np.int64), np.zeros(max(batch, W), np.float32)
    )
    weights = _views(theta, F, L, W)
    gradient = _views(g, F, L, W)
    power1 = 1.0
    power2 = 1.0
    for order in orders:
        for start in range(0, n, batch):
            batch_rows = order[start : start + batch]
            _forward(weights, starts, columns, values, batch_rows, h, entries)
            _backward(
                weights, gradient, starts, columns, values, targets, batch_rows, h, d, e, entries
            )
            power1 *= 0.9
            power2 *= 0.99
            root = math.sqrt(1.0 - power2)
            _adam(theta, g, m, v, np.float32(rate * root / (1.0 - power1)), np.float32(1e-7 * root))


@compiled
def evaluate(
    theta: Singles,
    F: int,
    L: int,
    W: int,
    starts: Starts,
    columns: Starts,
    values: Singles,
    outputs: Doubles,
) -> None:
    """Write the outputs of one network for m inputs.

    Args:
        theta: (P,), weights and biases.
        F: Number of features.
        L: Number of hidden layers.
        W: Width of each hidden layer.
        starts: (m + 1,), position of each input's first entry in `columns` and `values`.
        columns: (entries,), features that are not 0.
        values: (entries,), their values.
        outputs: (m,), overwritten.
    """
    h = np.zeros((L, 1, W), np.float32)
    entries = _NonzeroEntries(np.zeros(W, np.int64), np.zeros(W, np.float32))
    weights = _views(theta, F, L, W)
    batch_rows = np.zeros(1, np.int32)
    for i in range(len(outputs)):
        batch_rows[0] = i
        _forward(weights, starts, columns, values, batch_rows, h, entries)
        outputs[i] = _output(weights, h[L - 1, 0])


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
        theta[:a].reshape(F, W),
        theta[a:b].reshape(L - 1, W, W),
        theta[b:c],
        theta[c:d].reshape(L, W),
        theta[d:],
    )


class _NonzeroEntries(NamedTuple):
    """Work space: positions and values of the numbers of a vector that are not 0."""

    places: Starts
    values: Singles


@compiled
def _forward(
    weights: _ThetaViews,
    starts: Starts,
    columns: Starts,
    values: Singles,
    batch_rows: Positions,
    h: Singles,
    entries: _NonzeroEntries,
) -> None:
    """Write the outputs of all hidden layers for a batch."""
    L, W = weights.biases.shape
    for i in range(len(batch_rows)):
        row = h[0, i]
        row[:] = weights.biases[0]
        _add_rows(
            row, weights.first, columns, values, starts[batch_rows[i]], starts[batch_rows[i] + 1]
        )
        for j in range(W):
            row[j] = max(row[j], np.float32(0.0))

    for layer in range(1, L):
        for i in range(len(batch_rows)):
            row = h[layer, i]
            row[:] = weights.biases[layer]
            count = _nonzero(h[layer - 1, i], entries)
            _add_rows(row, weights.hidden[layer - 1], entries.places, entries.values, 0, count)
            for j in range(W):
                row[j] = max(row[j], np.float32(0.0))


@compiled
def _output(weights: _ThetaViews, row: Singles) -> np.float32:
    output: np.float32 = weights.bias[0]
    for u in range(len(row)):
        output += row[u] * weights.last[u]

    return output


@compiled
def _nonzero(vector: Singles, entries: _NonzeroEntries) -> int:
    """Write the numbers of a vector that are not 0 to `entries`, and return their number."""
    count = 0
    for u in range(len(vector)):
        # Without a branch: it would be predicted wrongly for every other unit.
        entries.places[count] = u
        entries.values[count] = vector[u]
        count += vector[u] != 0

    return count


@compiled
def _add_rows(
    row: Singles, matrix: Singles, places: Starts, factors: Singles, begin: int, end: int
) -> None:
    """Add factors[k] * matrix[places[k]] to a row, for k from `begin` to `end`, in this order.

    Four at a time: the row is then read and written once for four of them.
    """
    whole = end - (end - begin) % 4
    for k in range(begin, whole, 4):
        x0 = factors[k]
        x1 = factors[k + 1]
        x2 = factors[k + 2]
        x3 = factors[k + 3]
        row0 = matrix[places[k]]
        row1 = matrix[places[k + 1]]
        row2 = matrix[places[k + 2]]
        row3 = matrix[places[k + 3]]
        for j in range(len(row)):
            row[j] = row[j] + x0 * row0[j] + x1 * row1[j] + x2 * row2[j] + x3 * row3[j]

    for k in range(whole, end):
        x0 = factors[k]
        row0 = matrix[places[k]]
        for j in range(len(row)):
            row[j] += x0 * row0[j]


@compiled
def _backward(
    weights: _ThetaViews,
    gradient: _ThetaViews,
    starts: Starts,
    columns: Starts,
    values: Singles,
    targets: Singles,
    batch_rows: Positions,
    h: Singles,
    d: Singles,
    e: Singles,
    entries: _NonzeroEntries,
) -> None:
    """Add the gradient of a batch to `gradient`.

    d and e, (batch, W), are work space: derivatives of the loss by the outputs of one layer, and of
    the layer below.
    """
    L = len(weights.biases)
    _backward_output(weights, gradient, targets, batch_rows, h[L - 1], d)
    for layer in range(L - 1, 0, -1):
        _backward_hidden(
            weights.hidden[layer - 1], gradient, layer, h[layer - 1], d, e, len(batch_rows), entries
        )
        d, e = e, d

    _backward_input(gradient, starts, columns, values, batch_rows, d)


@compiled
def _backward_output(
    weights: _ThetaViews,
    gradient: _ThetaViews,
    targets: Singles,
    batch_rows: Positions,
    h: Singles,
    d: Singles,
) -> None:
    W = len(weights.last)
    share = np.float32(1.0 / len(batch_rows))
    for i in range(len(batch_rows)):
        row = h[i]
        slope = share * np.sign(_output(weights, row) - targets[batch_rows[i]])
        gradient.bias[0] += slope
        for u in range(W):
            gradient.last[u] += slope * row[u]
            d[i, u] = slope * weights.last[u] if row[u] > 0 else np.float32(0.0)


@compiled
def _backward_hidden(
    hidden: Singles,
    gradient: _ThetaViews,
    layer: int,
    h: Singles,
    d: Singles,
    e: Singles,
    count: int,
    entries: _NonzeroEntries,
) -> None:
    W = len(hidden)
    transposed = hidden.T.copy()
    for u in range(W):
        active = _nonzero(h[:count, u], entries)
        _add_rows(gradient.hidden[layer - 1, u], d, entries.places, entries.values, 0, active)

    for i in range(count):
        above = d[i]
        below = e[i]
        below[:] = np.float32(0.0)
        for j in range(W):
            gradient.biases[layer, j] += above[j]

        active = _nonzero(above, entries)
        _add_rows(below, transposed, entries.places, entries.values, 0, active)
        for u in range(W):
            if h[i, u] <= 0:
                below[u] = np.float32(0.0)


@compiled
def _backward_input(
    gradient: _ThetaViews,
    starts: Starts,
    columns: Starts,
    values: Singles,
    batch_rows: Positions,
    d: Singles,
) -> None:
    W = d.shape[1]
    for i in range(len(batch_rows)):
        for j in range(W):
            gradient.biases[0, j] += d[i, j]

        for entry in range(starts[batch_rows[i]], starts[batch_rows[i] + 1]):
            x = values[entry]
            row = gradient.first[columns[entry]]
            for j in range(W):
                row[j] += x * d[i, j]


@compiled
def _adam(
    theta: Singles, g: Singles, m: Singles, v: Singles, step: np.float32, epsilon: np.float32
) -> None:
    """Take a step of Adam, and set the gradient to 0 for the next one."""
    for index in range(len(theta)):
        first = np.float32(0.9) * m[index] + np.float32(0.1) * g[index]
        second = np.float32(0.99) * v[index] + np.float32(0.01) * g[index] * g[index]
        theta[index] -= step * first / (np.sqrt(second) + epsilon)
        m[index] = first if abs(first) > LEAST_MOMENT else np.float32(0.0)
        v[index] = second if second > LEAST_MOMENT else np.float32(0.0)
        g[index] = np.float32(0.0)
