"""The property `open`: waiting and running proposals have it, no others."""

from __future__ import annotations

import pytest

from archive.queue import claimer
from archive.queue.proposals import Proposals
from archive.queue.updates import Completion, Report
from archive.store.architectures import Architectures
from archive.store.records import Result, State
from tests.support import wait_until
from tests.support.stores import STRAYS, Suggestion, answer, cells, count, propose

pytestmark = pytest.mark.every_server

LONG = 600.0


def test_only_open_proposals_have_the_property(archive, connection):
    def no_strays() -> None:
        assert count(connection, STRAYS) == 0

    propose(archive, cells(9))
    no_strays()
    a, b, c, d, e, f, g, _ = archive.proposals.claim_many("w", 8, study="study", lease_seconds=LONG)
    no_strays()
    archive.proposals.release(a.id, a.token)
    archive.proposals.fail(b.id, b.token, "once more", retry=True)
    archive.proposals.fail(c.id, c.token, "no")
    archive.proposals.complete(d.id, d.token, Result(0.5), pruned=True)
    no_strays()
    archive.proposals.settle([Completion(one.id, one.token, Result(0.5)) for one in (e, f)])
    archive.proposals.settle([Report(g.id, g.token), Completion(a.id, a.token, Result(0.5))])
    no_strays()
    assert count(connection, "(p:Proposal {open: 'study'})") == 4
    # A late result of a failed proposal, and the return of a proposal whose worker is lost.
    archive.proposals.complete(c.id, c.token, Result(0.25))
    no_strays()
    lost = Proposals(connection, Architectures(connection)).claim(
        "lost", study="study", lease_seconds=0.001
    )
    wait_until(lambda: archive.proposals.expire("study"))
    assert archive.proposals.get(lost.id).state is State.WAITING
    no_strays()
    agent = archive.proposals.register_agent("table", {}, "1")
    more = [
        (Suggestion(cell), outcome)
        for cell, outcome in zip(cells(11)[9:], (Result(1.0), "none"), strict=True)
    ]
    assert len(answer(archive, "study", agent, more, after=9)) == 2
    no_strays()


@pytest.mark.parametrize("whole", [False, True])
def test_a_proposal_that_another_program_puts_back_is_found(archive, whole, monkeypatch):
    monkeypatch.setattr(claimer, "UNMARKED_SECONDS", 1.0)
    propose(archive, cells(2))
    first, second = archive.proposals.claim_many("w", 2, study="study", lease_seconds=LONG)
    archive.proposals.settle(
        [Completion(one.id, one.token, Result(0.5)) for one in (first, second)]
    )

    def claim():
        return archive.proposals.claim_many("w", 9, study="study", lease_seconds=LONG, whole=whole)

    assert claim() == []
    archive.query("MATCH (p:Proposal {number: 1}) SET p.state = 'WAITING'", write=True)
    (found,) = wait_until(claim)
    assert found.id == second.id
