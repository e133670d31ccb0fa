"""Imported models on each server: architectures, evaluations, and proposals of studies."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from archive.api import Archive
from archive.errors import StudyConflictError, UsageError
from archive.exchange.importers.models import Place, add_model
from archive.store.records import Result, State
from tests.support.networks.torch_nets import chain, layer, residual
from tests.support.stores import count

NET = residual()
PLACE = Place("digits", "digits/own", "accuracy", "maximise")
STUDY = Place("digits", "digits/own", "accuracy", "maximise", "mine")
RESULT = Result(0.9, {"accuracy": 0.9, "loss": 0.3}, environment={"imported": "here"})


@pytest.mark.every_server
def test_an_architecture_alone(archive, connection):
    for _ in range(2):
        assert add_model(archive, NET, params=898, flops=4) is None

    details = archive.architectures.details(NET.key)
    assert (details["params"], details["flops"]) == (898, 4)
    assert count(connection, "(e:Evaluation)") == 0


def test_a_result_is_an_evaluation_of_the_task_once(archive):
    named = replace(RESULT, provenance={"source": "a paper"})
    ids = {add_model(archive, NET, place=PLACE, result=result) for result in (RESULT, named)}
    other = add_model(archive, NET, place=PLACE, result=Result(0.8, {"accuracy": 0.8}))
    found = {each.value: each for each in archive.studies.evaluations(task="digits", space="torch")}
    assert found.keys() == {0.9, 0.8}
    assert len(ids | {other}) == 2
    assert found[0.9].architecture == NET.canonical
    assert found[0.9].metrics == {"accuracy": 0.9, "loss": 0.3}
    assert (found[0.9].protocol, found[0.9].direction) == ("digits/own", "maximise")


def test_a_result_in_a_study(archive):
    first = [add_model(archive, NET, place=STUDY, result=RESULT) for _ in range(2)]
    second = add_model(archive, chain(layer("relu")), place=STUDY, result=RESULT)
    assert first == ["mine#00000"] * 2 and second == "mine#00001"
    study = archive.studies.get("mine")
    assert (study.space, study.task, study.objective, study.direction, study.budget) == (
        *("torch", "digits", "accuracy", "maximise"),
        2,
    )
    assert [each.value for each in archive.studies.evaluations("mine")] == [0.9, 0.9]
    with pytest.raises(UsageError, match=f"the study 'mine' has this network already: {NET.key}"):
        add_model(archive, NET, place=STUDY, result=Result(0.5))

    with pytest.raises(StudyConflictError, match="task digits, got iris"):
        add_model(
            archive,
            NET,
            place=Place("iris", "iris/own", "accuracy", "maximise", "mine"),
            result=RESULT,
        )


def test_only_an_added_network_raises_the_budget(archive):
    for _ in range(3):
        add_model(archive, NET, place=STUDY, result=RESULT)
        assert archive.studies.get("mine").budget == 1

    with pytest.raises(UsageError, match="has this network already"):
        add_model(archive, NET, place=STUDY, result=Result(0.5))

    assert archive.studies.get("mine").budget == 1
    archive.studies.set_budget("mine", 3)
    for at, op in enumerate(("relu", "gelu", "silu"), 2):
        add_model(archive, chain(layer(op)), place=STUDY)
        assert archive.studies.get("mine").budget == max(3, at)

    assert len(archive.proposals.list("mine")) == 4


@pytest.mark.every_server
def test_imports_at_once_into_a_study_without_room_all_get_a_place(archive, open_connection):
    networks = [chain(layer(op)) for op in ("relu", "gelu", "silu", "tanh", "sigmoid", "elu")]
    add_model(archive, NET, place=STUDY, result=RESULT)
    with ThreadPoolExecutor(len(networks)) as pool:
        made = pool.map(
            lambda each: add_model(Archive(open_connection()), each, place=STUDY), networks
        )
        assert sorted(made) == [f"mine#{number:05}" for number in range(1, 7)]

    assert archive.studies.get("mine").budget == 7


def test_a_model_that_waits_for_a_trainer(archive):
    assert add_model(archive, NET, place=STUDY) == "mine#00000"
    assert add_model(archive, NET, place=STUDY) == "mine#00000"
    claim = archive.proposals.claim("worker", study="mine")
    assert claim.architecture == NET.canonical
    assert archive.proposals.get("mine#00000").state is State.RUNNING


def test_a_task_without_a_result_needs_a_study(archive):
    with pytest.raises(UsageError, match="a task needs a result, or a study"):
        add_model(archive, NET, place=PLACE)
