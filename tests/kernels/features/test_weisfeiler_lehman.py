"""The Weisfeiler-Lehman kernel against relabelling with a dictionary, and on graphs that it cannot
distinguish."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.architecture.graph import Architecture, Layer
from archive.errors import InvalidArchitectureError, UsageError
from archive.kernels.features.paths import label
from archive.kernels.features.weisfeiler_lehman import WeisfeilerLehman, subtree_counts
from tests.support import kernel_oracle
from tests.support.strategies import cells, members, relabelled

CONV = "conv3x3-bn-relu"
CONV1 = "conv1x1-bn-relu"
POOL = "maxpool3x3"
DIRECTIONS = ["in", "out", "both"]
directions = st.sampled_from(DIRECTIONS)
spaces = [cells(), *map(members, ("cnn", "darts", "mlp", "nasbench201"))]
networks = st.sampled_from(spaces).flatmap(lambda one: one)


def several(least, most):
    return st.sampled_from(spaces).flatmap(lambda one: st.lists(one, min_size=least, max_size=most))


def cell(ops, edges):
    return Architecture("nasbench101", [Layer("ip"), *map(Layer, ops), Layer("op")], edges)


def relabelling(graphs, h, direction):
    """Shervashidze's algorithm 1 on all graphs at once:

    (graphs, labels) counts, labels numbered as they turn up.
    """
    numbers = {}
    live = [set(graph.live) for graph in graphs]
    current = [
        {u: numbers.setdefault(label(graph.layers[u]), len(numbers)) for u in alive}
        for graph, alive in zip(graphs, live, strict=True)
    ]
    counts = [Counter(labels.values()) for labels in current]
    for _ in range(h):
        nexts = []
        for graph, labels in zip(graphs, current, strict=True):
            new = {}
            for u in labels:
                parents = tuple(sorted(labels[p] for p in graph.parents[u] if p in labels))
                children = tuple(sorted(labels[c] for c in graph.children[u] if c in labels))
                near = {"in": (parents,), "out": (children,), "both": (parents, children)}[
                    direction
                ]
                new[u] = (labels[u], near)

            nexts.append(new)

        # A fresh number for each new label, so that labels of two iterations are never the same.
        fresh = {}
        for new in nexts:
            for text in new.values():
                fresh.setdefault(text, len(numbers) + len(fresh))

        numbers.update(fresh)
        current = [{u: fresh[text] for u, text in new.items()} for new in nexts]
        for count, labels in zip(counts, current, strict=True):
            count.update(labels.values())

    return np.array([[count[number] for number in range(len(numbers))] for count in counts], float)


@given(several(2, 5), st.integers(0, 4), directions)
def test_agrees_with_relabelling_by_a_dictionary(graphs, h, direction):
    phi = relabelling(graphs, h, direction)
    kernel = WeisfeilerLehman(h, direction)
    np.testing.assert_array_equal(kernel.kernel(graphs), phi @ phi.T)
    np.testing.assert_array_equal(kernel.kernel(graphs[:1], graphs), (phi @ phi.T)[:1])
    expected = np.linalg.norm(phi[:, None] - phi[None], axis=2)
    np.testing.assert_allclose(
        kernel.distances(graphs).unnormalised[0], expected, rtol=1e-12, atol=1e-12
    )
    unit = phi / np.linalg.norm(phi, axis=1, keepdims=True)
    normalised_kernel = WeisfeilerLehman(h, direction, normalised=True)
    np.testing.assert_allclose(normalised_kernel.kernel(graphs), unit @ unit.T, rtol=1e-12)
    expected = np.linalg.norm(unit[:, None] - unit[None], axis=2)
    # Subtracting near equal numbers leaves the rounding error of their square root.
    np.testing.assert_allclose(
        normalised_kernel.distances(graphs).unnormalised[0], expected, rtol=1e-9, atol=1e-7
    )


@given(networks, st.integers(0, 99), directions, st.booleans())
def test_relabellings_have_equal_features(network, seed, direction, attributes):
    kernel = WeisfeilerLehman(3, direction, attributes=attributes)
    assert kernel.features(network) == kernel.features(relabelled(network, seed))


@given(several(2, 8), directions, st.booleans())
def test_positive_semi_definite(graphs, direction, normalised):
    kernel = WeisfeilerLehman(2, direction, normalised)
    gram = kernel.kernel(graphs)
    assert np.linalg.eigvalsh(gram).min() > -1e-9 * np.trace(gram)
    d = kernel.distances(graphs).unnormalised[0]
    for power in (1, 2):
        assert np.linalg.eigvalsh(np.exp(-0.1 * d**power)).min() > -1e-9


def test_by_hand():
    network = cell([CONV, POOL], [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)])
    zeroth = {"0:ip": 1, f"0:{CONV}": 1, f"0:{POOL}": 1, "0:op": 1}
    first = {"1:ip()": 1, f"1:{CONV}(ip)": 1, f"1:{POOL}({CONV} ip)": 1, f"1:op({CONV} {POOL})": 1}
    assert subtree_counts(network, 1, "in") == zeroth | first
    out = {f"1:ip({CONV} {POOL})": 1, f"1:{CONV}({POOL} op)": 1, f"1:{POOL}(op)": 1, "1:op()": 1}
    assert subtree_counts(network, 1, "out") == zeroth | out
    both = {f"1:ip(|{CONV} {POOL})": 1, f"1:{CONV}(ip|{POOL} op)": 1, f"1:{POOL}({CONV} ip|op)": 1}
    assert subtree_counts(network, 1, "both") == zeroth | both | {f"1:op({CONV} {POOL}|)": 1}


def test_what_it_tells_apart_and_when():
    forth, back = (cell([x, y], [(0, 1), (1, 2), (2, 3)]) for x, y in ((CONV, POOL), (POOL, CONV)))
    assert WeisfeilerLehman(0).distances([forth, back]).stack[0, 0, 1] == 0
    assert WeisfeilerLehman(1).distances([forth, back]).stack[0, 0, 1] > 0
    # Equal for two hops from every layer; the third sees from the end of the chain to where it
    # differs.
    near, far = (
        cell([x, CONV1, CONV1, y], [(u, u + 1) for u in range(5)])
        for x, y in ((CONV, POOL), (POOL, CONV))
    )
    assert WeisfeilerLehman(0).distances([near, far]).stack[0, 0, 1] == 0
    distances = [WeisfeilerLehman(h).distances([near, far]).stack[0, 0, 1] for h in (1, 2, 3)]
    assert distances == sorted(distances)
    assert distances[0] > 0


def test_the_direction_decides_what_is_seen():
    # One pool feeds both convolutions, or each has its own: seen from the outputs back, the
    # subtrees are the same but there is one pool more, and only children tell that the shared pool
    # feeds two.
    shared = cell([POOL, CONV, CONV], [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4)])
    apart = cell([POOL, POOL, CONV, CONV], [(0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 5)])
    labels = {name.partition(":")[2] for name in subtree_counts(shared, 3, "in")}
    assert labels == {name.partition(":")[2] for name in subtree_counts(apart, 3, "in")}
    assert set(subtree_counts(shared, 1, "out")) != set(subtree_counts(apart, 1, "out"))


def test_dead_layers_do_not_matter():
    plain = cell([CONV], [(0, 1), (1, 2)])
    burdened = cell([CONV, POOL, POOL], [(0, 1), (1, 4), (0, 2), (3, 4)])
    assert WeisfeilerLehman(3, "both").distances([plain], [burdened]).stack.item() == 0
    nothing = cell([CONV], [(0, 1)])
    assert subtree_counts(nothing, 1, "in") == {"0:ip": 1, "0:op": 1, "1:ip()": 1, "1:op()": 1}
    assert np.isfinite(WeisfeilerLehman(normalised=True).distances([nothing], [plain]).stack).all()


def test_names_do_not_depend_on_the_process():
    code = (
        "from archive.architecture.graph import Architecture, Layer;"
        "from archive.kernels.features.weisfeiler_lehman import subtree_counts;"
        "layers = [Layer('ip'), *[Layer('leaky-relu', 8)] * 30, Layer('linear'), Layer('op')];"
        "chain = Architecture('mlp', layers, [(u, u + 1) for u in range(32)] + [(0, 4), (3, 9)]);"
        "print(*sorted(subtree_counts(chain, 9)), sep='\\n')"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    names = sorted(
        subtree_counts(
            kernel_oracle.chain("mlp", *[("leaky-relu", 8)] * 30, skips=((0, 4), (3, 9))), 9
        )
    )
    assert any("#" in name for name in names)
    assert run.stdout.splitlines() == names


def test_thousand_layers():
    distances = (
        WeisfeilerLehman(10)
        .distances([kernel_oracle.long_chain(1000, seed) for seed in (1, 2)])
        .stack
    )
    assert np.isfinite(distances).all()
    assert distances[0, 0, 1] > 0
    assert all(len(name) < 120 for name in subtree_counts(kernel_oracle.long_chain(1000, 1), 10))


def test_bad_input():
    two = [kernel_oracle.chain("mlp", ("relu", 8)), kernel_oracle.chain("cnn", ("conv3", 8))]
    with pytest.raises(InvalidArchitectureError, match=r"one space .* got cnn and mlp"):
        WeisfeilerLehman().kernel(two)

    assert WeisfeilerLehman().kernel([]).shape == (0, 0)
    assert WeisfeilerLehman().kernel([], two[:1]).shape == (0, 1)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"iterations": -1}, "iterations must be a whole number from 0 to 100, got -1"),
        ({"iterations": 101}, "iterations must be a whole number from 0 to 100, got 101"),
        ({"direction": "up"}, "direction must be one of in, out, both, got 'up'"),
        ({"normalised": 1}, "normalised must be true or false, got 1"),
        ({"attributes": 0}, "attributes must be true or false, got 0"),
    ],
)
def test_settings_out_of_range_are_refused(config, reason):
    with pytest.raises(UsageError, match=reason):
        WeisfeilerLehman(**config)


def test_importing_loads_no_compiler():
    code = (
        "import sys; from archive.kernels.features import adjacency, paths, "
        "weisfeiler_lehman as w;"
        "w.WeisfeilerLehman(); print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert not {"numba", "scipy", "ot", "torch"} & set(run.stdout.split())
