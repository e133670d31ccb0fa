"""The benchmark of the edit distance: its figures and differences from the reference."""

from __future__ import annotations

import pytest

from archive.kernels.distances.edit import EditDistance
from tests.benchmarks.kernels import edit as benchmark
from tests.support import kernel_oracle


@pytest.mark.whole
def test_rows():
    rows = list(benchmark.measure(networks=6))
    assert len({row.name for row in rows}) == len(rows) == 4 * 6
    differences = [row for row in rows if "difference" in row.name]
    assert len(differences) == 4
    assert all(row.goal == "<= 1e-9" and row.value <= 1e-9 for row in differences)
    pairs = [row for row in rows if "a pair" in row.name]
    assert all(row.unit == "us" and row.reference is not None and row.value > 0 for row in pairs)


def test_the_reference_computes_the_same_distance():
    kernel = EditDistance(0.5, "attributes")
    one, two = (kernel.prepare(kernel_oracle.long_chain(20, seed)) for seed in (0, 1))
    expected = kernel.distances([one], [two]).stack[0, 0, 0]
    assert benchmark.reference_distance(one, two, 0.5) == pytest.approx(expected, rel=1e-12)
