"""Proposals on each server: admission to a study, and the resulting graph."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archive.database import messages
from archive.errors import UnknownNameError
from archive.queue import workers
from archive.queue.proposals import Proposals
from archive.queue.updates import Completion, Report
from archive.store.architectures import Architectures
from archive.store.records import Result, State, Study
from tests.conftest import wipe
from tests.support import WHOLE, examples
from tests.support.stores import (
    Forgetful,
    Suggestion,
    cells,
    count,
    everywhere,
    propose,
    study,
    suggest,
)
from tests.support.strategies import relabelled


@pytest.fixture
def agent(archive):
    archive.studies.create(study(budget=10))
    return archive.proposals.register_agent("random", {"pool": 3}, "1")


def test_a_proposal_comes_back_as_it_was_made(archive, agent):
    parent, child = cells(2)
    suggestion = Suggestion(
        child, 0.25, 0.5, 0.125, parent, ("widen", "skip"), {"rate": 0.1}, priority=2.0
    )
    (made,) = archive.proposals.create("study", agent, [suggestion])
    assert made == archive.proposals.get("study#00000") == archive.proposals.list("study")[0]
    assert (made.number, made.state, made.attempts, made.agent) == (0, State.WAITING, 0, agent)
    assert (made.acquisition, made.mean, made.std, made.priority) == (0.25, 0.5, 0.125, 2.0)
    assert made.hyperparameters == {"rate": 0.1}
    assert (made.architecture_key, made.functional_key) == (child.key, child.functional_key)
    assert made.created is not None


@pytest.mark.every_server
def test_the_graph_joins_study_agent_architecture_and_parent(archive, agent):
    parent, child = cells(2)
    archive.proposals.create(
        "study", agent, [Suggestion(child, parent=parent, operations=("widen",))]
    )
    rows = archive.query(
        """MATCH (s:Study)-[:PROPOSED]->(p:Proposal)-[:OF]->(a:Architecture), (g:Agent)-[:MADE]->(p),
        (parent:Architecture)-[m:MORPHED_INTO]->(a) RETURN s.name, g.id, a.key, parent.key, m.operations"""
    ).rows
    assert [tuple(row) for row in rows] == [("study", agent, child.key, parent.key, ["widen"])]
    assert archive.architectures.get(parent.key) == parent.canonical


def test_a_suggestion_needs_no_more_than_an_architecture(archive, agent):
    class Bare:
        architecture = cells(1)[0]

    (made,) = archive.proposals.create("study", agent, [Bare()])
    assert (made.acquisition, made.mean, made.hyperparameters, made.priority) == (
        None,
        None,
        {},
        0.0,
    )


@pytest.mark.every_server
def test_an_agent_is_identified_by_kind_configuration_and_version(archive):
    first = archive.proposals.register_agent("nasbot", {"a": 1, "b": [2.5]}, "1")
    assert archive.proposals.register_agent("nasbot", {"b": [2.5], "a": 1}, "1") == first
    assert archive.proposals.register_agent("nasbot", {"a": 2, "b": [2.5]}, "1") != first
    assert archive.proposals.register_agent("nasbot", {"a": 1, "b": [2.5]}, "2") != first
    assert count(archive.connection, "(g:Agent)") == 3


def test_the_budget_counts_what_has_not_failed(archive, agent):
    made = archive.proposals.create("study", agent, suggest(cells(12)))
    assert [proposal.number for proposal in made] == list(range(10))
    assert archive.proposals.create("study", agent, suggest(cells(14)[12:])) == []
    claim = archive.proposals.claim("w", study="study")
    archive.proposals.fail(claim.id, claim.token, "out of memory")
    (next_,) = archive.proposals.create("study", agent, suggest(cells(14)[12:]))
    assert (next_.number, next_.architecture_key) == (10, cells(14)[12].key)


def test_the_callers_own_budget_may_be_smaller_but_not_larger(archive, agent):
    assert len(archive.proposals.create("study", agent, suggest(cells(12)), budget=4)) == 4
    assert archive.proposals.create("study", agent, suggest(cells(12)), budget=4) == []
    assert len(archive.proposals.create("study", agent, suggest(cells(30)), budget=99)) == 6


def test_no_network_twice_in_a_study(archive, agent):
    first, second = cells(2)
    assert (
        len(
            archive.proposals.create("study", agent, suggest([first, relabelled(first, 1), second]))
        )
        == 2
    )
    assert archive.proposals.create("study", agent, suggest([relabelled(first, 2)])) == []
    again = archive.proposals.create("study", agent, suggest([first, first]), unique=False)
    assert [proposal.number for proposal in again] == [2, 3]
    archive.studies.create(study("other"))
    assert len(archive.proposals.create("other", agent, suggest([first]))) == 1


def test_a_failed_network_is_not_proposed_again(archive, agent):
    archive.proposals.create("study", agent, suggest(cells(1)))
    claim = archive.proposals.claim("w", study="study")
    archive.proposals.fail(claim.id, claim.token, "out of memory")
    assert archive.proposals.create("study", agent, suggest(cells(1))) == []


@pytest.mark.every_server
def test_unknown_studies_and_agents_change_nothing(archive, agent):
    with pytest.raises(UnknownNameError, match="study 'nowhere'"):
        archive.proposals.create("nowhere", agent, suggest(cells(1)))

    with pytest.raises(UnknownNameError, match="agent 'nobody'"):
        archive.proposals.create("study", "nobody", suggest(cells(1)))

    assert (
        count(archive.connection, "(p:Proposal)")
        == count(archive.connection, "(a:Architecture)")
        == 0
    )
    assert archive.proposals.create("study", agent, []) == []
    with pytest.raises(UnknownNameError, match="proposal"):
        archive.proposals.get("study#00000")


def test_a_lost_acknowledgement_proposes_nothing_twice(archive, connection, agent):
    proposals = Proposals(Forgetful(connection), archive.architectures)
    assert len(proposals.create("study", agent, suggest(cells(3)))) == 3
    assert len(proposals.create("study", agent, suggest(cells(3)), unique=False)) == 3
    assert [proposal.number for proposal in archive.proposals.list("study")] == list(range(6))


def test_a_token_names_one_call(archive, agent):
    first = archive.proposals.create("study", agent, suggest(cells(2)), token="mine")
    assert archive.proposals.create("study", agent, suggest(cells(2)), token="mine") == first
    assert archive.proposals.create("study", agent, suggest(cells(2)), token="other") == []


@pytest.mark.every_server
def test_racing_searches_neither_exceed_the_budget_nor_repeat(
    archive, connection, open_connection, agent
):
    opened = [open_connection() for _ in range(8)]
    searches = [Proposals(each, Architectures(each)) for each in opened]

    def work(i):
        return [
            searches[i].create("study", agent, suggest(cells(16)[(i + j) % 16 :][:2]))
            for j in range(6)
        ]

    made = [proposal for calls in everywhere(work) for call in calls for proposal in call]
    stored = archive.proposals.list("study")
    assert sorted(proposal.id for proposal in made) == [proposal.id for proposal in stored]
    assert [proposal.number for proposal in stored] == list(range(10))
    assert len({proposal.functional_key for proposal in stored}) == 10
    assert count(connection, "(:Study)-[:PROPOSED]->(:Proposal)") == 10
    assert count(connection, "(:Agent)-[:MADE]->(:Proposal)-[:OF]->(:Architecture)") == 10


@settings(examples(0.5), suppress_health_check=list(HealthCheck))
@given(
    calls=st.lists(st.lists(st.integers(0, 9), max_size=5), min_size=1, max_size=6),
    budget=st.integers(0, 8),
    number=st.integers(0, 10**6),
)
def test_any_sequence_of_calls_keeps_the_rules(archive, calls, budget, number):
    """Numbers without gaps, in the order of the calls, never beyond the budget."""
    name = f"s{number}-{id(calls)}"
    archive.studies.create(study(name, budget=budget))
    agent = archive.proposals.register_agent("random", {}, "1")
    expected = list(dict.fromkeys(cells(10)[i].key for call in calls for i in call))[:budget]
    for call in calls:
        archive.proposals.create(name, agent, suggest(cells(10)[i] for i in call))

    found = archive.proposals.list(name)
    assert [proposal.architecture_key for proposal in found] == expected
    assert [proposal.number for proposal in found] == list(range(len(expected)))


def test_pending_is_what_waits_or_runs(archive):
    propose(archive, cells(4))
    done = archive.proposals.claim("w", study="study")
    archive.proposals.fail(done.id, done.token, "NaN")
    archive.proposals.claim("w", study="study")
    assert [
        (proposal.number, network) for proposal, network in archive.proposals.pending("study")
    ] == [(number, cells(4)[number].canonical) for number in (1, 2, 3)]
    assert [
        proposal.number
        for proposal in archive.proposals.list("study", [State.FAILED, State.RUNNING])
    ] == [0, 1]


def test_workers_are_registered(archive):
    archive.proposals.register_worker("one", host="here", device="cpu")
    archive.proposals.register_worker("two")
    archive.proposals.worker_heartbeat("one")
    found = {worker.id: worker for worker in workers.statuses(archive.connection)}
    assert (found["one"].host, found["one"].device) == ("here", "cpu")
    assert found["one"].silent_seconds <= found["two"].silent_seconds
    assert all(worker.silent_seconds < 60 for worker in found.values())


def test_a_study_that_was_made_again_under_its_name_is_claimed_by_its_new_rules(
    archive, connection
):
    for protocol in ("digits/1", "digits/2"):
        wipe(connection)
        archive.studies.create(Study("study", "digits", protocol, "nasbench201", budget=5))
        agent = archive.proposals.register_agent("random", {}, "1")
        archive.proposals.create("study", agent, suggest(cells(2)))
        assert archive.proposals.claim("w", study="study").study.protocol == protocol
        (claim,) = archive.proposals.claim_many("w", 5, study="study", whole=True)
        assert (claim.study.protocol, claim.study.budget) == (protocol, 5)


def test_results_and_reports_of_any_total_size_are_stored(archive, monkeypatch):
    length = 110_000
    if not WHOLE:
        length //= 100
        for name in ("LARGEST_BYTES", "PART_BYTES"):
            monkeypatch.setattr(messages, name, getattr(messages, name) // 100)

    propose(archive, cells(8))
    claims = archive.proposals.claim_many("w", 8, study="study", lease_seconds=600.0, whole=True)
    # 8 x 3 MB: no server takes all of it in one message.
    curve = {name: [index + 0.5 for index in range(length)] for name in ("loss", "accuracy")}
    assert (
        archive.proposals.settle([Report(each.id, each.token, curve) for each in claims])
        == [True] * 8
    )
    results = [
        Completion(each.id, each.token, Result(0.5, {"accuracy": 0.5}, curve)) for each in claims
    ]
    gone = Completion("study#00099", "none", Result(0.5))
    answers = archive.proposals.settle([*results[:4], gone, *results[4:]])
    assert [type(answer) for answer in answers] == [bool] * 4 + [UnknownNameError] + [bool] * 4
    stored = archive.studies.evaluations("study")
    assert [(each.id, each.curve["loss"] == curve["loss"]) for each in stored] == [
        (each.id, True) for each in claims
    ]
    # A repetition changes nothing.
    assert archive.proposals.settle(results) == [True] * 8
