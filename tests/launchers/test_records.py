"""Fleets on disk."""

from __future__ import annotations

import errno
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from archive.errors import SettingsError
from archive.launchers import records
from archive.launchers.records import fleets_folder
from archive.settings import Settings
from tests.support.clusters.launchers import fleet


@pytest.fixture
def saved(tmp_path):
    return records.save(fleet(Settings(tmp_path), "local"))


def adjusted(fleet) -> bool:
    with records.adjusting(fleet) as kept:
        return kept


def test_a_fleet_is_not_adjusted_from_the_beginning_of_its_stop(saved):
    assert adjusted(saved)
    records.begin_stop(saved)
    assert not adjusted(saved)
    assert records.get(saved.settings, saved.name) == saved
    # A search that resumes takes over what an interrupted stop has left.
    records.save(saved)
    assert adjusted(saved)
    records.remove(saved)
    assert not adjusted(saved) and not saved.folder.exists()


def test_a_stop_waits_for_the_trainers_that_are_being_started(saved):
    stop = threading.Thread(target=records.begin_stop, args=(saved,))
    with records.adjusting(saved) as kept:
        stop.start()
        stop.join(0.2)
        assert kept and stop.is_alive() and not (saved.folder / records.STOPPING).exists()

    stop.join(10.0)
    assert (saved.folder / records.STOPPING).exists()


def test_a_fleet_is_attended_by_any_number_of_processes(saved, monkeypatch):
    assert not records.is_attended(saved)
    with records.attending(saved):
        with records.attending(saved):
            assert records.is_attended(saved)

        assert records.is_attended(saved)

    assert not records.is_attended(saved)
    # A file system without locks cannot tell.
    monkeypatch.setattr(
        "fcntl.flock", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOLCK, "no locks"))
    )
    with records.attending(saved):
        assert records.is_attended(saved)


def test_two_commands_that_choose_one_name_do_not_share_a_fleet(saved):
    name = records.new_name(saved.settings, "local", None)
    first = records.add(replace(saved, name=name, arguments=("--study", "first")))
    with pytest.raises(
        SettingsError,
        match=f"there is a fleet '{name}': stop it with archive launch stop {name}, or",
    ):
        records.add(replace(saved, name=name, arguments=("--study", "second")))

    assert records.get(saved.settings, name) == first
    assert records.new_name(saved.settings, "local", None) == f"{name}-2"


def test_a_new_fleet_that_cannot_be_written_leaves_nothing(saved, monkeypatch):
    def full(path, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    settings = replace(saved.settings, uri="neo4j://db", password="secret")
    monkeypatch.setattr(records, "write_atomically", full)
    for _ in range(2):
        with pytest.raises(
            SettingsError,
            match=r"cannot write the fleet's folder .*/new: No "
            r"space left on device",
        ):
            records.add(replace(saved, name="new", settings=settings))

    assert not fleets_folder(settings.home).joinpath("new").exists()


def test_a_folder_of_fleets_that_cannot_be_made_is_named(saved, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "fleets").write_text("no folder")
    with pytest.raises(
        SettingsError,
        match=r"cannot write the fleet's folder "
        r".*fleets/local-test: Not a directory",
    ):
        records.add(replace(saved, settings=Settings(tmp_path / "home")))


def test_a_fleet_that_ends_while_fleets_are_listed_is_none(saved, monkeypatch):
    ending = records.add(replace(saved, name="ending"))
    read = Path.read_text

    def end_and_read(path, **how):
        if path == ending.folder / records.RECORD:
            records.remove(ending)

        return read(path, **how)

    monkeypatch.setattr(Path, "read_text", end_and_read)
    assert records.saved(saved.settings) == [saved]
    (saved.folder / records.RECORD).write_text("{")
    with pytest.raises(SettingsError, match="cannot read the fleet"):
        records.saved(saved.settings)
