"""Fleets on disk."""

from __future__ import annotations

import threading

import pytest

from archive.launchers import records
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
