"""Deletion of expired history, on each server: nothing else is deleted."""

from __future__ import annotations

import os
import time

import pytest

from archive.errors import UsageError
from archive.queue import event_log, workers
from archive.store.records import Result, State
from archive.trainer.storage import checkpoints, file_names, garbage_collection, remote_files
from tests.support.commands import shell
from tests.support.stores import cells, propose

LONG = 600.0
DAY = 86_400.0


@pytest.fixture
def past(archive, connection):
    """Moves everything that the archive knows a hundred days into the past."""

    def move():
        milliseconds = round(100 * DAY * 1000)
        connection.write(
            lambda tx: tx.run(
                "MATCH (w:Worker) SET w.heartbeat = w.heartbeat - $by", by=milliseconds
            ).consume()
        )
        connection.write(
            lambda tx: tx.run(
                "MATCH (p:Proposal) WHERE p.finished IS NOT NULL SET p.finished = p.finished - $by",
                by=milliseconds,
            ).consume()
        )

    return move


def write(path, age=0.0):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("epoch 1\n")
    os.utime(path, (time.time() - age, time.time() - age))
    return path


def test_expired_workers_and_files_are_cleared(archive, past, tmp_path):
    propose(archive, cells(4))
    old = archive.proposals.claim("gone", study="study", lease_seconds=LONG)
    archive.proposals.complete(old.id, old.token, Result(0.5))
    held = archive.proposals.claim("silent", study="study", lease_seconds=LONG)
    lost = archive.proposals.claim("unlucky", study="study", lease_seconds=LONG)
    archive.proposals.fail(lost.id, lost.token, "killed", retry=True)
    archive.proposals.register_worker("idle")
    past()
    archive.proposals.register_worker("here")
    fresh = archive.proposals.claim("here", study="study", lease_seconds=LONG)
    archive.proposals.complete(fresh.id, fresh.token, Result(0.7))
    (waiting,) = [one.id for one in archive.proposals.list("study", [State.WAITING])]

    written = {
        id_: [
            write(file_names.trial_log_path(tmp_path, id_), 100 * DAY),
            write(checkpoints.path_of(tmp_path / "checkpoints", id_), 100 * DAY),
        ]
        for id_ in (old.id, held.id, fresh.id, waiting)
    }
    foreign = write(tmp_path / "logs" / "notes-of-mine.log", 100 * DAY)
    trainers = file_names.trainer_logs(tmp_path)
    rotated = write(trainers / "study-0.log.1", 100 * DAY)
    young = write(trainers / "study-0.log")
    printed = write(file_names.observer_logs(tmp_path) / "mlflow-7.log", 100 * DAY)
    expected = {str(path): 8 for path in (*written[old.id], rotated, printed)}

    def known():
        return {worker.id for worker in workers.statuses(archive.connection, recent_seconds=1e9)}

    before = known()
    # Two of them have claimed what is still open, or may be tried again.
    gone = sorted({"gone", "idle"} | ({"unlucky"} if lost.id == fresh.id else set()))
    told = garbage_collection.clear(archive, tmp_path, 90 * DAY, dry_run=True)
    assert (told.workers, told.files) == (gone, expected)
    assert known() == before and all(path.exists() for paths in written.values() for path in paths)
    done = garbage_collection.clear(archive, tmp_path, 90 * DAY)
    assert (done.workers, done.files, done.freed) == (gone, expected, 32)
    assert known() == before - set(gone)
    assert foreign.exists() and young.exists() and not rotated.exists()
    assert {id_ for id_, paths in written.items() if all(path.exists() for path in paths)} == set(
        written
    ) - {old.id}
    # Who finished it is still told, from the proposal itself.
    entries = event_log.read(archive.connection, "study", old.id)
    assert [(entry.event, entry.who) for entry in entries if entry.event != "proposed"] == [
        ("complete", "gone")
    ]
    assert (
        garbage_collection.clear(archive, tmp_path, 90 * DAY) == garbage_collection.ClearedHistory()
    )


def test_recently_written_log_stays(archive, past, tmp_path):
    propose(archive, cells(1))
    held = archive.proposals.claim("w", study="study", lease_seconds=LONG)
    archive.proposals.complete(held.id, held.token, Result(0.5))
    past()
    log = write(file_names.trial_log_path(tmp_path, held.id), age=10 * DAY)
    assert garbage_collection.clear(archive, tmp_path, 90 * DAY).files == {}
    assert garbage_collection.clear(archive, tmp_path, 5 * DAY).files == {str(log): 8}


def test_checkpoints_behind_a_url_are_cleared(archive, past, tmp_path):
    propose(archive, cells(2))
    held = archive.proposals.claim("w", study="study", lease_seconds=LONG)
    archive.proposals.complete(held.id, held.token, Result(0.5))
    past()
    shared = f"memory://{tmp_path}/checkpoints"
    for id_ in (proposal.id for proposal in archive.proposals.list("study")):
        checkpoints.write(checkpoints.path_of(shared, id_), b"state")

    assert garbage_collection.clear(archive, tmp_path, 90 * DAY, checkpoints_at=shared).files == {}
    cleared = garbage_collection.clear(archive, tmp_path, 0.0, checkpoints_at=shared)
    assert cleared.files == {checkpoints.path_of(shared, held.id): 5}
    assert len(list(remote_files.listed(shared))) == 1


def test_negative_age_is_refused(archive, tmp_path):
    with pytest.raises(UsageError, match="got -1 s"):
        garbage_collection.clear(archive, tmp_path, -1.0)


def test_history_is_given_in_days(archive, past, store_settings, tmp_path):
    workers.arrive(archive.connection, "gone", host="h")
    past()
    with shell(store_settings, tmp_path) as user:
        for age in ("120", "120d", "18w"):
            assert "worker" not in user.types("db", "gc", "--history", age).stdout

        assert (
            user.types("db", "gc", "--dry-run", "--history", "90 seconds", code=2).stderr.count(
                "counts days"
            )
            == 1
        )
        told = user.types("db", "gc", "--dry-run")
        assert (told.stdout, "0.0 MiB, 1 workers" in told.stderr) == (
            "would remove worker gone\n",
            True,
        )
        assert "removed worker gone" in user.types("db", "gc").stdout

    assert workers.statuses(archive.connection, recent_seconds=1e9) == []
