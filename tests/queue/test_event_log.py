"""Events of a study's proposals, on each server."""

import pytest

from archive.errors import UnknownNameError
from archive.queue import event_log
from archive.store.records import Result
from tests.support import wait_until
from tests.support.stores import answer, cells, propose, study, suggest

LONG = 600.0


@pytest.fixture
def read(archive):
    return lambda proposal=None: event_log.read(archive.connection, "study", proposal)


def told(entries):
    return [(entry.number, entry.event, entry.who) for entry in entries]


def claim(archive, worker, seconds=LONG):
    return archive.proposals.claim(worker, study="study", lease_seconds=seconds)


def test_a_life_from_suggestion_to_value(archive, read):
    archive.studies.create(study())
    agent = archive.proposals.register_agent("random", {}, "1")
    basis = {"observations": {"study": "0-19"}, "pending": "", "failed": "", "wanted": 1}
    archive.proposals.create(
        "study",
        agent,
        suggest(cells(1), acquisition=0.25, hyperparameters={"dropout": 0.5}),
        basis=basis,
    )
    held = claim(archive, "w")
    result = Result(0.9, {"accuracy": 0.9}, {"loss": [2.0, 1.0]}, seconds=12.0, device="cpu")
    archive.proposals.complete(held.id, held.token, result)
    entries = read()
    assert told(entries) == [(0, "proposed", agent), (0, "claimed", "w"), (0, "complete", "w")]
    proposed, claimed, complete = (entry.details for entry in entries)
    assert proposed["architecture"] == held.architecture.key
    assert (proposed["acquisition"], proposed["hyperparameters"]) == (0.25, {"dropout": 0.5})
    assert proposed["based_on"] == basis
    assert "mean" not in proposed
    assert claimed == {"attempt": 1}
    assert complete == {"value": 0.9, "epochs": 2, "seconds": 12.0, "device": "cpu"}
    assert [entry.at for entry in entries] == sorted(entry.at for entry in entries)


def test_every_attempt_keeps_its_reason_and_its_log(archive, read):
    propose(archive, cells(1))
    for attempt, worker in enumerate(("w", "v", "u")):
        held = claim(archive, worker)
        archive.proposals.fail(
            held.id, held.token, f"crash {attempt}", retry=True, log=f"line\nof {worker}"
        )

    entries = [entry for entry in read() if entry.event == "failed"]
    assert [(entry.who, entry.log) for entry in entries] == [
        (who, f"line\nof {who}") for who in "wvu"
    ]
    assert [entry.details["reason"] for entry in entries] == [
        "crash 0",
        "crash 1",
        "crash 2; given up after 3 attempts",
    ]
    assert [entry.details["attempt"] for entry in entries] == [1, 2, 3]
    assert [entry.event for entry in read()] == ["proposed", *["claimed", "failed"] * 3]


def test_only_the_end_of_a_long_log_is_kept(archive, read):
    propose(archive, cells(1))
    held = claim(archive, "w")
    archive.proposals.fail(
        held.id, held.token, "NaN", log="".join(f"line {number}\n" for number in range(5000))
    )
    kept = read()[-1].log
    assert kept.endswith("line 4999\n")
    assert len(kept) <= 4000


def test_an_expired_lease_names_its_worker(archive, read):
    propose(archive, cells(1))
    claim(archive, "w", 0.002)
    wait_until(lambda: archive.proposals.expire("study"))
    held = claim(archive, "v")
    archive.proposals.release(held.id, held.token)
    assert told(read())[1:] == [
        (0, "claimed", "w"),
        (0, "lost", "w"),
        (0, "claimed", "v"),
        (0, "returned", "v"),
    ]
    assert "without a report from worker w" in read()[2].details["reason"]
    assert read()[4].details == {"attempt": 2}
    claim(archive, "u")
    # A returned claim is no attempt, as in the store.
    assert read()[5].details["attempt"] == 2 == archive.proposals.get(held.id).attempts + 1


def test_a_proposal_that_was_lost_too_often_ends_with_its_failure(archive, read):
    propose(archive, cells(1))
    for worker in "wvu":
        claim(archive, worker, 0.002)
        wait_until(lambda: archive.proposals.expire("study"))

    assert [entry.event for entry in read()] == ["proposed", *["claimed", "lost"] * 3, "failed"]
    assert "given up after 3 attempts" in read()[-1].details["reason"]
    assert read()[-1].at >= read()[-2].at


def test_a_proposal_that_a_user_has_failed_with_a_query_ends_at_an_unknown_time(archive, read):
    propose(archive, cells(1))
    held = claim(archive, "w")
    archive.proposals.release(held.proposal.id, held.token)
    archive.query("MATCH (p:Proposal) SET p.state = 'FAILED', p.reason = 'by hand'", write=True)
    last = read()[-1]
    assert (last.event, last.at, last.details) == ("failed", None, {"reason": "by hand"})


def test_a_result_names_its_worker(archive, read):
    propose(archive, cells(1))
    late = claim(archive, "late", 0.002)
    wait_until(lambda: archive.proposals.expire("study"))
    claim(archive, "other")
    archive.proposals.complete(late.id, late.token, Result(0.5))
    assert told(read())[-1] == (0, "complete", "late")


def test_what_was_answered_without_a_worker_has_no_claim(archive, read):
    archive.studies.create(study())
    agent = archive.proposals.register_agent("random", {}, "1")
    first, second = suggest(cells(2))
    answer(archive, "study", agent, [(first, Result(0.5)), (second, "no such row")], after=0)
    assert sorted(told(read())) == [
        (0, "complete", None),
        (0, "proposed", agent),
        (1, "failed", None),
        (1, "proposed", agent),
    ]
    (failed,) = (entry for entry in read() if entry.event == "failed")
    assert failed.details == {"reason": "no such row"}


def test_one_proposal_alone(archive, read):
    proposals = propose(archive, cells(3))
    held = claim(archive, "w")
    assert {entry.proposal for entry in read(proposals[1].id)} == {proposals[1].id}
    assert len(read()) == 4
    assert [entry.event for entry in read(held.id)] == ["proposed", "claimed"]


def test_unknown_names(archive, read):
    with pytest.raises(UnknownNameError, match="unknown study 'study'"):
        read()

    propose(archive, cells(1))
    with pytest.raises(UnknownNameError, match="unknown proposal 'study#00009'"):
        read("study#00009")


def test_a_study_in_which_nothing_happened_yet(archive, read):
    archive.studies.create(study())
    assert read() == []


def test_a_follower_reads_only_what_has_changed(archive, monkeypatch):
    propose(archive, cells(3), budget=3)
    monkeypatch.setattr(event_log, "OVERLAP", 0)
    follower = event_log.EventFollower(archive.connection, "study")
    assert [entry.event for entry in follower.look()] == ["proposed"] * 3
    held = claim(archive, "w")
    told = wait_until(follower.look)
    assert [(entry.number, entry.event) for entry in told] == [(0, "claimed")]
    asked = []
    entries = event_log._entries
    monkeypatch.setattr(
        event_log, "_entries", lambda *given: asked.append(entries(*given)) or asked[-1]
    )
    wait_until(lambda: not follower.look() and not asked[-1], what="a look at which nothing is new")
    archive.proposals.complete(held.id, held.token, Result(0.5))
    told = wait_until(follower.look)
    assert [(entry.number, entry.event) for entry in told] == [(0, "complete")]
    # It has read only the changed proposal.
    assert {entry.number for entry in asked[-1]} == {0}
    assert not follower.done
    for value in (0.6, 0.7):
        held = claim(archive, "w")
        archive.proposals.complete(held.id, held.token, Result(value))

    wait_until(lambda: follower.look() is not None and follower.done)


@pytest.mark.every_server
def test_following_an_unknown_study(archive):
    archive.studies.create(study())
    with pytest.raises(UnknownNameError, match="studi"):
        event_log.EventFollower(archive.connection, "studi").look()

    with pytest.raises(UnknownNameError, match="study#00007"):
        event_log.EventFollower(archive.connection, "study", "study#00007").look()

    assert event_log.EventFollower(archive.connection, "study").look() == []
