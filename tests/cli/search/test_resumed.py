"""`archive search` with the name of an existing study, on each server: options left out are those
of the study."""

from __future__ import annotations

import json
import shlex

import pytest

from archive import spaces
from archive.agents import study as opened
from archive.store.records import Result, State, Study
from tests.support.commands import shell, table
from tests.support.stores import suggest


@pytest.fixture
def user(archive, store_settings, tmp_path):
    with shell(store_settings, tmp_path) as opened_shell:
        yield opened_shell


@pytest.fixture
def stored(archive):
    """Stores a study of perceptrons with as many evaluations as its budget."""

    def store(name="mine", count=3, pruned=False, **changes):
        given = {
            "task": "diabetes",
            "protocol": "diabetes/1+morph",
            "space": "mlp",
            "objective": "valid_mse",
        }
        given |= {"direction": "minimise", "budget": count, "config": {"agent": "rand"}, "seed": 5}
        archive.studies.create(
            Study(name, **{**given, "space_config": spaces.get("mlp").config, **changes})
        )
        agent = archive.proposals.register_agent("rand", {}, "1")
        archive.proposals.create(name, agent, suggest(spaces.get("mlp").initial_pool()[:count]))
        while (claim := archive.proposals.claim("worker", study=name)) is not None:
            value = float(claim.proposal.number)
            archive.proposals.complete(claim.id, claim.token, Result(value), pruned=pruned)

        return name

    return store


def said(done):
    return " ".join(done.stderr.split())


def advice(done):
    """Return the commands that a search ends with."""
    return [line.strip() for line in done.stdout.partition("next:")[2].splitlines() if line.strip()]


def test_what_is_not_given_is_the_studys_own(user, stored):
    stored()
    found = json.loads(user.types("search", "--study", "mine", "--json").stdout)
    assert [found[name] for name in ("task", "protocol", "space", "agent", "budget", "evaluations")] == [
        "diabetes", "diabetes/1+morph", "mlp", "rand", 3, 3
    ]  # fmt: skip
    # Another agent may go on with it, and is then part of the advice.
    done = user.types("search", "--study", "mine", "--agent", "evolution", "--trainers", "2")
    assert advice(done)[1:] == [
        "archive search --study mine --budget 6 --agent evolution --trainers 2"
    ]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--task", "digits"), "exists with task diabetes, got digits"),
        (("--protocol", "diabetes/1"), "exists with protocol diabetes/1+morph, got diabetes/1"),
        (("--space", "cnn"), "task 'diabetes' has no networks in the space 'cnn'"),
        (("--seed", "6"), "exists with seed 5, got 6"),
        # The agent searches for one objective, and no network of the other space meets the
        # constraint.
        (
            ("--objective", "valid_mse", "--objective", "params"),
            "exists with the objectives valid_mse:minimise, got valid_mse:minimise, params:minimise",
        ),
        (
            ("--task", "digits", "--space", "cnn", "--constraint", "params<=1"),
            "exists with task diabetes, got digits",
        ),
        (("--constraint", "params<=1"), "exists with the constraints none, got params<=1"),
    ],
)
def test_what_is_given_and_differs_is_refused(archive, user, stored, options, reason):
    stored()
    assert reason in said(user.types("search", "--study", "mine", *options, code=2))
    assert archive.studies.get("mine").budget == 3


def test_another_name_is_suggested_where_the_command_has_none(archive, user, stored):
    for name in ("rand-mlp-diabetes", "rand-mlp-diabetes-2"):
        stored(name)

    options = (
        "search",
        "--agent",
        "rand",
        "--task",
        "diabetes",
        "--space",
        "mlp",
        "--protocol",
        "diabetes/1",
    )
    refused = said(user.types(*options, code=2))
    assert refused.endswith(
        "choose another name for the study, such as --study rand-mlp-diabetes-3"
    )
    assert said(user.types(*options, "--study", "rand-mlp-diabetes", code=2)).endswith(
        "another name for the study"
    )


def test_the_advice_goes_on_with_the_study(archive, user, tmp_path):
    options = (
        "--agent",
        "random",
        "--study",
        "a [study]",
        "--seed",
        "5",
        "--retrain",
        "--trial-timeout",
        "10min",
    )
    first = user.types("search", "--task", table(tmp_path), *options, "--budget", "2")
    longer = advice(first)[1]
    assert longer == "archive search --study 'a [study]' --budget 4 --trial-timeout 600 --retrain"
    again = user.types(*shlex.split(longer)[1:])
    assert advice(again)[1] == (
        "archive search --study 'a [study]' --budget 8 --trial-timeout 600 --retrain"
    )
    study = archive.studies.snapshot("a [study]")
    assert (study.counts[State.COMPLETE], study.study.budget, study.study.seed) == (4, 4, 5)
    assert {view.agent for view in study.proposals} == {study.proposals[0].agent}


def test_the_advice_keeps_the_limits_of_trials(user, stored):
    stored()
    limits = (
        "--stall",
        "5min",
        "--scratch-limit",
        "1GB",
        "--memory-limit",
        "2GiB",
        "--proxies",
        "8",
    )
    longer = advice(user.types("search", "--study", "mine", *limits))[1]
    assert sorted(longer.split(" --")[3:]) == [
        "memory-limit 2147483648", "proxies 8", "scratch-limit 1000000000", "stall 300"
    ]  # fmt: skip
    user.types(*shlex.split(longer.replace("--budget 6", "--budget 3"))[1:])


def test_the_advice_names_the_archive_that_was_named(user, store_settings, stored):
    stored()
    home = str(store_settings.home)
    done = user.types("--home", home, "search", "--study", "mine")
    assert all(line.startswith(f"archive --home {shlex.quote(home)} ") for line in advice(done))


def test_fewer_evaluations_than_there_are_change_nothing(archive, user, stored):
    stored()
    archive.studies.set_budget("mine", 8)
    done = user.types("search", "--study", "mine", "--budget", "2")
    assert "study mine has 3 evaluations already, more than the 2 asked for" in said(done)
    assert "its budget stays 8" in said(done)
    assert advice(done)[1] == "archive search --study mine --budget 16"
    found = json.loads(user.types("search", "--study", "mine", "--budget", "1", "--json").stdout)
    assert (found["evaluations"], found["budget"], found["exhausted"]) == (3, 8, False)
    assert archive.studies.get("mine").budget == 8 and len(archive.proposals.list("mine")) == 3


def test_a_study_does_not_start_warm_from_itself_whether_it_exists_or_not(archive, user, stored):
    for name in ("mine", "mine2"):
        done = user.types(
            "search", "--study", name, "--task", "diabetes", "--warm-start", name, code=2
        )
        assert f"the study {name!r} cannot start warm from itself" in said(done)
        stored()

    assert archive.studies.names() == ["mine"]


def test_a_study_to_ask_and_tell_says_that_no_trainer_knows_its_task(archive, user):
    opened(archive, "told", "mlp")
    done = user.types("search", "--study", "told", code=2)
    assert "the study 'told' has the task 'told', which no trainer here knows" in said(done)


def test_a_study_in_a_space_of_another_package_says_that_it_is_not_installed(archive, user):
    archive.studies.create(
        Study("other", "digits", "digits/small", "chains", "valid_accuracy", budget=2)
    )
    done = user.types("search", "--study", "other", "--agent", "random", code=2)
    assert (
        "unknown space 'chains': did you mean choices, or is the package that defines it not"
        in said(done)
    )


def test_what_was_pruned_is_none_of_other_studies(archive, user, stored):
    rungs = {"epochs": [2, 6, 60], "reduction": 3}
    stored(protocol="diabetes/1", config={"agent": "rand", "rungs": rungs}, count=2, pruned=True)
    assert archive.studies.snapshot("mine").counts[State.PRUNED] == 2
    assert "of other studies" not in said(user.types("search", "--study", "mine"))


def test_another_task_is_refused_before_its_data_are_looked_for(user, stored):
    stored()
    done = user.types("search", "--study", "mine", "--task", "mnist", code=2)
    assert "'mine' exists with task diabetes, got mnist" in said(done)
