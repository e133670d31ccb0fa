"""The benchmark of a large archive: it runs, on each server, and measures what it says."""

from __future__ import annotations

import math

import pytest

from archive.agents.benchmarks import scale
from archive.errors import UsageError
from archive.queries import catalogue


def test_every_figure_is_measured(archive, store_settings, monkeypatch):
    monkeypatch.setattr(scale, "BATCH", 2)
    told = []
    found = {row.name: row for row in scale.measure(30, store_settings, told.append)}
    assert all(math.isfinite(row.value) and row.value > 0 for row in found.values())
    for words in ("", ", the first time"):
        assert {f"question {name}{words}" for name in catalogue.names()} <= found.keys()
    assert len(catalogue.names()) >= 10
    for words in ("load of 30", "history of 30", "warm start", "one step of", "nearest by otmann"):
        assert any(words in name for name in found), words
    assert ("disk" in found) == store_settings.embedded
    rows = archive.query("MATCH (p:Proposal)-[:OF]->(a:Architecture) RETURN p.study, count(DISTINCT a)").rows
    assert sorted(map(tuple, rows)) == [("new", 1), *((f"scale-{at}", 3) for at in range(10))]
    assert told
    # The first is enough: an archive with something in it is nobody's to fill.
    with pytest.raises(UsageError, match="not empty"):
        scale.measure(30, store_settings, told.append)


def test_a_large_archive_is_not_of_a_handful():
    with pytest.raises(UsageError, match="got 9"):
        scale.measure(9)


def test_observed_are_the_evaluations_as_arrays(archive):
    from tests.support.stores import evaluate

    evaluate(archive, [0.5, 0.75], "b")
    evaluate(archive, [0.25], "a", direction="minimise")
    found = archive.studies.observed(["b", "a"])
    assert found.studies.tolist() == ["a", "b", "b"] and found.numbers.tolist() == [0, 0, 1]
    assert (found.values.tolist(), found.scores.tolist()) == ([0.25, 0.5, 0.75], [-0.25, 0.5, 0.75])
    seen = [*archive.studies.evaluations("a"), *archive.studies.evaluations("b")]
    assert found.architectures.tolist() == [one.architecture.key for one in seen]
    assert len(archive.studies.observed("none").scores) == 0
