"""Faults of a fleet: a node that is stopped and continued, and a database that is away for a
while."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from archive.api import Archive
from archive.database import connection as connections
from archive.database.connection import Connection
from archive.queue.proposals import Proposals
from archive.settings import environment
from archive.store.records import Result, State
from archive.trainer.daemon import events
from archive.trainer.daemon import trainer as daemon
from archive.trainer.daemon.options import TrainerOptions
from tests.benchmarks.trainer.simulated_trainers import Agenda, simulated
from tests.support import ROOT, daemons, data_dir, serve, wait_until
from tests.support.faults.proxy import Proxy
from tests.support.stores import cells, propose


@pytest.mark.whole
@pytest.mark.lasts(12)
def test_a_node_that_is_stopped_and_continued_doubles_nothing(archive, store_settings, tmp_path):
    """The node continues after its lease has ended, and another worker has the result."""
    (proposal,) = propose(archive, cells(1), task="nb201-cifar10", protocol="nb201/12")
    options = json.dumps({"study": "study", "device": "cpu", "scale": 1.0, "lease_seconds": 2.0})
    command = [sys.executable, "-m", "tests.support.serve", options]
    with (tmp_path / "log").open("wb") as log:
        own = {**os.environ, **environment(store_settings), "ARCHIVE_DATA_DIR": str(data_dir())}
        node = subprocess.Popen(command, cwd=ROOT, env=own, stdout=log, stderr=log)

    try:
        wait_until(
            lambda: archive.proposals.get(proposal.id).state is State.RUNNING,
            60,
            "the node's claim",
        )
        node.send_signal(signal.SIGSTOP)
        other = wait_until(
            lambda: archive.proposals.claim("other", study="study", lease_seconds=600.0)
        )
        assert (other.id, other.proposal.attempts) == (proposal.id, 1)
        assert archive.proposals.complete(other.id, other.token, Result(0.25))
        node.send_signal(signal.SIGCONT)
        wait_until(
            lambda: b"lease lost" in (tmp_path / "log").read_bytes(),
            60,
            "the end of the node's trial",
        )
        node.send_signal(signal.SIGTERM)
        assert node.wait(30) == 0
    finally:
        node.kill()
        node.wait()

    stored = archive.proposals.get(proposal.id)
    assert (stored.state, stored.attempts, stored.worker) == (State.COMPLETE, 1, "other")
    assert [each.value for each in archive.studies.evaluations("study")] == [0.25]


@pytest.mark.lasts(10)
def test_a_frozen_database_keeps_no_trainer_from_stopping(
    archive, store_settings, tmp_path, monkeypatch
):
    """It holds the connection and sends nothing: the trial saves its state, and ends within the
    grace."""
    # The proxy stands before the embedded server, too.
    monkeypatch.setattr(daemon, "refuse_address", lambda *_: None)
    serve.know(serve.SLOW)
    (proposal,) = daemons.propose(archive, daemons.NETS[:1], "slow")
    address, user, password = archive.connection.login
    port = urlsplit(address).port
    host = str(urlsplit(address).hostname)
    database = store_settings.database or ("archive" if store_settings.embedded else None)
    with Proxy(port, host) as proxy:
        uri = f"bolt://127.0.0.1:{proxy.port}"
        own = replace(
            store_settings, home=tmp_path, uri=uri, user=user, password=password, database=database
        )
        with Connection.open(own) as connection:
            options = TrainerOptions(
                device="cpu", threads=1, study="study", checkpoint_seconds=0.0, parting_seconds=2.0
            )
            trainer = daemon.Trainer(Archive(connection), options, home=tmp_path / "trainer")
            trained = []
            trainer.observers.append(lambda event: trained.append(event))
            thread = threading.Thread(target=trainer.run)
            thread.start()
            wait_until(
                lambda: any(isinstance(event, events.EpochTrained) for event in trained),
                60,
                "an epoch",
            )
            proxy.freeze()
            begin = time.monotonic()
            trainer.stop()
            thread.join(60)
            stopped = time.monotonic() - begin
            assert not thread.is_alive()
            assert list((tmp_path / "trainer" / "checkpoints").rglob("*"))
            proxy.thaw()
            # The calls that were given up end with their sessions, before the connection does.
            calls = {"store-call", "lease-keeper"}
            wait_until(
                lambda: not [each for each in threading.enumerate() if each.name in calls],
                60,
                "their end",
            )

    # The grace, two seconds of patience with the database, and a slow machine.
    assert stopped < 30
    assert archive.proposals.get(proposal.id).state in (State.RUNNING, State.WAITING)


@pytest.mark.parametrize(
    ("trainers", "seconds"),
    [
        pytest.param(10, 2.0, marks=pytest.mark.lasts(10), id="for a moment"),
        pytest.param(
            50, 300.0, marks=[pytest.mark.whole, pytest.mark.lasts(480)], id="for five minutes"
        ),
    ],
)
def test_an_outage_of_the_database_costs_a_fleet_nothing(
    archive, store_settings, tmp_path, monkeypatch, trainers, seconds
):
    """Half of the trials end in the outage, and their results wait; no proposal of the others is
    lost or doubled."""
    # The threads of the simulation serve several trainers each, and must not wait for one.
    monkeypatch.setattr(connections, "_DRIVER_RETRY_SECONDS", 0.0)
    made = propose(archive, cells(2 * trainers))
    address, user, password = archive.connection.login
    with Proxy(urlsplit(address).port) as proxy:
        uri = f"bolt://127.0.0.1:{proxy.port}"
        away = replace(
            store_settings, home=tmp_path, uri=uri, user=user, password=password, patience=1.0
        )
        if archive.connection.database:
            away = replace(away, database=archive.connection.database)

        with Connection.open(away) as connection:
            fleet = simulated(
                Archive(connection), tmp_path, "study", trainers, TrainerOptions(study="study"), 2.0
            )
            for each in fleet[::2]:
                each.trial_seconds = seconds + 5.0

            with Agenda(fleet, spread=0.5):
                wait_until(lambda: all(each.trial for each in fleet[::2]), 60, "the long trials")
                back = time.monotonic() + seconds
                proxy.end()
                wait_until(
                    lambda: not any(each.trial for each in fleet[1::2]),
                    60,
                    "the results of the short trials",
                )
                wait_until(
                    lambda: any(each.client.undelivered for each in fleet),
                    60,
                    "a result that waits",
                )
                wait_until(lambda: time.monotonic() > back, seconds + 60, "the end of the outage")
                proxy.begin()
                wait_until(
                    lambda: sum(each.completed for each in fleet) == len(made),
                    seconds + 120,
                    "all results",
                )
                wait_until(
                    lambda: not any(each.client.undelivered for each in fleet), 60, "their delivery"
                )

    stored = Proposals(archive.connection, archive.architectures).list("study")
    assert [(each.state, each.attempts) for each in stored] == [(State.COMPLETE, 0)] * len(made)
    assert len(archive.studies.evaluations("study")) == len(made)
    assert sum(each.lost for each in fleet) == 0
    assert not list(tmp_path.rglob("*.json"))
