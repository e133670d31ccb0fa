"""OTMANN against program (3), and the properties that the paper proves."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import kernels
from archive.architecture.graph import Architecture, Layer
from archive.errors import ArchiveError, InvalidArchitectureError, UsageError
from archive.kernels.distances.otmann import NU_STR, OTMANN
from tests.support import kernel_oracle
from tests.support.strategies import cells, members, relabelled

VARIANTS = ["appendix", "main_text", "code"]
variants = st.sampled_from(VARIANTS)
cnns = members("cnn")
mlps = members("mlp")


def several(count):
    """That many networks of one space."""
    return st.sampled_from([cnns, mlps, cells()]).flatmap(
        lambda one: st.lists(one, min_size=count, max_size=count)
    )


@given(st.sampled_from([cnns, mlps]).flatmap(lambda one: st.tuples(one, one)))
def test_agrees_with_the_linear_program(pair):
    otmann = OTMANN()
    distances = otmann.distances(*([network] for network in pair)).unnormalised[:, 0, 0]
    # The oracle subtracts what matching saves from the total mass, and loses digits where little is
    # left.
    atol = 1e-9 * sum(otmann.prepare(network).total for network in pair)
    np.testing.assert_allclose(
        distances, [kernel_oracle.otmann(*pair, nu) for nu in NU_STR], rtol=1e-7, atol=atol
    )


@given(st.sampled_from([cells(), members("darts")]).flatmap(lambda one: st.tuples(one, one)))
def test_cells_match_equal_operations_only(pair):
    first, second = pair
    distances = OTMANN().distances([first], [second]).unnormalised[:, 0, 0]
    np.testing.assert_allclose(
        distances, [kernel_oracle.otmann(first, second, nu) for nu in NU_STR], rtol=1e-6, atol=1e-9
    )


@given(several(2), variants)
def test_symmetric(pair, variant):
    otmann = OTMANN(variant)
    forth = otmann.distances(pair[:1], pair[1:]).stack
    back = otmann.distances(pair[1:], pair[:1]).stack
    np.testing.assert_allclose(forth, back, rtol=1e-12)


@given(several(1), variants, st.integers(0, 99))
def test_a_relabelling_is_at_no_distance(one, variant, seed):
    otmann = OTMANN(variant)
    # `distances` knows equal keys; the solver itself must find 0 too.
    prepared = [otmann.prepare(one[0]), otmann.prepare(relabelled(one[0], seed))]
    distances = otmann.pairs(prepared, np.array([[0, 0], [0, 1]]))
    np.testing.assert_allclose(distances[4:], 0.0, atol=1e-12)
    assert not otmann.distances(one, [relabelled(one[0], seed)]).stack.any()


@given(several(2), variants, st.integers(0, 99))
def test_invariant_under_relabelling(pair, variant, seed):
    otmann = OTMANN(variant)
    plain = otmann.distances(pair[:1], pair[1:]).stack
    shuffled = otmann.distances([relabelled(pair[0], seed)], [relabelled(pair[1], seed + 1)]).stack
    np.testing.assert_allclose(plain, shuffled, rtol=1e-9, atol=1e-12)


@given(several(3), variants)
def test_unnormalised_keeps_the_triangle_inequality(networks, variant):
    d = OTMANN(variant).distances(networks).unnormalised
    assert (d[:, 0, 2] <= (d[:, 0, 1] + d[:, 1, 2]) * (1 + 1e-9)).all()


@given(several(2), variants)
def test_bounds(pair, variant):
    otmann = OTMANN(variant)
    totals = [otmann.prepare(network).total for network in pair]
    distances = otmann.distances(pair[:1], pair[1:])
    assert ((distances.normalised >= 0) & (distances.normalised <= 1)).all()
    assert (distances.unnormalised >= abs(totals[0] - totals[1]) * (1 - 1e-9)).all()
    assert (np.diff(distances.unnormalised[:, 0, 0]) >= -1e-9 * sum(totals)).all(), (
        "grows with nu_str"
    )


def test_figure_3_different_networks_at_no_distance():
    one = kernel_oracle.chain("cnn", ("conv3", 16), ("conv3", 16), ("conv3", 32))
    split = Architecture(
        "cnn",
        [
            Layer("ip"),
            Layer("conv3", 16),
            Layer("conv3", 8),
            Layer("conv3", 8),
            Layer("conv3", 32),
            *one.layers[-2:],
        ],
        [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (5, 6)],
    )
    assert one.key != split.key
    np.testing.assert_allclose(OTMANN().distances([one], [split]).stack, 0.0, atol=1e-12)


def test_by_hand():
    small = kernel_oracle.chain("mlp", ("relu", 10))
    large = kernel_oracle.chain("mlp", ("tanh", 30))
    # Masses 10 and 30, and 1 and 3 thrice. Matching 10 of relu to tanh costs M = 0.25 and
    # structure: the rectifier and sigmoid lengths from ip and to op differ by 1 in all six, and
    # again in all six, so C_str = 2/3; likewise at the decision layer in the lengths from ip, and
    # at ip and op in six of twelve: C_str = 1/3 each.
    nu = 0.3
    matched = 10 * (0.25 + nu * 2 / 3) + 3 * 1 * (nu * 1 / 3)
    expected = matched + (30 - 10) + 3 * (3 - 1)
    distances = OTMANN(nu_str=[nu]).distances([small], [large])
    np.testing.assert_allclose(distances.stack.ravel(), [expected, expected / 52], rtol=1e-12)


def test_any_nu_str_in_any_order():
    pair = [kernel_oracle.long_chain(20, 1), kernel_oracle.long_chain(25, 2)]
    mixed = OTMANN(nu_str=(0.8, 0.0, 0.3, 0.8, 100.0)).distances(pair).stack
    for at, nu in enumerate((0.8, 0.0, 0.3, 0.8, 100.0)):
        alone = OTMANN(nu_str=[nu]).distances(pair).stack
        np.testing.assert_allclose(mixed[[at, at + 5]], alone, rtol=1e-12)


@pytest.mark.parametrize("equal", [False, True])
def test_thousand_layers(equal):
    pair = [kernel_oracle.long_chain(1000, seed, equal=equal) for seed in (1, 2)]
    distances = OTMANN(nu_str=(0.1, 0.8)).distances(pair)
    assert np.isfinite(distances.stack).all()
    assert (np.diff(distances.unnormalised[:, 0, 1]) > 0).all()
    assert (distances.normalised < 1).all()


def test_large_networks_agree_with_the_linear_program():
    pair = [kernel_oracle.long_chain(50, 3), kernel_oracle.long_chain(45, 4)]
    distances = OTMANN().distances(pair).unnormalised[:, 0, 1]
    np.testing.assert_allclose(
        distances, [kernel_oracle.otmann(*pair, nu) for nu in NU_STR], rtol=1e-7
    )


def test_threads_change_nothing():
    networks = [kernel_oracle.long_chain(8 + at, at) for at in range(25)]
    one, two = (OTMANN(threads=threads).distances(networks).stack for threads in (1, 2))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(two, two.transpose(0, 2, 1))


def test_blocks_repeats_and_prepared_networks():
    otmann = OTMANN()
    networks = [kernel_oracle.long_chain(8 + at, at) for at in range(6)]
    full = otmann.distances(networks).stack
    assert full.shape == (8, 6, 6)
    block = otmann.distances(
        [networks[4], networks[0], networks[4]], [otmann.prepare(one) for one in networks[1:5]]
    )
    np.testing.assert_allclose(block.stack, full[:, [4, 0, 4], 1:5], rtol=1e-12)


@pytest.mark.parametrize(("m", "n"), [(0, 0), (0, 2), (2, 0)])
def test_empty_sets_give_empty_blocks(m, n):
    networks = [kernel_oracle.chain("mlp", ("relu", 8)), kernel_oracle.chain("mlp", ("tanh", 8))]
    distances = OTMANN().distances(networks[:m], networks[:n])
    assert distances.unnormalised.shape == distances.normalised.shape == (4, m, n)


def test_networks_of_two_spaces_are_refused():
    with pytest.raises(InvalidArchitectureError, match=r"one space .* got cnn and mlp"):
        OTMANN().distances(
            [kernel_oracle.chain("mlp", ("relu", 8))], [kernel_oracle.chain("cnn", ("conv3", 8))]
        )


def test_networks_without_any_mass():
    bare = Architecture("mlp", [Layer("ip"), Layer("linear"), Layer("op")], [(0, 1), (1, 2)])
    other = kernel_oracle.chain("mlp", ("relu", 8))
    distances = OTMANN().distances([bare, other])
    np.testing.assert_allclose(distances.normalised[:, 0, 1], 1.0, rtol=1e-12)
    np.testing.assert_allclose(distances.unnormalised[:, 0, 1], OTMANN().prepare(other).total)
    prepared = OTMANN().prepare(bare)
    assert not OTMANN().pairs([prepared, prepared], np.array([[0, 1]])).any()


def test_a_mass_beyond_floating_point_is_refused():
    huge = kernel_oracle.chain("mlp", ("relu", 10**200), ("relu", 10**200))
    with pytest.raises(ArchiveError):
        OTMANN().prepare(huge)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"variant": "other"}, "variant must be one of appendix, main_text, code, got 'other'"),
        ({"nu_str": ()}, "nu_str must be one or more finite numbers"),
        ({"nu_str": (-0.1,)}, "nu_str must be one or more finite numbers"),
        ({"nu_str": (float("nan"),)}, "nu_str must be one or more finite numbers"),
        ({"threads": 0}, "threads must be >= 1, got 0"),
    ],
)
def test_settings_out_of_range_are_refused(config, reason):
    with pytest.raises(UsageError, match=reason):
        kernels.get("otmann", **config)


def test_components_are_named_and_instances_travel():
    otmann = pickle.loads(pickle.dumps(OTMANN("code", (0.5, 1))))
    assert otmann.components == (
        "otmann:0.5",
        "otmann:1",
        "otmann_normalised:0.5",
        "otmann_normalised:1",
    )
    prepared = otmann.prepare(kernel_oracle.chain("mlp", ("relu", 8)))
    again = pickle.loads(pickle.dumps(prepared))
    assert not otmann.distances([prepared], [again]).stack.any()
    distances = otmann.distances([prepared])
    np.testing.assert_array_equal(np.asarray(distances), distances.stack)
