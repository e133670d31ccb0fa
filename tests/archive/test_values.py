"""Numbers as people write them."""

from __future__ import annotations

import pytest

from archive.values import whole_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *[("0", 0), ("007", 7), (str(2**63 - 1), 2**63 - 1)],
        *[(text, None) for text in ("", "-1", "1.0", " 1", "²", str(2**63), "9" * 5000)],
    ],
)
def test_a_whole_number_can_be_stored(text, number):
    assert whole_number(text) == number
