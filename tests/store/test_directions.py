"""Directions of studies, tasks and imported results, also through dumps; ids of tasks."""

from __future__ import annotations

import pytest

from archive import frames
from archive.errors import StudyConflictError, UsageError
from archive.exchange.dump import dump
from archive.exchange.importers.external import ExternalResult, add
from archive.exchange.load import load
from archive.store.evaluations import Evaluations, TaskProtocol
from archive.store.properties import result_properties, task_id
from archive.store.records import Result
from tests.conftest import wipe
from tests.support.dumped import records
from tests.support.stores import cells, propose, study


def imported(archive, task="latency", protocol="table/1", value=2.0, **options):
    network = cells(1)[0]
    finding = ExternalResult(f"{task}/{protocol}/{network.key}", network, Result(value))
    add(archive, task, protocol, [finding], **options)


def found(archive, **which):
    return [
        (each.study, each.direction, each.score) for each in archive.studies.evaluations(**which)
    ]


def test_imported_results_have_the_direction_of_their_task(archive):
    imported(archive, direction="minimise")
    imported(archive, "accuracy", direction="maximise")
    imported(archive, "unknown")
    assert found(archive, task="latency") == [(None, "minimise", -2.0)]
    assert (
        found(archive, task="accuracy")
        == found(archive, task="unknown")
        == [(None, "maximise", 2.0)]
    )


def test_frames_tell_the_score_of_imported_results(archive):
    pytest.importorskip("pandas", reason="data frames are an extra of the package")
    imported(archive, direction="minimise")
    assert list(frames.evaluations(archive)["score"]) == [-2.0]


def test_a_study_tells_the_direction_of_its_own_results_and_the_first_that_of_the_task(archive):
    for name, direction in (("down", "minimise"), ("up", "maximise")):
        propose(archive, cells(1), name, task="latency", protocol="table/1", direction=direction)
        claim = archive.proposals.claim("w", study=name)
        archive.proposals.complete(claim.id, claim.token, Result(1.0))

    imported(archive)
    assert found(archive, task="latency") == [
        ("down", "minimise", -1.0),
        ("up", "maximise", 1.0),
        (None, "minimise", -2.0),
    ]


def test_results_of_the_other_direction_are_refused(archive):
    imported(archive, direction="minimise")
    with pytest.raises(
        UsageError,
        match=r"'latency' under the protocol 'table/1' with direction "
        r"minimise.*maximise",
    ):
        imported(archive, direction="maximise")

    imported(archive, direction="minimise")
    imported(archive, protocol="table/2", direction="maximise")
    assert [score for _, _, score in found(archive, task="latency")] == [-2.0, 2.0]


def test_a_task_without_a_direction_takes_the_first_that_is_told(archive):
    imported(archive)
    imported(archive, direction="minimise")
    imported(archive)
    assert found(archive, task="latency") == [(None, "minimise", -2.0)]


def test_a_dump_keeps_the_direction_of_imported_results(archive, connection, tmp_path):
    imported(archive, direction="minimise")
    imported(archive, "unknown")
    dump(connection, tmp_path / "one.gz")
    wipe(connection)
    for _ in range(2):
        load(connection, tmp_path / "one.gz")
        assert found(archive, task="latency") == [(None, "minimise", -2.0)]
        assert found(archive, task="unknown") == [(None, "maximise", 2.0)]

    dump(connection, tmp_path / "two.gz")
    assert records(tmp_path / "two.gz") == records(tmp_path / "one.gz")


@pytest.mark.parametrize("first", ["maximise", "minimise"])
def test_dumps_that_disagree_are_refused_in_either_order(archive, connection, tmp_path, first):
    for direction in ("maximise", "minimise"):
        wipe(connection)
        imported(archive, direction=direction, value=3.0)
        dump(connection, tmp_path / direction)

    second = "minimise" if first == "maximise" else "maximise"
    wipe(connection)
    load(connection, tmp_path / first)
    with pytest.raises(
        StudyConflictError,
        match=f"'latency'.*{first}, the file has results with direction {second}",
    ):
        load(connection, tmp_path / second)


def test_a_loaded_study_tells_its_task_the_direction(archive, connection, tmp_path):
    archive.studies.create(study("down", task="latency", protocol="table/1", direction="minimise"))
    dump(connection, tmp_path / "study.gz")
    wipe(connection)
    load(connection, tmp_path / "study.gz")
    imported(archive)
    assert found(archive, task="latency") == [(None, "minimise", -2.0)]


def test_two_tasks_never_share_a_node(archive):
    names = [
        ("a@b", "c"),
        ("a", "b@c"),
        ("a@", "b"),
        ("a", "@b"),
        ("a\\", "b"),
        ("a\\@b", "c"),
        ("a\\", "@b@c"),
    ]
    assert len({task_id(*pair) for pair in names}) == len(names)
    assert task_id("table:/data/x%y.csv#-ms", "table/1@2") == "table:/data/x%y.csv#-ms@table/1@2"
    evaluations = Evaluations(archive.connection, archive.architectures)
    archive.architectures.add(cells(1))
    for at, (task, protocol) in enumerate(names):
        evaluations.add(task, protocol, [(f"r/{at}", cells(1)[0].key, Result(float(at)))])

    for at, (task, protocol) in enumerate(names):
        stored = archive.studies.evaluations(task=task, protocol=protocol)
        assert [(each.value, each.task, each.protocol) for each in stored] == [(at, task, protocol)]


def test_results_of_several_tasks_keep_their_origin(archive):
    network = cells(1)[0]
    archive.architectures.add([network])
    evaluations = Evaluations(archive.connection, archive.architectures)
    places = [TaskProtocol("wild", f"own/{number}", "maximise") for number in range(2)]
    origin = {"model": "net.tag", "source": "zoo 1.0", "license": "MIT", "commit": "v1.0"}
    rows = []
    for number, place in enumerate(places):
        result = Result(number, {"top1": number}, provenance=origin)
        rows.append((f"r{number}", network.key, place, result))

    evaluations.add_many(places, rows)
    evaluations.add_many(places, rows)
    stored = evaluations.of_task("wild", None, None)
    assert [(e.id, e.protocol, e.value) for e in stored] == [
        ("r0", "own/0", 0.0),
        ("r1", "own/1", 1.0),
    ]
    assert all(e.provenance == origin for e in stored)
    assert evaluations.networks_of(["r1", "r2"]) == {
        "r1": {"key": network.key, "params": None, "family": None}
    }


def test_an_unknown_name_of_the_origin_is_refused():
    with pytest.raises(UsageError, match=r"provenance .* got 'author'"):
        result_properties(Result(0.5, provenance={"author": "someone"}))
