"""The path encoding against a list of every path, and its sizes against BANANAS."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.architecture.graph import Architecture, Layer
from archive.errors import InvalidArchitectureError, UnknownNameError, UsageError
from archive.kernels.features import paths
from archive.kernels.features.embedding import matrix, vocabulary
from archive.kernels.features.paths import (
    PathEncoding,
    every_path,
    label,
    number_of_paths,
    path_counts,
)
from tests.support import kernel_oracle
from tests.support.strategies import cells, members, relabelled, space_of

networks = st.sampled_from(
    [cells(), *map(members, ("cnn", "darts", "mlp", "nasbench201"))]
).flatmap(lambda one: one)
CONV = "conv3x3-bn-relu"
POOL = "maxpool3x3"


def listed(architecture, attributes=False):
    """Every path from input to output, one at a time."""
    last = len(architecture.layers) - 1

    def walk(u):
        if u == last:
            return [("op",)]

        name = label(architecture.layers[u], attributes)
        return [(name, *rest) for child in architecture.children[u] for rest in walk(child)]

    return walk(0)


def counted(paths):
    return {"→".join(path): paths.count(path) for path in paths}


def cell(ops, edges):
    return Architecture("nasbench101", [Layer("ip"), *map(Layer, ops), Layer("op")], edges)


def dense(inner):
    """All edges there can be, between layers of one label."""
    n = inner + 2
    return cell([CONV] * inner, [(u, v) for u in range(n) for v in range(u + 1, n)])


@given(networks, st.none() | st.integers(0, 5), st.booleans())
def test_agrees_with_listing_every_path(network, length, attributes):
    # Input and output are no operations, nor are the entry and the sum of a cell of DARTS.
    ends = 4 if network.space == "darts" else 2
    wanted = [
        path for path in listed(network, attributes) if length is None or len(path) - ends <= length
    ]
    assert path_counts(network, length, attributes) == counted(wanted)


@given(st.tuples(cells(), cells()))
def test_distances_are_those_of_the_papers_vectors(pair):
    names = every_path("nasbench101")
    counts = np.array(
        [[table.get(name, 0) for name in names] for table in (counted(listed(one)) for one in pair)]
    )
    vectors = counts > 0
    distances = PathEncoding().distances(pair)
    assert distances.unnormalised[0, 0, 1] == (vectors[0] != vectors[1]).sum()
    assert (
        PathEncoding(counts=True).distances(pair).unnormalised[0, 0, 1]
        == np.abs(counts[0] - counts[1]).sum()
    )
    np.testing.assert_array_equal(
        matrix([PathEncoding().prepare(one) for one in pair], names), vectors
    )


@given(networks, st.integers(0, 99), st.booleans(), st.booleans())
def test_relabellings_have_equal_features(network, seed, counts, attributes):
    kernel = PathEncoding(counts, attributes=attributes)
    assert kernel.features(network) == kernel.features(relabelled(network, seed))


@given(st.lists(cells(), min_size=2, max_size=8), st.booleans())
def test_the_exponential_is_positive_semi_definite(several, counts):
    d = PathEncoding(counts).distances(several).unnormalised[0]
    assert np.linalg.eigvalsh(np.exp(-0.3 * d)).min() > -1e-10


def test_sizes_of_the_paper():
    assert len(every_path("nasbench101")) == sum(3**i for i in range(6)) == 364
    assert number_of_paths(8, 4, ends=4) == 4 * sum(8**i for i in range(5)) == 18724
    assert len(set(every_path("nasbench101", 3))) == 40
    assert len(every_path("nasbench201")) == 1 + 4 + 16 + 64
    assert len(set(every_path("darts"))) == 18724
    assert len(every_path("darts", 2)) == 4 * (1 + 8 + 64)
    assert number_of_paths(1, 4, ends=2) == 10


def test_names_stand_short_first_and_cover_the_spaces():
    assert every_path("nasbench101")[:2] == ("ip→op", f"ip→{CONV}→op")
    rng = np.random.default_rng(3)
    for space in ("darts", "nasbench101", "nasbench201"):
        sample = [PathEncoding().prepare(space_of(space).sample(rng)) for _ in range(200)]
        assert set(vocabulary(sample)) < set(every_path(space))

    assert len(every_path("mlp", 2)) == 1 + 8 + 64


def test_dead_parts_do_not_matter():
    plain = cell([CONV], [(0, 1), (1, 2)])
    burdened = cell([CONV, POOL, POOL, CONV], [(0, 1), (1, 5), (0, 2), (3, 5), (4, 3)])
    assert PathEncoding().distances([plain], [burdened]).stack.item() == 0
    nothing = cell([CONV], [(0, 1)])
    assert PathEncoding(counts=True).features(nothing) == ({},)
    assert PathEncoding().distances([nothing], [plain]).stack.item() == 1


def test_counts_tell_what_binary_does_not():
    one = cell([CONV], [(0, 1), (1, 2)])
    two = cell([CONV, CONV], [(0, 1), (0, 2), (1, 3), (2, 3)])
    assert PathEncoding().distances([one], [two]).stack.item() == 0
    assert PathEncoding(counts=True).distances([one], [two]).stack.item() == 1


def test_attributes_tell_units_in_bins_and_strides():
    nets = [kernel_oracle.chain("cnn", ("conv3", units)) for units in (64, 70, 128)]
    halved = Architecture(
        "cnn", [nets[0].layers[0], Layer("conv3", 64, 2), *nets[0].layers[2:]], nets[0].edges
    )
    assert not PathEncoding().distances([*nets, halved]).stack.any()
    distances = PathEncoding(attributes=True).distances([*nets, halved]).stack[0]
    np.testing.assert_array_equal(distances[0], [0, 0, 2, 2])
    assert PathEncoding(attributes=True).features(halved) == ({"ip→conv3:2^6/2→softmax→op": 1.0},)


def test_truncation_skips_long_paths_without_walking_them():
    # 2^25 label sequences, of which two are short.
    body = [CONV, POOL] * 25
    edges = [(0, 1), (0, 2)] + [
        (u, v) for u in range(1, 51) for v in (u + 1 + u % 2, u + 2 + u % 2) if v <= 50
    ]
    network = cell(body, [*edges, (1, 51), (2, 51), (49, 51), (50, 51)])
    assert path_counts(network, 1) == {f"ip→{CONV}→op": 1, f"ip→{POOL}→op": 1}
    with pytest.raises(
        InvalidArchitectureError,
        match=r"more than 10,000 label sequences\); set "
        r"a length, got None",
    ):
        path_counts(network)

    with pytest.raises(InvalidArchitectureError, match="set a smaller length than 25"):
        PathEncoding(length=25).prepare(network)


def test_thousand_layers():
    plain = cell([CONV] * 998, [(u, u + 1) for u in range(999)])
    other = cell([POOL] * 998, [(u, u + 1) for u in range(999)])
    assert PathEncoding().distances([plain, other]).stack[0, 0, 1] == 2
    branched = kernel_oracle.long_chain(1000, 1)
    with pytest.raises(InvalidArchitectureError, match="too many paths"):
        path_counts(branched)

    assert path_counts(branched, length=5) == {}
    assert 8 <= max(name.count("→") for name in path_counts(branched, length=12)) <= 13


def test_many_paths_of_equal_labels_are_one_feature(monkeypatch):
    layers = dense(30)
    assert sum(path_counts(layers).values()) == 2**30
    assert len(PathEncoding().prepare(layers).features[0]) == 31
    assert (
        PathEncoding(counts=True)
        .prepare(dense(12))
        .features[0]["→".join(["ip", *[CONV] * 6, "op"])]
        == 924
    )
    with pytest.raises(InvalidArchitectureError, match=r"2\^53 paths"):
        PathEncoding(counts=True).prepare(dense(60))

    monkeypatch.setattr(paths, "MOST_HOPS", 1_000)
    with pytest.raises(InvalidArchitectureError, match="more than 1,000 hops"):
        PathEncoding().prepare(dense(20))


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"counts": "yes"}, "counts must be true or false, got 'yes'"),
        ({"attributes": 1}, "attributes must be true or false, got 1"),
        ({"length": -1}, "length must be a whole number >= 0, got -1"),
        ({"length": 2.0}, "length must be a whole number >= 0, got 2.0"),
        ({"length": True}, "length must be a whole number >= 0, got True"),
    ],
)
def test_settings_out_of_range_are_refused(config, reason):
    with pytest.raises(UsageError, match=reason):
        PathEncoding(**config)


def test_spaces_without_a_bound_are_refused():
    with pytest.raises(
        UsageError, match="the space cnn has no longest path: a length is required, got None"
    ):
        every_path("cnn")

    with pytest.raises(UnknownNameError):
        every_path("nothing")

    for length in (9, 10**9):
        with pytest.raises(UsageError, match="at most 100,000 paths"):
            every_path("cnn", length)
