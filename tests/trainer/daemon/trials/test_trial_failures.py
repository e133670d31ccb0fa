"""Trials that fail, hang, are killed or exceed a limit: their proposals alone are affected."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace

import psutil
import pytest

from archive.store.records import State
from archive.trainer.daemon.outcomes import failure_notice
from archive.trainer.tasks import registry
from archive.trainer.trial.messages import TrialFailed
from tests.support import faulty, serve, wait_until, whole
from tests.support.daemons import NETS, in_thread, propose, recipe


def test_failure_is_recorded_for_its_proposal_alone(archive, monkeypatch, run):
    monkeypatch.setitem(registry.registry._loaded, "faulty", faulty.faulty(faulty.has_holes))
    propose(archive, NETS[:1], "faulty", name="bad")
    propose(archive, NETS[:1], name="good")
    tally = run()
    assert (tally.complete, tally.failed) == (1, 1)
    (bad,), (good,) = (archive.proposals.list(name) for name in ("bad", "good"))
    assert (bad.state, bad.attempts) == (State.FAILED, 0)
    assert bad.reason == "training diverged: train_loss is nan in epoch 1"
    assert good.state is State.COMPLETE


@pytest.mark.whole
def test_trial_with_unreadable_messages_fails_alone(archive, monkeypatch, run):
    monkeypatch.setitem(registry.registry._loaded, "faulty", faulty.faulty(faulty.babbles))
    propose(archive, NETS[:1], "faulty", name="bad")
    propose(archive, NETS[:1], name="good")
    tally = run()
    assert (tally.complete, tally.failed) == (1, 3)
    (bad,) = archive.proposals.list("bad")
    assert "a message of the trial cannot be read: it begins with" in bad.reason


@pytest.mark.parametrize(("waited_for", "rested"), [(False, [1, 2, 3]), (True, [])])
def test_proposal_that_kills_its_process_fails_after_its_attempts(
    archive, monkeypatch, trainer, waited_for, rested
):
    """A trainer rests between them, unless it has a parent."""
    monkeypatch.setitem(registry.registry._loaded, "faulty", faulty.faulty(faulty.segfaults))
    propose(archive, NETS[:1], "faulty")
    daemon = trainer(idle_seconds=0.3, parent=os.getpid() if waited_for else None)
    rests = []
    monkeypatch.setattr(daemon.client, "back_off", lambda failures, _: rests.append(failures))
    assert daemon.run().failed == 3
    assert rests == rested
    (proposal,) = archive.proposals.list("study")
    assert proposal.state is State.FAILED
    assert "SIGSEGV" in proposal.reason
    assert "3 attempts" in proposal.reason


def test_hung_trial_is_killed(archive, monkeypatch, run):
    monkeypatch.setitem(registry.registry._loaded, "faulty", faulty.faulty(faulty.hangs))
    propose(archive, NETS[:1], "faulty")
    # Long enough for a busy machine to begin the trial.
    run(once=True, stall_seconds=5)
    (proposal,) = archive.proposals.list("study")
    assert (proposal.state, proposal.attempts) == (State.WAITING, 1)
    assert "no progress for 5 s" in proposal.reason
    ((outcome, log),) = archive.query("MATCH ()-[c:CLAIMED]->() RETURN c.outcome, c.log").rows
    assert outcome == "failed"
    assert "in hangs" in log


@pytest.mark.parametrize(
    ("target", "limits", "reason"),
    [
        whole(
            "hangs_in_native_code",
            {"trial_seconds": 8.0},
            "the trial took longer than its limit of 8 s",
        ),
        ("fills_the_disk", {"scratch_bytes": 5 << 20}, "the trial's temporary files took"),
        ("hoards", {"memory_bytes": 500 << 20}, "the trial took "),
    ],
)
def test_a_trial_beyond_its_limits_fails_alone(archive, trainer, tmp_path, target, limits, reason):
    propose(archive, NETS[:1], protocol="diabetes/1+recipe:bad", name="bad")
    propose(archive, NETS[:2], protocol="diabetes/1+recipe:mine", name="good")
    # The fork server has imported torch before the limit counts.
    assert recipe(trainer(once=True, study="good")).run().complete == 1
    scratch = tmp_path / "scratch"
    tally = recipe(trainer(slots=2, idle_seconds=0.3, scratch=scratch, **limits), bad=target).run()
    assert (tally.complete, tally.failed) == (1, 1)
    (bad,), good = (archive.proposals.list(name) for name in ("bad", "good"))
    assert (bad.state, bad.attempts, [each.state for each in good]) == (
        State.FAILED,
        0,
        [State.COMPLETE] * 2,
    )
    assert bad.reason.startswith(reason)
    assert not list(scratch.iterdir())


def test_reason_is_valid_unicode():
    claim = SimpleNamespace(id="s#00000", token="t")
    assert (
        failure_notice(claim, TrialFailed("no column in caf\udce9.csv")).reason
        == "no column in caf?.csv"
    )


def test_a_killed_trial_is_tried_again(archive, trainer):
    serve.know(serve.DELAYED)
    propose(archive, NETS[:1], "delayed")
    daemon = trainer(idle_seconds=0.5)
    thread = in_thread(daemon)
    running = wait_until(lambda: daemon.in_flight, 60, "the trial")
    os.kill(running[0].trial.pid, signal.SIGKILL)
    thread.join()
    (proposal,) = archive.proposals.list("study")
    assert (proposal.state, proposal.attempts) == (State.COMPLETE, 1)
    assert (daemon.tally.complete, daemon.tally.failed) == (1, 1)


def test_trials_of_two_ranks_have_one_result_or_one_failure(archive, trainer):
    """A rank that hangs costs no attempt of the others' trial, and nothing of it stays."""
    targets = {"good": "sums", "bad": "breaks"}
    propose(archive, NETS[:1], protocol="diabetes/1+recipe:good", name="good")
    propose(archive, NETS[:1], protocol="diabetes/1+recipe:bad", name="bad")
    for name, seconds in (("good", None), ("bad", 3.0)):
        daemon = trainer(devices_per_trial=2, study=name, trial_seconds=seconds, idle_seconds=0.3)
        tally = recipe(daemon, module="tests.support.clusters.ranks", **targets).run()
        assert (tally.complete, tally.failed) == ((1, 0) if name == "good" else (0, 1))

    (good,), (bad,) = (archive.proposals.list(name) for name in ("good", "bad"))
    assert good.state is State.COMPLETE
    assert (bad.state, bad.reason) == (
        State.FAILED,
        "the trial took longer than its limit of 3 s (--trial-timeout)",
    )
    assert daemon.device == "cpu+cpu"
    running = [child.cwd() for child in psutil.Process().children(recursive=True)]
    assert not [folder for folder in running if "rank-" in folder]
