"""The benchmark of a large archive: its figures, and the refusal of an archive with data."""

from __future__ import annotations

import math

import pytest

from archive.errors import UsageError
from archive.queries import catalogue
from tests.benchmarks.store import scale


@pytest.mark.whole
def test_every_figure_is_measured(archive, store_settings, monkeypatch):
    monkeypatch.setattr(scale, "BATCH", 2)
    messages = []
    figures = {row.name: row for row in scale.measure(30, store_settings, messages.append)}
    assert all(math.isfinite(row.value) and row.value > 0 for row in figures.values())
    for words in ("", ", the first time"):
        assert {f"question {name}{words}" for name in catalogue.names()} <= figures.keys()

    assert len(catalogue.names()) >= 10
    for words in ("load of 30", "history of 30", "warm start", "one step of", "nearest by otmann"):
        assert any(words in name for name in figures), words

    assert ("disk" in figures) == store_settings.embedded
    rows = archive.query(
        "MATCH (p:Proposal)-[:OF]->(a:Architecture) RETURN p.study, count(DISTINCT a)"
    ).rows
    assert sorted(map(tuple, rows)) == [("new", 1), *((f"scale-{at}", 3) for at in range(10))]
    assert messages
    # After the first run the archive is not empty.
    with pytest.raises(UsageError, match="not empty"):
        list(scale.measure(30, store_settings, messages.append))


def test_a_large_archive_is_not_of_a_handful():
    with pytest.raises(UsageError, match="got 9"):
        list(scale.measure(9))


def test_observed_are_the_evaluations_as_arrays(archive):
    from tests.support.stores import evaluate

    evaluate(archive, [0.5, 0.75], "b")
    evaluate(archive, [0.25], "a", direction="minimise")
    arrays = archive.studies.result_arrays(["b", "a"])
    assert arrays.studies.tolist() == ["a", "b", "b"] and arrays.numbers.tolist() == [0, 0, 1]
    assert (arrays.values.tolist(), arrays.scores.tolist()) == (
        [0.25, 0.5, 0.75],
        [-0.25, 0.5, 0.75],
    )
    seen = [*archive.studies.evaluations("a"), *archive.studies.evaluations("b")]
    assert arrays.architectures.tolist() == [one.architecture.key for one in seen]
    assert len(archive.studies.result_arrays("none").scores) == 0
