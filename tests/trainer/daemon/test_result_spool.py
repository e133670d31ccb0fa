"""The result spool: notices outlive outages, kills and full disks, and are delivered once."""

from __future__ import annotations

import os
import platform
import time

import psutil
import pytest

from archive.queue.causes import Cause, MemoryNeed
from archive.queue.updates import Completion, Failure, Release
from archive.store.records import Result, Weights
from archive.trainer.daemon import result_spool
from archive.trainer.daemon.result_spool import ResultSpool, SpoolOwner

RESULT = Result(
    0.9,
    {"test_accuracy": 0.8},
    {"epoch": [1.0, 2.0], "valid_loss": [0.5, float("nan")]},
    epochs=2,
    seconds=1.5,
    seed=7,
    device="cpu",
    environment={"threads": 2},
    weights=Weights("file:///a", "ab", 3),
)
NOTICES = [
    Completion("s#00001", "token", RESULT, architecture="key"),
    Completion("s#00002", "token", Result(0.5), pruned=True),
    Failure("s#00003", "token", "out of memory", retry=True, log="last words"),
    Completion("s#00004", "token", Result(0.5, partial=True), pruned=True, rung=1),
    Release("s#00005", "token"),
    Release("s#00006", "token", "no driver", Cause.DEVICE, "last words"),
    Failure(
        "s#00007",
        "token",
        "out of memory",
        cause=Cause.OUT_OF_MEMORY,
        memory=MemoryNeed(3, 4, alone=True),
    ),
]


@pytest.fixture
def spool(tmp_path):
    return ResultSpool(tmp_path / "outbox", "embedded")


def files(spool):
    return sorted(path.suffix for path in spool.folder.iterdir())


def test_another_daemon_adopts_all_notices(spool):
    for notice in NOTICES:
        spool.put(notice)

    other = ResultSpool(spool.folder, "embedded")
    assert len(other) == 0
    assert other.adopt() == len(NOTICES)
    # As text, for a nan is not equal to itself.
    assert sorted(map(str, other.waiting)) == sorted(map(str, NOTICES))
    assert other.adopt() == 0


HERE, ELSEWHERE = (result_spool.host_digest(name) for name in (platform.node(), "another machine"))


@pytest.mark.parametrize(
    ("owner", "age", "adopted"),
    [
        (SpoolOwner(HERE, 2**22 + 1, 1), 0.0, True),
        (
            SpoolOwner(HERE, os.getppid(), int(psutil.Process(os.getppid()).create_time())),
            9e9,
            False,
        ),
        (SpoolOwner(ELSEWHERE, 1, 1), 0.0, False),
        (SpoolOwner(ELSEWHERE, 1, 1), result_spool.SILENT_SECONDS + 1, True),
    ],
)
def test_files_of_another_daemon_are_adopted_when_it_is_gone(tmp_path, owner, age, adopted):
    ResultSpool(tmp_path, "embedded", owner).put(NOTICES[0])
    (path,) = tmp_path.iterdir()
    os.utime(path, (time.time() - age,) * 2)
    assert ResultSpool(tmp_path, "embedded").adopt() == adopted


def test_a_daemon_that_waits_for_the_archive_keeps_its_files(tmp_path, monkeypatch):
    spool = ResultSpool(tmp_path, "embedded", SpoolOwner(ELSEWHERE, 1, 1))
    spool.put(NOTICES[0])
    (path,) = tmp_path.iterdir()
    os.utime(path, (time.time() - 2 * result_spool.SILENT_SECONDS,) * 2)
    # Each attempt to deliver puts the notice again.
    spool._refresh_at = 0.0
    spool.put(NOTICES[0])
    assert ResultSpool(tmp_path, "embedded").adopt() == 0


def test_many_hosts_deliver_each_result_once_after_an_outage(tmp_path):
    owners = [SpoolOwner(result_spool.host_digest(f"node{at}"), 1, 1) for at in range(4)]
    spools = [ResultSpool(tmp_path, "embedded", owner) for owner in owners]
    ended = ResultSpool(tmp_path, "embedded", SpoolOwner(ELSEWHERE, 2, 1))
    for at, spool in enumerate([*spools, ended]):
        for notice in (Completion(f"s#{at}", "token", RESULT), Failure(f"t#{at}", "token", "NaN")):
            spool.put(notice)

    ended.release()
    killed = spools.pop()
    for path in killed._waiting:
        os.utime(path, (time.time() - 2 * result_spool.SILENT_SECONDS,) * 2)

    adopted = [spool.adopt() for spool in spools]
    assert sum(adopted) == 4
    delivered = [notice.id for spool in spools for notice in spool.waiting]
    assert sorted(delivered) == sorted(f"{name}#{at}" for name in "st" for at in range(5))
    for spool in spools:
        for notice in spool.waiting:
            spool.discard(notice)

    assert not list(tmp_path.iterdir())


def test_a_notice_that_replaced_a_delivered_one_waits(spool):
    first, second = (Completion("s#1", "token", Result(value)) for value in (0.5, 0.25))
    other = Completion("s#2", "token", RESULT)
    for notice in (first, other, second):
        spool.put(notice)

    spool.discard(first)
    spool.quarantine(first)
    assert spool.waiting == [second, other]
    spool.discard(second)
    assert spool.waiting == [other] and len(list(spool.folder.iterdir())) == 1


def test_a_file_of_an_earlier_release_is_adopted(spool):
    spool.put(NOTICES[0])
    (file,) = spool.folder.iterdir()
    file = file.rename(file.with_name(f"{file.name.partition('.')[0]}.json"))
    file.write_text(file.read_text().replace('"weights":', '"checkpoint":'))
    other = ResultSpool(spool.folder, "embedded")
    assert (other.adopt(), str(other.waiting)) == (1, str(NOTICES[:1]))


def test_delivered_notice_is_discarded(spool):
    for notice in NOTICES:
        spool.put(notice)

    spool.discard(NOTICES[0])
    assert spool.waiting == NOTICES[1:]
    assert len(files(spool)) == len(spool) == len(NOTICES) - 1
    spool.discard(NOTICES[0])
    assert len(spool) == len(NOTICES) - 1


def test_two_attempts_at_one_proposal_do_not_replace_each_other(spool):
    spool.put(Completion("s#1", "first", RESULT))
    spool.put(Failure("s#1", "second", "NaN"))
    assert len(files(spool)) == 2
    assert ResultSpool(spool.folder, "embedded").adopt() == 2


def test_second_put_writes_nothing(spool):
    spool.put(NOTICES[0])
    (path,) = spool.folder.iterdir()
    before = path.stat().st_ino
    spool.put(NOTICES[0])
    assert path.stat().st_ino == before
    assert len(spool) == 1


def test_recent_files_of_a_living_daemon_are_not_adopted(spool):
    spool.put(NOTICES[0])
    other = ResultSpool(spool.folder, "embedded")
    assert other.adopt(60) == 0
    (path,) = spool.folder.iterdir()
    os.utime(path, (time.time() - 61,) * 2)
    assert other.adopt(60) == 1


def test_refused_result_is_quarantined(spool):
    spool.put(NOTICES[0])
    spool.quarantine(NOTICES[0])
    assert files(spool) == [".refused"]
    assert len(spool) == 0
    assert ResultSpool(spool.folder, "embedded").adopt() == 0


def test_notices_to_another_archive_are_ignored(spool):
    spool.put(NOTICES[0])
    assert ResultSpool(spool.folder, "neo4j://other").adopt() == 0
    assert files(spool) == [".json"]


def test_truncated_file_is_skipped(spool):
    spool.put(NOTICES[0])
    (spool.folder / "0.json").write_text('{"archive": "embedded", "prop')
    assert ResultSpool(spool.folder, "embedded").adopt() == 1


def test_old_partial_files_are_removed(spool):
    spool.put(NOTICES[0])
    young, old = (spool.folder / f".{name}.part" for name in ("young", "old"))
    young.touch()
    old.touch()
    os.utime(old, (time.time() - 3600,) * 2)
    spool.adopt()
    assert young.exists() and not old.exists()


def test_full_disk_keeps_the_notice_in_memory(tmp_path):
    (tmp_path / "outbox").write_text("a file where the folder should be")
    spool = ResultSpool(tmp_path / "outbox", "embedded")
    spool.put(NOTICES[0])
    assert spool.waiting == NOTICES[:1]
    spool.discard(NOTICES[0])
    assert len(spool) == 0


def test_notice_is_written_when_the_disk_has_space_again(tmp_path, monkeypatch, caplog):
    full = tmp_path / "outbox"
    full.write_text("a file where the folder should be")
    spool = ResultSpool(full, "embedded")
    first = (NOTICES[0].id, NOTICES[0].token)
    for _ in range(3):
        spool.put(NOTICES[0])

    assert not spool.is_safe(*first)
    monkeypatch.setattr(result_spool, "RETRY_SECONDS", 0.0)
    spool._unwritten.update(dict.fromkeys(spool._unwritten, 0.0))
    for _ in range(3):
        spool.put(NOTICES[0])

    assert caplog.text.count("result not written") == 1
    full.unlink()
    spool.put(NOTICES[0])
    assert spool.is_safe(*first)
    assert ResultSpool(full, "embedded").adopt() == 1


def test_notice_is_safe_on_disk_or_delivered(spool):
    first = (NOTICES[0].id, NOTICES[0].token)
    spool.put(NOTICES[0])
    assert spool.is_safe(*first)
    spool.discard(NOTICES[0])
    assert spool.is_safe(*first)
    spool.folder.rmdir()
    spool.folder.write_text("a file where the folder should be")
    spool.put(NOTICES[0])
    assert not spool.is_safe(*first)
    spool.discard(NOTICES[0])
    assert spool.is_safe(*first)
