"""Warm starts from other tasks: eligible sources, the record of a proposal, the report."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import sem

from archive import agents, spaces
from archive.agents.loop import history_of, run
from archive.agents.replay import recheck
from archive.agents.searcher import Searcher
from archive.agents.study_setup import open_study
from archive.agents.transfer.coordinator import DESIGN, TOP
from archive.agents.transfer.report import read_contributions
from archive.errors import UnknownNameError, UsageError
from archive.searches.comparison import plan
from archive.searches.comparison.run import search as run_job
from archive.spaces import stored_spaces
from archive.store.records import Result, Study
from tests.benchmarks.transfer import rows as of_rows
from tests.benchmarks.transfer.matrix import matrix
from tests.benchmarks.transfer.plan import TransferPlan, alter
from tests.benchmarks.transfer.rows import Excess, rows
from tests.benchmarks.transfer.scenarios import scenarios
from tests.support.listed import score, small_table
from tests.support.stores import suggest


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    return small_table(tmp_path_factory.mktemp("table"), count=30)


@pytest.fixture
def study(space):
    def asked(name, task="t", **changes):
        given = {
            "protocol": f"{task}/1",
            "space": space.name,
            "objective": "value",
            "space_config": space.config,
        }
        return Study(name, task, **{**given, **changes})

    return asked


@pytest.fixture
def searched(archive, space):
    """Opens a study, and searches with a trainer that works whenever the loop waits."""

    def search(asked, budget, kind="random", value=score, settings=None, **options):
        stored_spaces.name_table(space, archive.connection.settings.home)
        agent = agents.get(kind, space, **(settings or {}))
        stored = open_study(archive, asked, budget=budget, agent=agent, **options)

        def serve(_):
            while (claim := archive.proposals.claim("worker", study=stored.name)) is not None:
                archive.proposals.complete(
                    claim.id, claim.token, Result(value=value(claim.architecture))
                )

        list(run(archive, stored, agent, version="0", wait=serve))
        return stored

    return search


def test_sources_of_one_task_have_one_objective(archive, study, searched):
    searched(study("first", "u"), 3)
    searched(study("second", "u", objective="loss", direction="minimise"), 3)
    searched(study("third", "u"), 3)
    searched(study("elsewhere", "v", objective="loss", direction="minimise"), 3)
    message = (
        r"'warm' cannot start warm from both 'first' and 'second': their values are "
        r"value:maximise and loss:minimise, "
        "and both have the protocol u/1: choose one"
    )
    with pytest.raises(UsageError, match=message):
        open_study(archive, study("warm"), sources=["first", "second"])

    warm = open_study(archive, study("warm"), sources=["first", "third", "elsewhere"])
    with pytest.raises(UsageError, match="cannot start warm from both 'first' and 'second'"):
        open_study(archive, study("warm"), sources=["second"])

    assert archive.studies.sources("warm") == ["elsewhere", "first", "third"]
    assert {each.study for each in history_of(archive, warm).sources} == {
        "elsewhere",
        "first",
        "third",
    }
    for name, changes, left_out in (
        ("all-values", {}, "second"),
        ("all-losses", {"objective": "loss", "direction": "minimise"}, "first"),
    ):
        open_study(archive, study(name, "w", **changes), sources="all")
        assert left_out not in archive.studies.sources(name)


def test_other_tasks_are_sources_and_the_same_task_observations(archive, study, searched):
    searched(study("same"), 4, value=lambda cell: -score(cell) if score(cell) > 2.0 else math.nan)
    searched(study("other", "u", direction="minimise"), 6)
    searched(study("later", "t", protocol="t/2"), 5)
    warm = open_study(archive, study("warm"), sources=["same", "other", "later"])
    history = history_of(archive, warm)
    assert len(history.observations) == 4
    assert [(each.study, each.task, each.protocol) for each in history.sources] == [
        ("later", "t", "t/2"), ("other", "u", "u/1")
    ]  # fmt: skip
    # The store changes the sign of minimised values.
    other = history.sources[1].observations
    assert [seen.score for seen in other] == [-score(seen.architecture) for seen in other]
    assert not set(history.known) - {
        seen.architecture.functional_key for seen in history.observations
    }


def test_what_other_studies_found_comes_before_what_a_study_did(archive, study, searched):
    searched(study("same"), 3)
    searched(study("warm"), 2, sources=["same"])
    history = history_of(archive, archive.studies.get("warm"))
    assert [seen.id.partition("#")[0] for seen in history.observations] == [
        *["same"] * 3,
        *["warm"] * 2,
    ]
    assert recheck(archive, "warm").differing == ()


def test_a_source_of_the_same_protocol_has_the_same_objective(archive, study, searched):
    searched(study("accurate"), 3)
    for asked, words in (
        (
            study("quick", objective="loss"),
            "its values are value:maximise, those of 'quick' are loss:maximise",
        ),
        (
            study("small", direction="minimise"),
            "those of 'small' are value:minimise, and both have the protocol t/1",
        ),
    ):
        with pytest.raises(UsageError, match=words):
            open_study(archive, asked, sources=["accurate"])

        open_study(archive, asked, sources="all")
        assert archive.studies.sources(asked.name) == []

    # With a protocol of its own, a study learns how the two are correlated.
    other = open_study(
        archive, study("other", objective="loss", protocol="t/loss"), sources=["accurate"]
    )
    assert [source.study for source in history_of(archive, other).sources] == ["accurate"]


def test_a_source_on_choices_names_its_options_as_the_study_does(archive, study):
    def asked(name, task="t", **decisions):
        space = spaces.get("choices", decisions=decisions, form="set")
        return study(name, task, space="choices", space_config=space.config, budget=9)

    agent = archive.proposals.register_agent("random", {}, "1")
    for source in (
        asked("few", act=["relu", "gelu"]),
        asked("elsewhere", "u", act=["gelu", "relu"]),
    ):
        network = spaces.get("choices", **source.space_config).members()[0]
        archive.proposals.create(archive.studies.create(source).name, agent, suggest([network]))
        claim = archive.proposals.claim("worker", study=source.name)
        archive.proposals.complete(claim.id, claim.token, Result(value=0.5))

    shifted = asked("shifted", act=["elu", "relu", "gelu"])
    words = "its space choices has act 'relu' where that of 'shifted' has act 'elu'"
    with pytest.raises(UsageError, match=words):
        open_study(archive, shifted, sources=["few"])

    more = asked("more", act=["relu", "gelu", "elu"], width=["64", "128"])
    for one, sources in ((shifted, []), (more, ["few"])):
        open_study(archive, one, sources="all")
        assert archive.studies.sources(one.name) == sources


def test_a_copied_result_is_learnt_from_once(archive, study, searched):
    searched(study("first"), 4)
    # The same random networks: all but the last are answered by the first study.
    for name in ("copies", "more"):
        searched(study(name), 5)

    assert [seen.answered_from is None for seen in archive.studies.evaluations("more")] == [
        False
    ] * 5
    for source in ("first", "more"):
        archive.studies.warm_start("copies", [source])
        seen = history_of(archive, archive.studies.get("copies")).observations
        assert [one.id for one in seen] == [*(f"first#{at:05d}" for at in range(4)), "copies#00004"]

    warm = open_study(archive, study("warm", "u"), sources=["first", "copies", "more"])
    taught = {
        source.study: len(source.observations) for source in history_of(archive, warm).sources
    }
    assert taught == {"copies": 1, "first": 4, "more": 0}
    searched(study("copies"), 8, sources=["first"])
    assert len(history_of(archive, archive.studies.get("copies")).observations) == 8
    assert recheck(archive, "copies").differing == ()


def test_a_warm_start_is_recorded_and_replayed(archive, study, searched):
    searched(study("source", "u"), 12)
    searched(study("equal", "v"), 6, value=lambda cell: 1.0)
    budget = TOP + DESIGN + 3
    searched(
        study("warm"),
        budget,
        "portfolio",
        settings={"sources": "trusted"},
        sources=["source", "equal"],
    )
    assert archive.studies.sources("warm") == ["equal", "source"]
    proposals = sorted(archive.proposals.list("warm"), key=lambda each: each.number)
    assert all({"source", "equal"} <= each.based_on["observations"].keys() for each in proposals)
    assert [("coupling" in each.based_on) for each in proposals] == [False] * (TOP + DESIGN) + [
        True
    ] * 3
    assert recheck(archive, "warm").differing == ()
    assert len(recheck(archive, "warm").same) == budget
    equal, source = read_contributions(archive, "warm")
    told = [
        each.number for each in proposals if each.based_on.get("coupling", {}).get("source") == 0
    ]
    used = budget - len(told)
    assert (source.study, source.same_task, source.evaluations, source.proposals) == (
        "source",
        False,
        12,
        used,
    )
    assert source.coupling == proposals[-1].based_on["coupling"]["source"]
    estimated = {
        each.number: each.based_on["coupling"]["source"] for each in proposals[TOP + DESIGN :]
    }
    assert source.couplings == estimated and len(estimated) == 3
    # Equal values teach nothing: no proposal was based on them.
    assert (equal.evaluations, equal.coupling, equal.couplings, equal.proposals) == (6, None, {}, 0)
    own = {
        one.architecture.functional_key: one.score for one in archive.studies.evaluations("warm")
    }
    theirs = max(
        archive.studies.evaluations("source"), key=lambda one: one.score
    ).architecture.functional_key
    rank = 1 + sum(value > own[theirs] for value in own.values())
    assert source.best_rank == rank
    assert read_contributions(archive, "source") == []


def test_all_takes_every_eligible_source(archive, study, searched, space):
    searched(study("same"), 2)
    searched(study("other", "u"), 2)
    open_study(archive, study("empty", "v"))
    open_study(archive, Study("elsewhere", "w", "w/1", "cnn"))
    for kind, expected in (("portfolio", ["other", "same"]), ("evolution", ["same"])):
        open_study(archive, study(kind), sources="all", agent=agents.get(kind, space))
        assert archive.studies.sources(kind) == expected


def test_an_ineligible_source_is_refused_before_anything_is_stored(archive, study, searched, space):
    open_study(archive, study("other", "u"))
    open_study(archive, Study("elsewhere", "w", "w/1", "cnn"))
    blind = agents.get("evolution", space)
    with pytest.raises(UsageError, match=r"agent evolution learns from its own task alone"):
        open_study(archive, study("new"), sources=["other"], agent=blind)

    with pytest.raises(
        UsageError, match="space cnn, whose networks cannot be compared with those of nasbench201"
    ):
        open_study(archive, study("new"), sources=["elsewhere"])

    with pytest.raises(UsageError, match="itself"):
        open_study(archive, study("other", "u"), sources=["other"])

    with pytest.raises(UnknownNameError, match="unknown study 'othr': did you mean other"):
        open_study(archive, study("new"), sources=["othr"])

    assert "new" not in archive.studies.names()


def test_a_source_that_grows_is_fitted_again(archive, study, searched, space):
    searched(study("source", "u"), 8)
    warm = open_study(archive, study("warm"), sources=["source"])
    agent = agents.get("portfolio", space)
    before = agent.propose(history_of(archive, warm), 1, np.random.default_rng(0))
    searched(study("source", "u"), 25)
    id_ = archive.proposals.register_agent(agent.kind, agent.config, "0")
    Searcher(archive).propose(warm, agent, id_, 1)
    fresh = agents.get("portfolio", space).propose(
        history_of(archive, warm), 1, np.random.default_rng(0)
    )
    assert len(history_of(archive, warm).sources[0].observations) == 25
    assert before[0].architecture != fresh[0].architecture or len(before) == 1
    assert recheck(archive, "warm").differing == ()


def answer(cell):
    return Result(score(cell))


@pytest.mark.whole
def test_the_benchmark_writes_sources_and_compares_with_cold_starts(archive, space, monkeypatch):
    best = max(map(score, space.members()))

    def problem(task):
        return plan.Problem(
            task,
            task,
            f"{task}/1",
            space.name,
            space.config,
            "value",
            "maximise",
            best,
            30,
            1.0,
            "points",
            answer,
        )

    chosen = scenarios(["sampled", "reversed"])
    whole = TransferPlan(
        plan.contestant("portfolio"), problem, chosen, seeds=2, budget=10, run="r", shrink=10
    )
    jobs = whole.sources()
    assert [job.budget for job in jobs] == [5, 20, 5, 20]
    for _ in range(2):
        for job in jobs:
            run_job(archive, job, space)

        alter(archive, whole)

    for altered, plain, how in whole.alterations():
        assert how == "reversed"
        pairs = zip(
            *(archive.studies.evaluations(job.study.name) for job in (altered, plain)), strict=True
        )
        assert all(
            one.value == -two.value and one.architecture == two.architecture for one, two in pairs
        )

    targets = whole.targets()
    assert [(job.seed, job.warm) for job in targets[:3]] == [
        (0, ""),
        (0, "sampled"),
        (0, "reversed"),
    ]
    for job in targets:
        run_job(archive, job, space)
        assert archive.studies.sources(job.study.name) == list(job.sources)

    cold, *warm = rows(archive, whole)
    assert (cold.scenario, cold.coupling, cold.excess, cold.errors) == ("cold", None, 0.0, 0.0)
    assert [(row.target, row.scenario, row.seeds) for row in warm] == [
        ("nb201-cifar100", "sampled", 2), ("nb201-cifar100", "reversed", 2)
    ]  # fmt: skip
    # With noise, regrets are those of recommendations.
    monkeypatch.setattr(
        of_rows,
        "recommend_curve",
        lambda job, values, keys: np.full(10, 8.0 if job.warm else 7.0),
    )
    truth = {cell.functional_key: (score(cell), math.nan) for cell in space.members()}
    noisy = replace(
        whole, problem=lambda task: replace(problem(task), noise=0.1, truth=truth.__getitem__)
    )
    assert [(one.regret[10], one.excess, one.to_best) for one in rows(archive, noisy)] == [
        (7.0, 0.0, cold.to_best), *((8.0, 1.0, one.to_best) for one in warm)
    ]  # fmt: skip
    assert recheck(archive, targets[2].study.name).differing == ()
    with pytest.raises(UnknownNameError, match="scenario"):
        scenarios(["sample"])

    with pytest.raises(UsageError, match="'random'"):
        TransferPlan(plan.contestant("random"), problem, chosen, 1, 10, "r")


def test_the_matrix_has_every_ordered_pair_of_tasks_with_good_and_misleading_sources():
    whole = matrix()
    assert len({(one.target, one.name) for one in whole}) == len(whole) == 2 * 2 * 6 * 4
    assert {one.sources[0].altered for one in whole} == {"", "reversed", "shuffled"}
    rows = matrix(targets=["transnas-object", "nb201-cifar10~0.005"])
    assert [
        one for one in whole if one.target in ("transnas-object", "nb201-cifar10~0.005")
    ] == rows
    assert len(rows) == 2 * 2 * 4
    some = matrix(
        targets=["transnas-object"], names=["transnas-scene-200", "transnas-scene-200-reversed"]
    )
    assert some == [
        one for one in rows if one.name in ("transnas-scene-200", "transnas-scene-200-reversed")
    ]
    assert len(some) == 2
    with pytest.raises(UnknownNameError, match="unknown scenario of the matrix 'nb201-cifar10-50'"):
        matrix(targets=["transnas-object"], names=["nb201-cifar10-50"])

    with pytest.raises(UnknownNameError, match=r"'transnas-object~0\.005'.*transnas-object~0\.003"):
        matrix(targets=["transnas-object~0.005"])

    (noisy,) = [
        one for one in whole if one.name == "transnas-scene~0.003-50" and "object" in one.target
    ]
    assert (noisy.target, noisy.sources[0].task) == (
        "transnas-object~0.003",
        "transnas-scene~0.003",
    )

    def problem(task):
        return plan.Problem(
            task, task, "p", "nasbench201", {}, "value", "maximise", 1.0, 300, 1.0, "points", answer
        )

    jobs = TransferPlan(plan.contestant("portfolio"), problem, whole, 1, 10, "r")
    names = [
        job.study.name
        for job in (*jobs.sources(), *jobs.targets(), *(one for one, _, _ in jobs.alterations()))
    ]
    assert len(set(names)) == len(names) == 12 * 2 + 12 + 96 + 12 * 2


def test_the_excess_of_warm_starts_is_that_of_pairs():
    late = np.array([[9.0] * 9 + [1.0, 3.0], [9.0] * 9 + [3.0, 1.0], [9.0] * 9 + [2.0, 2.0]])
    cold = np.full_like(late, 0.5) + np.array([[0.0], [9.0], [0.0]])
    # After ten and eleven queries the warm starts have regrets of 1.5, 12.5, 2.5 and of 3.5, 10.5,
    # 2.5.
    paired = 2.0 * 3**0.5
    own = 2.0 / sem([3.5, 10.5, 2.5])
    assert Excess.of(cold + late, cold) == (2.0, pytest.approx(paired), pytest.approx(own))
    assert Excess.of(cold - late, cold) == (0.0, 0.0, 0.0)
    assert Excess.of((cold + late)[:1], cold[:1]) == (3.0, None, None)
    assert Excess.of((cold + late)[:, :9], cold[:, :9]) == (None, None, None)
