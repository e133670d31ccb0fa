"""Packed architectures: built one by one, in slices and in blocks, they are those that were
packed."""

from __future__ import annotations

import numpy as np
import pytest

from archive import spaces
from archive.architecture import packing
from archive.architecture.packing import PackedArchitectures, pack, unpack


def test_packed_architectures_are_built_when_they_are_read(monkeypatch):
    monkeypatch.setattr(packing, "BLOCK", 4)
    space = spaces.get("nasbench101")
    rng = np.random.default_rng(0)
    cells = [space.sample(rng) for _ in range(11)]
    packed = PackedArchitectures(space.name, pack(cells))
    assert list(packed) == list(unpack(space.name, pack(cells))) == cells
    assert [one.edges for one in packed] == [one.edges for one in cells]
    assert [packed[at].functional_key for at in (0, 7, -1)] == [
        cells[at].functional_key for at in (0, 7, -1)
    ]
    assert (packed[2:9], packed[9:2:-3], packed[5:5]) == (
        tuple(cells[2:9]),
        tuple(cells[9:2:-3]),
        (),
    )
    assert packed[np.int64(3)] == cells[3]
    assert packed.take([7, 0, 7]) == (cells[7], cells[0], cells[7])
    assert packed.take(np.array([9, 4])) == (cells[9], cells[4])
    assert packed.take([]) == ()
    with pytest.raises(IndexError):
        packed[11]
