"""Searches for several objectives, as a user types them: what is asked for, the Pareto set, and its
documents."""

from __future__ import annotations

import json

import numpy as np
import pytest

from archive import spaces
from archive.architecture import codec
from archive.cli.study.best import BestList
from archive.cli.study.command import StudyDocument
from archive.errors import UnknownNameError, UsageError
from archive.objectives.pareto import nondominated
from archive.searches.call import SearchResult
from archive.searches.request import SearchOptions, request_of
from archive.store.records import Objective
from tests.support.commands import serving, shell
from tests.support.json_documents import faults

CELLS = 24


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """A table with an accuracy, a latency and parameters."""
    path = tmp_path_factory.mktemp("objectives") / "cells.csv"
    cells = spaces.get("nasbench201").members()[::250][:CELLS]
    rng = np.random.default_rng(0)
    rows = [
        f"{codec.to_nasbench201(cell)},{0.1 * len(cell.edges) + rng.uniform():.4f},{len(cell.layers)},{at / 8}"
        for at, cell in enumerate(cells)
    ]
    path.write_text("\n".join(["arch_str,accuracy,latency_ms_phone,params_millions", *rows]))
    return f"table:{path}#accuracy"


def asked(*objectives, **options):
    return request_of(SearchOptions(objectives=objectives, **options))


def test_directions_are_declared_by_the_task_the_name_or_the_text(task):
    found = asked("latency_ms_phone", "accuracy", "params:maximise", task=task)
    # The first one that is learnt is the value of the evaluations; the rest keeps its order.
    assert list(map(str, found.study.objectives)) == [
        "accuracy:maximise",
        "latency_ms_phone:minimise",
        "params:maximise",
    ]
    assert found.agent.kind == "portfolio"
    assert found.study.name == "portfolio-nasbench201-cells-accuracy-latency_ms_phone-params"
    trained = asked(
        "valid_mse", "params", "latency_ms", "valid_loss:minimise", task="diabetes"
    ).study
    assert trained.further == tuple(
        Objective(name, "minimise") for name in ("params", "latency_ms", "valid_loss")
    )
    assert (trained.protocol, trained.objective) == ("diabetes/1", "valid_mse")
    # Costs that a builder knows have a direction, whatever their names.
    decoders = asked(
        "kv_cache_bytes", "valid_bits_per_byte", "flops_per_token", task="pydoc-topics"
    )
    assert list(map(str, decoders.study.objectives)) == [
        "valid_bits_per_byte:minimise",
        "kv_cache_bytes:minimise",
        "flops_per_token:minimise",
    ]
    other = asked("params", "valid_loss", task="diabetes").study
    assert (other.protocol, other.objective, other.further[0].name) == (
        "diabetes/1+objective:valid_loss",
        "valid_loss",
        "params",
    )
    # A recipe may report anything.
    own = asked("valid_mse", "r2:maximise", task="diabetes", recipe="mine").study
    assert own.further == (Objective("r2"),)


def test_one_objective_with_its_direction(task):
    for objectives, direction in (
        (("r2:maximise",), None),
        (("r2",), "maximise"),
        (("r2:maximise",), "maximise"),
    ):
        found = asked(*objectives, task="diabetes", direction=direction)
        assert (found.study.objectives, found.agent.kind) == ((Objective("r2"),), "nasbot")

    assert asked("valid_loss", task="diabetes").study.direction == "minimise"


def test_a_study_supplies_its_objectives(task):
    study = asked("accuracy", "params", task=task).study
    assert request_of(SearchOptions(study=study.name), study).study.objectives == study.objectives
    assert (
        request_of(SearchOptions(study=study.name, objectives=("accuracy",)), study).study.further
        == ()
    )
    assert request_of(SearchOptions(study=study.name, task="digits"), study).study.further == ()


@pytest.mark.parametrize(
    ("objectives", "options", "error", "message"),
    [
        (
            ["accuracy", "latency_ms_fone"],
            {},
            UnknownNameError,
            "'latency_ms_fone': did you mean latency_ms_phone",
        ),
        (
            ["accuracy", "size"],
            {},
            UnknownNameError,
            "unknown objective 'size': known: accuracy, latency_ms",
        ),
        (
            ["accuracy", "params:less"],
            {},
            UsageError,
            "NAME:minimise or NAME:maximise, got 'params:less'",
        ),
        (
            ["params", "latency_ms_phone"],
            {},
            UsageError,
            "one objective must be of the training, such as accuracy",
        ),
        (
            ["accuracy:minimise", "params"],
            {},
            UsageError,
            "has the direction maximise, got minimise",
        ),
        (
            ["accuracy", "params"],
            {"direction": "minimise"},
            UsageError,
            "--direction is for one objective",
        ),
        (
            ["accuracy", "params"],
            {"rungs": "2"},
            UsageError,
            "--rungs pauses trainings by one objective",
        ),
        (
            ["accuracy:minimise"],
            {"direction": "maximise"},
            UsageError,
            "has another direction than --direction",
        ),
    ],
)
def test_mistakes(task, objectives, options, error, message):
    with pytest.raises(error, match=message):
        asked(*objectives, task=task, **options)


def test_a_metric_of_a_recipe_needs_a_direction():
    for name in ("f1", "gradient_norm"):
        with pytest.raises(
            UnknownNameError, match=f"'{name}': write {name}:minimise or {name}:maximise"
        ):
            request_of(SearchOptions(task="digits", recipe="mine", objectives=(name, "params")))


def test_objectives_of_a_training_are_those_that_it_reports():
    with pytest.raises(UnknownNameError, match="'latency': did you mean latency_ms"):
        asked("valid_mse", "latency:minimise", task="diabetes")


def test_a_search_finds_a_pareto_set_and_resumes(archive, store_settings, tmp_path, task):
    with shell(store_settings, tmp_path) as user:

        def search(*arguments, code=0):
            with serving(archive):
                return user.types("search", "--trainers", "0", *arguments, code=code)

        names = ("accuracy", "latency_ms_phone", "params")
        options = [part for name in names for part in ("--objective", name)]
        done = json.loads(
            search("--task", task, *options, "--study", "front", "--budget", "14", "--json").stdout
        )
        assert faults(done, SearchResult) == []
        assert (done["agent"], done["evaluations"], done["failed"]) == ("portfolio", 14, 0)
        front = done["pareto"]
        evaluations = archive.studies.evaluations("front")
        scores = np.array([[1, -1, -1]] * 14) * [
            [each.metrics[name] for name in names] for each in evaluations
        ]
        best = {evaluations[at].id for at in np.flatnonzero(nondominated(scores))}
        assert {one["proposal"] for one in front["proposals"]} == best
        assert front["reference"] == dict(zip(names, np.abs(scores.min(axis=0)), strict=True))
        assert len(front["history"]) == 14
        # The model has proposed: the last ones have an acquisition value, which is the expected
        # gain.
        assert archive.proposals.get("front#00013").acquisition > 0.0
        shown = search("--study", "front", "--budget", "15").stdout
        assert (
            "Pareto set" in shown
            and "hypervolume" in shown
            and ("archive search --study front --budget 30") in shown
        )
        described = json.loads(user.types("study", "show", "front", "--json").stdout)
        assert faults(described, StudyDocument) == []
        assert [each["name"] for each in described["objectives"]] == [*names]
        shown = user.types("study", "show", "front").stdout
        assert (
            "accuracy:maximise, latency_ms_phone:minimise, params:minimise" in shown
            and "Pareto set" in shown
        )
        found = json.loads(user.types("study", "best", "front", "--json").stdout)
        assert faults(found, BestList) == [] and found["pareto"] == described["pareto"]
        assert "hypervolume" in user.types("study", "best", "front").stdout
        refused = search("--study", "front", "--agent", "bfs", "--budget", "16", code=None).stderr
        assert (
            "the agent bfs searches for one objective" in refused and "nsga2, portfolio" in refused
        )
