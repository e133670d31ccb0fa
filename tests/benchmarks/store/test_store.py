"""The benchmark of the store runs on a separate server, and returns every documented figure."""

from __future__ import annotations

import csv
import gzip
import math

import pytest

from archive.errors import UsageError
from tests.benchmarks.store import server as store


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(store, "ARCHITECTURES", 6)
    monkeypatch.setattr(store, "PROPOSALS", 8)
    monkeypatch.setattr(store, "PAIRS", 10)


@pytest.mark.whole
def test_every_figure_is_measured(small, tmp_path):
    rows = [row for _, row in zip(range(20), store._synthetic_table(), strict=False)]
    table = tmp_path / "table.csv.gz"
    with gzip.open(table, "wt") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)

    figures = list(store.measure(table))
    names = " | ".join(row.name for row in figures)
    for word in (
        "cold start",
        "resident",
        "import of 20",
        "architectures",
        "distances",
        "claims by 8",
        "a result",
        "stored with",
    ):
        assert word in names

    assert all(
        math.isfinite(row.value) and row.value > 0 and row.unit and row.goal for row in figures
    )


def test_a_table_that_is_not_there(tmp_path):
    with pytest.raises(UsageError, match="table"):
        list(store.measure(tmp_path / "none.csv"))


def test_a_table_of_another_form(tmp_path):
    table = tmp_path / "other.csv"
    table.write_text("arch_str,accuracy\nx,1\n")
    with pytest.raises(
        UsageError, match="is no table of NAS-Bench-201: it has no column cifar10_valid_200ep"
    ):
        list(store.measure(table))

    with pytest.raises(UsageError, match="there is no table"):
        list(store.measure(tmp_path))


def test_the_synthetic_table_has_every_cell():
    cells = {row["arch_str"] for row in store._synthetic_table()}
    assert len(cells) == 15_625
