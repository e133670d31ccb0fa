"""Real damage to the files of an archive: it is noticed, never answered from, and repaired with the
last dump.

That damaged files are not opened is tested without a database, in
`tests/server/test_data_files.py`.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from archive import settings
from archive.api import Archive, connect
from archive.errors import DamagedError, ServerStartError
from archive.exchange import dump, repair
from archive.exchange.load import load
from archive.server import data_files, embedded
from archive.server.dump_schedule import DumpSchedule, dumps
from archive.server.run_file import Folder
from archive.store import upkeep
from tests.support import java_only, whole
from tests.support.dumped import dumped, fill
from tests.support.stores import evaluate

pytestmark = pytest.mark.lasts(6)


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    """A stopped archive with an automatic dump of all it holds, and the bytes of its dump."""
    home = tmp_path_factory.mktemp("intact")
    own = settings.load(home=home, patience=5, environment=java_only())
    with connect(own) as archive:
        fill(archive)
        # More proposals than a page holds.
        evaluate(archive, [0.5] * 110, "many")
        content = dumped(archive, home / "whole.jsonl.gz", distances=False)

    dump.make(own, 3, 0.5)
    embedded.stop(own)
    return home, content


@pytest.fixture
def copied(intact, tmp_path):
    home = tmp_path / "home"
    shutil.copytree(intact[0], home)
    own = settings.load(home=home, patience=5, environment=java_only())
    yield own
    embedded.stop(own)


def truncate(file, size):
    return lambda place: os.truncate(next(place.glob(file)), size)


def overwrite(file, offset, content):
    def damage(place):
        with next(place.glob(file)).open("r+b") as data:
            data.seek(offset)
            data.write(content)

    return damage


def remove(file):
    return lambda place: next(place.glob(file)).unlink()


@pytest.mark.parametrize(
    ("damage", "lost"),
    [
        whole(truncate("Evaluation_0.*.bucket", 8000), "Evaluation"),
        whole(truncate("Evaluation_0.*.bucket", 0), "Evaluation"),
        whole(overwrite("Proposal_0.*.bucket", 32768, bytes(32768)), "Proposal"),
        whole(truncate("Proposal_0.*.bucket", 32768), "Proposal"),
        whole(remove("Evaluation_0_[0-9]*idx"), None),
        whole(overwrite("Evaluation_0_[0-9]*idx", 0, bytes(32768)), None),
        whole(overwrite("Layer_0_out_edges.*", 0, bytes(32768)), None),
    ],
)
@pytest.mark.parametrize("recorded", [True, whole(False)])
def test_damage_is_noticed_and_repaired(intact, copied, tmp_path, damage, lost, recorded):
    folder = Folder(copied.home)
    damage(folder.database / "archive")
    if recorded:
        with pytest.raises(
            DamagedError,
            match=r"is damaged \(.*\): run archive db repair, .* "
            r"automatic dump is .*gz",
        ):
            connect(copied)

        assert embedded.status(copied).state == "failed"
    else:
        folder.database.joinpath("files.json").unlink()

    outcome = repair.repair(copied)
    assert outcome.damage
    assert outcome.remaining == []
    assert (lost is None) or outcome.removed[lost] > 0
    assert outcome.copy.joinpath("archive").is_dir()
    with connect(copied) as archive:
        assert upkeep.find_faults(archive.connection) == []
        load(archive.connection, outcome.dump)
        assert dumped(archive, tmp_path / "after.jsonl.gz", distances=False) == intact[1]


@pytest.mark.whole
def test_what_can_be_read_is_dumped_and_the_archive_stays_as_it_is(copied, tmp_path):
    folder = Folder(copied.home)
    truncate("Evaluation_0.*.bucket", 8000)(folder.database / "archive")
    before = {
        path.name: path.read_bytes() for path in folder.database.joinpath("archive").iterdir()
    }
    counts, left_out = repair.salvage(copied, tmp_path / "rest.jsonl.gz")
    assert counts["proposal"] == 116
    assert "evaluation" not in counts
    assert any("of the records Evaluation" in sentence for sentence in left_out)
    assert {
        path.name: path.read_bytes() for path in folder.database.joinpath("archive").iterdir()
    } == before
    assert list(folder.copies.iterdir()) == []


@pytest.mark.whole
def test_a_dump_replaces_what_cannot_be_repaired(intact, copied, tmp_path):
    remove("Evaluation_0.*.bucket")(copied.home / "database" / "archive")
    (dump,) = dumps(Folder(copied.home))
    outcome = repair.repair(copied)
    assert outcome.removed["RESULTED_IN"] > 0
    assert "the index of Evaluation.id is missing" in outcome.remaining
    overwrite("dictionary.*", 0, bytes(65536))(copied.home / "database" / "archive")
    assert repair.replace_by_dump(copied, dump).damage
    with connect(copied) as archive:
        assert dumped(archive, tmp_path / "after.jsonl.gz", distances=False) == intact[1]


@pytest.mark.whole
def test_a_newer_engine_checks_the_archive_and_an_older_one_is_refused(copied, caplog):
    """The recorded versions are faked: the files are those of the installed engine."""
    folder = Folder(copied.home)
    record = data_files.read(folder)
    data_files._write(folder, replace(record, engine="99.1.1"))
    with pytest.raises(
        ServerStartError,
        match=r"ArcadeDB 99\.1\.1 last wrote .* is older: "
        r".*dump .*gz",
    ):
        connect(copied)

    data_files._write(folder, replace(record, engine="26.8.1"))
    with caplog.at_level(logging.WARNING, "archive.store"), connect(copied) as archive:
        assert upkeep.find_faults(archive.connection) == []

    (line,) = caplog.messages
    assert "which 26.8.1 wrote: checked, 18 indexes built again" in line
    assert (Path(line.rpartition("copy ")[2].partition(",")[0]) / "archive").is_dir()
    caplog.clear()
    connect(copied).close()
    assert caplog.messages == []


def test_a_damaged_record_is_left_out_on_request(archive, tmp_path):
    from archive.errors import UsageError
    from archive.exchange.dump import dump

    fill(archive)
    damage = "MATCH (e:Evaluation {id: 'one#00000'}) SET e.value = 'x'"
    archive.connection.write(lambda transaction: transaction.run(damage).consume())
    file = tmp_path / "dump.jsonl.gz"
    with pytest.raises(
        UsageError,
        match=r"evaluation one#00000 of this archive: .*; "
        r"--skip-damaged leaves it out",
    ):
        dump(archive.connection, file)

    left_out = []
    counts = dump(archive.connection, file, left_out=left_out)
    assert [sentence.partition(":")[0] for sentence in left_out] == [
        "evaluation one#00000",
        "proposal one#00000",
    ]
    assert (counts["evaluation"], counts["proposal"]) == (3, 5)


# Automatic dumps


def test_automatic_dumps_are_kept_in_number_and_within_a_share_of_the_disk(
    archive, store_settings, monkeypatch
):
    if not store_settings.embedded:
        pytest.skip("automatic dumps are those of the embedded server")

    fill(archive)
    folder = Folder(store_settings.home)
    for day in range(1, 5):
        stamp = f"2026010{day}T000000Z"
        monkeypatch.setattr("time.strftime", lambda *_, stamp=stamp: stamp)
        assert stamp in dump.make(store_settings, 3, 0.5)

    kept = [path.name for path in dumps(folder)]
    assert kept == [f"automatic-2026010{day}T000000Z.jsonl.gz" for day in (4, 3, 2)]
    assert "the disk is short" in dump.make(store_settings, 3, 1e-12)
    assert sorted(path.name for path in folder.dumps.iterdir()) == sorted(kept)
    shutil.rmtree(folder.dumps)


@pytest.mark.parametrize(
    ("seconds", "age", "changed", "waited", "due"),
    [
        (100.0, None, True, True, True),
        (100.0, 50.0, True, True, False),
        (100.0, 150.0, True, True, True),
        (100.0, 150.0, False, True, False),
        (0.0, None, True, True, False),
        (100.0, None, True, False, False),
    ],
)
def test_a_dump_is_due(tmp_path, monkeypatch, seconds, age, changed, waited, due):
    import time

    folder = Folder(tmp_path)
    folder.create()
    folder.dumps.mkdir()
    bucket = folder.database / "archive" / "a.bucket"
    bucket.parent.mkdir()
    bucket.touch()
    if age is not None:
        path = folder.dumps / "automatic-20260101T000000Z.jsonl.gz"
        path.touch()
        os.utime(path, (time.time() - age,) * 2)
        os.utime(bucket, (time.time() - age + (10 if changed else -10),) * 2)

    started = []
    monkeypatch.setattr("subprocess.Popen", lambda command, **_: started.append(command))
    schedule = DumpSchedule(folder, seconds, 3, 0.1)
    schedule.next_look = 0.0 if waited else schedule.next_look
    schedule.start()
    assert bool(started) == due
    schedule.start(leaving=True)
    assert len(started) == (1 if seconds and changed and (age is None or age > seconds) else 0)


def test_an_archive_that_grows_meanwhile_is_not_damaged(archive, open_connection):
    """The looks at it are not of one moment, and a search may write between two of them."""
    ended = threading.Event()
    written = []

    def write():
        other = Archive(open_connection())
        while not ended.is_set():
            evaluate(other, [0.5] * 3, f"meanwhile {len(written)}")
            written.append(3)
            time.sleep(0.05)

    fill(archive)
    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        try:
            assert upkeep.find_faults(archive.connection) == []
            assert written, "nothing was written during the looks"
        finally:
            ended.set()

        writer.result()


def test_what_two_looks_find_alike_is_damage():
    first = {"corruptedRecords": ["#1:0", "#1:1"], "staleRecordCounters": 2, "corruptedIndexes": []}
    later = {"corruptedRecords": ["#1:1", "#1:7"], "staleRecordCounters": 1, "corruptedIndexes": 3}
    common = upkeep._common(first, later)
    assert common["corruptedRecords"] == ["#1:1"]
    assert upkeep.record_faults(common) == [
        "1 records cannot be read, or refer to such records",
        "1 stored counts are wrong",
    ]
