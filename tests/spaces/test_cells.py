"""The list of all networks of NAS-Bench-201, computed and read from the cache."""

from __future__ import annotations

import os
from pathlib import Path

from archive.graph import Architecture
from archive.spaces import nasbench201_cells
from archive.spaces.nasbench201_cells import cells


def test_the_list_that_is_read_is_the_list_that_was_computed(monkeypatch):
    # Behind the memory of this process.
    first = cells.__wrapped__()
    (kept,) = (Path(os.environ["ARCHIVE_HOME"]) / "cache" / "cells").iterdir()
    monkeypatch.setattr(nasbench201_cells, "_listed", None)
    second = cells.__wrapped__()
    assert second == first and len(first) == 8765
    for one in second[::400]:
        computed = Architecture(one.space, one.layers, one.edges)
        assert (one.key, one.functional_key) == (computed.key, computed.functional_key)
        assert one.parents == computed.parents and one.levels == computed.levels
    assert kept.stat().st_size < 2**21
