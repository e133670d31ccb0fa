"""Distances of embeddings, and the blocks they are computed in, against scipy's distances of dense
vectors."""

from __future__ import annotations

import os
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from archive.errors import InvalidArchitectureError
from archive.kernels.features import l1_blocks
from archive.kernels.features.embedding import Embedded, EmbeddedDistance, matrix, vocabulary
from tests.support import kernel_oracle

NORMS = {"l1": "cityblock", "l2": "euclidean"}


class Counts(EmbeddedDistance):
    """Counts of the operations, and the total width."""

    name: ClassVar[str] = "counts"
    norm = "l1"
    components = ("operations", "width")

    def features(self, architecture):
        ops = [layer.op for layer in architecture.layers]
        return {op: ops.count(op) for op in ops}, {
            "units": sum(layer.units or 0 for layer in architecture.layers)
        }


class EuclideanCounts(Counts):
    norm = "l2"


def sparse(rng: np.random.Generator, m: int, p: int, most: int) -> list[dict[str, float]]:
    return [
        {
            f"f{k}": float(rng.normal())
            for k in rng.choice(p, rng.integers(0, most + 1), replace=False)
        }
        for _ in range(m)
    ]


def laid_out(vectors: list[dict[str, float]], p: int) -> np.ndarray:
    dense = np.zeros((len(vectors), p))
    for row, vector in zip(dense, vectors, strict=True):
        for name, value in vector.items():
            row[int(name[1:])] = value

    return dense


def filled(
    part: l1_blocks.BlockPart, m: int, n: int, symmetric: bool, weight: float = 1.0
) -> np.ndarray:
    out = np.zeros((m, n))
    l1_blocks.fill(out, [(weight, part)], symmetric=symmetric)
    return out


@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 40),
    st.integers(0, 40),
    st.integers(1, 30),
    st.sampled_from(["l1", "l2"]),
)
def test_dense_and_sparse_vectors(seed, m, n, p, norm):
    rng = np.random.default_rng(seed)
    x = sparse(rng, m, p, p)
    y = sparse(rng, n, p, p)
    place = {f"f{k}": k for k in range(p)}
    expected = cdist(laid_out(x, p), laid_out(y, p), NORMS[norm]) if m and n else np.zeros((m, n))
    within = cdist(laid_out(x, p), laid_out(x, p), NORMS[norm]) if m else np.zeros((0, 0))
    entries = [l1_blocks.entries_of(side, place) for side in (x, y)]
    dense = [l1_blocks.dense(side, place) for side in (x, y)]
    euclidean = norm == "l2"
    for part, gram in (
        (
            l1_blocks.SparseRows(*entries, euclidean),
            l1_blocks.SparseRows(entries[0], entries[0], euclidean),
        ),
        (
            l1_blocks.DenseRows(dense[0], np.ascontiguousarray(dense[1].T), euclidean),
            l1_blocks.DenseRows(dense[0], np.ascontiguousarray(dense[0].T), euclidean),
        ),
    ):
        np.testing.assert_allclose(filled(part, m, n, False), expected, rtol=1e-12, atol=1e-12)
        actual = filled(gram, m, m, True)
        np.testing.assert_allclose(actual, within, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(actual, actual.T)
        assert not actual.diagonal().any()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("m", "n", "p", "most"), [(600, 300, 9, 5), (270, 260, 1200, 6)])
def test_blocks_wider_than_a_tile_on_several_threads(monkeypatch, norm, threads, m, n, p, most):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(threads)))
    rng = np.random.default_rng(m)
    x = sparse(rng, m, p, most)
    y = sparse(rng, n, p, most)
    part, gram = (l1_blocks.vectors(x, side, euclidean=norm == "l2") for side in (y, None))
    assert isinstance(part, l1_blocks.DenseRows if p == 9 else l1_blocks.SparseRows)
    both = [laid_out(side, p) for side in (x, y)]
    np.testing.assert_allclose(
        filled(part, m, n, False, 0.5), 0.5 * cdist(*both, NORMS[norm]), rtol=1e-12
    )
    actual = filled(gram, m, m, True)
    np.testing.assert_allclose(actual, cdist(both[0], both[0], NORMS[norm]), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(actual, actual.T)


def test_copies_are_looked_up():
    rng = np.random.default_rng(1)
    few = sparse(rng, 7, 20, 10)
    many = [dict(reversed(few[at].items())) for at in rng.integers(0, 7, size=50)]
    part = l1_blocks.vectors(many, few)
    assert isinstance(part, l1_blocks.LookupRows)
    assert part.table.shape == (7, 7)
    expected = cdist(laid_out(many, 20), laid_out(few, 20), "cityblock")
    np.testing.assert_allclose(filled(part, 50, 7, False), expected, rtol=1e-12, atol=1e-12)


def steps_of(rng: np.random.Generator, most: int) -> l1_blocks.Steps:
    places = np.unique(
        rng.integers(1, 2 * most, size=rng.integers(1, most + 1)) / rng.integers(1, most + 1)
    )
    values = np.cumsum(rng.random(len(places)))
    return tuple(places.tolist()), (*(values[:-1] / values[-1]).tolist(), 1.0)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_areas_between_step_functions(seed, most):
    rng = np.random.default_rng(seed)
    x, y = ([steps_of(rng, most) for _ in range(6)] for _ in range(2))

    def area(f: l1_blocks.Steps, g: l1_blocks.Steps) -> float:
        cuts = sorted({*f[0], *g[0]})
        at = [[([0.0, *h[1]])[sum(place <= cut for place in h[0])] for cut in cuts] for h in (f, g)]
        return sum(
            abs(a - b) * (right - left)
            for a, b, left, right in zip(*at, cuts, cuts[1:], strict=False)
        )

    expected = [[area(f, g) for g in y] for f in x]
    merged = l1_blocks.StepRows(l1_blocks.entries_of_steps(x), l1_blocks.entries_of_steps(y))
    for part in (merged, l1_blocks.steps(x, y)):
        np.testing.assert_allclose(filled(part, 6, 6, False), expected, rtol=1e-12, atol=1e-14)

    gram = filled(l1_blocks.StepRows(merged.x, merged.x), 6, 6, True)
    np.testing.assert_array_equal(gram, gram.T)
    assert not gram.diagonal().any()


def test_many_different_places_are_merged():
    functions = [((1 / n, 1.0), (0.5, 1.0)) for n in range(2, 700)]
    part = l1_blocks.steps(functions)
    assert isinstance(part, l1_blocks.StepRows)
    actual = filled(part, 698, 698, True)
    places = np.array([places[0] for places, _ in functions])
    np.testing.assert_allclose(actual, np.abs(np.subtract.outer(places, places)) / 2, atol=1e-15)


def test_a_distance_of_features():
    first = [
        kernel_oracle.chain("mlp", ("relu", 8), ("relu", 4)),
        kernel_oracle.chain("mlp", ("tanh", 3)),
    ]
    second = [kernel_oracle.chain("mlp", ("relu", 8))]
    distances = Counts().distances(first, second)
    assert distances.stack[:, :, 0].tolist() == [[1, 2], [4, 5]]
    assert (Counts().unnormalised, distances.normalised.shape) == (2, (0, 2, 1))
    assert EuclideanCounts().distances(first, second).stack[:, :, 0].tolist() == [
        [1, pytest.approx(2**0.5)],
        [4, 5],
    ]
    np.testing.assert_array_equal(
        Counts().distances(first).stack, Counts().distances(first, first).stack
    )


def test_preparing_leaves_out_zeros():
    class Nothing(Counts):
        def features(self, architecture):
            return {"a": 0, "b": np.float32(2)}, {}

    one = kernel_oracle.chain("mlp", ("relu", 8))
    prepared = Nothing().prepare(one)
    assert (prepared.key, prepared.space, prepared.features) == (one.key, "mlp", ({"b": 2.0}, {}))
    assert Nothing().distances([prepared], [prepared]).stack.tolist() == [[[0.0]], [[0.0]]]


def test_bad_input():
    one = kernel_oracle.chain("mlp", ("relu", 8))
    other = kernel_oracle.chain("cnn", ("conv3", 8))
    assert Counts().distances([]).stack.shape == (2, 0, 0)
    assert Counts().distances([one], []).stack.shape == (2, 1, 0)
    with pytest.raises(
        InvalidArchitectureError,
        match="only networks of one space have a distance, got cnn and mlp",
    ):
        Counts().distances([one], [other])


def test_vocabulary_and_matrix():
    networks = [
        Embedded("1", "mlp", ({"b": 2.0}, {})),
        Embedded("2", "mlp", ({"a": 1.0, "c": -3.0}, {"d": 4.0})),
    ]
    assert vocabulary(networks) == ("a", "b", "c")
    assert vocabulary(networks, 1) == ("d",)
    assert vocabulary([]) == ()
    assert matrix(networks, ("c", "b", "z")).tolist() == [[0, 2, 0], [-3, 0, 0]]
    assert matrix(networks, (), 1).shape == (2, 0)
