"""What every kernel of the registry keeps, whatever it computes."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from archive import kernels
from archive.errors import InvalidArchitectureError, UnknownNameError
from tests.support import kernel_oracle
from tests.support.strategies import relabelled, space_of

every = pytest.mark.parametrize("name", kernels.names())


def sample(space: str) -> list:
    rng, made = np.random.default_rng(5), space_of(space)
    networks = made.initial_pool()[:4]
    return [*networks, *(made.mutate(network, rng).child for network in networks)]


@every
@pytest.mark.parametrize("space", ["cnn", "darts", "mlp", "nasbench101", "nasbench201"])
def test_contract(name, space):
    kernel, networks = kernels.get(name), sample(space)
    assert kernel.name == name
    found = kernel.distances(networks)
    m, c = len(networks), len(kernel.components)
    assert len(found.unnormalised) == kernel.unnormalised
    assert found.stack.shape == (c, m, m)
    assert np.isfinite(found.stack).all()
    assert (found.stack >= 0).all()
    assert (found.normalised <= 1).all()
    assert not found.stack[:, range(m), range(m)].any()
    np.testing.assert_allclose(found.stack, found.stack.transpose(0, 2, 1), rtol=1e-9)
    shuffled = [relabelled(network, at) for at, network in enumerate(networks)]
    np.testing.assert_allclose(kernel.distances(shuffled, networks).stack, found.stack, rtol=1e-9, atol=1e-9)
    prepared = pickle.loads(pickle.dumps([kernel.prepare(network) for network in networks]))
    np.testing.assert_array_equal(kernel.distances(prepared).stack, found.stack)


@every
def test_its_covariance_takes_its_distances(name):
    kernel, networks = kernels.get(name), sample("nasbench101")
    covariance, stack = kernel.default_covariance(), kernel.distances(networks).stack
    theta = covariance.bounds(stack).mean(axis=1)
    found = covariance.value(stack, theta)
    assert found.shape == (len(networks),) * 2
    np.testing.assert_allclose(found.diagonal(), covariance.variance(theta))
    assert len(np.unique(found.round(12))) > 2
    if name != "otmann":
        # One beta for each component, and the power that the kernel asks for.
        plain = np.exp(theta[0] - np.tensordot(np.exp(theta[1:]), stack**kernel.power, axes=1))
        np.testing.assert_allclose(found, plain)


@every
def test_bad_input(name):
    kernel = kernels.get(name)
    assert kernel.distances([]).stack.shape == (len(kernel.components), 0, 0)
    with pytest.raises(InvalidArchitectureError, match="space"):
        kernel.distances([kernel_oracle.chain("mlp", ("relu", 8))], [kernel_oracle.chain("cnn", ("conv3", 8))])


def test_unknown_names():
    with pytest.raises(UnknownNameError, match="unknown kernel 'otman': did you mean otmann"):
        kernels.get("otman")
    with pytest.raises(UnknownNameError, match="unknown setting of the kernel otmann 'nu': "):
        kernels.get("otmann", nu=1)


def test_importing_loads_no_compiler():
    code = "import sys; from archive import kernels; kernels.get('otmann'); print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not {"numba", "scipy", "ot", "torch"} & set(found)
    assert "archive.kernels.distances.otmann" in found
