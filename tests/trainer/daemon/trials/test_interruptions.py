"""Interrupted trials: lost leases, cancelled proposals, checkpoints, and an archive that cannot be
reached."""

from __future__ import annotations

import os
import time

import psutil

from archive.errors import StoreUnavailableError
from archive.store.records import State
from archive.trainer.daemon import events, paths
from tests.support import serve, wait_until
from tests.support.daemons import NETS, in_thread, propose, running, states


def test_interrupted_trial_resumes_to_the_same_result(archive, trainer, tmp_path):
    """Handed back by one daemon, killed under the next, finished by the third: the same curve and
    value."""
    serve.know(serve.LONGER)
    for name in ("study", "undisturbed"):
        propose(archive, NETS[:1], "longer", name=name)

    happened = []
    first = trainer(study="study", checkpoint_seconds=0.0)
    first.observers.append(happened.append)
    thread = in_thread(first)
    wait_until(
        lambda: any(isinstance(event, events.EpochTrained) for event in happened),
        60,
        "the first epoch",
    )
    first.stop()
    thread.join()
    (proposal,) = archive.proposals.list("study")
    assert (proposal.state, proposal.attempts) == (State.WAITING, 0)
    assert [type(event) for event in happened if not isinstance(event, events.EpochTrained)] == [
        events.TrainerStarted, events.ProposalClaimed, events.ProposalReleased, events.TrainerStopped,
    ]  # fmt: skip
    assert not happened[-2].lost

    second = trainer(study="study", checkpoint_seconds=0.0, once=True)
    second.observers.append(
        lambda event: (
            isinstance(event, events.EpochTrained) and os.kill(second.in_flight[0].trial.pid, 9)
        )
    )
    assert second.run().failed == 1

    done = []
    third = trainer(idle_seconds=0.3)
    third.observers.append(
        lambda event: isinstance(event, events.EpochTrained) and done.append(event.claim.study.name)
    )
    assert third.run().complete == 2
    (disturbed,), (undisturbed,) = (
        archive.studies.evaluations(name) for name in ("study", "undisturbed")
    )
    assert archive.proposals.list("study")[0].attempts == 1
    assert disturbed.value == undisturbed.value
    assert _without_time(disturbed) == _without_time(undisturbed)
    # What was done before was not done again.
    assert done.count("study") < done.count("undisturbed") == undisturbed.epochs
    assert not list((tmp_path / "trainer" / "checkpoints").iterdir())


def _without_time(evaluation):
    return {name: values for name, values in evaluation.curve.items() if name != "seconds"}


def test_a_lost_lease_ends_the_trial(archive, trainer):
    serve.know(serve.SLOW)
    (proposal,) = propose(archive, NETS[:1], "slow")
    daemon = trainer()
    with running(daemon):
        wait_until(lambda: archive.proposals.list("study")[0].curve, 60, "the first epochs")
        pid = daemon.in_flight[0].trial.pid
        claim = daemon.in_flight[0].claim
        archive.proposals.fail(proposal.id, claim.token, "taken away by the test")
        wait_until(lambda: daemon.tally.returned, 60, "the end of the trial")

    assert not psutil.pid_exists(pid)
    assert archive.proposals.get(proposal.id).reason == "taken away by the test"


def test_a_cancelled_proposal_stops_its_trial_and_can_be_tried_again(archive, trainer):
    serve.know(serve.SLOW)
    (proposal,) = propose(archive, NETS[:1], "slow")
    daemon = trainer()
    with running(daemon):
        wait_until(lambda: archive.proposals.list("study")[0].curve, 60, "the first epochs")
        pid = daemon.in_flight[0].trial.pid
        assert archive.proposals.cancel(proposal.id)
        wait_until(lambda: daemon.tally.returned, 20, "the end of the trial")
        assert not psutil.pid_exists(pid)
        assert archive.proposals.get(proposal.id).cancelled
        archive.proposals.retry(proposal.id)
        wait_until(
            lambda: daemon.in_flight and daemon.in_flight[0].trial.pid != pid,
            20,
            "the second trial",
        )


def test_second_claim_of_a_running_proposal_replaces_the_first(archive, trainer):
    serve.know(serve.SLOW)
    (proposal,) = propose(archive, NETS[:1], "slow")
    daemon = trainer(slots=2)
    happened = []
    daemon.observers.append(happened.append)
    daemon._arrive()
    daemon._claim()
    (former,) = daemon.in_flight
    try:
        # What happens to one that was out of touch for longer than its lease.
        archive.proposals.fail(proposal.id, former.claim.token, "out of touch", retry=True)
        daemon.client.enqueue(former.report(15.0))
        daemon.client._pace.next_at = 0.0
        daemon._claim()
        (running,) = daemon.in_flight
        assert not psutil.pid_exists(former.trial.pid)
        assert psutil.pid_exists(running.trial.pid)
        assert [(type(event), event.claim.token) for event in happened] == [
            (events.ProposalClaimed, former.claim.token),
            (events.ProposalReleased, former.claim.token),
            (events.ProposalClaimed, running.claim.token),
        ]
        assert happened[1].lost
        assert daemon.tally.returned == 1
        daemon.client.enqueue(running.report(15.0))
        daemon._deliver()
        assert daemon.in_flight == (running,)
    finally:
        daemon._hand_back()
        daemon.client.depart()

    assert states(archive) == [State.WAITING]


def test_checkpoint_stays_while_a_kill_would_lose_the_result(
    archive, monkeypatch, trainer, tmp_path
):
    serve.know(serve.LONGER)
    propose(archive, NETS[:1], "longer")
    settle = archive.proposals.settle

    def away(*_):
        raise StoreUnavailableError("no server answers")

    monkeypatch.setattr(archive.proposals, "settle", away)
    home = tmp_path / "trainer"
    home.mkdir()
    (home / "outbox").write_text("a file where the folder should be")
    daemon = trainer(once=True, checkpoint_seconds=0.0)
    assert daemon.run().complete == 1
    assert [path.suffix for path in (home / "checkpoints").iterdir()] == [".checkpoint"]
    monkeypatch.setattr(archive.proposals, "settle", settle)
    daemon.client._link.retry_at = 0.0
    daemon._deliver()
    assert states(archive) == [State.COMPLETE]
    assert not list((home / "checkpoints").iterdir())


def test_stale_checkpoints_are_removed_while_a_trainer_runs(
    archive, monkeypatch, trainer, tmp_path
):
    monkeypatch.setattr(paths, "SWEEP_SECONDS", 0.0)
    propose(archive, NETS[:1])
    old = tmp_path / "trainer" / "checkpoints" / "nobody.checkpoint"

    def leave_behind(event):
        if isinstance(event, events.ResultDelivered):
            old.parent.mkdir(exist_ok=True)
            old.touch()
            os.utime(old, (time.time() - 2 * paths.CHECKPOINT_LIFETIME,) * 2)

    daemon = trainer(idle_seconds=0.3)
    daemon.observers.append(leave_behind)
    assert daemon.run().complete == 1
    assert old.parent.is_dir()
    wait_until(lambda: not old.exists(), 10, "the removal")


def test_results_wait_for_an_unreachable_store(archive, monkeypatch, caplog, run):
    propose(archive, NETS[:2])
    settle = archive.proposals.settle

    def away(*_):
        raise StoreUnavailableError("no server answers")

    monkeypatch.setattr(archive.proposals, "settle", away)
    run(once=True)
    assert states(archive) == [State.RUNNING, State.WAITING]
    assert "store is unreachable" in caplog.text
    # Another daemon, and a server that is back: what was finished is delivered, not trained again.
    monkeypatch.setattr(archive.proposals, "settle", settle)
    tally = run()
    assert tally.complete == 1
    assert states(archive) == [State.COMPLETE] * 2
    assert [proposal.attempts for proposal in archive.proposals.list("study")] == [0, 0]


def test_an_outage_of_the_archive_does_not_end_the_trial(archive, monkeypatch, run):
    serve.know(serve.DELAYED)
    propose(archive, NETS[:1], "delayed")
    settle = archive.proposals.settle
    failures = []

    def unreliable(*arguments):
        if not failures:
            failures.append(1)
            raise StoreUnavailableError("no server answers")

        return settle(*arguments)

    monkeypatch.setattr(archive.proposals, "settle", unreliable)
    assert run(lease_seconds=3).complete == 1
