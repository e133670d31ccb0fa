"""The wait for an archive that cannot be reached when a trainer starts."""

from __future__ import annotations

import pytest

from archive.errors import AuthenticationError, StoreUnavailableError
from archive.queue import workers
from archive.trainer.daemon.client import store_link
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.trainer import Trainer
from archive.trainer.trial import devices
from tests.support.stores import propose


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """A clock that goes only while somebody sleeps."""
    now = [100.0]
    monkeypatch.setattr(store_link.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(
        store_link.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds)
    )
    return now


def away_until(clock, when):
    def ask():
        if clock[0] < when:
            raise StoreUnavailableError("no database server answers at bolt://there")

        return "answer"

    return ask


def test_wait_for_store_retries_and_reports_now_and_then(clock):
    said = []
    assert store_link.wait_for_store(away_until(clock, 250.0), None, said.append) == "answer"
    assert 250 <= clock[0] < 253
    assert said == ["waiting until it answers: no database server answers at bolt://there"] * 3


def test_time_limit_raises_the_last_reason(clock):
    said = []
    with pytest.raises(StoreUnavailableError, match="bolt://there"):
        store_link.wait_for_store(away_until(clock, 250.0), 10.0, said.append)

    assert clock[0] <= 110 and said[0].startswith("waiting for 10 s: no database")
    with pytest.raises(StoreUnavailableError):
        store_link.wait_for_store(away_until(clock, 250.0), 0.0, said.append)

    assert len(said) == 1


def test_stop_ends_the_wait_at_once(clock):
    assert (
        store_link.wait_for_store(away_until(clock, 250.0), None, print, lambda: clock[0] > 100.5)
        is None
    )
    assert clock[0] < 101


def test_a_refused_login_is_no_outage(clock):
    def ask():
        raise AuthenticationError("the server refused user 'x'")

    with pytest.raises(AuthenticationError):
        store_link.wait_for_store(ask, None, print)

    assert clock[0] == 100


def test_daemon_starts_when_the_store_becomes_reachable(
    archive, monkeypatch, tmp_path, caplog, clock
):
    propose(archive, [])
    arrive = workers.arrive
    asked = []

    def unreliable(*arguments, **properties):
        asked.append(arguments)
        if len(asked) < 3:
            raise StoreUnavailableError("no database server answers at bolt://there")

        arrive(*arguments, **properties)

    monkeypatch.setattr(workers, "arrive", unreliable)
    cpu = devices.Device("cpu", "cpu", "none", 1 << 30)
    monkeypatch.setattr(devices, "find", lambda _: [cpu])
    daemon = Trainer(
        archive, TrainerOptions(once=True, device="cpu", poll_seconds=0.01), home=tmp_path
    )
    daemon.run()
    assert "waiting until it answers" in caplog.text
    assert [worker.id for worker in workers.statuses(archive.connection)] == [daemon.worker]
