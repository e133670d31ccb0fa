"""Data frames, compared with the records."""

from __future__ import annotations

import sys

import pandas as pd
import pytest

from archive import frames
from archive.database.user_query import run_query
from archive.errors import SettingsError, UnknownNameError
from archive.store.records import Objective, Result
from tests.support.dumped import fill
from tests.support.stores import cells, propose


def test_evaluations_are_rows(archive):
    fill(archive)
    frame = frames.evaluations(archive, "one")
    found = archive.studies.evaluations("one")
    assert list(frame.index) == [each.id for each in found]
    assert list(frame["value"]) == [each.value for each in found]
    assert list(frame["architecture"]) == [each.architecture.key for each in found]
    assert list(frame["metric_accuracy"]) == [0.75] * 3
    assert list(frame["hyperparameter_learning_rate"]) == [0.1] * 3
    assert list(frame["number"]) == [each.number for each in found]
    assert frame["created"].iloc[0] == pd.Timestamp(found[0].created, unit="ms", tz="UTC")
    everything = frames.evaluations(archive)
    assert len(everything) == 4
    assert everything["number"].isna().sum() == 1  # of others: no study, no number
    assert everything["number"].dtype == "Int64"
    assert list(frame["partial"]) == [each.partial for each in found]
    assert frame.groupby("agent")["value"].max().to_dict() == {found[0].agent: 0.75}


def test_a_seed_keeps_all_its_digits_beside_a_missing_one(archive, connection):
    fill(archive)
    seed = 2**60 + 1
    run_query(
        connection,
        f"MATCH (e:Evaluation) SET e.seed = CASE e.id WHEN 'one#00001' THEN {seed} END",
        write=True,
    )
    seeds = frames.evaluations(archive)["seed"]
    assert (seeds["one#00001"], seeds.isna().sum()) == (seed, 3)


def test_studies_proposals_and_curves(archive):
    fill(archive)
    table = frames.studies(archive)
    assert list(table.index) == ["one-source", "one"]
    assert table.loc["one", ["complete", "pruned", "failed", "waiting", "running"]].tolist() == [
        2,
        1,
        1,
        1,
        1,
    ]
    assert table.loc["one", "best"] == 0.75
    assert pd.isna(table.loc["one-source", "best"])
    listed = frames.proposals(archive, "one")
    assert list(listed["state"]) == [each.state.value for each in archive.proposals.list("one")]
    assert listed["reason"].notna().sum() == 1
    curve = frames.curves(archive, "one")
    first = archive.studies.evaluations("one")[0]
    assert curve.loc[first.id, "valid_accuracy"].tolist() == [0.5, 0.75]
    assert curve.loc[(first.id, 1), "train_loss"] == 2.0
    with pytest.raises(UnknownNameError):
        frames.proposals(archive, "none")


def test_numbers_that_are_all_missing_are_numbers(archive):
    propose(archive, cells(2), "one")
    claim = archive.proposals.claim("worker", study="one")
    archive.proposals.complete(claim.id, claim.token, Result(0.5))
    listed = frames.proposals(archive, "one")
    assert {str(listed[name].dtype) for name in ("acquisition", "mean", "std", "fidelity")} == {
        "float64"
    }
    assert len(listed.nlargest(1, "acquisition")) == 1
    assert frames.evaluations(archive, "one").groupby("agent")["seconds"].mean().dtype == "float64"
    assert (
        frames.studies(archive)["best"].dtype
        == frames.curves(archive)["train_loss"].dtype
        == "float64"
    )


def test_an_empty_archive_gives_empty_frames(archive):
    assert len(frames.studies(archive)) == len(frames.curves(archive)) == 0
    empty = frames.evaluations(archive)
    assert len(empty) == 0
    assert {"value", "architecture", "created"} <= set(empty.columns)
    curves = frames.curves(archive)
    assert list(curves.index.names) == ["evaluation", "epoch"]
    assert list(curves.columns) == ["train_loss", "valid_loss", "seconds"]
    assert curves["valid_loss"].groupby("evaluation").min().empty


def test_unknown_studies_are_refused(archive):
    fill(archive)
    for frame in (frames.evaluations, frames.curves, frames.proposals):
        with pytest.raises(UnknownNameError, match="unknown study 'on': did you mean one"):
            frame(archive, "on")

    for frame in (frames.evaluations, frames.curves):
        with pytest.raises(UnknownNameError, match="unknown study 'on'"):
            frame(archive, ["one", "on"])

    assert frames.answer(archive.query("RETURN 1 AS one, 'a' AS text")).to_dict("records") == [
        {"one": 1, "text": "a"}
    ]


def test_without_pandas_the_way_out_is_named(archive, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SettingsError, match=r"pip install 'nas-archive\[pandas\]'"):
        frames.studies(archive)


def test_a_pareto_set_and_its_hypervolume(archive):
    propose(archive, cells(3), further=(Objective("loss", "minimise"),))
    assert (
        len(frames.pareto_set(archive, "study")) == len(frames.hypervolume(archive, "study")) == 0
    )
    for accuracy, loss in ((0.5, 3.0), (0.4, 4.0), (0.3, 1.0)):
        claim = archive.proposals.claim("trainer", study="study")
        archive.proposals.complete(
            claim.id, claim.token, Result(accuracy, {"accuracy": accuracy, "loss": loss})
        )

    front = frames.pareto_set(archive, "study")
    assert front[["number", "accuracy", "loss"]].to_numpy().tolist() == [
        [0, 0.5, 3.0],
        [2, 0.3, 1.0],
    ]
    assert frames.hypervolume(archive, "study")["hypervolume"].tolist() == pytest.approx(
        [0.2, 0.2, 0.2]
    )
