"""Searches under constraints, as a user types them: what is proposed, shown, resumed and
refused."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from archive import spaces
from archive.agents.replay import recheck
from archive.architecture import codec
from archive.cli.study.best import BestList
from archive.cli.study.command import StudyDocument
from archive.constraints import parse
from archive.errors import InfeasibleError, SearchError, UnknownNameError, UsageError
from archive.searches.call import SearchResult
from archive.searches.request import SearchOptions, request_of
from archive.searches.waiting import check_reports
from archive.store.records import State, Study
from archive.store.snapshots import ProposalView, Snapshot
from archive.trainer.tasks import known_costs, registry
from tests.support.commands import serving, shell
from tests.support.daemons import recipe
from tests.support.json_documents import faults

CELLS = 24


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """A table with an accuracy, a latency and parameters: the more parameters, the better."""
    path = tmp_path_factory.mktemp("constraints") / "cells.csv"
    cells = spaces.get("nasbench201").members()[::250][:CELLS]
    rng = np.random.default_rng(0)
    rows = [
        f"{codec.to_nasbench201(cell)},{0.02 * at + 0.3 * rng.uniform():.4f},{at / 8}"
        for at, cell in enumerate(cells)
    ]
    path.write_text("\n".join(["arch_str,accuracy,params_millions", *rows]))
    return f"table:{path}#accuracy"


def asked(*constraints, **options):
    return request_of(SearchOptions(constraints=constraints, **options))


def test_constraints_are_checked_and_supplied_by_the_study(task):
    found = asked("params<=1.5M", "accuracy>0.1", task=task)
    assert found.study.constraints == (parse("params<=1500000"), parse("accuracy>0.1"))
    assert (
        found.study.name
        == "nasbot-nasbench201-cells-accuracy-params-at-most-1500000-accuracy-above-0.1"
    )
    # Only the quantity that needs no training restricts the space.
    assert [*map(str, found.agent.space.constraints)] == ["params<=1500000"]
    assert len(found.agent.space.members()) == 13 and "constraints" not in found.study.space_config
    again = request_of(SearchOptions(study=found.study.name), found.study)
    assert again.study.constraints == found.study.constraints
    assert (
        request_of(
            SearchOptions(study=found.study.name, task="digits"), found.study
        ).study.constraints
        == ()
    )
    trained = asked("latency_ms<=2", "valid_loss<1", task="diabetes")
    assert trained.agent.space == trained.task.search_space(trained.study.space)


@pytest.mark.parametrize(
    ("constraint", "error", "message"),
    [
        ("parms<=3", UnknownNameError, "the task .* has no quantity 'parms': did you mean params"),
        (
            "params=3",
            UsageError,
            "a constraint is NAME<=NUMBER, with <=, <, >= or >, got 'params=3'",
        ),
        ("params<=few", UsageError, "the bound of a constraint is a number .* got 'few'"),
        (
            "params<0",
            InfeasibleError,
            r"no network of the space nasbench201 meets params<0: the nearest, \|.*has params 0",
        ),
    ],
)
def test_mistakes(task, constraint, error, message):
    with pytest.raises(error, match=message):
        asked(constraint, task=task)


def test_a_search_proposes_what_meets_its_constraints_and_resumes(
    archive, store_settings, tmp_path, task
):
    with shell(store_settings, tmp_path) as user:

        def search(*arguments, code=0):
            with serving(archive):
                return user.types("search", "--trainers", "0", *arguments, code=code)

        options = ["--task", task, "--agent", "portfolio", "--study", "small"]
        done = json.loads(
            search(*options, "--constraint", "params<1.5M", "--budget", "11", "--json").stdout
        )
        assert faults(done, SearchResult) == [] and (done["evaluations"], done["failed"]) == (11, 0)
        assert done["constraints"] == [{"name": "params", "operator": "<", "bound": 1.5e6}]
        results = archive.studies.evaluations("small")
        assert all(each.metrics["params"] < 1.5e6 for each in results)
        assert (
            done["best"]["value"] == max(each.value for each in results) and done["nearest"] is None
        )
        ended = search("--study", "small", "--budget", "20").stderr
        assert "all 12 networks of the space are evaluated: 12 of 20 evaluations" in ended
        refused = search("--study", "small", "--constraint", "params<=1.5M", code=2).stderr
        assert "exists with the constraints params<1500000, got params<=1500000" in refused
        about = registry.get(task)
        assert (
            recheck(archive, "small", known_costs.of_task(about, about.protocol().name)).differing
            == ()
        )
        described = json.loads(user.types("study", "show", "small", "--json").stdout)
        assert (
            faults(described, StudyDocument) == []
            and described["constraints"] == done["constraints"]
        )
        assert "params<1500000" in user.types("study", "show", "small").stdout
        # A bound on what only results tell: none meets it.
        unmet = search(
            *options[:-1], "high", "--constraint", "accuracy>=9", "--budget", "4", code=3
        ).stdout
        best = max(archive.studies.evaluations("high"), key=lambda each: each.value)
        line = (
            f"none of the 4 results meets accuracy>=9: the nearest, {best.architecture.key} "
            f"({best.id}), has accuracy"
        )
        assert line in " ".join(unmet.split())
        found = json.loads(user.types("study", "best", "high", "--json", code=3).stdout)
        assert faults(found, BestList) == [] and found["proposals"] == []
        assert found["nearest"]["proposal"] == best.id and found["nearest"]["metrics"] == {
            "accuracy": best.value
        }
        assert "none of the 4 results meets" in user.types("study", "best", "high", code=3).stderr
        assert "the nearest" in user.types("study", "show", "high").stdout
        nothing = search(*options[:-1], "none", "--constraint", "params<0", code=3).stderr
        assert (
            "no network of the space nasbench201 meets params<0" in nothing
            and "none" not in archive.studies.names()
        )


def test_a_search_ends_where_trainings_do_not_report_what_it_needs(
    archive, store_settings, tmp_path
):
    home = tmp_path / "trainer"
    recipe(SimpleNamespace(paths=SimpleNamespace(home=home)))
    options = (
        "--task",
        "diabetes",
        "--recipe",
        "mine",
        "--agent",
        "random",
        "--trainers",
        "0",
        "--budget",
        "9",
    )
    with shell(store_settings, tmp_path) as user, serving(archive, home=home):
        told = user.types(
            "search", *options, "--study", "typo", "--constraint", "dept<=3", code=1
        ).stderr
        user.types("search", *options, "--study", "right", "--constraint", "depth<=30")

    assert (
        "trainings of the study typo reported 'dept', which the search needs; they reported "
        "depth, epochs/2"
    ) in told
    assert "Traceback" not in told
    assert 3 <= len(archive.studies.evaluations("typo")) < 9
    assert len(archive.studies.evaluations("right")) == 9


@pytest.mark.whole
def test_a_search_ends_where_trainings_do_not_report_its_objective(
    archive, store_settings, tmp_path
):
    home = tmp_path / "trainer"
    recipe(SimpleNamespace(paths=SimpleNamespace(home=home)))
    options = (
        "--task",
        "diabetes",
        "--recipe",
        "mine",
        "--agent",
        "random",
        "--trainers",
        "0",
        "--budget",
        "9",
    )
    with shell(store_settings, tmp_path) as user, serving(archive, home=home):
        asked = ("search", *options, "--study", "typo", "--objective", "nobody:minimise")
        told = user.types(*asked, code=1).stderr
        trainings = len(archive.proposals.list("typo"))
        # The recipe may have been corrected meanwhile: the same command tries again.
        again = user.types(*asked, code=1).stderr

    assert (
        "3 trainings of the study typo reported 'nobody', which the search needs; they reported "
        in told
    )
    assert (
        "depth, epochs/2" in told
        and ("correct the recipe, or search for one of these with another --study") in told
    )
    assert 3 <= trainings < 9 and "Traceback" not in told + again
    assert "3 trainings of the study typo" in again and trainings + 3 <= len(
        archive.proposals.list("typo")
    )


def test_results_of_other_studies_may_lack_what_a_search_needs():
    study = Study(
        "s", "t", "p", "mlp", "accuracy", constraints=(parse("latency_ms<3"), parse("params<5"))
    )

    def snapshot(*metrics, worker="w"):
        views = tuple(
            ProposalView(f"s#{at}", at, State.COMPLETE, "k", "k", metrics=each, worker=worker)
            for at, each in enumerate(metrics)
        )
        return Snapshot(study, views, {State.COMPLETE: len(views)}, None)

    for fine in (
        snapshot({}, {}, {}, worker=None),
        snapshot({}, {}),
        snapshot({}, {}, {}, {"latency_ms": 4.0}),
    ):
        assert list(check_reports([fine], ["params"])) == [fine]

    with pytest.raises(SearchError, match=r"'latency_ms'.*they reported accuracy, depth"):
        list(check_reports([snapshot({"depth": 1.0}, {}, {})], ["params"]))
