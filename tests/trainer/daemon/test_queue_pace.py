"""The pace of looks at the queue: rare while it is empty, at once when it grows on the same
machine."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from archive import settings
from archive.store.wake_up import WakeUpReceiver, wake_trainers
from archive.trainer.daemon.client.store_client import QueuePace
from tests.support.stores import cells, propose

HOUR = 3600.0


@pytest.fixture
def clock(monkeypatch):
    """A clock that only tests advance."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def own(tmp_path):
    return settings.load(home=tmp_path, environment={})


def test_pauses_double_up_to_the_longest_and_vary(clock, own):
    pace = QueuePace(30.0, WakeUpReceiver(own))
    pauses = []
    for _ in range(20):
        assert pace.due
        pace.found_nothing()
        assert not pace.due
        pauses.append(pace.next_at - clock[0])
        clock[0] = pace.next_at

    assert all(1.8 <= later / former <= 2.2 for former, later in pairwise(pauses[:10]))
    assert all(30.0 <= pause <= 33.0 for pause in pauses[-5:])
    assert len(set(pauses[-5:])) == 5
    pace.found()
    pace.found_nothing()
    assert pace.next_at - clock[0] < 0.03


def test_a_grown_queue_is_looked_at_once(clock, own):
    pace = QueuePace(HOUR, WakeUpReceiver(own))
    pace.rest(HOUR)
    pace.found_nothing()
    clock[0] += 2 * HOUR
    pace.found_nothing()
    assert not pace.due
    wake_trainers(own)
    assert pace.due
    assert pace.due
    pace.found_nothing()
    assert not pace.due


def test_a_resting_trainer_is_not_woken(clock, own):
    pace = QueuePace(HOUR, WakeUpReceiver(own))
    pace.rest(60.0)
    wake_trainers(own)
    assert not pace.due
    clock[0] += 60.0
    assert pace.due


def test_whatever_waits_for_a_trainer_wakes_it(archive):
    wake_up = WakeUpReceiver(archive.connection.settings)
    propose(archive, cells(1))
    assert wake_up.received()
    assert not wake_up.received()
    claim = archive.proposals.claim("w", study="study")
    archive.proposals.report(claim.id, claim.token, {"loss": [1.0]})
    assert not wake_up.received()
    archive.proposals.release(claim.id, claim.token)
    assert wake_up.received()
    claim = archive.proposals.claim("w", study="study")
    archive.proposals.cancel(claim.id)
    wake_up.received()
    archive.proposals.retry(claim.id)
    assert wake_up.received()
