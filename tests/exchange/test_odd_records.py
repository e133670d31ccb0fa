"""Records that a dump once refused: results whose rungs report different quantities, and bounds
that are whole."""

from __future__ import annotations

import math

import pytest

from archive import frames
from archive.constraints import Constraint
from archive.database.user_query import run_query
from archive.errors import UsageError
from archive.exchange.load import load
from archive.queue.updates import Completion
from archive.rungs import Rungs
from archive.store.records import Result
from tests.conftest import wipe
from tests.support.dumped import dumped, fill
from tests.support.stores import cells, propose, study

RUNGS = Rungs((2, 6), 3)
CLOCK = "clock"
"""A quantity that only the first rung reports."""


def train(archive, *further):
    """Claim the next proposal, and report its result at its rung with these further quantities."""
    held = archive.proposals.claim("w", study="study", lease_seconds=600)
    rung = held.proposal.rung
    epochs = RUNGS.epochs[held.proposal.rung]
    names = ("accuracy", *further)
    value = 0.5 + 0.1 * rung + 0.01 * held.proposal.number
    result = Result(
        value, dict.fromkeys(names, value), dict.fromkeys(names, [value] * epochs), epochs=epochs
    )
    assert archive.proposals.settle([Completion(held.id, held.token, result, rung == 0, rung)]) == [
        True
    ]
    return held


@pytest.fixture
def promoted(archive):
    """The id of a proposal whose first rung has reported a further quantity, and that waits for the
    second one."""
    propose(archive, cells(3), config={"rungs": RUNGS.as_config()})
    for _ in range(3):
        train(archive, CLOCK)

    return "study#00002"


def test_the_result_of_a_later_rung_replaces_the_earlier_one(
    archive, connection, promoted, tmp_path
):
    run_query(
        connection, f"MATCH (e:Evaluation {{id: '{promoted}'}}) SET e.note = 'mine'", write=True
    )
    assert train(archive).id == promoted
    after = archive.studies.evaluation(promoted)
    assert (after.metrics.keys(), after.curve.keys()) == ({"accuracy"}, {"epoch", "accuracy"})
    assert archive.studies.evaluation("study#00001").metrics.keys() == {"accuracy", CLOCK}
    assert len(frames.curves(archive, "study").loc[promoted]) == 6
    ((note,),) = run_query(
        connection, f"MATCH (e:Evaluation {{id: '{promoted}'}}) RETURN e.note"
    ).rows
    assert note == "mine"
    file = tmp_path / "dump"
    first = dumped(archive, file)
    wipe(connection)
    load(connection, file)
    assert dumped(archive, file) == first


@pytest.mark.parametrize("order", [("older", "newer"), ("newer", "older")])
def test_a_load_replaces_a_partial_result_as_a_whole(
    archive, connection, promoted, tmp_path, order
):
    dumped(archive, tmp_path / "older")
    train(archive)
    newest = dumped(archive, tmp_path / "newer")
    wipe(connection)
    for name in order:
        load(connection, tmp_path / name)

    assert dumped(archive, tmp_path / "both") == newest


def test_a_refused_record_is_named(archive, connection, tmp_path):
    fill(archive)
    for label, id_, kind in (
        ("Evaluation", "one#00001", "evaluation"),
        ("Worker", "worker-one", "worker"),
    ):
        name = "curve_odd" if kind == "evaluation" else "heartbeat"
        run_query(
            connection,
            f"MATCH (n:{label} {{id: '{id_}'}}) SET n.kept = n.{name}, n.{name} = [0.5]",
            write=True,
        )
        with pytest.raises(
            UsageError,
            match=rf"a dump cannot hold the {kind} {id_} of this "
            rf"archive: {kind} has",
        ):
            dumped(archive, tmp_path / "dump")

        run_query(
            connection,
            f"MATCH (n:{label} {{id: '{id_}'}}) SET n.{name} = n.kept, n.kept = null",
            write=True,
        )

    dumped(archive, tmp_path / "dump")


def test_a_curve_whose_lists_differ_in_length_is_padded_in_a_frame(archive, connection):
    fill(archive)
    run_query(
        connection, "MATCH (e:Evaluation {id: 'one#00001'}) SET e.curve_odd = [0.5]", write=True
    )
    odd = frames.curves(archive, "one").loc["one#00001", "odd"].tolist()
    assert odd[0] == 0.5 and math.isnan(odd[1])


def test_a_whole_bound_is_dumped(archive, connection, tmp_path):
    archive.studies.create(
        study(constraints=(Constraint("params", "<=", 300000), Constraint("loss", "<", 0.5)))
    )
    assert [type(each.bound) for each in archive.studies.get("study").constraints] == [float, float]
    file = tmp_path / "dump"
    first = dumped(archive, file)
    wipe(connection)
    load(connection, file)
    assert dumped(archive, file) == first


def test_whole_bounds_of_an_earlier_release_are_dumped(archive, connection, tmp_path):
    archive.studies.create(study(constraints=(Constraint("params", "<=", 300000.0),)))
    run_query(connection, "MATCH (s:Study {name: 'study'}) SET s.bounds = [300000]", write=True)
    file = tmp_path / "dump"
    first = dumped(archive, file)
    wipe(connection)
    load(connection, file)
    assert archive.studies.get("study").constraints == (Constraint("params", "<=", 300000.0),)
    assert dumped(archive, file) == first
