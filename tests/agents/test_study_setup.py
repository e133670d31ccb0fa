"""Budgets of existing studies: never below the number of evaluations."""

from __future__ import annotations

import numpy as np
import pytest

from archive import agents, spaces
from archive.agents.study_setup import open_study
from archive.errors import UsageError
from archive.store.records import Study

POOL = spaces.get("mlp").initial_pool()


@pytest.fixture
def evaluated(archive):
    """A study to ask and tell with four evaluations."""
    study = agents.study(archive, "evaluated", "mlp", budget=9)
    for number, network in enumerate(POOL[:4]):
        study.tell(network, float(number))

    return study


def test_a_study_that_is_opened_keeps_room_for_what_it_has(archive, evaluated):
    assert agents.study(archive, "evaluated", budget=2).record.budget == 4
    assert agents.study(archive, "evaluated", budget=6).record.budget == 6
    assert agents.study(archive, "evaluated", budget=5).record.budget == 5


def test_a_run_for_fewer_evaluations_than_there_are_evaluates_nothing(evaluated):
    best = evaluated.run(
        lambda _: pytest.fail("there is nothing to evaluate"), budget=3, agent="random"
    )
    assert (best.value, evaluated.record.budget, len(evaluated.evaluations())) == (3.0, 4, 4)


def test_a_new_study_that_is_its_own_source_is_no_name_mistyped(archive, evaluated):
    asked = Study("told2", "t", "t/1", "mlp")
    with pytest.raises(UsageError, match="'told2' cannot start warm from itself"):
        open_study(archive, asked, sources=["told2"])

    assert archive.studies.names() == ["evaluated"]


@pytest.mark.parametrize("name", ["", "all", "a,b", " ", " a", "a\n", "-x", "a#1"])
def test_a_new_study_has_a_name_that_options_can_name(archive, name):
    with pytest.raises(UsageError, match="a new study needs a name other than 'all'"):
        open_study(archive, Study(name, "t", "t/1", "mlp"))

    assert archive.studies.names() == []


def test_a_study_of_any_name_goes_on(archive):
    former = Study("a,b", "t", "t/1", "mlp")
    archive.studies.create(former)
    assert open_study(archive, former, budget=7).budget == 7


def test_one_source_is_named_as_it_is(archive, evaluated):
    agents.study(archive, "next", "mlp", task="evaluated", warm_start="evaluated")
    assert archive.studies.sources("next") == ["evaluated"]


@pytest.mark.parametrize("seed", [-1, 1.5, 2**63])
def test_a_seed_that_no_generator_takes_is_refused_before_anything_is_stored(archive, seed):
    with pytest.raises(UsageError, match=r"seed must be an integer from 0 to 2\^63 - 1, got"):
        agents.study(archive, "new", "nasbench201", seed=seed)

    assert archive.studies.names() == []


def test_a_seed_may_be_of_numpy(archive):
    study = agents.study(archive, "new", "nasbench201", seed=np.int64(2**62))
    assert study.record.seed == 2**62 and len(study.ask("random")) == 1


@pytest.mark.parametrize("budget", [1e3, 2.5])
def test_a_budget_is_an_integer(archive, evaluated, budget):
    before = evaluated.record.budget
    for name in ("new", "evaluated"):
        with pytest.raises(
            UsageError,
            match=r"budget must be an integer from 0 to 2\^63 - 1, "
            rf"got {budget}",
        ):
            agents.study(archive, name, "mlp", budget=budget)

    with pytest.raises(
        UsageError,
        match=r"budget must be an integer from 0 to 2\^63 - 1, got "
        rf"{budget + 100}",
    ):
        evaluated.run(lambda _: 0.5, budget=budget + 100, agent="random")

    assert archive.studies.names() == ["evaluated"] and evaluated.record.budget == before
