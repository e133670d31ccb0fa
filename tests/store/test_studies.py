"""Studies on each server: created once, compared with existing ones, and read back unchanged."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from archive import spaces
from archive.errors import StudyConflictError, UnknownNameError, UsageError
from archive.store.evaluations import Evaluations
from archive.store.records import Result, State
from archive.store.studies.studies import RecipeVersion, Studies, recipe_versions
from tests.support.dumped import dumped
from tests.support.stores import (
    Forgetful,
    cells,
    count,
    evaluate,
    everywhere,
    propose,
    study,
    suggest,
)


def test_a_study_comes_back_as_it_was_made(archive):
    made = study(
        "one",
        config={"agent": "nasbot", "depth": [1, 2]},
        space_config={"max": 3},
        seed=7,
        budget=20,
    )
    stored = archive.studies.create(made)
    assert stored.created is not None
    assert archive.studies.get("one") == stored
    for name in (
        "name",
        "task",
        "protocol",
        "space",
        "objective",
        "direction",
        "budget",
        "config",
        "space_config",
    ):
        assert getattr(stored, name) == getattr(made, name)

    assert stored.seed == 7


@pytest.mark.every_server
def test_the_graph_says_task_and_space(archive):
    archive.studies.create(study("one"))
    archive.studies.create(study("two"))
    rows = archive.query(
        "MATCH (space:Space)<-[:IN]-(s:Study)-[:ON]->(t:Task) RETURN s.name, t.name, "
        "t.protocol, "
        "space.name"
    ).rows
    assert sorted(map(tuple, rows)) == [
        (name, "digits", "digits/1", "nasbench201") for name in ("one", "two")
    ]
    assert count(archive.connection, "(t:Task)") == count(archive.connection, "(s:Space)") == 1


def test_making_it_again_keeps_what_is_there(archive):
    first = archive.studies.create(study(budget=20, seed=1))
    assert archive.studies.create(study(budget=50, seed=2)) == first
    archive.studies.set_budget("study", 50)
    assert archive.studies.get("study").budget == 50


@pytest.mark.every_server
@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("task", "mnist"),
        ("protocol", "digits/2"),
        ("space", "cnn"),
        ("objective", "mse"),
        ("direction", "minimise"),
    ],
)
def test_the_same_name_for_something_else_is_a_conflict(archive, name, other):
    archive.studies.create(study())
    with pytest.raises(StudyConflictError, match=f"{name} .*got {other}"):
        archive.studies.create(study(**{name: other}))

    assert count(archive.connection, "(:Study)-[r]->()") == 2


def test_other_settings_of_the_space_are_a_conflict(archive):
    narrow = study(space="mlp", space_config={"max_layers": 8})
    stored = archive.studies.create(narrow)
    with pytest.raises(
        StudyConflictError,
        match=r"exists with the space setting max_layers = 8, got 9: choose "
        r"another",
    ):
        archive.studies.create(study(space="mlp", space_config={"max_layers": 9}))

    with pytest.raises(StudyConflictError, match=r"max_layers = 8, got 60: choose another"):
        archive.studies.create(study(space="mlp"))

    # Settings that are left out have their defaults: writing them out is no conflict.
    assert (
        archive.studies.create(
            study(space="mlp", space_config=spaces.get("mlp", max_layers=8).config)
        )
        == stored
    )
    assert archive.studies.get("study") == stored


def test_settings_of_a_space_that_is_not_installed_are_compared_as_they_are(archive):
    archive.studies.create(study(space="elsewhere", space_config={"depth": [1, 2], "width": 3}))
    archive.studies.create(study(space="elsewhere", space_config={"width": 3, "depth": (1, 2)}))
    with pytest.raises(StudyConflictError, match=r"width = 3, got its default"):
        archive.studies.create(study(space="elsewhere", space_config={"depth": [1, 2]}))


def test_proposals_are_counted_by_state(archive):
    archive.studies.create(study("empty"))
    evaluate(archive, [0.5, 0.25], "one")
    propose(archive, cells(4), "one")
    claim = archive.proposals.claim("w", study="one")
    archive.proposals.fail(claim.id, claim.token, "no memory")
    expected = {
        State.COMPLETE: 2,
        State.FAILED: 1,
        State.WAITING: 1,
        State.RUNNING: 0,
        State.PRUNED: 0,
    }
    assert archive.studies.counts("one") == archive.studies.snapshot("one").counts == expected
    assert archive.studies.counts("empty") == dict.fromkeys(State, 0)
    with pytest.raises(UnknownNameError, match="unknown study 'absent'"):
        archive.studies.counts("absent")


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "a#1"},
        {"direction": "up"},
        {"budget": -1},
        {"budget": 2**63},
        {"seed": -1},
    ],
)
def test_invalid_studies(archive, wrong):
    with pytest.raises(UsageError):
        archive.studies.create(study(**wrong))


@pytest.mark.parametrize("budget", [-1, 2**63])
def test_a_budget_is_not_set_to_a_number_that_no_study_has(archive, budget):
    archive.studies.create(study("one"))
    with pytest.raises(
        UsageError,
        match=r"budget must be an integer from 0 to 2\^63 - 1, got "
        rf"{budget}",
    ):
        archive.studies.set_budget("one", budget)


@pytest.mark.every_server
def test_many_makers_make_one_study(open_connection, connection):
    makers = [Studies(open_connection(), None) for _ in range(8)]
    found = everywhere(lambda i: makers[i].create(study(seed=3)))
    assert len(set(map(repr, found))) == 1
    assert [count(connection, f"(n:{label})") for label in ("Study", "Task", "Space")] == [1, 1, 1]
    assert (
        count(connection, "(:Study)-[:ON]->(:Task)")
        == count(connection, "(:Study)-[:IN]->(:Space)")
        == 1
    )


@pytest.mark.every_server
def test_a_lost_acknowledgement_makes_no_second_study(connection):
    studies = Studies(Forgetful(connection), None)
    studies.create(study("one"))
    studies.create(study("two"))
    studies.warm_start("two", ["one"])
    assert count(connection, "(:Study)-[]->()") == 5


def test_an_unknown_study_names_near_ones(archive):
    with pytest.raises(UnknownNameError, match="none yet"):
        archive.studies.get("digit-search")

    archive.studies.create(study("digits-search"))
    for ask in (
        archive.studies.get,
        archive.studies.snapshot,
        lambda name: archive.studies.set_budget(name, 3),
    ):
        with pytest.raises(UnknownNameError, match="did you mean digits-search"):
            ask("digit-search")


@pytest.mark.parametrize(("direction", "best"), [("maximise", 0.9), ("minimise", 0.2)])
def test_the_list_has_counts_and_best_values(archive, direction, best):
    archive.studies.create(study("empty"))
    evaluate(archive, [0.5, math.nan, 0.9, 0.2], direction=direction)
    propose(archive, cells(6), direction=direction)
    empty, found = archive.studies.list()
    assert (empty.study.name, empty.counts, empty.best) == ("empty", {}, None)
    assert found.counts == {State.COMPLETE: 4, State.WAITING: 2}
    assert found.best == best


def test_scores_are_what_agents_maximise(archive):
    evaluate(archive, [0.5, 0.9], "up")
    evaluate(archive, [0.5, 0.9], "down", direction="minimise")
    assert [each.score for each in archive.studies.evaluations("up")] == [0.5, 0.9]
    assert [each.score for each in archive.studies.evaluations("down")] == [-0.5, -0.9]
    assert [each.value for each in archive.studies.evaluations("down")] == [0.5, 0.9]


def test_evaluations_come_with_their_whole_architectures(archive, connection):
    evaluate(archive, [0.5, 0.7, 0.6])
    fresh = Studies(connection, type(archive.architectures)(connection))
    found = fresh.evaluations("study")
    assert [each.architecture for each in found] == [cell.canonical for cell in cells(3)]
    assert [(each.number, each.value, each.task, each.protocol, each.study) for each in found] == [
        (number, value, "digits", "digits/1", "study")
        for number, value in enumerate([0.5, 0.7, 0.6])
    ]
    assert all(
        each.metrics == {"accuracy": each.value} and each.agent.startswith("random-")
        for each in found
    )


def test_evaluations_of_all_studies_by_task_space_and_protocol(archive):
    evaluate(archive, [0.1], "one")
    evaluate(archive, [0.2], "two")
    evaluate(archive, [0.3], "other", task="mnist", protocol="mnist/1")
    archive.architectures.add(cells(2))
    imported = Evaluations(archive.connection, archive.architectures)
    imported.add("digits", "digits/1", [("table/7", cells(2)[1].key, Result(0.4))])

    def values(*names, **which):
        return sorted(each.value for each in archive.studies.evaluations(*names, **which))

    assert values() == [0.1, 0.2, 0.3, 0.4]
    assert values(task="digits") == values(protocol="digits/1") == [0.1, 0.2, 0.4]
    assert values(task="digits", protocol="mnist/1") == values(space="cnn") == []
    assert values(space="nasbench201", task="mnist") == [0.3]
    assert values(["one", "other"]) == [0.1, 0.3]
    assert values(["one", "other"], task="mnist") == [0.3]


class TestWarmStart:
    @pytest.mark.every_server
    def test_the_history_has_the_study_first_and_then_its_sources(self, archive):
        evaluate(archive, [0.1, 0.2], "a")
        evaluate(archive, [0.3], "z")
        assert archive.studies.warm_start("z", ["a"]) == ["a"]
        assert [(each.study, each.value) for each in archive.studies.history("z")] == [
            ("z", 0.3), ("a", 0.1), ("a", 0.2)
        ]  # fmt: skip
        assert [each.value for each in archive.studies.history("a")] == [0.1, 0.2]
        assert (
            count(
                archive.connection,
                "(:Study {name: 'z'})-[:WARM_STARTED_FROM]->(:Study {name: 'a'})",
            )
            == 1
        )

    def test_sources_may_be_of_another_task(self, archive):
        archive.studies.create(study("one"))
        archive.studies.create(study("elsewhere", task="mnist"))
        evaluate(archive, [0.5], "elsewhere", task="mnist")
        assert archive.studies.warm_start("one", ["elsewhere"]) == ["elsewhere"]
        assert [(each.study, each.task) for each in archive.studies.history("one")] == [
            ("elsewhere", "mnist")
        ]

    @pytest.mark.parametrize("source", ["nowhere", "one"])
    def test_sources_must_be_there_and_others(self, archive, source):
        archive.studies.create(study("one"))
        archive.studies.create(study("two"))
        with pytest.raises(UnknownNameError, match=source):
            archive.studies.warm_start("one", ["two", source])

        assert archive.studies.sources("one") == []

    @pytest.mark.every_server
    def test_again_adds_to_the_sources_and_doubles_none(self, archive):
        for name in ("one", "two", "three"):
            archive.studies.create(study(name))

        archive.studies.warm_start("one", ["two"])
        assert archive.studies.warm_start("one", ["two", "three"]) == ["three", "two"]
        assert count(archive.connection, "()-[:WARM_STARTED_FROM]->()") == 2


class TestSnapshot:
    def test_of_an_empty_study(self, archive):
        archive.studies.create(study())
        found = archive.studies.snapshot("study")
        assert (found.proposals, found.incumbent, set(found.counts.values())) == ((), None, {0})

    def test_shows_each_proposal_as_it_stands(self, archive):
        propose(archive, cells(4))
        done, broken, running = (archive.proposals.claim("w", study="study") for _ in range(3))
        curve = {"train_loss": [2.0, 1.0], "valid_accuracy": [0.3, 0.6]}
        archive.proposals.complete(
            done.id, done.token, Result(0.6, {"accuracy": 0.6}, curve, seconds=3.0)
        )
        archive.proposals.fail(broken.id, broken.token, "out of memory")
        archive.proposals.report(
            running.id, running.token, {"train_loss": [2.0], "valid_accuracy": [0.2]}
        )
        found = archive.studies.snapshot("study")
        by_state = {view.state: view for view in found.proposals}
        assert [view.number for view in found.proposals] == [0, 1, 2, 3]
        assert {state: n for state, n in found.counts.items() if n} == dict.fromkeys(by_state, 1)
        complete = by_state[State.COMPLETE]
        assert (complete.value, complete.epochs, complete.metrics, complete.seconds) == (
            0.6,
            2,
            {"accuracy": 0.6},
            3.0,
        )
        assert by_state[State.FAILED].reason == "out of memory"
        view = by_state[State.RUNNING]
        assert (view.epochs, view.metrics, view.worker) == (
            1,
            {"train_loss": 2.0, "valid_accuracy": 0.2},
            "w",
        )
        assert by_state[State.WAITING].epochs is None
        assert found.incumbent == complete

    @pytest.mark.parametrize(("direction", "number"), [("maximise", 2), ("minimise", 1)])
    def test_the_incumbent_is_the_first_of_the_best_and_never_nan(self, archive, direction, number):
        evaluate(archive, [math.nan, 0.1, 0.8, 0.8, 0.1], direction=direction)
        assert archive.studies.snapshot("study").incumbent.number == number


@pytest.mark.parametrize("what", ["study", "task", "protocol"])
def test_names_are_no_longer_than_a_dump_can_hold(archive, tmp_path, what):
    def named(length):
        return replace(study("s"), **{"name" if what == "study" else what: "n" * length})

    with pytest.raises(
        UsageError,
        match=rf"the {what} of a study needs a name|a study needs a "
        r"name without",
    ):
        archive.studies.create(named(0))

    with pytest.raises(
        UsageError, match=f"the name of a {what} must be at most 480 characters long, got 481: nn"
    ):
        archive.studies.create(named(481))

    stored = archive.studies.create(named(480))
    agent = archive.proposals.register_agent("random", {}, "1")
    archive.proposals.create(stored.name, agent, suggest(cells(1)), outcomes=[Result(0.5)])
    assert dumped(archive, tmp_path / "dump.jsonl.gz")


def test_versions_of_a_recipe_are_counted(archive):
    protocol = "digits/1+recipe:mine"
    propose(archive, cells(4), protocol=protocol)
    for version in ("2", "1", "2", None):
        claim = archive.proposals.claim("trainer", study="study")
        environment = {} if version is None else {"recipe_version": version}
        archive.proposals.complete(claim.id, claim.token, Result(0.5, environment=environment))

    versions = recipe_versions(archive.connection, study(protocol=protocol))
    assert versions == [RecipeVersion("2", 2), RecipeVersion("1", 1)]
    assert recipe_versions(archive.connection, study()) == []
