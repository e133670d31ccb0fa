"""Tree-Wasserstein against appendix F, the golden numbers, linear programs, and what the paper
proves."""

from __future__ import annotations

import pickle
import tracemalloc
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from archive.architecture.codec import from_nasbench201
from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import vocabulary
from archive.errors import InvalidArchitectureError, UsageError
from archive.kernels.distances.tree_wasserstein.distance import TreeWasserstein
from archive.kernels.distances.tree_wasserstein.measures import degrees, gram_path, ngrams
from archive.kernels.distances.tree_wasserstein.operation_trees import OperationTree, default_tree
from tests.support import examples, golden, kernel_oracle
from tests.support.strategies import CELL_LABELS, cells, generators, members, relabelled, space_of

SPACES = ("cnn", "darts", "mlp", "nasbench101", "nasbench201")
NAMES = {
    "in": "ip",
    "input": "ip",
    "out": "op",
    "output": "op",
    "cv1": "conv1x1-bn-relu",
    "cv3": "conv3x3-bn-relu",
    "mp3": "maxpool3x3",
}
CONV1 = "conv1x1-bn-relu"
CONV3 = "conv3x3-bn-relu"
POOL = "maxpool3x3"


def cell(ops: list[str], matrix: list[list[int]]) -> Architecture:
    edges = [(u, v) for u, row in enumerate(matrix) for v, there in enumerate(row) if there]
    return Architecture("nasbench101", [Layer(NAMES.get(op, op)) for op in ops], edges)


def transported(first: dict, second: dict, cost) -> float:
    """The optimal transport between two discrete measures, by HiGHS."""
    costs = np.array([[cost(s, t) for t in second] for s in first])
    n1, n2 = costs.shape
    sums = np.zeros((n1 + n2, n1 * n2))
    for i in range(n1):
        sums[i, i * n2 : (i + 1) * n2] = 1

    for j in range(n2):
        sums[n1 + j, j::n2] = 1

    solution = linprog(
        costs.ravel(), A_eq=sums, b_eq=[*first.values(), *second.values()], method="highs"
    )
    assert solution.status == 0, solution.message
    return float(solution.fun)


# The tree of figure 8 by hand: distance from the root to the group, and to the operation.
FIGURE_8 = {CONV1: ("conv", 0.9), CONV3: ("conv", 0.9), POOL: ("pool", 1.0)}


def gram_metric(s: tuple[str, ...], t: tuple[str, ...]) -> float:
    """Path between two n-grams in the tree of figure 8;

    () is the root, and every n-gram is 1 away from it.
    """
    if s == t:
        return 0.0

    if not s or not t or [FIGURE_8[op][0] for op in s] != [FIGURE_8[op][0] for op in t]:
        return float(bool(s)) + float(bool(t))

    groups = [FIGURE_8[op] for op in s]
    mean = sum(height for _, height in groups) / len(s)
    mixed = len({name for name, _ in groups}) > 1
    return 2 * (0.2 if mixed else 1.0) * (1 - mean)


def listed(architecture: Architecture, n: int) -> dict[tuple[str, ...], float]:
    """Shares of the n-grams, every path walked; the root where there is none."""
    found: list[tuple[str, ...]] = []

    def walk(u: int, gram: tuple[str, ...]) -> None:
        op = architecture.layers[u].op
        if op in ("ip", "op"):
            return

        if len(gram) + 1 == n:
            found.append((*gram, op))
            return

        for child in architecture.children[u]:
            walk(child, (*gram, op))

    for u in range(len(architecture.layers)):
        walk(u, ())

    return {gram: found.count(gram) / len(found) for gram in found} if found else {(): 1.0}


def places(architecture: Architecture, degree: str) -> dict[float, float]:
    """Equation (4), the longest path to each layer found by walking all of them."""
    eta: dict[int, int] = {}

    def walk(u: int, hops: int) -> None:
        eta[u] = max(hops, eta.get(u, 0))
        for child in architecture.children[u]:
            walk(child, hops + 1)

    walk(0, 0)
    end = eta.get(len(architecture.layers) - 1, max(eta.values()))
    neighbours = architecture.parents if degree == "indegree" else architecture.children
    counts = {u: len(neighbours[u]) for u in eta}
    if not any(counts.values()):
        return {1.0: 1.0}

    measure: dict[float, float] = {}
    for u, hops in eta.items():
        place = (hops + 1) / (end + 1)
        measure[place] = measure.get(place, 0.0) + counts[u] / sum(counts.values())

    return measure


@pytest.fixture(scope="module")
def example():
    known = golden("tree_wasserstein.json")["worked_example"]
    return known, [cell(known[name]["ops"], known[name]["adj"]) for name in "xz"]


def test_appendix_f(example):
    known, (x, z) = example
    distances = TreeWasserstein().distances([x], [z]).stack[:, 0, 0]
    np.testing.assert_allclose(distances, [1, 2, 2 / 35, 3 / 35], rtol=1e-14)
    assert [Fraction(known[f"W_{name}_exact"]) for name in ("indegree", "outdegree")] == [
        Fraction(value).limit_denominator(100) for value in distances[2:]
    ]
    d_nn = TreeWasserstein(n=1, weights=(0.5, 0.3, 0.2))
    assert d_nn.components == ("tree_wasserstein",)
    assert d_nn.distances([x], [z]).unnormalised[0, 0, 0] == pytest.approx(
        0.5 + 0.3 * 2 / 35 + 0.2 * 3 / 35
    )


def test_measures_of_figure_9(example):
    _, (x, z) = example
    assert degrees(x) == (
        {"1/2": 3 / 7, "3/4": 2 / 7, "1/1": 2 / 7},
        {"1/4": 3 / 7, "1/2": 3 / 7, "3/4": 1 / 7},
    )
    assert degrees(z)[1] == {"1/5": 2 / 7, "2/5": 3 / 7, "3/5": 1 / 7, "4/5": 1 / 7}


@pytest.mark.parametrize(
    ("gram", "lengths"),
    [
        ((CONV1,), [0.9, 0.1]),
        ((POOL,), [1]),
        ((CONV1, CONV3), [0.9, 0.1]),
        ((CONV1, POOL), [0.99, 0.01]),
        ((POOL, CONV1), [0.99, 0.01]),
        ((POOL, POOL), [1]),
    ],
)
def test_edges_of_equations_16_and_17(gram, lengths):
    path = list(gram_path(gram, default_tree("nasbench101")))
    assert [length for _, length in path] == pytest.approx(lengths)
    assert len({name for name, _ in path}) == len(path)


def test_one_grams_of_nasbench201_as_the_paper_intends_them():
    known = golden("tree_wasserstein.json")["nb201"]
    distances = TreeWasserstein(n=1).distances([from_nasbench201(text) for text in known["archs"]])
    expected = known["intended_own_implementation"]["tw_1gram_ops"]
    np.testing.assert_allclose(distances.stack[0], expected, rtol=1e-12, atol=1e-12)


def test_one_grams_of_nasbench101_are_the_released_codes():
    # That code leaves out layers without edges; the paper's S^o holds every layer.
    known = golden("tree_wasserstein.json")["nb101_random_cells"]
    kept = []
    for one in known["cells"]:
        matrix = np.array(one["matrix"])
        there = np.flatnonzero(
            matrix.any(axis=0) | matrix.any(axis=1) | np.isin(one["ops"], ("input", "output"))
        )
        kept.append(cell([one["ops"][u] for u in there], matrix[np.ix_(there, there)].tolist()))

    assert any(len(one.layers) < 7 for one in kept)
    distances = TreeWasserstein(n=1).distances(kept).stack[0]
    np.testing.assert_allclose(distances, known["tw_1gram"]["ops"], rtol=1e-12, atol=1e-12)


@given(cells(), cells(), st.integers(1, 4))
def test_linear_program_of_ngrams(x, z, n):
    distances = TreeWasserstein(n=n).distances([x], [z]).stack[0, 0, 0]
    assert distances == pytest.approx(
        transported(listed(x, n), listed(z, n), gram_metric), abs=1e-9
    )


@given(cells(), cells(), st.sampled_from(["indegree", "outdegree"]))
def test_linear_program_of_degrees(x, z, degree):
    kernel = TreeWasserstein(n=1)
    distances = kernel.distances([x], [z]).stack[kernel.parts.index(degree), 0, 0]
    expected = transported(places(x, degree), places(z, degree), lambda s, t: abs(s - t))
    assert distances == pytest.approx(expected, abs=1e-9)


@given(cells(max_inner=6), st.integers(1, 5))
def test_ngrams_are_those_of_the_listed_paths(x, n):
    counts = ngrams(x, n, frozenset(CELL_LABELS))
    shares = {gram: count / sum(counts.values()) for gram, count in counts.items()}
    assert (shares or {(): 1.0}) == listed(x, n)


@examples(0.5)
@given(st.data(), st.sampled_from(SPACES))
def test_pseudo_metric_and_negative_definite(data, space):
    kernel = TreeWasserstein(n=(1, 2, 3), sizes=True)
    networks = [data.draw(members(space)) for _ in range(8)]
    stack = kernel.distances(networks).stack
    assert (stack >= 0).all()
    assert not np.diagonal(stack, axis1=1, axis2=2).any()
    np.testing.assert_array_equal(stack, stack.transpose(0, 2, 1))
    assert (stack[:, :, None, :] <= stack[:, :, :, None] + stack[:, None, :, :] + 1e-12).all()
    assert (stack[:3] <= 2 + 1e-12).all()  # every operation is at most 1 from the root
    for d in (*stack, stack.sum(axis=0)):
        for sigma in (0.05, 1.0, 20.0):
            assert np.linalg.eigvalsh(np.exp(-d / sigma))[0] > -1e-12


@examples(0.5)
@given(st.data(), st.sampled_from(SPACES), st.integers(0, 1000))
def test_relabelling_changes_no_bit(data, space, seed):
    network = data.draw(members(space))
    kernel = TreeWasserstein(n=(1, 2, 3), sizes=True)
    assert kernel.prepare(relabelled(network, seed)).features == kernel.prepare(network).features


@examples(0.5)
@given(generators(), st.sampled_from(SPACES))
def test_blocks_agree_whatever_way_they_are_computed(rng, space):
    # Many copies make look-ups, few make subtractions or merges.
    made = space_of(space)
    networks = [made.mutate(one, rng).child for one in made.initial_pool()[:6]]
    kernel = TreeWasserstein(n=2, sizes=True)
    gram = kernel.distances(networks).stack
    many = [networks[at] for at in rng.integers(0, 6, size=60)]
    at = [networks.index(one) for one in many]
    np.testing.assert_allclose(
        kernel.distances(many).stack, gram[:, at][:, :, at], rtol=1e-12, atol=1e-14
    )
    np.testing.assert_allclose(
        kernel.distances(many, networks).stack, gram[:, at], rtol=1e-12, atol=1e-14
    )
    weights = (0.4, 0.3, 0.1, 0.15, 0.05)
    weighted = TreeWasserstein(n=2, sizes=True, weights=weights)
    expected = np.tensordot(weights, gram, axes=1)
    np.testing.assert_allclose(
        weighted.distances(networks).stack[0], expected, rtol=1e-12, atol=1e-14
    )
    np.testing.assert_allclose(
        kernel.combine(networks, many, weights), expected[:, at], rtol=1e-12, atol=1e-14
    )
    np.testing.assert_allclose(kernel.combine(networks), gram.mean(axis=0), rtol=1e-12, atol=1e-14)


def test_combined_keeps_nothing_but_the_result():
    made = space_of("nasbench201")
    rng = np.random.default_rng(0)
    kernel = TreeWasserstein()
    prepared = [kernel.prepare(made.sample(rng)) for _ in range(1500)]
    kernel.combine(prepared[:40])
    tracemalloc.start()
    out = kernel.combine(prepared)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.6 * out.nbytes


def test_networks_without_ngrams_or_edges():
    nothing = cell(["in", "out"], [[0, 0], [0, 0]])
    wire = cell(["in", "out"], [[0, 1], [0, 0]])
    one = cell(["in", "mp3", "out"], [[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    aside = cell(
        ["in", "cv1", "cv1", "out"], [[0, 0, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    )
    stack = TreeWasserstein().distances([nothing, wire, one, aside]).stack
    assert stack[0, 0].tolist() == [0, 0, 1, 1]  # mass at the root, a pool and a convolution 1 away
    assert stack[1, 0].tolist() == [0, 0, 0, 1]
    assert stack[2, 0] == pytest.approx([0, 0, 1 / 6, 0])  # all at 1; the pool halves at 2/3 and 1
    # `aside` is not reached, whatever its edges
    assert stack[3, 0] == pytest.approx([0, 0.5, 0.5, 0.5])


@given(cells(), cells())
def test_functional_distances_are_those_of_what_reaches_the_output(x, z):
    # The second cell has layers without effect: a chain from the input, one to the output, and an
    # isolated layer.
    n = len(x.layers)
    more = [*x.layers, *(Layer(op) for op in (CONV1, POOL, CONV3))]
    grown = Architecture(x.space, more, [*x.edges, (0, n), (n + 1, n - 1)])
    kernel = TreeWasserstein(functional=True)
    assert not kernel.distances([x], [grown]).stack.any()
    assert kernel.prepare(grown).key == grown.key
    equal = x.functional_key == z.functional_key
    assert not equal or not kernel.distances([x], [z]).stack.any()
    alive = TreeWasserstein().distances([x], [grown]).stack[0, 0, 0]
    assert alive > 0 or {layer.op for layer in x.layers} >= {CONV1, CONV3, POOL}


def test_a_place_beyond_the_output():
    # ip -> a -> b -> c is a dead end longer than ip -> op.
    matrix = np.zeros((5, 5), int)
    matrix[[0, 1, 2, 0], [1, 2, 3, 4]] = 1
    indegrees, outdegrees = degrees(cell(["in", "cv1", "cv1", "cv1", "out"], matrix.tolist()))
    assert indegrees == {"1/1": 2 / 4, "3/2": 1 / 4, "2/1": 1 / 4}
    assert outdegrees == {"1/2": 2 / 4, "1/1": 1 / 4, "3/2": 1 / 4}


def test_a_network_of_a_thousand_layers():
    kernel = TreeWasserstein(n=(1, 4), sizes=True)
    long = [kernel_oracle.long_chain(1000, seed) for seed in range(2)]
    stack = kernel.distances([*long, kernel_oracle.chain("cnn", ("conv3", 8))]).stack
    assert np.isfinite(stack).all()
    assert (stack[:, 0, 1:] > 0).all()
    assert stack[0, 0, 1] < 0.05 < stack[0, 0, 2]


def test_paths_beyond_number_are_counted():
    # Every layer feeds all later ones: 2^39 paths, and the binomial coefficients of 40 over n of
    # length n.
    full = np.triu(np.ones((42, 42), int), 1).tolist()
    one = cell(["in", *["cv1"] * 40, "out"], full)
    assert ngrams(one, 8, {CONV1}) == {(CONV1,) * 8: 76904685}


def test_too_many_ngrams(monkeypatch):
    monkeypatch.setattr("archive.kernels.distances.tree_wasserstein.measures.MOST", 42)
    with pytest.raises(
        InvalidArchitectureError,
        match="2-grams must be at most 42 over all layers, got more; lower n",
    ):
        TreeWasserstein().prepare(kernel_oracle.long_chain(40, 0))


def test_the_tree_says_what_is_counted():
    tree = {"conv": 1, "pool": 1, "fc": 1, "softmax": 1}
    names = {
        name: group for group in ("conv", "pool") for name in vocabulary("cnn").of_group(group)
    }
    edges = [["all", group, weight] for group, weight in tree.items()]
    edges += [[group, name, 0.0] for name, group in names.items()]
    x = kernel_oracle.chain("cnn", ("conv3", 8), ("fc", 8))
    z = kernel_oracle.chain("cnn", ("res7", 8))
    with_ends = TreeWasserstein(n=1, tree=edges).distances([x], [z]).stack[0, 0, 0]
    without = TreeWasserstein(n=1, tree=edges[:3] + edges[4:]).distances([x], [z]).stack[0, 0, 0]
    # 1/2 conv 1/2 fc to all conv: half the mass over a distance of 2
    assert without == pytest.approx(1.0)
    # thirds of conv, fc, softmax to halves of conv, softmax
    assert with_ends == pytest.approx(2 / 3)


def test_sizes():
    kernel = TreeWasserstein(n=1, sizes=True)
    thin = kernel_oracle.chain("mlp", ("relu", 8), ("tanh", 4))
    wide = kernel_oracle.chain("mlp", ("relu", 16), ("tanh", 8))
    distances = dict(
        zip(kernel.parts, kernel.distances([thin], [wide]).stack[:, 0, 0], strict=True)
    )
    assert distances == pytest.approx(
        {
            "1gram": 0,
            "indegree": 0,
            "outdegree": 0,
            "units": 1,
            "mass": np.log2((1 + 16 + 128) / (1 + 8 + 32)),
        }
    )
    with pytest.raises(
        InvalidArchitectureError, match="the mass of the layers must be finite, got inf"
    ):
        kernel.prepare(kernel_oracle.chain("mlp", ("relu", 10**200), ("relu", 10**200)))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"n": 0}, "n must be one or more different lengths from 1 to 8, got 0"),
        ({"n": ()}, r"n must be one or more different lengths from 1 to 8, got \(\)"),
        ({"n": (2, 2)}, r"n must be one or more different lengths from 1 to 8, got \(2, 2\)"),
        ({"n": 9}, "n must be one or more different lengths from 1 to 8, got 9"),
        ({"n": "12"}, "n must be one or more different lengths from 1 to 8, got '12'"),
        ({"n": (1, 2.5)}, r"n must be one or more different lengths from 1 to 8, got \(1, 2.5\)"),
        (
            {"weights": 1.0},
            "weights must be numbers, one each for 1gram, 2gram, indegree, outdegree, got 1.0",
        ),
        (
            {"weights": (1, 0)},
            "weights must be finite and >= 0, one each for 1gram, 2gram, indegree, outdegree, got",
        ),
        ({"weights": (1, -1, 1, 0)}, "weights must be finite and >= 0"),
        ({"weights": (float("nan"), 1, 0, 0)}, "weights must be finite and >= 0"),
        ({"weights": (1, 1, 0, 0)}, r"weights must sum to 1, got \(1.0, 1.0, 0.0, 0.0\) of sum 2"),
    ],
)
def test_bad_settings(config, message):
    with pytest.raises(UsageError, match=message):
        TreeWasserstein(**config)


def test_empty_sets_and_spaces():
    kernel = TreeWasserstein(weights=(0.25,) * 4)
    one = kernel_oracle.chain("mlp", ("relu", 8))
    other = kernel_oracle.chain("cnn", ("conv3", 8))
    assert kernel.combine([]).shape == (0, 0)
    assert kernel.combine([one], []).shape == (1, 0)
    assert TreeWasserstein().distances([], [one]).stack.shape == (4, 0, 1)
    with pytest.raises(InvalidArchitectureError, match="only networks of one space"):
        kernel.combine([one], [other])


def test_pickling_and_sharing():
    kernel = TreeWasserstein(tree=[["r", op, 1.0] for op in CELL_LABELS])
    cells_of = [
        cell(["in", *ops, "out"], np.eye(4, k=1, dtype=int).tolist())
        for ops in product(CELL_LABELS, repeat=2)
    ]
    expected = kernel.distances(cells_of).stack
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(kernel)).distances(cells_of).stack, expected
    )
    assert expected[0].max() == 2
    assert isinstance(kernel.tree, OperationTree)
