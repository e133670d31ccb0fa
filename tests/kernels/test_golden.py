"""OTMANN against the numbers of the authors' code and of the paper."""

from __future__ import annotations

import numpy as np
import pytest

from archive.architecture.layer_mass import layer_masses
from archive.architecture.operations import vocabulary
from archive.kernels.distances.otmann import MASSES, OTMANN
from archive.kernels.distances.path_lengths import path_lengths
from archive.kernels.distances.penalties import penalties
from tests.benchmarks.kernels.otmann import VARIANTS, read_golden
from tests.support import data_dir, golden


@pytest.fixture(scope="module")
def networks():
    return read_golden(data_dir() / "golden" / "otmann.json")[0]


@pytest.mark.parametrize("space", ["cnn", "mlp"])
@pytest.mark.parametrize(("variant", "title"), VARIANTS)
def test_distances(networks, variant, title, space):
    expected = golden("otmann.json")["distances"][title][space]
    otmann = OTMANN(variant, expected["nu_str"])
    distances = otmann.distances([networks[name] for name in expected["names"]])
    # nine decimals are given of the latter
    for kind, atol in (("unnormalised", 0.0), ("normalised", 5.1e-10)):
        values = np.array([expected[kind][str(nu)] for nu in expected["nu_str"]])
        np.testing.assert_allclose(
            getattr(distances, kind), values, rtol=1e-7, atol=atol, err_msg=kind
        )


def test_path_lengths(networks):
    for network in golden("otmann.json")["networks"]:
        architecture = networks[network["name"]]
        table = penalties(vocabulary(architecture.space))
        counted = table.counted[[table.index[layer.op] for layer in architecture.layers]]
        delta_ip, delta_op = path_lengths(architecture, counted)
        np.testing.assert_allclose(
            delta_ip, network["path_lengths"]["from_ip"], rtol=1e-12, err_msg=network["name"]
        )
        np.testing.assert_allclose(
            delta_op, network["path_lengths"]["to_op"], rtol=1e-12, err_msg=network["name"]
        )


def test_masses_of_the_released_code(networks):
    for network in golden("otmann.json")["networks"]:
        masses = layer_masses(networks[network["name"]], **MASSES["code"])
        np.testing.assert_allclose(masses, network["masses"], rtol=1e-12, err_msg=network["name"])


def test_label_penalties_of_the_released_code():
    for space, table in golden("otmann.json")["meta"]["label_mismatch_code"].items():
        ours = penalties(vocabulary(space), released_code=True)
        rows = [ours.index[label] for label in table["labels"]]
        expected = np.array(table["matrix"], dtype=float)
        np.testing.assert_allclose(
            ours.matrix[np.ix_(rows, rows)], np.where(np.isnan(expected), np.inf, expected)
        )
