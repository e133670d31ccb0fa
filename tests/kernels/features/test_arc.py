"""The Arc kernel on architectures: the paper's distances place by place, axioms, invariance,
semi-definiteness."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.architecture.graph import Architecture, Layer
from archive.errors import InvalidArchitectureError, UsageError
from archive.kernels.features.arc import ArcFeatures, places
from tests.support import kernel_oracle
from tests.support.strategies import cells, members, relabelled

one_space = st.sampled_from([members("cnn"), members("mlp"), members("nasbench201"), cells()])


def several(count: int) -> st.SearchStrategy[list[Architecture]]:
    return one_space.flatmap(lambda one: st.lists(one, min_size=count, max_size=count))


def by_the_paper(
    first: Architecture, second: Architecture, arc: ArcFeatures
) -> tuple[float, float]:
    """The distance of either kind, place by place and case by case."""
    one = places(first)
    two = places(second)
    operations = units = 0.0
    for place in {*one, *two}:
        x = one.get(place)
        y = two.get(place)
        if x is None or y is None:
            operations += arc.omega**2
        elif (x.op, x.stride) != (y.op, y.stride):
            operations += 2 * arc.omega**2 * (1 - math.cos(math.pi * arc.rho / 2))

        a = x and x.units
        b = y and y.units
        if a and b:
            low, high = arc.units
            t = math.log(min(max(a, low), high) / min(max(b, low), high)) / math.log(high / low)
            units += 2 * arc.omega**2 * (1 - math.cos(math.pi * arc.rho * t))
        elif a or b:
            units += arc.omega**2

    return math.sqrt(operations), math.sqrt(units)


@given(several(2), st.floats(0.1, 5.0), st.floats(0.05, 1.0))
def test_agrees_with_the_pseudo_metric(pair, omega, rho):
    arc = ArcFeatures(omega, rho)
    distances = arc.distances(pair[:1], pair[1:]).stack.ravel()
    np.testing.assert_allclose(distances, by_the_paper(*pair, arc), rtol=1e-6, atol=1e-6)


@given(several(3), st.integers(0, 99))
def test_axioms_and_relabelling(networks, seed):
    arc = ArcFeatures(rho=0.7)
    d = arc.distances(networks).stack
    np.testing.assert_allclose(d, d.transpose(0, 2, 1), rtol=1e-12)
    assert (d[:, 0, 2] <= d[:, 0, 1] + d[:, 1, 2] + 1e-9).all()
    shuffled = [relabelled(network, seed) for network in networks]
    np.testing.assert_allclose(arc.distances(shuffled, networks).stack, d, rtol=1e-9, atol=1e-9)


@given(several(8), st.integers(0, 2**32 - 1))
def test_its_covariance_is_positive_semi_definite(networks, seed):
    theta = np.random.default_rng(seed).uniform(-4, 3, 3)
    K = ArcFeatures().default_covariance().value(ArcFeatures().distances(networks).stack, theta)
    assert np.linalg.eigvalsh(K)[0] >= -1e-9 * K[0, 0]


def test_by_hand():
    small = kernel_oracle.chain("mlp", ("relu", 8))
    other = kernel_oracle.chain("mlp", ("tanh", 1024))
    deep = kernel_oracle.chain("mlp", ("relu", 8), ("relu", 64))
    # Places 1, 2 and 3; the decision layer follows the last hidden one.
    assert [layer.op for layer in places(deep).values()] == ["relu", "relu", "linear"]
    operation, units = ArcFeatures().distances([small], [other, deep]).stack[:, 0]
    # tanh for relu; then relu for linear at place 2 and a linear layer too many.
    np.testing.assert_allclose(operation, [math.sqrt(2), math.sqrt(3)])
    # Opposite ends of the arc; one layer with units too many.
    np.testing.assert_allclose(units, [2.0, 1.0])
    # Half the arc for half the powers of 2 from 8 to 1,024.
    middle = kernel_oracle.chain("mlp", ("relu", round(math.sqrt(8 * 1024))))
    assert ArcFeatures().distances([small], [middle]).stack[1, 0, 0] == pytest.approx(
        math.sqrt(2), rel=1e-2
    )


def test_units_of_layers_that_one_network_lacks_do_not_matter():
    shallow = kernel_oracle.chain("mlp", ("relu", 100))
    deep = [kernel_oracle.chain("mlp", ("relu", 200), ("relu", units)) for units in (8, 77, 1024)]
    distances = ArcFeatures(rho=0.6).distances([shallow], deep).stack
    np.testing.assert_allclose(distances, distances[:, :, :1].repeat(3, axis=2), rtol=1e-12)


def test_strides_are_part_of_the_operation_and_units_end_at_the_bounds():
    def network(units: int, stride: int) -> Architecture:
        layers = [Layer("ip"), Layer("conv3", units, stride), Layer("softmax"), Layer("op")]
        return Architecture("cnn", layers, [(0, 1), (1, 2), (2, 3)])

    distances = (
        ArcFeatures()
        .distances([network(1024, 1)], [network(1024, 2), network(10**7, 1)])
        .stack[:, 0]
    )
    np.testing.assert_allclose(distances, [[math.sqrt(2), 0.0], [0.0, 0.0]], atol=1e-12)


def test_cells_without_any_way_through_have_places():
    empty = Architecture("nasbench201", [Layer("ip"), Layer("op")], [])
    loose = Architecture("nasbench201", [Layer("ip"), Layer("skip_connect"), Layer("op")], [(1, 2)])
    distances = ArcFeatures().distances([empty, loose]).stack
    np.testing.assert_allclose(distances[0], [[0.0, 1.0], [1.0, 0.0]])
    assert not distances[1].any()


def test_thousand_layers():
    pair = [kernel_oracle.long_chain(1000, seed) for seed in (1, 2)]
    distances = ArcFeatures().distances(pair).stack
    assert np.isfinite(distances).all()
    assert (distances[:, 0, 1] > 1).all()


def test_bad_input_and_travel():
    arc = pickle.loads(pickle.dumps(ArcFeatures(0.5, 0.25, (4, 256))))
    assert (arc.omega, arc.rho, arc.units) == (0.5, 0.25, (4, 256))
    assert arc.components == ("arc:operation", "arc:units")
    assert arc.distances([]).stack.shape == (2, 0, 0)
    with pytest.raises(InvalidArchitectureError, match="one space"):
        arc.distances(
            [kernel_oracle.chain("mlp", ("relu", 8))], [kernel_oracle.chain("cnn", ("conv3", 8))]
        )

    for config, reason in (
        ({"omega": 0.0}, "omega must be a finite number > 0, got 0.0"),
        ({"rho": 1.5}, r"rho must be in \(0, 1\], got 1.5"),
        ({"units": (8, 8)}, "units must be two ascending numbers"),
    ):
        with pytest.raises(UsageError, match=reason):
            ArcFeatures(**config)
