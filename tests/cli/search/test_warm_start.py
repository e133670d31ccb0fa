"""`archive search --warm-start` with studies of other tasks, as a user types it."""

from __future__ import annotations

import json

import pytest

from archive import spaces
from archive.architecture import codec
from tests.support.commands import serving, shell


@pytest.fixture
def types(archive, store_settings, tmp_path, monkeypatch):
    """Types `archive …`; the folder has a table of forty cells with two columns."""
    cells = spaces.get("nasbench201").members()[::220][:40]
    lines = [f"{codec.to_nasbench201(cell)},{len(cell.layers)},{len(cell.edges)}" for cell in cells]
    (tmp_path / "cells.csv").write_text("\n".join(["arch_str,layers,edges", *lines]))
    monkeypatch.chdir(tmp_path)
    with shell(store_settings, tmp_path) as user, serving(archive):
        yield user.types


def task(column):
    return ("search", "--trainers", "0", "--task", f"table:cells.csv#{column}")


def test_another_task_helps_and_is_shown(archive, types):
    types(*task("layers"), "--agent", "random", "--study", "source", "--budget", "12")
    refused = types(
        *task("edges"), "--agent", "random", "--study", "warm", "--warm-start", "source", code=2
    )
    assert "the agent random learns from its own task" in " ".join(refused.stderr.split())
    assert archive.studies.names() == ["source"]
    done = types(
        *task("edges"),
        "--study",
        "warm",
        "--agent",
        "portfolio",
        "--budget",
        "6",
        "--warm-start",
        "source",
    )
    told = " ".join(done.stderr.split())
    assert (
        "12 evaluations of the study source" in told
        and ("are weighted by how well they predict this task") in told
    )
    shown = json.loads(types("study", "show", "warm", "--json").stdout)
    assert shown["warm_started_from"] == ["source"]
    (row,) = shown["sources"]
    assert (row["study"], row["same_task"], row["evaluations"], row["proposals"]) == (
        "source",
        False,
        12,
        6,
    )
    assert -1.0 <= row["coupling"] <= 1.0
    estimates = {one["number"]: one["coupling"] for one in row["couplings"]}
    # The first five proposals are those of the source and of the initial design.
    assert estimates == {5: row["coupling"]}
    told = types("study", "show", "warm").stdout
    assert "warm-started from" in " ".join(told.split()) and f"{row['coupling']:.2f}" in told
    other = types(*task("edges"), "--study", "warm", "--agent", "random", "--budget", "7")
    assert "are not used: the agent random" in " ".join(other.stderr.split())


@pytest.mark.whole
def test_a_source_that_tells_nothing_is_named(types):
    types(*task("layers"), "--agent", "random", "--study", "source", "--budget", "3")
    done = types(
        *task("edges"),
        "--study",
        "w",
        "--agent",
        "portfolio",
        "--budget",
        "1",
        "--warm-start",
        "source",
    )
    assert "are not used: only 3 different networks have a finite value" in " ".join(
        done.stderr.split()
    )
    # Agents learn from the sources of one task together.
    types(*task("layers"), "--agent", "random", "--study", "more", "--budget", "6", "--retrain")
    done = types(
        *task("edges"),
        "--study",
        "v",
        "--agent",
        "portfolio",
        "--budget",
        "1",
        "--warm-start",
        "source,more",
    )
    assert "are not used" not in done.stderr and done.stderr.count("are weighted by") == 2
