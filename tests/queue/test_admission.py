"""Counts of a study: the stored numbers equal those of a count, after any writer."""

from __future__ import annotations

import pytest

from archive.agents.base import Suggestion as Suggested
from archive.database.user_query import run_query
from archive.store.records import Result
from tests.support.stores import Suggestion, answer, cells, everywhere, study, suggest

# A user's query that adds a proposal.
BY_HAND = """
MATCH (s:Study {name: 'study'})
CREATE (s)-[:PROPOSED]->(:Proposal {id: 'study#00002', study: 'study', number: 2, state: 'WAITING', attempts: 0,
                                    architecture: $key, functional_key: $key, created: 0})
"""

COUNTS = """
MATCH (s:Study {name: 'study'})
OPTIONAL MATCH (s)-[:PROPOSED]->(p:Proposal)
WITH s, count(p) AS total, coalesce(max(p.number) + 1, 0) AS next
RETURN s.admitted IS NOT NULL AS counted, s.admitted = total AND s.next_number = next AS right
"""


def counts(archive):
    ((counted, right),) = run_query(archive.connection, COUNTS).rows
    return counted, right


@pytest.mark.every_server
def test_counts_are_kept_and_made_again_after_a_user_s_query(archive):
    archive.studies.create(study(budget=6))
    agent = archive.proposals.register_agent("random", {}, "1")
    networks = cells(9)
    archive.proposals.create("study", agent, suggest(networks[:2]))
    assert counts(archive) == (True, True)
    # Nothing is added, and the counts stay.
    assert archive.proposals.create("study", agent, suggest(networks[:2])) == []
    assert counts(archive) == (True, True)
    run_query(archive.connection, BY_HAND, {"key": "0" * 32}, write=True)
    assert counts(archive) == (False, None)
    added = archive.proposals.create("study", agent, suggest(networks[2:4]))
    assert [one.number for one in added] == [3, 4]
    assert counts(archive) == (True, True)
    archive.studies.set_budget("study", 7)
    assert [
        one.number for one in archive.proposals.create("study", agent, suggest(networks[4:9]))
    ] == [5, 6]
    assert counts(archive) == (True, True)


def test_failures_make_room_only_where_the_budget_is_near(archive):
    archive.studies.create(study(budget=4))
    agent = archive.proposals.register_agent("random", {}, "1")
    networks = cells(9)
    answered = [(Suggestion(network), "no value") for network in networks[:3]]
    answer(archive, "study", agent, answered, after=0)
    added = archive.proposals.create("study", agent, suggest(networks[3:9]))
    assert [one.number for one in added] == [3, 4, 5, 6]
    assert archive.proposals.create("study", agent, suggest(networks[7:9])) == []


@pytest.mark.every_server
def test_searches_at_once_neither_exceed_the_budget_nor_repeat(archive):
    archive.studies.create(study(budget=20))
    agent = archive.proposals.register_agent("random", {}, "1")
    networks = cells(40)

    def search(number):
        mine = networks[number::4] if number % 2 else networks[number * 2 :: 3]
        for at in range(0, len(mine), 3):
            archive.proposals.create("study", agent, suggest(mine[at : at + 3]))

    everywhere(search, 4)
    stored = archive.proposals.list("study")
    assert [one.number for one in stored] == list(range(20))
    assert len({one.functional_key for one in stored}) == 20
    assert counts(archive) == (True, True)
    claim = archive.proposals.claim("w", study="study")
    assert archive.proposals.complete(claim.id, claim.token, Result(0.5))


def test_repeats_are_admitted_with_a_seed_of_their_own(archive):
    archive.studies.create(study(budget=6))
    agent = archive.proposals.register_agent("random", {}, "1")
    (network,) = cells(1)
    again = Suggested(network, repeat=True)
    first = archive.proposals.create("study", agent, [Suggested(network)])
    repeated = archive.proposals.create("study", agent, [again, Suggested(network), again])
    assert [one.number for one in repeated] == [1, 2]
    assert [one.repeat for one in (*first, *repeated)] == [False, True, True]
    claims = archive.proposals.claim_many("worker", 3, study="study")
    assert len({claim.seed for claim in claims}) == 3
    assert claims[0].seed == claims[0].study.seed
