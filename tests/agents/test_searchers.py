"""Several searches on one study: none ends early, few calls are lost, and all can be replayed."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from archive import agents, spaces
from archive.agents import loop, provenance
from archive.agents import study as open_study
from archive.agents.base import Agent, History
from archive.agents.replay import recheck
from archive.api import Archive
from archive.store.records import Result, State

SPACE = spaces.get("nasbench201")


class Watched(Agent):
    """An agent that counts its calls and lets another search act during each of them."""

    kind = ""

    def __init__(self, kind, meanwhile=lambda: None):
        super().__init__(SPACE)
        self.kind = kind
        self.meanwhile = meanwhile
        self.calls = 0
        self.inner = agents.get(kind, SPACE)

    @property
    def config(self):
        return self.inner.config

    def propose(self, history, n, rng):
        self.calls += 1
        self.meanwhile()
        return self.inner.propose(history, n, rng)


@pytest.fixture(autouse=True)
def streams_in_turn(monkeypatch):
    """Use the random streams 1, 2, 3, ...: random ones would make two searches collide repeatedly
    now and then."""
    numbers = itertools.count()
    monkeypatch.setattr("archive.agents.searcher.secrets.randbelow", lambda limit: next(numbers))


@pytest.fixture
def study(archive):
    return agents.study(archive, "mine", SPACE, seed=3)


@pytest.fixture
def rival(archive, study):
    """The same study, as another process would have it."""
    return open_study(archive, "mine")


def once(work):
    """Return what does the work at the first call only."""
    left = [work]
    return lambda: left.pop()() if left else None


def keys(archive, name="mine"):
    return [proposal.functional_key for proposal in archive.proposals.list(name)]


def streams(archive, name="mine"):
    return [proposal.based_on.get("stream", 0) for proposal in archive.proposals.list(name)]


def size(architecture):
    return int(architecture.functional_key[:6], 16) / 16**6


@pytest.mark.parametrize("kind", ["random", "bfs"])
def test_ask_is_repeated_after_a_lost_race(archive, study, rival, kind):
    agent = Watched(kind, once(lambda: rival.ask(kind)))
    (asked,) = study.ask(agent)
    assert agent.calls == 2
    assert asked.proposal.number == 1
    assert len(set(keys(archive))) == 2
    assert streams(archive)[0] == 0 != streams(archive)[1]
    assert recheck(archive, "mine").differing == ()


def test_a_budget_that_another_asker_spends_meanwhile_ends_the_call(archive):
    small = agents.study(archive, "small", SPACE, budget=1)
    rival = open_study(archive, "small")
    agent = Watched("random", once(lambda: rival.ask("random")))
    assert small.ask(agent) == []
    assert (agent.calls, len(keys(archive, "small"))) == (1, 1)


@pytest.mark.parametrize("kind", ["random", "bfs"])
def test_concurrent_searches_seldom_lose_calls(archive, study, rival, kind):
    # The rival is first each time, with the suggestion of the same agent for the same history.
    agent = Watched(kind, lambda: rival.ask(kind))
    for _ in range(6):
        study.ask(agent)

    # One call was lost, and revealed the other search.
    assert agent.calls == 7
    replayed = recheck(archive, "mine")
    assert (len(replayed.same), replayed.differing) == (13, ())


def test_spare_suggestions_end_when_the_other_search_does(archive, study, rival):
    left = [rival] * 3
    agent = Watched("bfs", lambda: left and left.pop().ask("bfs"))
    for _ in range(12):
        study.ask(agent)

    requested = [proposal.based_on["wanted"] for proposal in archive.proposals.list("mine")]
    assert max(requested) == 2
    assert requested[-3:] == [1] * 3
    assert recheck(archive, "mine").differing == ()


def test_a_search_that_is_alone_draws_from_the_seed_alone(archive, study):
    for value in (0.25, 0.5):
        study.tell(study.ask("random")[0], value)

    study.ask("random", 3)
    assert all(
        p.based_on.keys() == {"observations", "pending", "failed", "wanted"}
        for p in archive.proposals.list("mine")
    )
    assert [p.based_on["wanted"] for p in archive.proposals.list("mine")] == [1, 1, 3, 3, 3]
    first = agents.get("random", SPACE).propose(History(), 1, np.random.default_rng([3, 0]))
    assert keys(archive)[0] == first[0].architecture.functional_key


def test_streams_are_independent_and_the_default_one_is_the_seed_s():
    drawn = [provenance.generator(3, History(), stream).random() for stream in (0, 1, 2)]
    assert drawn[0] == np.random.default_rng([3, 0]).random()
    assert len(set(drawn)) == 3


def run(study, agent, budget=12):
    own = []

    def objective(architecture):
        own.append(architecture)
        return size(architecture)

    study.run(objective, budget, agent)
    return len(own), len(study.evaluations())


def test_threads_that_share_a_study_take_turns(archive, study):
    agent = Watched("random")
    with ThreadPoolExecutor(4) as pool:
        ends = list(pool.map(lambda _: run(study, agent), range(4)))

    assert sum(own for own, _ in ends) == 12
    assert [total for _, total in ends] == [12] * 4
    assert (agent.calls, streams(archive)) == (12, [0] * 12)


def test_searches_of_their_own_share_a_study(archive, study, open_connection):
    others = [open_study(Archive(open_connection()), "mine") for _ in range(2)]
    with ThreadPoolExecutor(3) as pool:
        ends = list(pool.map(lambda each: run(each, "random"), [study, *others]))

    assert sum(own for own, _ in ends) == 12
    assert [total for _, total in ends] == [12] * 3
    assert recheck(archive, "mine").differing == ()


@pytest.mark.parametrize("evaluated", [True, False])
def test_a_run_stays_while_another_asker_holds_the_last_proposal(
    archive, study, rival, monkeypatch, evaluated
):
    held = []
    ask = study.ask

    def late(*args, **options):
        # Another asker takes the whole budget between the snapshot and the call.
        if not held:
            held.extend(rival.ask("random"))

        return ask(*args, **options)

    def wait(_):
        if evaluated:
            rival.tell(held[0], 0.5)
        else:
            rival.fail(held[0], "no luck")

    monkeypatch.setattr(study, "ask", late)
    monkeypatch.setattr("archive.agents.ask_tell.run.time.sleep", wait)
    assert run(study, "random", 1) == (0 if evaluated else 1, 1)


def test_a_loop_beside_another_one_draws_from_a_stream_of_its_own(archive, study, rival):
    def serve(_):
        while (claim := archive.proposals.claim("worker", study="mine")) is not None:
            archive.proposals.complete(claim.id, claim.token, Result(size(claim.architecture)))

    archive.studies.set_budget("mine", 8)
    agent = Watched(
        "evolution", lambda: [rival.tell(asked, 0.5) for asked in rival.ask("evolution")]
    )
    last = list(loop.run(archive, archive.studies.get("mine"), agent, version="0", wait=serve))[-1]
    assert last.counts[State.COMPLETE] == 8
    assert len(set(streams(archive))) == 2
    assert recheck(archive, "mine").differing == ()


class Stubborn(Agent):
    """Proposes the same network repeatedly, against its contract."""

    kind = "random"

    def propose(self, history, n, rng):
        return agents.get("random", SPACE).propose(History(), 1, np.random.default_rng(0))


def test_an_agent_that_repeats_itself_ends_a_search_and_not_in_a_circle(archive, study):
    (asked,) = study.ask(Stubborn(SPACE), 3)
    study.tell(asked, 0.5)
    assert run(study, Stubborn(SPACE), 5) == (0, 1)
    looks = list(loop.run(archive, study.record, Stubborn(SPACE), version="0", wait=lambda _: None))
    assert looks[-1].counts[State.COMPLETE] == 1


def test_an_agent_by_name_lives_as_long_as_the_study(archive, study, monkeypatch):
    made = []
    get = agents.get

    def counted(name, space, **config):
        made.append(name)
        return get(name, space, **config)

    monkeypatch.setattr("archive.agents.registry.get", counted)
    for kind in ("random", "evolution", "random", "random"):
        study.ask(kind)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: study.ask("rand"), range(4)))

    assert made == ["random", "evolution", "rand"]


def test_a_kept_agent_proposes_what_a_new_one_would(archive, few_candidates):
    space = spaces.get("mlp")
    kept = agents.study(archive, "kept", space, seed=1)
    for at in range(12):
        for study in (kept, agents.study(archive, "new", space, seed=1)):
            (asked,) = study.ask("tw")
            study.tell(asked, 1.0 / (at + len(asked.architecture.layers)))

    proposals = [archive.proposals.list(name) for name in ("kept", "new")]
    recorded = [
        [(p.architecture_key, p.acquisition, p.mean, p.std) for p in of_study]
        for of_study in proposals
    ]
    assert recorded[0] == recorded[1]
    assert recorded[0][-1][2] is not None


@pytest.fixture
def known(study):
    """Three evaluations of a study of the same task and seed."""
    for _ in range(3):
        (asked,) = study.ask("random")
        study.tell(asked, size(asked.architecture))

    return {"task": "mine", "protocol": "mine/own", "seed": 3}


def test_what_the_archive_answers_is_shown_to_the_asker(archive, study, known):
    assert study.ask("random").answered == ()
    other = agents.study(archive, "other", SPACE, **known, budget=6)
    asked = other.ask("random")
    assert [each.proposal.number for each in asked] == [3]
    assert [seen.answered_from for seen in asked.answered] == [f"mine#{at:05d}" for at in range(3)]
    assert list(asked.answered) == other.evaluations()
    assert [seen.value for seen in asked.answered] == [seen.value for seen in study.evaluations()]
    retrained = agents.study(archive, "again", SPACE, **known).ask("random", retrain=True)
    assert ([each.proposal.number for each in retrained], retrained.answered) == ([0], ())


def test_a_budget_that_is_spent_on_answers_says_so(archive, known):
    asked = agents.study(archive, "other", SPACE, **known, budget=2).ask("random")
    assert (list(asked), len(asked.answered)) == ([], 2)
