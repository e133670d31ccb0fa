"""The request of `archive search`: options that were left out are completed from the study, or by
the defaults."""

from __future__ import annotations

import pytest

from archive import spaces
from archive.errors import UsageError
from archive.rungs import Rungs
from archive.searches.request import SearchOptions, request_of
from archive.store.records import Study
from tests.support.commands import table


def stored(**changes):
    """Return a study of perceptrons with rungs."""
    config = {"agent": "rand", "rungs": {"epochs": [2, 6, 60], "reduction": 2}}
    given = {"task": "diabetes", "protocol": "diabetes/1", "space": "mlp", "config": config}
    return Study("mine", **{**given, "space_config": spaces.get("mlp").config, **changes})


def test_without_a_study_it_is_the_defaults():
    new = request_of(SearchOptions())
    assert (new.study.name, new.study.protocol, new.agent.kind) == (
        "nasbot-cnn-digits",
        "digits/small",
        "nasbot",
    )
    assert request_of(SearchOptions(study="mine")).study.name == "mine"


def test_the_limits_of_the_space_are_the_studys():
    config = {**spaces.get("mlp").config, "max_layers": 5}
    for given in (SearchOptions(study="mine"), SearchOptions(study="mine", space="mlp")):
        found = request_of(given, stored(space_config=config))
        assert found.study.space_config == config
        assert found.agent.space == spaces.get("mlp", **config)


@pytest.mark.parametrize(
    ("options", "rungs"),
    [
        ({}, None),
        ({"rungs": "3,9"}, Rungs((3, 9, 60), 2)),
        ({"reduction": 4}, Rungs((2, 6, 60), 4)),
        ({"rungs": "3", "reduction": 4}, Rungs((4, 15, 60), 4)),
    ],
)
def test_one_half_of_the_rungs_is_completed_with_the_studys_other_half(options, rungs):
    assert (
        Rungs.of(request_of(SearchOptions(study="mine", **options), stored()).study.config) == rungs
    )


def test_a_table_that_has_changed_is_another_protocol(tmp_path):
    task = table(tmp_path)
    given = {
        "task": task,
        "space": "nasbench201",
        "space_config": {"table": str(tmp_path / "table.csv")},
    }
    study = stored(protocol="table/0123456789ab", config={}, **given)
    now = request_of(SearchOptions(task=task)).study.protocol
    assert (
        request_of(SearchOptions(study="mine", agent="random"), study).study.protocol
        == now
        != study.protocol
    )


def test_a_task_that_is_gone_is_said_to_be_the_studys():
    with pytest.raises(UsageError, match="the study 'mine' has the task 'gone'"):
        request_of(SearchOptions(study="mine"), stored(task="gone"))

    # With a task that is given, the study is refused for having another one.
    assert (
        request_of(SearchOptions(study="mine", task="digits"), stored(task="gone")).study.space
        == "cnn"
    )


def test_a_recipe_and_an_objective_are_part_of_the_protocol():
    asked = {"task": "diabetes", "protocol": "diabetes/1"}
    new = request_of(
        SearchOptions(recipe="mine", objective="r2", direction="maximise", **asked)
    ).study
    assert (new.protocol, new.objective, new.direction) == (
        "diabetes/1+recipe:mine+objective:r2",
        "r2",
        "maximise",
    )
    # The task's own are named by nothing.
    own = request_of(SearchOptions(recipe="default", objective="valid_mse", **asked)).study
    assert (own.protocol, own.objective, own.direction) == ("diabetes/1", "valid_mse", "minimise")


def test_a_study_supplies_its_recipe_and_its_objective():
    protocol = "diabetes/1+recipe:mine+objective:r2"
    study = stored(protocol=protocol, objective="r2", direction="maximise", config={})
    found = request_of(SearchOptions(study="mine"), study).study
    assert (found.protocol, found.objective, found.direction) == (protocol, "r2", "maximise")
    other = request_of(SearchOptions(study="mine", recipe="default"), study).study
    assert other.protocol == "diabetes/1+objective:r2"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"objective": "r2"}, "--objective r2 needs --direction maximise or minimise"),
        ({"direction": "maximise"}, "'diabetes' has the direction minimise, got maximise"),
        ({"recipe": "a b"}, "the name of a recipe must be .* got 'a b'"),
        (
            {"objective": "a+b", "direction": "minimise"},
            r"the name of a metric must be .* got "
            r"'a\+b'",
        ),
    ],
)
def test_contradictions_of_recipe_and_objective_are_refused(options, reason):
    with pytest.raises(UsageError, match=reason):
        request_of(SearchOptions(task="diabetes", **options))


def test_a_table_has_no_recipe(tmp_path):
    with pytest.raises(UsageError, match="it has no --recipe, and its --objective is accuracy"):
        request_of(SearchOptions(task=table(tmp_path), recipe="mine"))

    with pytest.raises(UsageError, match="its --objective is accuracy"):
        request_of(SearchOptions(task=table(tmp_path), objectives=("acuracy",)))
