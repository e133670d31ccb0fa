"""Sizes of messages, against the driver's own encoding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from neo4j._codec.packstream.v1 import PackableBuffer, Packer

from archive.database import messages
from archive.database.messages import encoded_size, parts

numbers = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats()
values = st.recursive(
    numbers | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner) | st.lists(st.integers(0, 100)) | st.dictionaries(st.text(), inner)
    ),
)


def encoded(value):
    buffer = PackableBuffer()
    Packer(buffer).pack(value)
    return len(buffer.data)


@given(values)
def test_no_value_is_longer_than_its_size(value):
    assert encoded_size(value) >= encoded(value)


@pytest.mark.parametrize(
    "value",
    [
        [0.5] * 2000,
        [7] * 2000,
        [-300] * 2000,
        "a" * 5000,
        "ä" * 5000,
        [{"name": [0.5] * 500, "b": "text" * 99}] * 9,
    ],
)
def test_the_size_of_long_values_is_hardly_larger(value):
    assert encoded(value) <= encoded_size(value) <= 1.05 * encoded(value)


def test_an_array_is_sent_as_a_list():
    assert encoded_size(np.zeros((3, 4))) >= 9 * 12


def test_parts_hold_all_items_in_their_order(monkeypatch):
    monkeypatch.setattr(messages, "PART_BYTES", 10)
    cut = [[3, 7], [4], [12], [10], [1, 1]]
    assert list(parts([item for part in cut for item in part], size=lambda item: item)) == cut
    assert list(parts([])) == []
