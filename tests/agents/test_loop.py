"""The search loop: budget, distances, restarts, failures, and concurrent loops."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from archive import agents, spaces
from archive.agents.base import Agent
from archive.agents.loop import PAUSE, Pauses, history_of, run
from archive.agents.study_setup import open_study
from archive.database.connection import Connection
from archive.database.messages import _LimitedTransaction
from archive.errors import SearchError, StudyConflictError, UnknownNameError, UsageError
from archive.queue.proposals import Result, State
from archive.store.records import Study
from tests.support import whole

SPACE = spaces.get("mlp")


def asked(name="s", **changes):
    given = {
        "task": "t",
        "protocol": "t/1",
        "space": "mlp",
        "objective": "mse",
        "direction": "minimise",
    }
    return Study(name, **{**given, **changes})


def serve(archive, study, value=lambda number: float(number)):
    """Evaluate all waiting proposals, as a trainer does."""
    while (claim := archive.proposals.claim("worker", study=study)) is not None:
        archive.proposals.complete(
            claim.id, claim.token, Result(value=value(claim.proposal.number))
        )


def search(archive, study, kind="random", batch=1, **options):
    """Run the loop with a trainer that works whenever the loop waits."""
    agent = agents.get(kind, SPACE)
    return list(
        run(
            archive,
            study,
            agent,
            version="0",
            batch=batch,
            wait=lambda _: serve(archive, study.name),
            **options,
        )
    )


def test_the_budget_is_spent_and_every_distance_stored(archive):
    study = open_study(archive, asked(), budget=5)
    last = search(archive, study)[-1]
    assert last.counts[State.COMPLETE] == 5
    keys = {view.architecture_key for view in last.proposals}
    assert len(keys) == 5
    assert not np.isnan(archive.distances.matrix(sorted(keys), "otmann")).any()
    assert archive.distances.matrix(sorted(keys), "otmann_normalised").shape == (4, 5, 5)
    # A finished study stays unchanged.
    assert len(search(archive, study)) == 1


def test_agents_see_scores_that_grow_when_the_error_falls(archive):
    study = open_study(archive, asked(), budget=3)
    search(archive, study)
    history = history_of(archive, study)
    assert sorted(seen.score for seen in history.observations) == [-2.0, -1.0, -0.0]


def test_a_loop_that_is_killed_proposes_what_it_would_have(archive):
    study = open_study(archive, asked(), budget=4, seed=3)
    whole = [view.architecture_key for view in search(archive, study)[-1].proposals]
    other = open_study(archive, asked("other"), budget=4, seed=3)
    looks = run(
        archive,
        other,
        agents.get("random", SPACE),
        version="0",
        wait=lambda _: serve(archive, "other"),
    )
    for snapshot in looks:
        if snapshot.counts[State.COMPLETE] == 2:
            looks.close()
            break

    assert [view.architecture_key for view in search(archive, other)[-1].proposals] == whole


def test_a_budget_that_is_lowered_meanwhile_ends_the_search(archive):
    study = open_study(archive, asked(), budget=50)
    looks = run(
        archive,
        study,
        agents.get("random", SPACE),
        version="0",
        wait=lambda _: serve(archive, study.name),
    )
    for snapshot in looks:
        if snapshot.counts[State.COMPLETE] == 2:
            archive.studies.set_budget(study.name, 3)

    assert (snapshot.counts[State.COMPLETE], snapshot.study.budget) == (3, 3)


class Shy(Agent):
    """Proposes one network at a time, nothing while that is under way, and six in all."""

    kind = "shy"

    def propose(self, history, n, rng):
        silent = history.pending or len(history.observations) == 6
        return [] if silent else agents.get("random", self.space).propose(history, 1, rng)


def test_an_agent_that_had_no_proposal_is_asked_again_once_more_is_known(archive):
    study = open_study(archive, asked(), budget=9)
    looks = run(
        archive, study, Shy(SPACE), version="0", batch=2, wait=lambda _: serve(archive, study.name)
    )
    assert list(looks)[-1].counts[State.COMPLETE] == 6


def test_two_loops_share_one_budget(archive):
    study = open_study(archive, asked(), budget=6)
    with ThreadPoolExecutor(2) as pool:
        ends = [
            future.result()
            for future in [pool.submit(search, archive, study, batch=3) for _ in range(2)]
        ]

    assert [end[-1].counts[State.COMPLETE] for end in ends] == [6, 6]
    assert len(archive.proposals.list(study.name)) == 6


def test_a_study_whose_proposals_all_fail_ends_with_the_reason(archive):
    study = open_study(archive, asked(), budget=100)

    def fail(_):
        while (claim := archive.proposals.claim("worker", study=study.name)) is not None:
            archive.proposals.fail(claim.id, claim.token, "no memory left")

    for _ in range(2):
        with pytest.raises(
            SearchError,
            match=r"20 proposals .* failed and none was .* no memory "
            r"left",
        ):
            list(run(archive, study, agents.get("random", SPACE), version="0", batch=5, wait=fail))

    assert archive.studies.counts(study.name)[State.FAILED] == 40
    # Failures of earlier searches do not end a later one, whose trainers work.
    archive.studies.set_budget(study.name, 2)
    assert search(archive, archive.studies.get(study.name))[-1].counts[State.COMPLETE] == 2


@pytest.mark.parametrize(
    ("budget", "good", "failures"),
    [(2, 0, 5), (9, 3, 10), (50, 1, 20), whole(4, 1, 6), whole(7, 0, 7)],
)
def test_a_short_search_ends_after_a_few_failures_in_a_row(archive, budget, good, failures):
    study = open_study(archive, asked(), budget=budget)

    def work(_):
        while (claim := archive.proposals.claim("worker", study=study.name)) is not None:
            # One network is too large before the good ones.
            if 0 < claim.proposal.number <= good:
                archive.proposals.complete(claim.id, claim.token, Result(value=0.5))
            else:
                archive.proposals.fail(claim.id, claim.token, "no memory left")

    with pytest.raises(
        SearchError, match=f"{failures} proposals .* {good or 'none'} w.* no memory left"
    ):
        list(run(archive, study, agents.get("random", SPACE), version="0", wait=work))


def test_warm_start_takes_observations_and_leaves_the_budget(archive):
    source = open_study(archive, asked("source"), budget=3)
    search(archive, source)
    study = open_study(archive, asked("warm"), budget=2, sources=["source"])
    assert len(history_of(archive, study).observations) == 3
    last = search(archive, study)[-1]
    assert last.counts[State.COMPLETE] == 2
    assert archive.studies.sources("warm") == ["source"]
    everything = {
        seen.architecture.functional_key for seen in history_of(archive, study).observations
    }
    assert len(everything) == 5


def test_a_source_that_does_not_fit_leaves_no_study_behind(archive):
    open_study(archive, asked("other-space", space="cnn"), budget=1)
    open_study(archive, asked("fits"), budget=1)
    with pytest.raises(
        UsageError,
        match=r"'new' cannot start warm from the study 'other-space': "
        r".* space cnn",
    ):
        open_study(archive, asked("new"), sources=["other-space"])

    with pytest.raises(UnknownNameError, match="unknown study 'absent'"):
        open_study(archive, asked("new"), sources=["absent"])

    with pytest.raises(UsageError, match="itself"):
        open_study(archive, asked("fits"), sources=["fits"])

    assert archive.studies.names() == ["other-space", "fits"]


def test_opening_again_keeps_what_is_not_said_and_refuses_what_conflicts(archive):
    first = open_study(archive, asked(), budget=7, seed=5)
    again = open_study(archive, asked())
    assert (again.budget, again.seed) == (7, 5) == (first.budget, first.seed)
    assert open_study(archive, asked(), budget=9).budget == archive.studies.get("s").budget == 9
    with pytest.raises(StudyConflictError, match="seed 5, got 6"):
        open_study(archive, asked(), seed=6)

    with pytest.raises(UsageError, match="at least 1 evaluation, got 0"):
        open_study(archive, asked(), budget=0)


def test_looks_grow_rarer_while_nothing_changes_and_no_rarer_than_an_eighth_of_the_wait():
    pauses = Pauses(0.01)
    waits = [pauses.next() for _ in range(60)]
    assert waits[0] == 0.01 and max(waits) == PAUSE and waits == sorted(waits)
    assert all(seconds <= max(0.01, sum(waits[:at]) / 8) for at, seconds in enumerate(waits))
    # Another network waits for its result: polling is frequent again.
    pauses.observe({State.COMPLETE: 1})
    assert pauses.next() == 0.01


def test_a_proposal_takes_few_calls_to_the_store_and_a_result_ends_the_wait(archive, monkeypatch):
    if archive.connection.dialect == "neo4j":
        pytest.skip("its clients need not have one home")

    budget = 12
    study = open_study(archive, asked(space="nasbench201"), budget=budget)
    calls = Counter()
    sleeps = []
    run_transaction = Connection._run

    def count(self, *arguments):
        calls["transactions"] += not sleeps or sleeps[-1] is None
        return run_transaction(self, *arguments)

    def run_statement(self, *arguments, **parameters):
        calls["statements"] += not sleeps or sleeps[-1] is None
        return statement(self, *arguments, **parameters)

    def sleep(seconds):
        sleeps.append(seconds)
        serve(archive, study.name)
        sleeps.append(None)

    statement = _LimitedTransaction.run
    monkeypatch.setattr(Connection, "_run", count)
    monkeypatch.setattr(_LimitedTransaction, "run", run_statement)
    agent = agents.get("random", spaces.get("nasbench201"))
    last = list(run(archive, study, agent, version="0", wait=sleep))[-1]
    assert last.counts[State.COMPLETE] == budget
    assert len(sleeps) == 2 * budget
    # Of a proposal: two looks, the history, the proxies, the known results, and the addition; four
    # of all proposals.
    assert calls["transactions"] <= 6 * budget + 4
    assert calls["statements"] <= 17 * budget + 12
