"""Slow and obvious forms of the kernels, and networks for both."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from archive.architecture.graph import Architecture, Layer
from archive.architecture.layer_mass import layer_masses

GROUPS = {
    "cnn": ({"conv3", "conv5", "conv7", "res3", "res5", "res7"}, {"max-pool", "avg-pool"}, {"fc"}),
    "mlp": ({"relu", "crelu", "leaky-relu", "softplus", "elu"}, {"logistic", "tanh"}),
}
RECTIFIERS = GROUPS["mlp"][0]
SIZES = {0: 0.0, 2: 0.2, 4: 0.3}


def is_positive_semidefinite(matrix: np.ndarray, tolerance: float | None = None) -> bool:
    """Whether no eigenvalue is below minus a share of the largest, by default that of rounding."""
    values = np.linalg.eigvalsh(matrix)
    share = 1e-14 * len(matrix) if tolerance is None else tolerance
    return bool(values[0] >= -share * np.abs(values).max())


def label_penalty(x: str, y: str) -> float:
    """Tables 4 and 5 and the rule for res layers, read off the paper."""
    if x == y:
        return 0.0

    if {x, y} == {"max-pool", "avg-pool"}:
        return 0.25

    if x[:-1] in ("conv", "res") and y[:-1] in ("conv", "res"):
        sizes = SIZES[abs(int(x[-1]) - int(y[-1]))]
        return sizes if x[:-1] == y[:-1] else 0.9 * sizes + 0.1

    activations = RECTIFIERS | GROUPS["mlp"][1]
    if x in activations and y in activations:
        return 0.1 if (x in RECTIFIERS) == (y in RECTIFIERS) else 0.25

    return np.inf


def lengths(architecture: Architecture, group: set[str] | None) -> np.ndarray:
    """(n, 6): shortest, longest and random walk length from the input, then to the output."""
    n = len(architecture.layers)
    weight = [float(group is None or layer.op in group) for layer in architecture.layers]
    found = np.zeros((n, 6))
    for u in range(1, n):
        before = [found[p, :3] for p in architecture.parents[u]] or [np.zeros(3)]
        found[u, :3] = weight[u] + summary(before)

    for u in reversed(range(n - 1)):
        after = [found[c, 3:] for c in architecture.children[u]] or [np.zeros(3)]
        found[u, 3:] = weight[u] + summary(after)

    return found


def summary(near: list[np.ndarray]) -> np.ndarray:
    table = np.array(near)
    return np.array([table[:, 0].min(), table[:, 1].max(), table[:, 2].mean()])


def costs(first: Architecture, second: Architecture) -> tuple[np.ndarray, np.ndarray]:
    """Label and structural costs of appendix A.3, both (n1, n2)."""
    label = np.array([[label_penalty(x.op, y.op) for y in second.layers] for x in first.layers])
    groups = [None, *GROUPS.get(first.space, ())]
    structure = np.zeros(label.shape)
    for group in groups:
        one = lengths(first, group)
        two = lengths(second, group)
        structure += np.abs(one[:, None] - two[None]).mean(axis=2) / len(groups)

    return label, structure


def program_3(a: np.ndarray, b: np.ndarray, cost: np.ndarray) -> float:
    """The optimum of program (3): cost of the matching plus what stays unmatched, by HiGHS."""
    scale = max(a.max(initial=0), b.max(initial=0))
    # The solver's tolerances are absolute; masses run from 1 to 1e8.
    a, b = (a / scale, b / scale) if scale else (a, b)
    n1, n2 = cost.shape
    sums = np.zeros((n1 + n2, n1 * n2))
    for i in range(n1):
        sums[i, i * n2 : (i + 1) * n2] = 1

    for j in range(n2):
        sums[n1 + j, j::n2] = 1

    gain = np.minimum(cost, 1e3).ravel() - 2
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(gain, A_ub=sums, b_ub=np.concatenate([a, b]), method="highs", options=options)
    assert found.status == 0, found.message
    return scale * float(found.fun + a.sum() + b.sum())


def otmann(first: Architecture, second: Architecture, nu: float) -> float:
    label, structure = costs(first, second)
    return program_3(
        np.array(layer_masses(first)), np.array(layer_masses(second)), label + nu * structure
    )


def chain(
    space: str, *body: tuple[str, int | None], skips: tuple[tuple[int, int], ...] = ()
) -> Architecture:
    """Layers one after the other between the ends, with extra edges between positions of the
    whole."""
    decision = {"cnn": "softmax", "mlp": "linear"}[space]
    inner = [Layer(op, units, 2 if op.endswith("pool") else 1) for op, units in body]
    layers = [Layer("ip"), *inner, Layer(decision), Layer("op")]
    edges = {(u, u + 1) for u in range(len(layers) - 1)} | set(skips)
    return Architecture(space, layers, sorted(edges))


def long_chain(length: int, seed: int, *, equal: bool = False) -> Architecture:
    """A cnn of `length` convolutions with skips, far beyond what a space allows."""
    rng = np.random.default_rng(seed)
    labels = ["conv3"] if equal else ["conv3", "conv5", "conv7", "res3"]
    body = [
        (str(rng.choice(labels)), 16 if equal else int(rng.integers(8, 1024)))
        for _ in range(length)
    ]
    tails = rng.integers(0, length - 2, size=length // 5)
    heads = [int(rng.integers(tail + 2, length + 1)) for tail in tails]
    return chain("cnn", *body, skips=tuple(zip(map(int, tails), heads, strict=True)))
