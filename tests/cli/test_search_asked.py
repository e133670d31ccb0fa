"""The request of `archive search`: options that were left out are completed from the study, or by the defaults."""

from __future__ import annotations

import pytest

from archive import spaces
from archive.cli.search.request import SearchOptions, request_of
from archive.errors import UsageError
from archive.queue.successive_halving import Rungs
from archive.store.records import Study
from tests.support.commands import table


def stored(**changes):
    """Return a study of perceptrons with rungs."""
    config = {"agent": "rand", "rungs": {"epochs": [2, 6, 60], "reduction": 2}}
    given = {"task": "diabetes", "protocol": "diabetes/1", "space": "mlp", "config": config}
    return Study("mine", **{**given, "space_config": spaces.get("mlp").config, **changes})


def test_without_a_study_it_is_the_defaults():
    new = request_of(SearchOptions())
    assert (new.study.name, new.study.protocol, new.agent.kind) == ("nasbot-cnn-digits", "digits/small", "nasbot")
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
    assert Rungs.of(request_of(SearchOptions(study="mine", **options), stored()).study.config) == rungs


def test_a_table_that_has_changed_is_another_protocol(tmp_path):
    task = table(tmp_path)
    given = {"task": task, "space": "nasbench201", "space_config": {"table": str(tmp_path / "table.csv")}}
    study = stored(protocol="table/0123456789ab", config={}, **given)
    now = request_of(SearchOptions(task=task)).study.protocol
    assert request_of(SearchOptions(study="mine", agent="random"), study).study.protocol == now != study.protocol


def test_a_task_that_is_gone_is_said_to_be_the_studys():
    with pytest.raises(UsageError, match="the study 'mine' has the task 'gone'"):
        request_of(SearchOptions(study="mine"), stored(task="gone"))
    # With a task that is given, the study is refused for having another one.
    assert request_of(SearchOptions(study="mine", task="digits"), stored(task="gone")).study.space == "cnn"
