"""Proposals that a daemon leaves to others, and those of a recipe."""

from __future__ import annotations

import dataclasses

import pytest

from archive.queue.causes import Cause
from archive.store.records import State
from archive.trainer.daemon.options import Tally
from archive.trainer.tasks import registry
from tests.support import stores
from tests.support.daemons import NETS, Suggestion, propose, recipe


def test_unknown_protocol_is_left_to_other_workers(archive, trainer):
    propose(archive, NETS[:1], protocol="diabetes/99")
    daemon = trainer(idle_seconds=0.3)
    assert daemon.run() == Tally(returned=1)
    (proposal,) = archive.proposals.list("study")
    assert (proposal.state, proposal.attempts, proposal.refused_by) == (
        State.WAITING,
        0,
        (daemon.worker,),
    )
    assert "unknown protocol of the task diabetes 'diabetes/99'" in proposal.reason
    assert proposal.cause == Cause.ENVIRONMENT


@pytest.mark.whole
def test_a_study_is_trained_by_its_recipe_for_its_objective(archive, trainer):
    protocol = "diabetes/1+recipe:mine+objective:depth"
    propose(archive, NETS[:1], protocol=protocol, objective="depth", direction="maximise")
    cost = {
        "protocol": "diabetes/1+recipe:mine+objective:peak_memory_bytes",
        "objective": "peak_memory_bytes",
    }
    propose(archive, NETS[:1], name="cost", **cost)
    assert recipe(trainer(idle_seconds=0.3)).run().complete == 2
    (evaluation,) = archive.studies.evaluations("study")
    depth = float(NETS[0].depth)
    assert (evaluation.protocol, evaluation.value) == (protocol, depth)
    reported = {"depth": depth, "epochs/2": evaluation.epochs / 2, "valid_mse": 0.5}
    assert evaluation.metrics == {
        **reported,
        "peak_memory_bytes": evaluation.metrics["peak_memory_bytes"],
    }
    # What the archive measures can be an objective, too.
    (other,) = archive.studies.evaluations("cost")
    assert other.value == other.metrics["peak_memory_bytes"] > 0
    assert evaluation.curve["epochs/2"] == [epoch / 2 for epoch in evaluation.curve["epoch"]]
    rows = archive.query(
        "MATCH (e:Evaluation)-[:ON]->(t:Task) WHERE e.`metric_epochs/2` > 1 RETURN t.protocol, "
        "e.environment"
    ).rows
    assert len(rows) == 2
    assert all('"recipe": "mine"' in row[1] and '"by": "depth"' in row[1] for row in rows)
    # Nothing of it answers the default recipe, and the other way round.
    network = [Suggestion(NETS[0])]
    asked = dataclasses.replace(archive.studies.get("study"), name="new")
    assert archive.answers.known(asked, network)[0].value == depth
    assert archive.answers.known(dataclasses.replace(asked, protocol="diabetes/1"), network) == [
        None
    ]


@pytest.mark.parametrize("allowed", [None, ("default",)])
def test_a_recipe_that_may_not_run_here_is_left_to_others(archive, trainer, tmp_path, allowed):
    propose(archive, NETS[:1], protocol="diabetes/1+recipe:mine")
    first = trainer(once=True, recipes=allowed)
    if allowed:
        recipe(first)

    assert first.run() == Tally()
    (proposal,) = archive.proposals.list("study")
    assert (proposal.state, proposal.attempts, proposal.refused_by) == (State.WAITING, 0, ())
    assert recipe(trainer(once=True)).run().complete == 1


@pytest.mark.whole
def test_task_with_an_unknown_error_does_not_stop_the_trainer(archive, monkeypatch, caplog, run):
    task = dataclasses.replace(registry.DIABETES, name="broken", protocols=None)
    monkeypatch.setitem(registry.registry._loaded, "broken", task)
    propose(archive, NETS[:1], "broken", protocol="broken/1", name="bad")
    propose(archive, NETS[:1], name="good")
    assert run() == Tally(complete=1, returned=1)
    (bad,), (good,) = (archive.proposals.list(name) for name in ("bad", "good"))
    assert (bad.state, bad.attempts, good.state) == (State.WAITING, 0, State.COMPLETE)
    assert bad.reason == "TypeError: 'NoneType' object is not iterable"
    assert "cannot start proposal=bad#" in caplog.text


def test_unreadable_table_is_left_to_other_workers(archive, monkeypatch, run):
    def broken(*_):
        raise AttributeError("no column in cafe.csv")

    monkeypatch.setattr("archive.trainer.daemon.trainer.look_up", broken)
    stores.propose(archive, stores.cells(1), task="nb201-cifar10", protocol="nb201/12")
    assert run() == Tally(returned=1)
    (proposal,) = archive.proposals.list("study")
    assert (proposal.state, proposal.attempts) == (State.WAITING, 0)
    assert proposal.reason == "AttributeError: no column in cafe.csv"
