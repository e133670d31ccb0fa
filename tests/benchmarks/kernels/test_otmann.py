"""The benchmark of OTMANN: its figures, with and without golden numbers."""

from __future__ import annotations

import numpy as np
import pytest

from archive.errors import UsageError
from archive.kernels.distances.otmann import OTMANN
from tests.benchmarks.kernels import otmann as benchmark
from tests.support import kernel_oracle

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::SyntaxWarning")


def test_rows_without_golden_numbers(monkeypatch):
    monkeypatch.delenv("ARCHIVE_DATA_DIR", raising=False)
    rows = list(benchmark.measure(networks=4))
    assert len({row.name for row in rows}) == len(rows) == 8
    errors = [row for row in rows if "difference" in row.name]
    assert errors
    assert all(row.goal == "<= 1e-7" and row.value <= 1e-7 for row in errors)
    assert all(row.value > 0 and row.unit == "us" for row in rows if row not in errors)


@pytest.mark.whole
def test_rows_with_golden_numbers(shared_data):
    rows = list(benchmark.measure(shared_data / "golden" / "otmann.json", networks=2))
    errors = [row for row in rows if "largest relative error" in row.name]
    assert len(errors) == 6
    assert all(row.goal == "<= 1e-7" and row.value <= 1e-7 for row in errors)


def test_the_reference_solves_the_same_program():
    pair = [
        kernel_oracle.chain("mlp", ("relu", 10), ("tanh", 8)),
        kernel_oracle.chain("mlp", ("tanh", 30), ("elu", 9)),
    ]
    otmann = OTMANN()
    actual = benchmark.reference_distance(otmann, *(otmann.prepare(network) for network in pair))
    np.testing.assert_allclose(
        actual, [kernel_oracle.otmann(*pair, nu) for nu in otmann.nu_str], rtol=1e-7
    )


def test_a_file_that_holds_something_else(tmp_path):
    for content in (
        None,
        "no json",
        "{}",
        "[]",
        '{"networks":5,"distances":{}}',
        '{"networks":[],"distances":{}}',
    ):
        path = tmp_path / "golden.json"
        if content is not None:
            path.write_text(content)

        with pytest.raises(UsageError, match="golden distances"):
            list(benchmark.measure(path))
