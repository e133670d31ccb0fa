"""Waiting proposals that the trainers of a fleet pass over."""

import time
from dataclasses import replace

import pytest

from archive.launchers.keeper import find_passed_over
from archive.launchers.records import TrainerFleet
from archive.queue import workers
from tests.support.stores import cells, propose

pytestmark = pytest.mark.every_server


def test_what_no_trainer_of_a_fleet_can_run(archive, store_settings):
    def lines(**changes):
        return [str(each) for each in find_passed_over(archive, replace(fleet, **changes))]

    workers.arrive(archive.connection, "before")
    time.sleep(0.5)
    fleet = TrainerFleet("local", "local", store_settings, created=time.time())
    propose(archive, cells(1), "one", protocol="digits/1+recipe:mine")
    propose(archive, cells(3), "two", protocol="digits/1+recipe:other")
    propose(archive, cells(2), "three", protocol="digits/1")
    assert lines() == []
    workers.arrive(archive.connection, "a", recipes=["default"])
    workers.leave(archive.connection, "a")
    time.sleep(0.2)
    workers.arrive(archive.connection, "served", study="one", recipes=["default"])
    both = "and no trainer of the fleet can run"
    assert lines() == [
        f"1 proposal waits in the study one, {both} it: it has no recipe 'mine'",
        f"3 proposals wait in the study two, {both} them: it has no recipe 'other'",
    ]
    assert [each.split(",")[0] for each in lines(study="one")] == [
        "1 proposal waits in the study one"
    ]
    workers.arrive(archive.connection, "able", recipes=["default", "mine"])
    assert [each.split(",")[0] for each in lines()] == ["3 proposals wait in the study two"]
    archive.proposals.claim_many("able", 3, study="two")
    assert lines() == []
