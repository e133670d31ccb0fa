"""Tests of the trainer on a GPU, without a database: `python -m pytest --confcutdir=tests/gpu
tests/gpu`.

A machine with CUDA needs only torch, numpy, safetensors, psutil and pytest for them, since
`--confcutdir` leaves out the fixtures of all other tests. Without a GPU they are skipped.
"""

from __future__ import annotations

import pytest
import torch


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of this folder where there is no GPU."""
    if torch.cuda.is_available():
        return

    for item in items:
        if "gpu" in item.path.parts:
            item.add_marker(pytest.mark.skip(reason="no GPU here"))
