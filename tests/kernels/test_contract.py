"""The contract of every kernel of the registry."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from archive import kernels
from archive.errors import InvalidArchitectureError, UnknownNameError, UsageError
from tests.support import kernel_oracle
from tests.support.networks.torch_nets import classifiers
from tests.support.strategies import relabelled, space_of

every = pytest.mark.parametrize("name", kernels.names())


def sample(space: str) -> list:
    if space == "torch":
        return classifiers()

    rng = np.random.default_rng(5)
    made = space_of(space)
    networks = made.initial_pool()[:4]
    return [*networks, *(made.mutate(network, rng).child for network in networks)]


@every
@pytest.mark.parametrize(
    "space", ["choices", "cnn", "darts", "decoder", "mlp", "nasbench101", "nasbench201", "torch"]
)
def test_contract(name, space):
    kernel = kernels.get(name)
    networks = sample(space)
    assert kernel.name == name
    distances = kernel.distances(networks)
    m = len(networks)
    c = len(kernel.components)
    assert len(distances.unnormalised) == kernel.unnormalised
    assert distances.stack.shape == (c, m, m)
    assert np.isfinite(distances.stack).all()
    assert (distances.stack >= 0).all()
    assert (distances.normalised <= 1).all()
    assert not distances.stack[:, range(m), range(m)].any()
    np.testing.assert_allclose(distances.stack, distances.stack.transpose(0, 2, 1), rtol=1e-9)
    shuffled = [relabelled(network, at) for at, network in enumerate(networks)]
    np.testing.assert_allclose(
        kernel.distances(shuffled, networks).stack, distances.stack, rtol=1e-9, atol=1e-9
    )
    prepared = pickle.loads(pickle.dumps([kernel.prepare(network) for network in networks]))
    np.testing.assert_array_equal(kernel.distances(prepared).stack, distances.stack)


@every
def test_its_covariance_takes_its_distances(name):
    kernel = kernels.get(name)
    networks = sample("nasbench101")
    covariance = kernel.default_covariance()
    stack = kernel.distances(networks).stack
    theta = covariance.bounds(stack).mean(axis=1)
    actual = covariance.value(stack, theta)
    assert actual.shape == (len(networks),) * 2
    np.testing.assert_allclose(actual.diagonal(), covariance.variance(theta))
    assert len(np.unique(actual.round(12))) > 2
    if name != "otmann":
        # One beta for each component, and the power that the kernel asks for.
        plain = np.exp(theta[0] - np.tensordot(np.exp(theta[1:]), stack**kernel.power, axes=1))
        np.testing.assert_allclose(actual, plain)


@every
def test_bad_input(name):
    kernel = kernels.get(name)
    assert kernel.distances([]).stack.shape == (len(kernel.components), 0, 0)
    with pytest.raises(InvalidArchitectureError, match="space"):
        kernel.distances(
            [kernel_oracle.chain("mlp", ("relu", 8))], [kernel_oracle.chain("cnn", ("conv3", 8))]
        )


def test_unknown_names():
    with pytest.raises(UnknownNameError, match="unknown kernel 'otman': did you mean otmann"):
        kernels.get("otman")

    with pytest.raises(UnknownNameError, match="unknown setting of the kernel otmann 'nu': "):
        kernels.get("otmann", nu=1)


def test_importing_loads_no_compiler():
    code = "import sys; from archive import kernels; kernels.get('otmann'); print(*sys.modules)"
    output = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert not {"numba", "scipy", "ot", "torch"} & set(output)
    assert "archive.kernels.distances.otmann" in output


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("otmann", {"nu_str": 0.1}), ("otmann", {"nu_str": "12"}), ("wasserstein", {"nu_str": 0.1}),
        ("edit", {"lam": "x"}), ("gromov-wasserstein", {"starts": 2.5}), ("gromov-wasserstein", {"alpha": "x"}),
        ("arc", {"units": 5}), ("arc", {"units": ["a", "b"]}), ("arc", {"units": [8, float("inf")]}),
        ("tree-wasserstein", {"n": 1.5}), ("tree-wasserstein", {"functional": "no"}),
        ("tree-wasserstein", {"sizes": 1}),
    ],
)  # fmt: skip
def test_a_setting_of_another_type_is_named(name, settings):
    (setting,) = settings
    with pytest.raises(UsageError, match=rf"\b{setting}\b.*"):
        kernels.get(name, **settings)
