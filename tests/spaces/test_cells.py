"""The packaged networks of NAS-Bench-201, compared with those that the code computes."""

from __future__ import annotations

import numpy as np
import pytest

from archive.architecture.codec import from_nasbench201
from archive.architecture.graph import Architecture
from archive.spaces import nasbench201_cells
from archive.spaces.nasbench201_cells import cells


@pytest.fixture(scope="module")
def computed():
    return nasbench201_cells.list_cells()


def same(first, second):
    assert first.keys() == second.keys()
    for name in first:
        assert first[name].dtype == second[name].dtype and np.array_equal(
            first[name], second[name]
        ), name


@pytest.mark.whole
def test_the_arrays_of_the_package_are_those_that_the_code_computes(computed):
    same(nasbench201_cells.read(), computed)


def test_the_cells_are_networks_like_any_other():
    assert len(cells()) == 8765
    for one in cells()[::400]:
        built = Architecture(one.space, one.layers, one.edges)
        assert (one.key, one.functional_key) == (built.key, built.functional_key)
        assert one.parents == built.parents and one.levels == built.levels


@pytest.mark.whole
def test_a_file_that_is_of_no_use_counts_as_missing(tmp_path, monkeypatch, computed):
    file = tmp_path / "cells.npz"
    assert nasbench201_cells.read(file) is None
    nasbench201_cells.write(file)
    whole = file.read_bytes()
    with np.load(file) as content:
        arrays = dict(content)

    # The keys of other code.
    np.savez(file, **{**arrays, "keys": arrays["keys"] ^ 1})
    assert nasbench201_cells.read(file) is None
    file.write_bytes(whole[: len(whole) // 2])
    assert nasbench201_cells.read(file) is None
    monkeypatch.setattr(nasbench201_cells, "read", lambda: None)
    same(nasbench201_cells._arrays.__wrapped__(), computed)


def test_what_is_known_of_every_string_is_what_building_it_tells():
    known = nasbench201_cells.describe_strings()
    assert len(known) == 15625
    for (text,), described in list(known.items())[::53]:
        network = from_nasbench201(text)
        found = described.build()
        assert described.functional_key == network.functional_key
        assert described.size == (len(network.layers), len(network.edges))
        assert found == network
        assert (found.key, found.functional_key) == (network.key, network.functional_key)
