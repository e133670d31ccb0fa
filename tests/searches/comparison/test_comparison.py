"""Comparisons of agents: equal seeds, restarts, other searches on a study, failures, and
replays."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import agents, spaces
from archive.agents import provenance
from archive.agents.base import Agent, Suggestion
from archive.agents.registry import registry
from archive.agents.replay import recheck
from archive.agents.searcher import Searcher
from archive.agents.study_setup import open_study
from archive.architecture import codec
from archive.errors import SearchError, TrainingError, UnknownNameError, UsageError
from archive.searches.comparison import plan, regret, run, standings
from archive.searches.comparison.plan import table_problem
from archive.store.records import Result
from archive.trainer.tasks import tabular


def value_of(architecture):
    """A pseudo-random number in [0, 1], the same for every relabelling."""
    return int(hashlib.sha256(architecture.functional_key.encode()).hexdigest()[:6], 16) / 16**6


def answer(architecture):
    return Result(value_of(architecture))


def refuse(architecture):
    raise TrainingError("no value")


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    """A table of sixty cells."""
    path = tmp_path_factory.mktemp("table") / "cells.csv"
    cells = spaces.get("nasbench201").members()[::140][:60]
    path.write_text(
        "\n".join(["arch_str,a", *(f"{codec.to_nasbench201(cell)},0" for cell in cells)])
    )
    space = spaces.get("nasbench201", table=str(path))
    best = max(map(value_of, space.members()))
    where = (
        "cells",
        "cells",
        "cells/1",
        space.name,
        space.config,
        "a",
        "maximise",
        best,
        60,
        100.0,
        "points",
    )
    return plan.Problem(*where, answer)


@pytest.fixture
def job(problem):
    return plan.StudyJob(
        plan.contestant("evolution"), problem, seed=3, budget=12, batch=1, starts=5, run="r"
    )


@pytest.fixture
def search(archive, problem):
    """Searches, and returns the keys of the proposals."""
    space = problem.search_space()

    def searched(job, **options):
        run.search(archive, job, space, **options)
        return [proposal.architecture_key for proposal in archive.proposals.list(job.study.name)]

    return searched


def calls(count):
    """Stops after so many calls of the agents."""
    left = iter(range(count))
    return lambda: next(left, None) is None


@pytest.mark.parametrize("batch", [1, 3])
def test_a_seed_gives_one_search_however_often_it_is_killed(archive, search, job, batch):
    job = replace(job, batch=batch)
    whole = search(job)
    assert len(whole) == len(set(whole)) == 12
    other = replace(job, run="other")
    assert search(other, stop=calls(0)) == []
    for _ in range(3):
        search(other, stop=calls(1))

    assert search(other) == whole
    # A finished study stays unchanged; a larger budget continues it.
    assert search(other, progress=pytest.fail) == whole
    assert search(replace(other, budget=14))[:12] == whole
    assert archive.studies.get(other.study.name).budget == 14


@pytest.mark.whole
def test_a_search_may_end_with_the_best_of_the_table(archive, search, problem, job):
    whole = search(replace(job, budget=20, run="long"))
    values = [value_of(archive.architectures.get(key)) for key in whole]
    at = values.index(max(values))
    assert at > job.starts, (
        "the best is among the starts: another seed, for this test to mean something"
    )
    long = replace(job, budget=20, run="long", problem=replace(problem, best=max(values)))
    short = replace(long, run="short", until_best=True)
    assert search(short) == whole[: at + 1]
    assert search(short, progress=pytest.fail) == whole[: at + 1]
    traces = regret.traces(archive, [long, short])
    assert short.is_finished(traces[1].values) and not short.is_finished(traces[1].values[:-1])
    (one,) = standings.standings([long], traces[:1])
    (other,) = standings.standings([short], traces[1:])
    assert other.to_best == one.to_best == (at + 1,)
    assert other.curve[:, 0].tolist() == one.curve[:, 0].tolist()


def test_all_agents_of_a_seed_have_the_same_starts(search, job):
    evolution = search(job)
    assert search(replace(job, contestant=plan.contestant("random")))[:5] == evolution[:5]
    assert search(replace(job, seed=4))[:5] != evolution[:5]
    own = [
        replace(job, starts=0, contestant=plan.contestant(f"{kind}:n_initial=3"))
        for kind in ("evolution", "bfs")
    ]
    first, other = (search(one)[:3] for one in own)
    assert first == other
    assert search(replace(own[0], seed=4))[:3] != first


def test_another_search_in_the_same_study_is_noticed(archive, search, job):
    alone = search(replace(job, run="alone"))
    answered = []

    def interfere(count):
        if not answered:
            answered.append(count)
            search(job, stop=calls(2))

    assert search(job, progress=interfere) == alone
    assert answered == [5]


def test_what_a_proposal_was_based_on_can_be_asked_again(archive, search, job):
    job = replace(job, batch=3)
    search(job)
    name = job.study.name
    based_on = [proposal.based_on for proposal in archive.proposals.list(name)]
    nothing = {"observations": {}, "pending": "", "failed": ""}
    assert based_on[:5] == [{**nothing, "wanted": 5}] * 5
    assert based_on[8] == {**nothing, "observations": {name: "0-7"}, "wanted": 3}
    replayed = recheck(archive, name)
    assert (len(replayed.same), replayed.differing, replayed.unexplained) == (12, (), ())
    # The proposals of evolution depend on the scores, the random starts do not.
    archive.query("MATCH (e:Evaluation) SET e.value = -e.value", write=True)
    replayed = recheck(archive, name)
    assert set(replayed.same) >= {f"{name}#{number:05d}" for number in range(5)}
    assert replayed.differing


def test_proposals_beside_pending_and_failed_ones_and_other_studies_can_be_asked_again(
    archive, search, job
):
    search(job)
    asked = replace(job.study, name="live", config={})
    study = open_study(archive, asked, budget=30, seed=1, sources=[job.study.name])
    space = job.problem.search_space()
    agent = agents.get("evolution", space)
    id_ = archive.proposals.register_agent(agent.kind, agent.config, "1")
    for wanted in (2, 3, 1):
        Searcher(archive).propose(study, agent, id_, wanted)
        claims = [archive.proposals.claim("worker", study="live") for _ in range(2)]
        archive.proposals.fail(claims[0].id, claims[0].token, "no luck")
        archive.proposals.complete(
            claims[1].id, claims[1].token, Result(value_of(claims[1].architecture))
        )

    last = archive.proposals.list("live")[-1].based_on
    assert last == {
        "observations": {job.study.name: "0-11", "live": last["observations"]["live"]},
        "pending": last["pending"],
        "failed": last["failed"],
        "wanted": 1,
    }
    # The second claim takes a random waiting proposal.
    assert last["pending"] in ("3", "4")
    assert last["failed"].startswith("0")
    person = archive.proposals.register_agent("person", {}, "1")
    fresh = next(
        cell
        for cell in space.members()
        if cell.key not in {p.architecture_key for p in archive.proposals.list("live")}
    )
    (own,) = archive.proposals.create("live", person, [Suggestion(fresh)])
    replayed = recheck(archive, "live")
    assert (len(replayed.same), replayed.differing, replayed.unexplained) == (6, (), (own.id,))


def test_a_basis_of_what_is_gone_is_refused(archive, search, job):
    search(job)
    archive.query("MATCH (e:Evaluation) WHERE e.id ENDS WITH '3' DETACH DELETE e", write=True)
    with pytest.raises(UsageError, match="evaluations or proposals that are missing"):
        recheck(archive, job.study.name)


def test_failed_proposals_are_no_queries_and_too_many_end_the_search(archive, search, job):
    values = {"left": 4}

    def at_times(architecture):
        values["left"] -= 1
        return refuse(architecture) if values["left"] >= 0 else answer(architecture)

    fails = replace(job, problem=replace(job.problem, answer=at_times))
    assert len(search(fails)) == 16
    (trace,) = regret.traces(archive, [fails])
    assert len(trace.values) == 12
    assert recheck(archive, fails.study.name).differing == ()
    with pytest.raises(SearchError, match=r"20 proposals .* failed and only 0 .* no value"):
        search(replace(job, run="no", budget=30, problem=replace(job.problem, answer=refuse)))


class Stubborn(Agent):
    kind = "stubborn"

    def propose(self, history, n, rng):
        return [Suggestion(self.space.members()[0])] * n


def test_repeats_are_counted(archive, search, job, monkeypatch):
    monkeypatch.setitem(registry.built_in, "stubborn", f"{__name__}:Stubborn")
    monkeypatch.setitem(registry._loaded, "stubborn", Stubborn)
    stubborn = replace(job, contestant=plan.contestant("stubborn"), starts=0, budget=6, batch=4)
    assert len(search(stubborn)) == 6
    search(job)
    assert [trace.repeats for trace in regret.traces(archive, [stubborn, job])] == [5, 0]


def test_each_query_has_noise_of_its_own(archive, search, job, problem, monkeypatch):
    monkeypatch.setitem(registry.built_in, "stubborn", f"{__name__}:Stubborn")
    monkeypatch.setitem(registry._loaded, "stubborn", Stubborn)
    # A value above the best of the table is luck, and all values of the table are equal: every
    # query is lucky.
    monkeypatch.setattr(tabular, "_standard_normal", lambda seed: 1.0 + seed / 2**32)
    noisy = table_problem(f"table:{problem.space_config['table']}#a~0.5")
    changed = {
        "contestant": plan.contestant("stubborn"),
        "problem": noisy,
        "starts": 0,
        "budget": 6,
        "batch": 4,
    }
    stubborn = replace(job, until_best=True, **changed)
    assert len(set(search(stubborn))) == 1
    seen = archive.studies.evaluations(stubborn.study.name)
    assert len({one.value for one in seen}) == len({one.seed for one in seen}) == 6
    (trace,) = regret.traces(archive, [stubborn])
    assert min(trace.values) > noisy.best
    assert regret.regrets(stubborn, trace.values, trace.keys).tolist() == [0.0] * 6
    warm = replace(stubborn, warm="source")
    search(warm)
    assert [one.value for one in archive.studies.evaluations(warm.study.name)] == [
        one.value for one in seen
    ]
    again = replace(stubborn, run="again")
    search(again)
    assert {one.value for one in archive.studies.evaluations(again.study.name)}.isdisjoint(
        trace.values
    )


@pytest.mark.parametrize(
    ("column", "values", "best", "regret", "unit"),
    [
        ("accuracy", (0.9, 0.95), 0.95, 5.0, "accuracy points"),
        ("accuracy", (90.0, 95.0), 95.0, 5.0, "accuracy points"),
        ("score", (0.25, 0.75), 0.75, 0.5, "in score"),
    ],
)
def test_a_regret_is_in_the_unit_of_the_table(tmp_path, column, values, best, regret, unit):
    path = tmp_path / "cells.csv"
    cells = map(codec.to_nasbench201, spaces.get("nasbench201").members())
    path.write_text(
        "\n".join([f"arch_str,{column}", *(f"{next(cells)},{value}" for value in values)])
    )
    problem = table_problem(f"table:{path}#{column}")
    assert (problem.best, problem.regret(min(values)), problem.unit) == (
        best,
        pytest.approx(regret),
        unit,
    )


def test_the_luckiest_network_has_its_true_regret_and_test_accuracy(problem, job):
    truth = {"a": (0.25, 0.5), "b": (0.5, 0.25), "c": (0.125, 0.75)}
    noisy = replace(job, problem=replace(problem, best=0.5, noise=0.1, truth=truth.get), budget=5)
    trace = regret.Trace((0.25, 0.375, 0.3125, 0.75), keys=("a", "b", "a", "c"))
    assert regret.regrets(noisy, trace.values, trace.keys).tolist() == [25.0, 0.0, 0.0, 37.5, 37.5]
    (row,) = standings.standings([noisy], [trace])
    assert row.tests[:, 0].tolist() == [50.0, 25.0, 25.0, 75.0, 75.0]
    assert row.item(row).test[5].mean == 75.0


def test_regret_by_hand(problem, job):
    low = replace(
        job, problem=replace(problem, direction="minimise", best=1.0, points=2.0), budget=4
    )
    assert regret.regrets(low, [3.0, 5.0, 1.0]).tolist() == [4.0, 4.0, 0.0, 0.0]
    high = [
        replace(job, problem=replace(problem, best=0.5), budget=3, seed=seed) for seed in range(3)
    ]
    values = [(0.25, 0.375, 0.5), (0.0, 0.5, 0.25), (0.25, 0.25, 0.25)]
    seconds = [(1.0, 3.0), (5.0,), ()]
    traces = [regret.Trace(v, s, repeats=1) for v, s in zip(values, seconds, strict=True)]
    (row,) = standings.standings([*high, job], [*traces, regret.Trace()])
    assert row.seeds == 3
    assert row.curve[:, 0].tolist() == pytest.approx([100 / 3, 12.5, 25 / 3])
    # Regrets 12.5, 0 and 25: standard deviation 12.5.
    assert row.regret(2).error == pytest.approx(12.5 / 3**0.5)
    assert (row.to_best, row.queries_to_best, row.never) == ((3, 2, None), 3, 1)
    assert (row.seconds, row.seconds_at_end, row.repeats) == (3.0, 4.0, 3)
    assert row.queries == (3,)
    (lone,) = standings.standings(high[2:], traces[2:])
    assert (lone.queries_to_best, lone.seconds) == (None, None)
    assert lone.item(row).regret[3].mean == 25.0


def test_contestants_are_compared_seed_by_seed():
    # Differences of -1, -2 and -3, and a seed that only one of them has: -2 in units of 1 /
    # sqrt(3).
    assert standings.errors_of(
        {4: 2.0, 1: 3.0, 2: 4.0, 9: 90.0}, {1: 5.0, 2: 7.0, 4: 3.0}
    ) == pytest.approx(-2 * 3**0.5)
    assert standings.errors_of({1: 0.1, 2: 0.3}, {1: 0.1, 2: 0.3}) == 0.0
    assert standings.errors_of({1: 0.1, 2: 0.3}, {1: 0.2, 2: 0.4}) is None
    assert standings.errors_of({1: 0.1, 2: 0.3}, {1: 0.2, 3: 0.4}) is None


def test_each_contestant_is_told_beside_the_first(problem, job):
    by_hand = replace(problem, best=1.0, points=1.0)
    jobs = [
        replace(job, problem=by_hand, budget=2, seed=seed, contestant=plan.contestant(name))
        for name in ("random", "evolution")
        for seed in range(3)
    ]
    values = [(0.5, 0.75), (0.25, 0.5), (0.5, 1.0), (0.25, 0.75), (0.5, 0.5), (0.75, 0.75)]
    first, second = standings.standings(jobs, [regret.Trace(one) for one in values])
    # After two queries: regrets 0.25, 0.5, 0 less 0.25, 0.5, 0.25.
    assert second.errors(first) == {2: pytest.approx(-1.0)}
    assert first.item(first).errors == {2: 0.0}
    assert first.item(second).errors == {2: pytest.approx(1.0)}
    assert (second.recommended_errors(first), second.within) == ({}, None)


def test_recommendations_are_told_beside_those_of_the_first(problem, job):
    of = standings.standings([job], [regret.Trace((0.5,))])[0]
    mine = {5: {0: (1.0, True), 1: (3.0, False)}, 9: {0: (1.0, None), 1: (2.0, True)}}
    theirs = {5: {0: (2.0, True), 1: (7.0, True)}, 9: {}}
    made = [
        replace(
            of,
            recommendations={
                at: {n: regret.Recommended(*x) for n, x in d.items()} for at, d in one.items()
            },
        )
        for one in (mine, theirs)
    ]
    # Differences of -1 and -4: a mean of -2.5 with a standard error of 1.5.
    assert made[1].recommended_errors(made[0]) == {5: pytest.approx(-2.5 / 1.5)}
    assert made[0].within == pytest.approx(2 / 3)
    assert {at: one.mean for at, one in made[0].recommended.items()} == {5: 2.0, 9: 1.5}
    assert list(made[1].recommended) == [5]


def test_a_trace_ends_at_the_budget(archive, search, job):
    search(job)
    whole, part, none = regret.traces(
        archive, [job, replace(job, budget=7), replace(job, run="none")]
    )
    seen = archive.studies.evaluations(job.study.name)
    assert whole.values == tuple(one.value for one in seen)
    assert (part.values, len(part.seconds)) == (whole.values[:7], 2)
    assert len(whole.agents) == 1
    assert none == regret.Trace()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": 4}, "at least the 5 random starts, got 4"),
        ({"starts": 0, "batch": 13}, "at least one batch of 13, got 12"),
        ({"budget": 61}, "at most the 60 networks of cells, got 61"),
        ({"seeds": 0}, "seeds must be >= 1, got 0"),
        ({"contestants": []}, "needs contestants"),
    ],
)
def test_numbers_that_cannot_be(problem, changes, message):
    given = {
        "contestants": [plan.contestant("random")],
        "problems": [problem],
        "seeds": 1,
        "budget": 12,
        "batch": 1,
    }
    with pytest.raises(UsageError, match=message):
        plan.ComparisonPlan(**{**given, "starts": 5, "run": "r", **changes})


def test_repeats_may_exceed_the_size_of_a_table_with_noise(problem):
    noisy = replace(problem, noise=0.5)
    given = {
        "contestants": [plan.contestant("random")],
        "problems": [noisy],
        "seeds": 1,
        "batch": 1,
        "run": "r",
    }
    (job,) = plan.ComparisonPlan(**given, budget=61, starts=60).jobs
    assert job.budget == 61
    with pytest.raises(
        UsageError,
        match=r"random starts must be at most the 60 networks of "
        r"cells.*, got 61",
    ):
        plan.ComparisonPlan(**given, budget=61, starts=61)


def test_contestants():
    parsed = plan.contestant("evolution:b=[1,2],a=x y,c=0.5")
    (member,) = parsed.members
    assert (member.kind, member.settings) == ("evolution", {"a": "x y", "b": [1, 2], "c": 0.5})
    assert parsed == plan.contestant("evolution:c=0.5,b=[1, 2],a=x y")
    assert parsed.name == "evolution:a=x y,b=[1, 2],c=0.5"
    with pytest.raises(UsageError, match="NAME=VALUE, got 'n_initial'"):
        plan.contestant("rand:n_initial")

    with pytest.raises(UnknownNameError, match="rnad"):
        plan.contestant("rnad")

    with pytest.raises(UnknownNameError, match="n_inital"):
        plan.contestant("rand:n_inital=3").agents(spaces.get("mlp"))


def test_a_team_takes_turns_and_shares_what_it_finds(archive, search, job):
    team = plan.contestant("evolution+random+local-search:n_initial=0")
    assert team.name == "evolution+random+local-search:n_initial=0" and team.is_team
    job = replace(job, contestant=team, batch=2, budget=14)
    whole = search(job)
    assert len(set(whole)) == 14
    made = archive.proposals.list(job.study.name)
    kinds = [proposal.agent.rpartition("-")[0] for proposal in made]
    turns = ["evolution", "random", "local-search", "evolution"]
    assert kinds == ["random"] * 5 + [kind for kind in turns for _ in range(2)] + ["random"]
    assert made[9].based_on["observations"] == {job.study.name: "0-8"}
    # A search that is stopped between two turns continues with the next agent.
    other = replace(job, run="other")
    for _ in range(3):
        search(other, stop=calls(2))

    assert search(other) == whole


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), min_size=1, max_size=12))
def test_shares_of_a_team(study):
    by_agent = {one.agent: one for one in regret.shares([study, study])}
    for agent, one in by_agent.items():
        own = [at for at, (who, _) in enumerate(study) if who == agent]
        better = [at for at in own if all(study[at][1] < regret for _, regret in study[:at])]
        assert one.evaluations == 2 * len(own) and one.improvements == 2 * len(better)
        holders = [min(study[:at], key=lambda seen: seen[1])[0] for at in better if at]
        assert one.on_others == 2 * sum(holder != agent for holder in holders)
        known = [sum(who != agent for who, _ in study[:at]) for at in own]
        assert one.known == pytest.approx(sum(known) / len(known))

    first_best = min(study, key=lambda seen: seen[1])[0]
    assert {agent for agent, one in by_agent.items() if one.bests} == {first_best}


@given(st.sets(st.integers(0, 60)))
def test_ranges(numbers):
    assert set(provenance.numbers_in(provenance.ranges(numbers))) == numbers


def test_ranges_are_short():
    assert provenance.ranges([4, 2, 3, 7, 0, 1]) == "0-4,7"


@pytest.mark.whole
def test_a_plot_is_drawn_the_same_twice(problem, job, tmp_path):
    from archive.searches.comparison import plot

    pytest.importorskip("matplotlib")
    other = replace(job, contestant=plan.contestant("random"))
    rows = standings.standings(
        [job, other], [regret.Trace((problem.best / 2, problem.best)), regret.Trace((0.1,))]
    )
    files = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for file in files:
        plot.check(file)
        plot.draw(rows, file)

    assert files[0].read_bytes() == files[1].read_bytes()
    assert b"evolution" in files[0].read_bytes()
    with pytest.raises(UsageError, match=r"must end in \.svg"):
        plot.check(tmp_path / "curves")

    with pytest.raises(UsageError, match="no folder"):
        plot.check(tmp_path / "no" / "curves.svg")


def test_documented_contestants_are_agents():
    """The examples at the head of the module."""
    space = spaces.get("nasbench201")
    examples = [line.split()[0] for line in plan.__doc__.splitlines() if line.startswith("    ")]
    assert len(examples) == 3
    for example in examples:
        assert plan.contestant(example).agents(space)


def test_the_regret_of_a_recommendation_is_that_of_the_greatest_mean_without_noise(job):
    first, second = (cell.functional_key for cell in job.problem.search_space().members()[:2])
    truth = {first: (0.5, float("nan")), second: (0.75, float("nan"))}
    noisy = replace(job, problem=replace(job.problem, noise=0.1, best=1.0, truth=truth.__getitem__))
    # The first network is the luckiest one; from the fourth query on, the second has the greater
    # mean.
    values = [0.9, 0.8, 0.3, 0.7]
    keys = [first, second, first, second]
    shown = regret.recommend_by_seed([(noisy, values, keys)], [1, 4, 9])
    assert {at: {seed: one.regret for seed, one in of.items()} for at, of in shown.items()} == {
        1: {job.seed: 50.0},
        4: {job.seed: 25.0},
        9: {},
    }
    assert regret.regrets(noisy, values, keys)[3] == 50.0
    assert regret.recommend_by_seed([(job, values, keys)], [1]) == {}


def test_a_curve_of_recommendations_has_each_of_the_first_and_every_fifth(job, monkeypatch):
    asked = []

    def recommendation(*given):
        asked.append(len(given[3]))
        return regret.Recommended(float(len(given[3])), None)

    monkeypatch.setattr(regret, "_recommend", recommendation)
    curve = regret.recommend_curve(replace(job, budget=14), [0.0] * 12, ["a"] * 12)
    assert asked == [1, 2, 3, 4, 5, 10, 12]
    assert curve.tolist() == [1, 2, 3, 4, 5, 5, 5, 5, 5, 10, 10, 12, 12, 12]
