"""Promotions on each server: decided once, in the transaction that stores a result."""

from __future__ import annotations

import random

import pytest

from archive.api import Archive
from archive.database.user_query import run_query
from archive.errors import LeaseLostError
from archive.exchange import dump, load
from archive.queue import event_log
from archive.queue.proposals import Proposals
from archive.queue.updates import Completion
from archive.rungs import Rungs
from archive.store.architectures import Architectures
from archive.store.records import Result, State, Weights
from tests.conftest import wipe
from tests.support import WHOLE
from tests.support.stores import STRAYS, Forgetful, cells, count, everywhere, propose

LONG = 600.0
RUNGS = Rungs((2, 6, 18), 3)


def result(value, epochs, **settings):
    curve = {"valid_accuracy": [value - 0.01 * (epochs - 1 - at) for at in range(epochs)]}
    return Result(value, {"valid_accuracy": value}, curve, epochs=epochs, **settings)


@pytest.fixture
def race(archive):
    """Returns a function that proposes this many networks in a study with rungs."""
    return lambda n: propose(
        archive, cells(n), config={"rungs": RUNGS.as_config()}, objective="valid_accuracy"
    )


def claim(archive, worker="w"):
    return archive.proposals.claim(worker, study="study", lease_seconds=LONG)


def ends(archive, held, value, *, early=False):
    """Report the result of a claim at its rung; an `early` training has stopped by the protocol's
    rule."""
    rung = held.proposal.rung
    paused = rung < 2 and not early
    told = Completion(held.id, held.token, result(value, RUNGS.epochs[rung]), paused, rung)
    assert archive.proposals.settle([told]) == [True]
    return told


def standing(archive):
    return [(one.state, one.rung) for one in archive.proposals.list("study")]


def values(archive):
    return [one.value for one in archive.studies.evaluations("study")]


@pytest.mark.every_server
def test_the_best_third_is_promoted_before_new_ones_and_up_to_the_top(archive, race):
    race(10)
    for value in (0.5, 0.9, 0.7):
        ends(archive, claim(archive), value)

    assert standing(archive)[:3] == [(State.PRUNED, 0), (State.WAITING, 1), (State.PRUNED, 0)]
    promoted = claim(archive)
    assert (promoted.proposal.number, promoted.proposal.rung, promoted.proposal.attempts) == (
        1,
        1,
        0,
    )
    assert count(archive.connection, STRAYS) == 0
    (seen,) = [one for one in archive.studies.evaluations("study") if one.number == 1]
    assert (seen.value, seen.epochs, seen.partial) == (0.9, 2, True)
    ends(archive, promoted, 0.92)
    for value in (0.1, 0.8, 0.2):
        ends(archive, claim(archive), value)

    ends(archive, claim(archive), 0.85)  # number 4
    for value in (0.6, 0.65, 0.99):
        ends(archive, claim(archive), value)

    top = claim(archive)
    assert (top.proposal.number, top.proposal.rung) == (8, 1)
    ends(archive, top, 0.91)
    final = claim(archive)
    assert (final.proposal.number, final.proposal.rung) == (1, 2)
    ends(archive, final, 0.95)
    whole = {one.number: one for one in archive.studies.evaluations("study")}
    assert [number for number, one in whole.items() if not one.partial] == [1]
    assert (whole[1].value, whole[1].epochs, len(whole[1].curve["valid_accuracy"])) == (
        0.95,
        18,
        18,
    )
    assert {number: one.epochs for number, one in whole.items()} == {
        n: {1: 18, 4: 6, 8: 6}.get(n, 2) for n in range(9)
    }
    snapshot = archive.studies.snapshot("study")
    # 0.99 after two epochs is no better than 0.95 of the whole.
    assert (snapshot.incumbent.number, snapshot.incumbent.rung) == (1, 2)
    assert archive.studies.list()[0].best == 0.95
    assert (
        count(archive.connection, "(:Evaluation)")
        == count(archive.connection, "(:Proposal)-[:RESULTED_IN]->()")
        == 9
    )


def test_a_training_that_ends_by_itself_is_whole(archive, race):
    race(4)
    for value in (0.5, 0.4):
        ends(archive, claim(archive), value)

    ends(archive, claim(archive), 0.9, early=True)
    # It is the best third, and at the top rung.
    assert standing(archive) == [
        (State.PRUNED, 0),
        (State.PRUNED, 0),
        (State.COMPLETE, 2),
        (State.WAITING, 0),
    ]


def test_the_same_result_again_and_a_late_one_change_nothing(archive, race, connection):
    race(3)
    late = claim(archive, "late")
    ends(archive, claim(archive), 0.5)
    ends(archive, claim(archive), 0.4)
    forgetful = Proposals(Forgetful(connection), Architectures(connection))
    first = Completion(late.id, late.token, result(0.9, 2), True, 0)
    assert forgetful.settle([first]) == [True]
    assert standing(archive)[0] == (State.WAITING, 1)
    again = claim(archive, "another")
    # It trains to the next rung, and its partial result is not shown as that rung's.
    assert archive.proposals.settle([first]) == [False]
    assert standing(archive)[0] == (State.RUNNING, 1)
    ends(archive, again, 0.95)
    assert archive.proposals.settle([first]) == [False]
    (seen,) = [one for one in archive.studies.evaluations("study") if one.number == 0]
    assert (seen.value, seen.epochs) == (0.95, 6)


def test_a_promotion_that_fails_for_good_keeps_what_was_found(archive, race):
    race(6)
    for value in (0.5, 0.9, 0.7):
        ends(archive, claim(archive), value)

    held = claim(archive)
    archive.proposals.fail(held.id, held.token, "training diverged")
    archive.proposals.fail(held.id, held.token, "training diverged")
    proposal = archive.proposals.get(held.id)
    assert (proposal.state, proposal.reason) == (State.PRUNED, "training diverged")
    assert proposal.finished is not None
    # It is not tried again, and still counts as one of the best three.
    for value in (0.6, 0.65, 0.8):
        ends(archive, claim(archive), value)

    assert [(one.number, one.rung) for one in archive.proposals.list("study", [State.WAITING])] == [
        (5, 1)
    ]
    # A late result is kept.
    archive.proposals.settle([Completion(held.id, held.token, result(0.93, 6), True, 1)])
    assert [one.value for one in archive.studies.evaluations("study") if one.number == 1] == [0.93]


def test_a_lost_promotion_waits_at_its_rung(archive, race):
    race(3)
    for value in (0.5, 0.9, 0.7):
        ends(archive, claim(archive), value)

    for attempt in range(3):
        held = claim(archive)
        assert (held.proposal.rung, held.proposal.attempts) == (1, attempt)
        archive.proposals.fail(held.id, held.token, "killed", retry=True)

    assert archive.proposals.get(held.id).state is State.PRUNED
    with pytest.raises(LeaseLostError):
        archive.proposals.report(held.id, held.token, {"loss": [1.0]})


def test_a_result_without_a_rung_is_a_whole_training(archive, race):
    race(4)
    for value in (0.5, 0.9, 0.7):
        ends(archive, claim(archive), value)

    promoted = claim(archive)
    fresh = claim(archive)
    saved = Weights("file:///w.safetensors", "0" * 64, 10)
    archive.proposals.complete(promoted.id, promoted.token, result(0.97, 18, weights=saved))
    archive.proposals.complete(fresh.id, fresh.token, result(0.2, 18))
    assert [one for one in standing(archive) if one[0] is State.COMPLETE] == [
        (State.COMPLETE, 1),
        (State.COMPLETE, 0),
    ]
    found = {one.number: (one.value, one.partial) for one in archive.studies.evaluations("study")}
    assert (found[1], found[3]) == ((0.97, False), (0.2, False))
    assert archive.weights.of_evaluation(promoted.id) == saved
    # Another trainer's result at the rung arrives too late.
    late = [
        Completion(promoted.id, "late", result(0.5, 6), True, 1),
        Completion(fresh.id, "late", result(0.9, 2), True, 0),
    ]
    assert [archive.proposals.settle([one]) for one in late] == [[False], [False]]
    assert archive.proposals.settle(late) == [False, False]
    assert found == {
        one.number: (one.value, one.partial) for one in archive.studies.evaluations("study")
    }
    assert [one for one in standing(archive) if one[0] is State.COMPLETE] == [
        (State.COMPLETE, 1),
        (State.COMPLETE, 0),
    ]


@pytest.mark.every_server
def test_workers_at_once_promote_each_once(archive, race, open_connection):
    """Workers on separate connections: no rung has more proposals than its part of the rung
    below."""
    size, best_third = (40, 13) if WHOLE else (20, 6)
    race(size)
    opened = [open_connection() for _ in range(8 if WHOLE else 4)]
    values = random.Random(1).sample(range(1000), size)

    def work(i):
        proposals = Proposals(opened[i], Architectures(opened[i]))
        trained = []
        while (held := proposals.claim(f"w{i}", study="study", lease_seconds=LONG)) is not None:
            number = held.proposal.number
            rung = held.proposal.rung
            trained.append((number, rung))
            told = Completion(
                held.id, held.token, result(values[number] + rung / 10, 2), rung < 2, rung
            )
            assert proposals.settle([told]) == [True]

        return trained

    trained = [each for found in everywhere(work, len(opened)) for each in found]
    assert len(trained) == len(set(trained))
    assert sorted(number for number, rung in trained if rung == 0) == list(range(size))
    reached = [sum(rung == at for _, rung in trained) for at in range(3)]
    # At least the best third; a few more, because an early promotion may be overtaken later.
    assert reached[0] == size and best_third <= reached[1] <= 2 * best_third
    assert reached[1] // 3 <= reached[2] <= reached[1]
    best = sorted(range(size), key=lambda number: -values[number])[:best_third]
    assert set(best) <= {number for number, rung in trained if rung == 1}
    assert not archive.proposals.list("study", [State.WAITING, State.RUNNING])
    assert count(archive.connection, "(:Evaluation)") == size


def test_the_log_tells_every_rung(archive, race):
    race(3)
    for value in (0.5, 0.9, 0.7):
        ends(archive, claim(archive), value)

    ends(archive, claim(archive), 0.92)
    told = [
        (one.event, one.details.get("rung"))
        for one in event_log.read(archive.connection, "study", "study#00001")
    ]
    assert told == [
        ("proposed", None), ("claimed", None), ("pruned", 1), ("promoted", 2), ("claimed", None), ("pruned", 2),
    ]  # fmt: skip
    last = event_log.read(archive.connection, "study", "study#00001")[-1]
    assert (last.details["value"], last.details["epochs"], last.who) == (0.92, 6, "w")


def test_a_dump_amid_the_rungs_goes_on_elsewhere(archive, race, connection, tmp_path):
    race(4)
    for value in (0.5, 0.9, 0.7):
        ends(archive, claim(archive), value)

    claim(archive)
    before = standing(archive)
    assert before[1] == (State.RUNNING, 1)
    dump.dump(connection, tmp_path / "file")
    wipe(connection)
    load.load(connection, tmp_path / "file")
    assert standing(archive) == [before[0], (State.WAITING, 1), *before[2:]]
    assert count(connection, STRAYS) == 0
    assert values(archive) == [0.5, 0.9, 0.7]
    # Another process, which knows nothing of the queue before.
    held = claim(Archive(connection))
    assert (held.proposal.number, held.proposal.rung) == (1, 1)
    ends(archive, held, 0.92)
    assert standing(archive)[1] == (State.PRUNED, 1)
    assert values(archive) == [0.5, 0.92, 0.7]


@pytest.mark.every_server
def test_a_result_that_an_earlier_release_left_out_of_its_dump_is_no_obstacle(
    archive, race, connection
):
    race(4)
    for value in (0.5, 0.9, 0.7):
        ends(archive, claim(archive), value)

    run_query(connection, "MATCH (e:Evaluation {value: 0.9}) DETACH DELETE e", write=True)
    ends(archive, claim(archive), 0.92)
    assert values(archive) == [0.5, 0.92, 0.7]


@pytest.mark.parametrize("order", [("older", "newer"), ("newer", "older")])
def test_dumps_before_and_after_a_proposal_went_on_agree(
    archive, race, connection, tmp_path, order
):
    race(4)
    for value in (0.5, 0.9):
        ends(archive, claim(archive), value)

    dump.dump(connection, tmp_path / "older")
    ends(archive, claim(archive), 0.7)
    dump.dump(connection, tmp_path / "newer")
    before = standing(archive)
    assert before[1] == (State.WAITING, 1)
    wipe(connection)
    for name in order:
        load.load(connection, tmp_path / name)

    assert (standing(archive), values(archive)) == (before, [0.5, 0.9, 0.7])
    assert not sum(load.load(connection, tmp_path / "newer")[1].values())
    held = claim(archive)
    assert (held.proposal.number, held.proposal.rung) == (1, 1)


@pytest.mark.parametrize("order", [("older", "newer"), ("newer", "older")])
def test_dumps_of_two_moments_agree_on_the_later_one(archive, race, connection, tmp_path, order):
    race(4)
    for value in (0.5, 0.9, 0.7):
        ends(archive, claim(archive), value)

    dump.dump(connection, tmp_path / "older")
    ends(archive, claim(archive), 0.92, early=True)
    dump.dump(connection, tmp_path / "newer")
    before = standing(archive)
    wipe(connection)
    for name in order:
        load.load(connection, tmp_path / name)

    assert standing(archive) == before
    assert [
        (one.value, one.partial) for one in archive.studies.evaluations("study") if one.number == 1
    ] == [(0.92, False)]
