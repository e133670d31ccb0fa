"""The record of the database's files: every kind of damage to them is seen before the database is
opened."""

from __future__ import annotations

import json
import os

import pytest

from archive import settings
from archive.errors import DamagedError, ServerStartError
from archive.server import data_files, embedded, engine_change
from archive.server.engine import StartRefused
from archive.server.run_file import Folder
from tests.support import java_only

PAGE = 4096
BUCKET = f"Study_0.1.{PAGE}.v0.bucket"
INDEX = f"Study_0_17.2.{PAGE}.v1.umtidx"
NAMES = f"dictionary.0.{PAGE}.v1.dict"
VERSION = "26.10.2"


@pytest.fixture
def folder(tmp_path):
    """A database of two pages in a bucket, one in an index and one of names."""
    folder = Folder(tmp_path)
    folder.create()
    place = folder.database / "archive"
    place.mkdir()
    for name, pages in ((BUCKET, 2), (INDEX, 1), (NAMES, 1)):
        place.joinpath(name).write_bytes(os.urandom(pages * PAGE))

    types = {"Study": {"buckets": ["Study_0"], "indexes": {"Study_0_17": {}}}}
    place.joinpath("schema.json").write_text(json.dumps({"dbmsVersion": VERSION, "types": types}))
    return folder


def path_of(folder, name):
    return folder.database / "archive" / name


def truncate(name, size):
    return lambda folder: os.truncate(path_of(folder, name), size)


def remove(name):
    return lambda folder: path_of(folder, name).unlink()


def overwrite(name, offset, content):
    def damage(folder):
        path = path_of(folder, name)
        times = path.stat()
        with path.open("r+b") as file:
            file.seek(offset)
            file.write(content)

        # As a faulty disk does, which changes no times.
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    return damage


@pytest.mark.parametrize(
    ("damage", "stopped", "unstopped", "unrecorded"),
    [
        (
            truncate(BUCKET, 100),
            "has 100 of 8,192 bytes",
            "has 100 of 8,192 bytes",
            "ends within a page",
        ),
        (truncate(BUCKET, PAGE), "has 4,096 of 8,192 bytes", "has 4,096 of 8,192 bytes", None),
        (truncate(BUCKET, 0), "has 0 of 8,192 bytes", "has 0 of 8,192 bytes", None),
        (truncate(INDEX, 10), "has 10 of 4,096 bytes", None, "ends within a page"),
        (truncate(NAMES, 0), "has 0 of 4,096 bytes", None, None),
        (truncate("schema.json", 20), "schema.json has 20", None, None),
        (remove(BUCKET), f"{BUCKET} is missing", "Study_0 is missing", "Study_0 is missing"),
        (remove(INDEX), f"{INDEX} is missing", None, None),
        (overwrite(BUCKET, PAGE, bytes(PAGE)), f"{BUCKET} was altered", None, None),
        (overwrite(BUCKET, 77, b"\xff\x00" * 4), f"{BUCKET} was altered", None, None),
        (overwrite(NAMES, 0, bytes(PAGE)), f"{NAMES} was altered", None, None),
    ],
)
def test_damage_is_seen_before_the_database_is_opened(
    folder, damage, stopped, unstopped, unrecorded
):
    """After a clean stop all of it; after a crash, and without a record, what no journal can
    mend."""
    for expected, prepare in (
        (stopped, lambda: data_files.record_stop(folder, VERSION)),
        (
            unstopped,
            lambda: (
                data_files.record_use(folder, VERSION),
                path_of(folder, "txlog_0.wal").touch(),
            ),
        ),
        (unrecorded, lambda: None),
    ):
        contents = {path: path.read_bytes() for path in path_of(folder, ".").iterdir()}
        prepare()
        assert data_files.damage(folder) == []
        damage(folder)
        faults = data_files.damage(folder)
        assert [expected in fault for fault in faults] == [True] * len(faults)
        assert bool(faults) == (expected is not None)
        for path, content in contents.items():
            path.write_bytes(content)

        path_of(folder, "txlog_0.wal").unlink(missing_ok=True)
        folder.database.joinpath("files.json").unlink(missing_ok=True)


def test_what_a_server_writes_is_no_damage(folder):
    data_files.record_stop(folder, VERSION)
    data_files.record_use(folder, VERSION)
    with path_of(folder, BUCKET).open("ab") as file:
        file.write(bytes(PAGE))

    remove(INDEX)(folder)
    assert data_files.damage(folder) == []
    data_files.record_stop(folder, VERSION)
    assert data_files.read(folder).clean
    assert data_files.damage(folder) == []


def test_a_copied_archive_is_no_damage(folder, tmp_path):
    data_files.record_stop(folder, VERSION)
    place = engine_change.copy_data(folder, "damaged")
    other = Folder(tmp_path / "other")
    other.create()
    other.database.rmdir()
    place.rename(other.database)
    assert data_files.damage(other) == []


def test_an_interrupted_repair_is_damage(folder):
    data_files.record_stop(folder, VERSION)
    truncate(BUCKET, 0)(folder)
    with pytest.raises(KeyboardInterrupt), data_files.under_repair(folder):
        assert data_files.damage(folder) == []
        raise KeyboardInterrupt

    assert data_files.damage(folder) == ["its repair was interrupted"]
    with data_files.under_repair(folder):
        data_files.record_stop(folder, VERSION)

    assert data_files.damage(folder) == []


def test_a_newer_engine_gets_a_copy_first_and_an_older_one_nothing(folder):
    engine_change.prepare(folder, VERSION)
    assert engine_change.list_copies(folder) == []
    engine_change.prepare(folder, "26.11.1-SNAPSHOT")
    (copy,) = engine_change.list_copies(folder)
    assert copy.name.startswith("arcadedb-26.10.2")
    assert copy.joinpath("archive", BUCKET).read_bytes() == path_of(folder, BUCKET).read_bytes()
    assert engine_change.pending(folder).copy == str(copy)
    data_files.record_use(folder, "26.11.1-SNAPSHOT")
    with pytest.raises(
        StartRefused,
        match=r"ArcadeDB 26\.11\.1-SNAPSHOT last wrote .* is "
        rf"older.*{copy.name}",
    ):
        engine_change.prepare(folder, VERSION)


def test_neither_damaged_files_nor_those_of_a_newer_engine_are_opened(folder):
    own = settings.load(home=folder.home, environment=java_only())
    data_files.record_stop(folder, "99.1.1")
    with pytest.raises(
        ServerStartError,
        match=r"ArcadeDB 99\.1\.1 last wrote the archive in .* "
        r"is older",
    ):
        embedded.ensure_running(own)

    truncate(BUCKET, PAGE)(folder)
    with pytest.raises(DamagedError) as refusal:
        embedded.ensure_running(own)

    assert str(refusal.value) == (
        f"the database in {folder.database} is damaged ({BUCKET} has 4,096 of 8,192 bytes): run "
        "archive db repair, "
        "which keeps a copy of it; there is no automatic dump"
    )
    status = embedded.status(own)
    assert (status.state, status.error) == ("failed", str(refusal.value))


def test_no_upgrade_without_room_for_the_copy(folder, monkeypatch):
    monkeypatch.setattr(engine_change, "SPARE_BYTES", 2**80)
    with pytest.raises(StartRefused, match="no room for a copy"):
        engine_change.prepare(folder, "27.1.1")

    assert engine_change.pending(folder) is None
