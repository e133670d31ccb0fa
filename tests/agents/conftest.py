"""Spaces that the agents' tests share."""

from __future__ import annotations

import pytest

from archive import spaces
from tests.support.histories import Chains


@pytest.fixture
def chains():
    return Chains()


@pytest.fixture(params=["mlp", "cnn"])
def space(request):
    return spaces.get(request.param)
