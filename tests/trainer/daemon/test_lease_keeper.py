"""The lease keeper on each server: leases last while the main loop is busy, and only losses of kept
leases count."""

from __future__ import annotations

import math

import pytest

from archive.errors import StoreUnavailableError
from archive.queue import workers
from archive.queue.updates import Failure
from archive.trainer.daemon.client import lease_keeper
from archive.trainer.daemon.client.lease_keeper import LeaseKeeper
from tests.support import wait_until
from tests.support.stores import cells, propose


@pytest.fixture
def keep(archive):
    """Makes keepers of short leases, and ends their threads."""
    keepers = []

    def make(seconds=0.6, *look):
        keepers.append(LeaseKeeper(archive, "w", seconds, lambda: None, *look))
        return keepers[-1]

    yield make
    for keeper in keepers:
        keeper.close()


def claim(archive, seconds=0.6):
    return archive.proposals.claim("w", study="study", lease_seconds=seconds)


def test_leases_last_while_the_daemon_does_something_else(archive, keep):
    propose(archive, cells(2))
    claims = [claim(archive), claim(archive)]
    keeper = keep()
    keeper.hold((each.id, each.token) for each in claims)
    keeper.start()
    # Twice as long as the leases.
    wait_until(
        lambda: all(
            archive.proposals.get(one.id).lease_until > one.proposal.lease_until + 1200
            for one in claims
        )
    )
    assert archive.proposals.claim("other", study="study") is None
    assert keeper.lost == set()


def test_a_lost_lease_is_lost_until_it_is_dropped(archive, keep):
    propose(archive, cells(2))
    lost = claim(archive)
    kept = claim(archive)
    keeper = keep(0.0)
    keeper.hold((each.id, each.token) for each in (lost, kept))
    archive.proposals.cancel(lost.id)
    keeper.step()
    assert keeper.lost == {(lost.id, lost.token)}
    keeper.drop((lost.id, lost.token))
    assert keeper.lost == set()


def test_one_look_is_for_the_trials_of_all_slots(archive, keep, monkeypatch):
    monkeypatch.setattr(lease_keeper, "LOOK_SHARE", math.inf)
    monkeypatch.setattr(lease_keeper, "JITTER", 0.0)
    now = 0.0
    monkeypatch.setattr(lease_keeper.time, "monotonic", lambda: now)
    keeper = keep(600.0, 5.0)
    looks = []
    monkeypatch.setattr(
        archive.proposals, "held", lambda keys: looks.append(sorted(keys)) or set(keys)
    )
    for now, name in ((0.0, "a"), (1.0, "b"), (4.0, "c")):  # noqa: B007
        keeper.hold([(name, "token")])

    for now in (4.9, 5.0, 8.9, 9.0, 9.9, 10.0):  # noqa: B007
        keeper.step()

    # The lease that was confirmed a second ago has a look of its own, and comes along afterwards.
    assert looks == [
        [("a", "token"), ("b", "token")],
        [("a", "token"), ("b", "token"), ("c", "token")],
    ]


@pytest.mark.every_server
def test_a_look_finds_a_cancellation_long_before_the_renewal(archive, keep, monkeypatch):
    monkeypatch.setattr(lease_keeper, "LOOK_SHARE", math.inf)
    propose(archive, cells(2))
    lost = claim(archive, 600.0)
    kept = claim(archive, 600.0)
    keeper = keep(600.0, 0.0)
    keeper.hold((each.id, each.token) for each in (lost, kept))
    settle = archive.proposals.settle
    told = []
    monkeypatch.setattr(
        archive.proposals, "settle", lambda notices: told.extend(notices) or settle(notices)
    )
    keeper.step()
    assert told == [] and keeper.lost == set()
    archive.proposals.cancel(lost.id)
    keeper.step()
    assert [notice.id for notice in told] == [lost.id] and keeper.lost == {(lost.id, lost.token)}
    keeper.step()
    assert len(told) == 1


def test_a_look_that_is_wrong_costs_no_lease(archive, keep, monkeypatch):
    propose(archive, cells(1))
    one = claim(archive, 600.0)
    keeper = keep(600.0, 0.0)
    keeper.hold([(one.id, one.token)])
    monkeypatch.setattr(archive.proposals, "held", lambda _: set())
    keeper.step()
    assert (
        keeper.lost == set()
        and archive.proposals.get(one.id).lease_until > one.proposal.lease_until
    )


def test_a_lease_that_ended_during_its_renewal_is_not_lost(archive, keep, monkeypatch):
    propose(archive, cells(1))
    one = claim(archive)
    keeper = keep(0.0)
    keeper.hold([(one.id, one.token)])
    settle = archive.proposals.settle

    def ended_meanwhile(notices):
        settle([Failure(one.id, one.token, "NaN")])
        keeper.drop((one.id, one.token))
        return settle(notices)

    monkeypatch.setattr(archive.proposals, "settle", ended_meanwhile)
    keeper.step()
    assert keeper.lost == set()


def test_an_outage_leaves_leases_due(archive, keep, monkeypatch):
    propose(archive, cells(1))
    one = claim(archive)
    keeper = keep(0.0)
    keeper.hold([(one.id, one.token)])

    def away(_):
        raise StoreUnavailableError("no server answers")

    with monkeypatch.context() as outage:
        outage.setattr(archive.proposals, "settle", away)
        with pytest.raises(StoreUnavailableError):
            keeper.step()

    keeper.step()
    assert keeper.lost == set()
    assert archive.proposals.get(one.id).lease_until > one.proposal.lease_until - 600


def test_an_idle_worker_is_recorded_as_alive(archive, keep, monkeypatch):
    assert lease_keeper.ALIVE_SECONDS + 30.0 < workers.STALE_SECONDS
    monkeypatch.setattr(lease_keeper, "ALIVE_SECONDS", 0.0)
    keep().step()
    (worker,) = workers.statuses(archive.connection)
    assert (worker.id, worker.state) == ("w", "idle")
