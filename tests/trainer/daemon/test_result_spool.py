"""Ends of trials on their way: kept until they have arrived, whatever the archive or the disk does."""

from __future__ import annotations

import os
import time

import pytest

from archive.queue.updates import Completion, Failure, Release
from archive.store.records import Checkpoint, Result
from archive.trainer.daemon import result_spool as outbox_module
from archive.trainer.daemon.result_spool import Outbox

RESULT = Result(
    0.9,
    {"test_accuracy": 0.8},
    {"epoch": [1.0, 2.0], "valid_loss": [0.5, float("nan")]},
    epochs=2,
    seconds=1.5,
    seed=7,
    device="cpu",
    environment={"threads": 2},
    checkpoint=Checkpoint("file:///a", "ab", 3),
)
ENDINGS = [
    Completion("s#00001", "token", RESULT, architecture="key"),
    Completion("s#00002", "token", Result(0.5), pruned=True),
    Failure("s#00003", "token", "out of memory", retry=True, log="last words"),
    Completion("s#00004", "token", Result(0.5, partial=True), pruned=True, rung=1),
    Release("s#00005", "token"),
]


@pytest.fixture
def outbox(tmp_path):
    return Outbox(tmp_path / "outbox", "embedded")


def files(outbox):
    return sorted(path.suffix for path in outbox.folder.iterdir())


def test_another_daemon_finds_all_that_was_left(outbox):
    for ending in ENDINGS:
        outbox.put(ending)
    other = Outbox(outbox.folder, "embedded")
    assert len(other) == 0
    assert other.adopt() == len(ENDINGS)
    # As text, for a nan is not equal to itself.
    assert sorted(map(str, other.waiting)) == sorted(map(str, ENDINGS))
    assert other.adopt() == 0


def test_what_has_arrived_is_forgotten(outbox):
    for ending in ENDINGS:
        outbox.put(ending)
    outbox.forget(ENDINGS[0])
    assert outbox.waiting == ENDINGS[1:]
    assert len(files(outbox)) == len(outbox) == len(ENDINGS) - 1
    outbox.forget(ENDINGS[0])
    assert len(outbox) == len(ENDINGS) - 1


def test_two_attempts_at_one_proposal_do_not_replace_each_other(outbox):
    outbox.put(Completion("s#1", "first", RESULT))
    outbox.put(Failure("s#1", "second", "NaN"))
    assert len(files(outbox)) == 2
    assert Outbox(outbox.folder, "embedded").adopt() == 2


def test_putting_it_again_writes_nothing(outbox):
    outbox.put(ENDINGS[0])
    (path,) = outbox.folder.iterdir()
    before = path.stat().st_ino
    outbox.put(ENDINGS[0])
    assert path.stat().st_ino == before
    assert len(outbox) == 1


def test_what_a_living_daemon_is_about_to_deliver_is_left_to_it(outbox):
    outbox.put(ENDINGS[0])
    other = Outbox(outbox.folder, "embedded")
    assert other.adopt(60) == 0
    (path,) = outbox.folder.iterdir()
    os.utime(path, (time.time() - 61,) * 2)
    assert other.adopt(60) == 1


def test_what_is_refused_is_set_aside_not_thrown_away(outbox):
    outbox.put(ENDINGS[0])
    outbox.set_aside(ENDINGS[0])
    assert files(outbox) == [".refused"]
    assert len(outbox) == 0
    assert Outbox(outbox.folder, "embedded").adopt() == 0


def test_ends_for_another_archive_are_left_alone(outbox):
    outbox.put(ENDINGS[0])
    assert Outbox(outbox.folder, "neo4j://other").adopt() == 0
    assert files(outbox) == [".json"]


def test_half_a_file_stops_nothing(outbox):
    outbox.put(ENDINGS[0])
    (outbox.folder / "0.json").write_text('{"archive": "embedded", "prop')
    assert Outbox(outbox.folder, "embedded").adopt() == 1


def test_rests_of_a_write_that_was_cut_off_go(outbox):
    outbox.put(ENDINGS[0])
    young, old = (outbox.folder / f".{name}.part" for name in ("young", "old"))
    young.touch()
    old.touch()
    os.utime(old, (time.time() - 3600,) * 2)
    outbox.adopt()
    assert young.exists() and not old.exists()


def test_a_full_disk_costs_no_result(tmp_path):
    (tmp_path / "outbox").write_text("a file where the folder should be")
    outbox = Outbox(tmp_path / "outbox", "embedded")
    outbox.put(ENDINGS[0])
    assert outbox.waiting == ENDINGS[:1]
    outbox.forget(ENDINGS[0])
    assert len(outbox) == 0


def test_what_a_full_disk_did_not_take_is_written_once_there_is_space(tmp_path, monkeypatch, caplog):
    full = tmp_path / "outbox"
    full.write_text("a file where the folder should be")
    kept = Outbox(full, "embedded")
    first = (ENDINGS[0].id, ENDINGS[0].token)
    for _ in range(3):
        kept.put(ENDINGS[0])
    assert not kept.is_safe(*first)
    monkeypatch.setattr(outbox_module, "RETRY_SECONDS", 0.0)
    kept._unwritten.update(dict.fromkeys(kept._unwritten, 0.0))
    for _ in range(3):
        kept.put(ENDINGS[0])
    assert caplog.text.count("result not on disk") == 1
    full.unlink()
    kept.put(ENDINGS[0])
    assert kept.is_safe(*first)
    assert Outbox(full, "embedded").adopt() == 1


def test_an_ending_is_safe_on_the_disk_or_delivered(outbox):
    first = (ENDINGS[0].id, ENDINGS[0].token)
    outbox.put(ENDINGS[0])
    assert outbox.is_safe(*first)
    outbox.forget(ENDINGS[0])
    assert outbox.is_safe(*first)
    outbox.folder.rmdir()
    outbox.folder.write_text("a file where the folder should be")
    outbox.put(ENDINGS[0])
    assert not outbox.is_safe(*first)
    outbox.forget(ENDINGS[0])
    assert outbox.is_safe(*first)
