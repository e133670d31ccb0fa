"""Following a study on each server: equal to a snapshot, without reading finished proposals
again."""

from __future__ import annotations

import numpy as np
import pytest

from archive import spaces
from archive.constraints import parse
from archive.database.user_query import run_query
from archive.errors import UnknownNameError
from archive.exchange.dump import dump
from archive.exchange.load import load
from archive.queue.updates import Completion
from archive.rungs import Rungs
from archive.store import snapshot_follower, snapshots
from archive.store.records import Result, State
from archive.store.snapshot_follower import SnapshotFollower
from tests.support.stores import answer, cells, evaluate, propose, study, suggest

pytestmark = pytest.mark.every_server

BY_HAND = """
MATCH (s:Study {name: 'study'})
CREATE (s)-[:PROPOSED]->(:Proposal {id: 'study#00012', study: 'study', number: 12, state: 'WAITING', attempts: 0,
                                    architecture: $key, functional_key: $key, created: 0})
"""


def claimed(archive):
    return archive.proposals.claim("w", study="study")


def test_each_look_is_a_snapshot(archive, tmp_path):
    look = archive.studies.follow("study")
    with pytest.raises(UnknownNameError):
        look()

    archive.studies.create(study())

    def same():
        # Twice: a proposal is cached after two identical reads.
        assert look() == look() == archive.studies.snapshot("study")

    same()
    evaluate(archive, [0.5, 0.75, 0.25])
    same()
    propose(archive, cells(8)[3:])
    same()
    first, second, third = (claimed(archive) for _ in range(3))
    archive.proposals.report(first.id, first.token, {"loss": [1.0]})
    same()
    archive.proposals.complete(first.id, first.token, Result(1.0, {"accuracy": 1.0}))
    archive.proposals.fail(second.id, second.token, "out of memory")
    archive.proposals.release(third.id, third.token)
    same()
    agent = archive.proposals.register_agent("another", {}, "1")
    answered = [(one, Result(0.1 * at, {})) for at, one in enumerate(suggest(cells(12)[8:]))]
    answer(archive, "study", agent, answered, after=8)
    archive.studies.set_budget("study", 7)
    same()
    assert look().study.budget == 7
    dump(archive.connection, tmp_path / "a.jsonl.gz", studies=["study"])
    load(archive.connection, tmp_path / "a.jsonl.gz")
    same()
    run_query(archive.connection, BY_HAND, {"key": "0" * 32}, write=True)
    same()
    assert look().proposals[-1].number == 12


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def means(archive):
    """Returns what a follower sees of two complete proposals and an open one;

    `means.clock` is its clock.
    """
    evaluate(archive, [0.5, 0.75])
    propose(archive, cells(3)[2:])
    clock = Clock()
    follower = SnapshotFollower(
        archive.connection, "study", lambda: archive.studies.get("study"), clock
    )

    def read():
        return [view.mean for view in follower().proposals]

    read.clock = clock
    assert read() == read() == [None] * 3
    return read


CHANGE = "MATCH (p:Proposal) SET p.mean = 1.0"


def test_what_another_client_changed_in_complete_proposals_is_seen_in_time(archive, means):
    archive.connection.write(lambda tx: tx.run(CHANGE).consume())
    assert means() == [None, None, 1.0]
    means.clock.now += 60
    assert means() == [1.0] * 3


def test_what_a_query_changed_is_seen_at_once(archive, means):
    archive.query(CHANGE, write=True)
    assert means() == [1.0] * 3


def test_what_a_load_changed_is_seen_at_once(archive, tmp_path):
    evaluate(archive, [0.5, 0.75])
    archive.query("MATCH (e:Evaluation) SET e.seconds = 3.0", write=True)
    dump(archive.connection, tmp_path / "a.jsonl.gz", studies=["study"])
    archive.query("MATCH (e:Evaluation) REMOVE e.seconds", write=True)
    follower = SnapshotFollower(
        archive.connection, "study", lambda: archive.studies.get("study"), Clock()
    )

    def seconds():
        return [view.seconds for view in follower().proposals]

    assert seconds() == seconds() == [None, None]
    load(archive.connection, tmp_path / "a.jsonl.gz")
    assert seconds() == [3.0, 3.0]


HALF = """
MATCH (p:Proposal {id: $id})-[r:RESULTED_IN]->(e:Evaluation)
SET p.finished = timestamp()
DELETE r
"""

OLD = "MATCH (p:Proposal {id: $id}) SET p.finished = timestamp() - 61000"


def test_a_commit_that_is_seen_half_way_is_not_over(archive):
    evaluate(archive, [0.5])
    (whole,) = archive.studies.snapshot("study").proposals
    assert (whole.state, whole.value) == (State.COMPLETE, 0.5)
    run_query(archive.connection, HALF, {"id": whole.id}, write=True)
    assert archive.studies.snapshot("study").counts[State.RUNNING] == 1
    assert [
        one.number for one in archive.studies.history_of(archive.studies.get("study")).open
    ] == [0]
    # An evaluation that was deleted does not come: nobody waits for it.
    run_query(archive.connection, OLD, {"id": whole.id}, write=True)
    assert archive.studies.snapshot("study").counts[State.COMPLETE] == 1
    history = archive.studies.history_of(archive.studies.get("study"))
    assert not (history.open or history.failed or history.evaluations)


def test_the_result_of_a_rung_stays_the_best_while_it_is_promoted_and_after_it_is_given_up(archive):
    rungs = Rungs((2, 6), 2)
    limits = (parse("params<=1000000"),)
    propose(
        archive,
        cells(2),
        config={"rungs": rungs.as_config()},
        objective="valid_accuracy",
        constraints=limits,
    )
    for value, params in ((0.8, 10.0), (0.9, 2e6)):
        held = claimed(archive)
        metrics = {"valid_accuracy": value, "params": params}
        archive.proposals.settle(
            [Completion(held.id, held.token, Result(value, metrics, epochs=2), True, 0)]
        )

    def best():
        snapshot = archive.studies.snapshot("study")
        assert snapshot.nearest == snapshot.incumbent
        view = snapshot.incumbent
        return view.number, view.state, view.value, view.epochs, view.metrics, view.latest

    result = {"valid_accuracy": 0.8, "params": 10.0}
    assert best() == (0, State.WAITING, 0.8, 2, result, result)
    held = claimed(archive)
    archive.proposals.report(
        held.id, held.token, {"epoch": [1, 2, 3], "valid_accuracy": [0.1, 0.8, 0.85]}
    )
    assert best() == (0, State.RUNNING, 0.8, 3, result, {"valid_accuracy": 0.85})
    archive.proposals.fail(held.id, held.token, "the loss is NaN")
    assert best() == (0, State.PRUNED, 0.8, 2, result, result)


def test_a_look_reads_what_is_open_or_has_changed(archive, monkeypatch):
    evaluate(archive, [0.5] * 9)
    archive.query("MATCH (p:Proposal) SET p.finished = p.finished - 61000", write=True)
    propose(archive, cells(12)[9:])
    look = archive.studies.follow("study")
    read = []

    def view_of(row):
        view = snapshots.view_of(row)
        read.append(view.number)
        return view

    def read_views(*choice, **parameters):
        views = snapshots.read_views(*choice, **parameters)
        read.extend(view.number for view in views)
        return views

    monkeypatch.setattr(snapshot_follower, "view_of", view_of)
    monkeypatch.setattr(snapshot_follower, "read_views", read_views)

    def numbers():
        read.clear()
        assert look() == archive.studies.snapshot("study")
        return sorted(read)

    assert numbers() == [*range(12)]
    assert numbers() == [9, 10, 11]
    held = claimed(archive)
    archive.proposals.complete(held.id, held.token, Result(1.0, {}))
    failed = claimed(archive)
    archive.proposals.fail(failed.id, failed.token, "out of memory")
    assert numbers() == [9, 10, 11]
    assert [view.number for view in look().news] == []
    propose(archive, cells(13)[12:])
    assert numbers() == [11, 12]
    # A proposal that has ended is open again.
    archive.proposals.retry(failed.id)
    assert numbers() == [10, 11, 12]
    assert look(whole=True).whole


def test_a_view_has_the_functional_key_of_its_network(archive):
    network = spaces.get("nasbench201").sample(np.random.default_rng(0))
    assert network.functional_key != network.key
    propose(archive, [network])
    (view,) = archive.studies.snapshot("study").proposals
    assert (view.architecture_key, view.functional_key) == (network.key, network.functional_key)
