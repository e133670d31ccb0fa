"""The Wasserstein distance against a linear program and POT, its axioms, and bad input."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import archive.spaces
from archive.architecture.graph import Architecture, Layer
from archive.architecture.layer_mass import layer_masses
from archive.errors import ArchiveError, InvalidArchitectureError, UsageError
from archive.kernels.distances.wasserstein import NU_STR, Wasserstein
from tests.support import examples, kernel_oracle
from tests.support.strategies import cells, members, relabelled

spaces = [*map(members, ("cnn", "darts", "mlp", "nasbench201")), cells()]
weights = st.sampled_from(["uniform", "mass"])


def several(count: int) -> st.SearchStrategy[list[Architecture]]:
    return st.sampled_from(spaces).flatmap(
        lambda one: st.lists(one, min_size=count, max_size=count)
    )


def linear_program(a: np.ndarray, b: np.ndarray, cost: np.ndarray) -> float:
    n1, n2 = cost.shape
    sums = np.zeros((n1 + n2, n1 * n2))
    for i in range(n1):
        sums[i, i * n2 : (i + 1) * n2] = 1

    for j in range(n2):
        sums[n1 + j, j::n2] = 1

    solution = linprog(
        cost.ravel(), A_eq=sums[:-1], b_eq=np.concatenate([a, b])[:-1], method="highs"
    )
    assert solution.status == 0, solution.message
    return float(solution.fun)


def shares(architecture: Architecture, kind: str) -> np.ndarray:
    masses = (
        np.array(layer_masses(architecture))
        if kind == "mass"
        else np.ones(len(architecture.layers))
    )
    return (masses if masses.any() else np.ones(len(masses))) / (masses.sum() or len(masses))


@given(several(2), weights)
def test_agrees_with_the_linear_program(pair, kind):
    distances = Wasserstein(weights=kind).distances(pair[:1], pair[1:]).stack[:, 0, 0]
    label, structure = kernel_oracle.costs(*pair)
    a, b = (shares(network, kind) for network in pair)
    expected = [linear_program(a, b, np.minimum(label, 1.0) + nu * structure) for nu in NU_STR]
    np.testing.assert_allclose(distances, expected, rtol=1e-7, atol=1e-9)


@examples(0.5)
@given(several(3), weights)
def test_both_solvers_agree(networks, kind):
    ours, pot = (
        Wasserstein(weights=kind, solver=solver).distances(networks).stack
        for solver in ("compiled", "pot")
    )
    np.testing.assert_allclose(ours, pot, rtol=1e-9, atol=1e-12)


@given(several(3), weights, st.integers(0, 99))
def test_axioms_and_relabelling(networks, kind, seed):
    distance = Wasserstein(weights=kind)
    d = distance.distances(networks).stack
    assert (d[:, 0, 2] <= (d[:, 0, 1] + d[:, 1, 2]) * (1 + 1e-9) + 1e-12).all()
    back = distance.distances(networks[1:], networks[:1]).stack
    np.testing.assert_array_equal(back[:, :, 0], d[:, 0, 1:])
    shuffled = [relabelled(network, seed) for network in networks]
    np.testing.assert_allclose(distance.distances(shuffled).stack, d, rtol=1e-9, atol=1e-12)
    # `distances` knows equal keys; the solver itself must find 0 too.
    prepared = [distance.prepare(networks[0]), distance.prepare(shuffled[0])]
    np.testing.assert_allclose(distance.pairs(prepared, np.array([[0, 1]])), 0.0, atol=1e-12)


@given(several(2))
def test_grows_with_nu_str(pair):
    distances = Wasserstein(nu_str=(0.8, 0.0, 3.0)).distances(pair[:1], pair[1:]).stack[:, 0, 0]
    assert distances[1] <= distances[0] + 1e-12 <= distances[2] + 2e-12


def test_by_hand():
    small = kernel_oracle.chain("mlp", ("relu", 10))
    large = kernel_oracle.chain("mlp", ("tanh", 30))
    # A quarter each: ip, one hidden layer, linear, op. The label costs 0.25, the structure 2/3 at
    # the hidden layer and 1/3 at each of the three others (see the same networks among OTMANN's
    # tests).
    nu = 0.3
    distances = Wasserstein(nu_str=[nu]).distances([small], [large]).stack
    assert distances[0, 0, 0] == pytest.approx((0.25 + nu * 2 / 3 + 3 * nu / 3) / 4, rel=1e-12)


def test_layers_of_other_families_cost_one():
    one, other = (
        Architecture("nasbench101", [Layer("ip"), Layer(op), Layer("op")], [(0, 1), (1, 2)])
        for op in ("conv3x3-bn-relu", "maxpool3x3")
    )
    np.testing.assert_allclose(Wasserstein().distances([one], [other]).stack, 1 / 3)


def test_units_count_by_mass_only():
    pair = [kernel_oracle.chain("cnn", ("conv3", 16), ("conv5", units)) for units in (16, 512)]
    assert not Wasserstein().distances(pair).stack.any()
    assert (Wasserstein(weights="mass").distances(pair).stack[:, 0, 1] > 0.01).all()


def test_empty_cells_and_networks_without_mass():
    empty = Architecture("nasbench201", [Layer("ip"), Layer("op")], [])
    full = Architecture(
        "nasbench201", [Layer("ip"), Layer("skip_connect"), Layer("op")], [(0, 1), (1, 2)]
    )
    for kind in ("uniform", "mass"):
        distances = Wasserstein(weights=kind).distances([empty, full]).stack
        assert (distances[:, 0, 1] > 0.3).all()

    bare = Architecture("mlp", [Layer("ip"), Layer("linear"), Layer("op")], [(0, 1), (1, 2)])
    assert np.isfinite(
        Wasserstein(weights="mass").distances([bare, kernel_oracle.chain("mlp", ("relu", 8))]).stack
    ).all()


def test_threads_change_nothing():
    networks = [kernel_oracle.long_chain(8 + at, at) for at in range(25)]
    one, two = (Wasserstein(threads=threads).distances(networks).stack for threads in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_a_distance_does_not_depend_on_the_networks_beside_it():
    kernel = Wasserstein()
    networks = archive.spaces.get("cnn").initial_pool()
    together = kernel.distances(networks).stack
    for pair in ([0, 5], [3, 8], [9, 2]):
        alone = kernel.distances([networks[at] for at in pair]).stack
        np.testing.assert_array_equal(alone, together[:, pair][:, :, pair])


def test_thousand_layers():
    pair = [kernel_oracle.long_chain(1000, 1), kernel_oracle.long_chain(60, 2)]
    distances = Wasserstein(nu_str=(0.1, 0.8)).distances(pair).stack
    assert np.isfinite(distances).all()
    assert 0 < distances[0, 0, 1] < distances[1, 0, 1]


def test_bad_input_and_travel():
    distance = pickle.loads(pickle.dumps(Wasserstein((0.5, 1), "mass", "pot")))
    assert distance.components == ("wasserstein:0.5", "wasserstein:1")
    assert (distance.weights, distance.solver, distance.unnormalised) == ("mass", "pot", 2)
    networks = [kernel_oracle.chain("mlp", ("relu", 8)), kernel_oracle.chain("mlp", ("tanh", 8))]
    prepared = pickle.loads(pickle.dumps([distance.prepare(network) for network in networks]))
    np.testing.assert_array_equal(
        distance.distances(prepared).stack, distance.distances(networks).stack
    )
    assert distance.distances([]).stack.shape == (2, 0, 0)
    with pytest.raises(InvalidArchitectureError, match=r"one space .* got cnn and mlp"):
        distance.distances(networks, [kernel_oracle.chain("cnn", ("conv3", 8))])

    with pytest.raises(ArchiveError):
        distance.prepare(kernel_oracle.chain("mlp", ("relu", 10**200), ("relu", 10**200)))


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"nu_str": ()}, "nu_str must be one or more finite numbers"),
        ({"nu_str": (-0.1,)}, "nu_str must be one or more finite numbers"),
        ({"weights": "degree"}, "weights must be one of uniform, mass, got 'degree'"),
        ({"solver": "sinkhorn"}, "solver must be one of compiled, pot, got 'sinkhorn'"),
        ({"threads": 0}, "threads must be >= 1, got 0"),
    ],
)
def test_settings_out_of_range_are_refused(config, reason):
    with pytest.raises(UsageError, match=reason):
        Wasserstein(**config)
