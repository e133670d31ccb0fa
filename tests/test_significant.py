"""Numbers as text: differences stay visible at any scale."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.benchmarks.measurement import mean_and_error, significant

SIZES = st.floats(1e-12, 1e9)


@given(SIZES, st.sampled_from([1.0, -1.0]))
def test_three_digits_of_every_number(size, sign):
    text = significant(sign * size)
    assert float(text.replace(",", "")) == pytest.approx(sign * size, rel=0.0051)


@given(st.floats(0.0, 1.0), st.floats(1e-10, 1e3))
def test_values_that_differ_are_shown_as_different(value, difference):
    first, second = (
        float(significant(one, difference).replace(",", "")) for one in (value, value + difference)
    )
    assert second - first == pytest.approx(difference, rel=0.012, abs=1e-15)


@pytest.mark.parametrize(
    ("value", "difference", "text"),
    [
        (0.0, None, "0"),
        (0.0, 0.0012, "0.00000"),
        (0.28, None, "0.280"),
        (0.9996, None, "1.00"),
        (12345.6, None, "12,346"),
        (0.93121, 0.00042, "0.931210"),
        (0.93121, 0.0, "0.931"),
        (2.5e-11, None, "2.50e-11"),
        (math.nan, None, "–"),
    ],
)
def test_texts(value, difference, text):
    assert significant(value, difference) == text


@pytest.mark.parametrize(
    ("mean", "error", "text"),
    [
        (0.28123, 0.03219, "0.281 ± 0.032"),
        (0.00281, 0.00032, "0.00281 ± 0.00032"),
        (94.312, 0.0213, "94.312 ± 0.021"),
        (0.0, 0.0, "0 ± 0"),
        (0.0123456, math.nan, "0.0123"),
    ],
)
def test_means_and_errors(mean, error, text):
    assert mean_and_error(mean, error) == text
