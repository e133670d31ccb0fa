"""The daemon on both database servers: whole trials, the studies that it serves, its start and its
end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from dataclasses import replace

import psutil
import pytest

from archive.api import Archive
from archive.database.connection import Connection
from archive.queue import workers
from archive.store.records import State
from archive.trainer.daemon.options import Tally, TrainerOptions
from archive.trainer.daemon.trainer import Trainer
from archive.trainer.storage import weights_file
from tests.support import serve, wait_until
from tests.support.commands import shell
from tests.support.daemons import NETS, in_thread, propose, running, states


def test_proposals_become_evaluations(archive, run):
    propose(archive, NETS)
    tally = run(slots=2)
    assert (tally.complete, tally.failed, tally.returned) == (3, 0, 0)
    assert states(archive) == [State.COMPLETE] * 3
    for evaluation in archive.studies.evaluations("study"):
        assert evaluation.protocol == "diabetes/1"
        assert (
            evaluation.value
            == min(evaluation.curve["valid_mse"])
            == evaluation.metrics["valid_mse"]
            < 1.2
        )
        assert evaluation.curve["epoch"] == list(range(1, evaluation.epochs + 1))
        assert {"test_mse", "params", "flops", "best_epoch"} <= set(evaluation.metrics)
        assert evaluation.seed == 3
        saved = weights_file.load(archive.weights.of_evaluation(evaluation.id))
        assert saved.architecture.key == evaluation.architecture.key
        assert saved.metadata["proposal"] == evaluation.id

    (worker,) = workers.statuses(archive.connection)
    assert worker.host
    assert worker.device.startswith("cpu")
    assert str(os.getpid()) in worker.id


@pytest.mark.lasts(6)
def test_weights_that_cannot_be_saved_are_said(archive, store_settings, tmp_path, caplog):
    (proposal,) = propose(archive, NETS[:1], budget=1)
    with Connection.open(
        replace(store_settings, weights="ftp://127.0.0.1:1/weights")
    ) as connection:
        options = TrainerOptions(threads=1, device="cpu", idle_seconds=0.3)
        tally = Trainer(Archive(connection), options, home=tmp_path / "trainer").run()

    assert tally == Tally(complete=1, unsaved=1)
    assert f"weights not saved proposal={proposal.id}" in caplog.text
    with shell(store_settings, tmp_path) as user:
        again = ("search", "--study", "study", "--agent", "random", "--trainers", "0")
        assert "127.0.0.1" in json.loads(user.types(*again, "--json").stdout)["best"]["unsaved"]
        assert "not saved: " in user.types(*again).stdout


@pytest.mark.whole
def test_one_seed_gives_one_value_in_any_study(archive, run):
    for name in ("study", "again"):
        propose(archive, NETS[:1], name=name)

    run()
    (first,), (again,) = (archive.studies.evaluations(name) for name in ("study", "again"))
    assert first.value == again.value
    assert first.curve["train_loss"] == again.curve["train_loss"]


def test_curve_is_reported_during_training(archive, monkeypatch, trainer):
    serve.know(serve.SLOW)
    propose(archive, NETS[:1], "slow")
    daemon = trainer()
    with running(daemon):
        curve = wait_until(lambda: archive.proposals.list("study")[0].curve, 60, "the first epochs")
        wait_until(
            lambda: len(archive.proposals.list("study")[0].curve["epoch"]) > len(curve["epoch"])
        )

    (proposal,) = archive.proposals.list("study")
    assert (proposal.state, proposal.attempts) == (State.WAITING, 0)
    assert proposal.reason is None
    assert daemon.tally.returned == 1


@pytest.mark.whole
def test_failing_observer_is_ignored(archive, trainer, caplog):
    propose(archive, NETS[:1])
    daemon = trainer(idle_seconds=0.3)

    def broken(event):
        raise ValueError("no such gauge")

    daemon.observers.append(broken)
    assert daemon.run().complete == 1
    assert "observer failed event=ProposalCompleted" in caplog.text


@pytest.mark.whole
def test_only_the_requested_study_is_served(archive, run):
    propose(archive, NETS[:1])
    propose(archive, NETS[:1], name="other")
    run(study="other")
    assert (states(archive), states(archive, "other")) == ([State.WAITING], [State.COMPLETE])


@pytest.mark.whole
def test_once_stops_after_one_trial(archive, run):
    propose(archive, NETS[:2])
    run(once=True, idle_seconds=None)
    assert sorted(states(archive)) == [State.COMPLETE, State.WAITING]
    run(once=True, idle_seconds=None)
    assert run(once=True, idle_seconds=None).complete == 0


def test_daemon_stops_with_its_parent(archive, trainer):
    parent = subprocess.Popen(["sleep", "600"])
    daemon = trainer(parent=parent.pid)
    thread = in_thread(daemon)
    time.sleep(0.2)
    parent.kill()
    thread.join(60)
    parent.wait()
    assert not thread.is_alive()


@pytest.mark.whole
@pytest.mark.lasts(21)
def test_killed_daemons_lose_nothing(archive, start):
    serve.know(serve.SLOW)
    (proposal,) = propose(archive, NETS[:1], "slow")

    def curve():
        return archive.proposals.get(proposal.id).curve

    first = start()
    wait_until(curve, 90, "the first epochs")
    trials = psutil.Process(first.pid).children(recursive=True)
    first.kill()
    gone, alive = psutil.wait_procs(trials, timeout=60)
    assert gone and not alive

    second = start()
    wait_until(
        lambda: archive.proposals.get(proposal.id).attempts == 1 and curve(),
        90,
        "the second attempt",
    )
    trials = psutil.Process(second.pid).children(recursive=True)
    second.send_signal(signal.SIGTERM)
    assert second.wait(60) == 0
    assert not psutil.wait_procs(trials, timeout=60)[1]
    back = archive.proposals.get(proposal.id)
    assert (back.state, back.attempts) == (State.WAITING, 1)
    assert back.reason is None


def test_drain_finishes_running_trials(archive, start):
    serve.know(serve.DELAYED)
    propose(archive, NETS[:2], "delayed")
    daemon = start(drain=True)
    wait_until(lambda: State.RUNNING in states(archive), 90, "the claim")
    daemon.terminate()
    assert daemon.wait(60) == 0
    assert sorted(states(archive)) == [State.COMPLETE, State.WAITING]


def test_worker_record_lasts_from_arrival_to_departure(archive, trainer):
    propose(archive, NETS[:1])
    seen = []
    daemon = trainer(slots=2, study="study", idle_seconds=0.3)
    daemon.observers.append(lambda _: seen or seen.extend(workers.statuses(archive.connection)))
    daemon.run()
    (there,) = seen
    assert (there.id, there.pid, there.slots, there.study) == (
        daemon.worker,
        os.getpid(),
        2,
        "study",
    )
    assert there.device.startswith("cpu (") and there.alive
    (gone,) = workers.statuses(archive.connection, stale_seconds=1e-9)
    assert gone.state == "left"


@pytest.mark.parametrize("step", ["adopt", "release"])
def test_failing_trainer_records_its_departure(archive, trainer, monkeypatch, step):
    daemon = trainer(idle_seconds=0.0)

    def fails(*_):
        raise MemoryError

    monkeypatch.setattr(daemon.spool, step, fails)
    with pytest.raises(MemoryError):
        daemon.run()

    assert "lease-keeper" not in {thread.name for thread in threading.enumerate()}
    assert workers.statuses(archive.connection)[0].state == "left"
