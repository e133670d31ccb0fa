"""The daemon against both database servers: whole trials, failures, and what it leaves behind when it goes."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from types import SimpleNamespace

import psutil
import pytest

from archive.errors import StoreUnavailableError
from archive.queue import workers
from archive.queue.causes import Cause
from archive.store.records import State, Study
from archive.trainer.daemon import events, paths
from archive.trainer.daemon.in_flight import failure_notice
from archive.trainer.daemon.options import Tally, TrainerOptions
from archive.trainer.daemon.trainer import Trainer
from archive.trainer.storage import weights_file
from archive.trainer.tasks import registry
from archive.trainer.trial.messages import TrialFailed
from tests.support import faulty, serve, stores, wait_until, whole
from tests.support.networks.nets import TINY_MLP, net

NETS = [TINY_MLP, net("mlp", "relu/32 linear"), net("mlp", "elu/12 tanh/8 linear")]


@dataclass
class Suggestion:
    architecture: object


@pytest.fixture
def trainer(archive, tmp_path):
    """Makes daemons that train on one thread and keep their files with the test."""

    def make(**options) -> Trainer:
        return Trainer(archive, TrainerOptions(**{"threads": 1, "device": "cpu", **options}), home=tmp_path / "trainer")

    return make


@pytest.fixture
def run(trainer):
    """Lets a daemon work until there is nothing to do."""
    return lambda **options: trainer(**{"idle_seconds": 0.3, **options}).run()


def propose(archive, architectures, task="diabetes", protocol=None, name="study", **changes):
    """A study with a proposal for each of these networks."""
    known = registry.get(task)
    study = Study(
        name, task, protocol or known.protocol().name, "mlp", known.objective, known.direction, budget=100, seed=3
    )
    archive.studies.create(dataclasses.replace(study, **changes))
    agent = archive.proposals.register_agent("random", {}, "1")
    return archive.proposals.create(name, agent, [Suggestion(each) for each in architectures])


def states(archive, name="study"):
    return [proposal.state for proposal in archive.proposals.list(name)]


def in_thread(trainer: Trainer) -> threading.Thread:
    thread = threading.Thread(target=trainer.run)
    thread.start()
    return thread


def test_proposals_become_evaluations(archive, run):
    propose(archive, NETS)
    tally = run(slots=2)
    assert (tally.complete, tally.failed, tally.returned) == (3, 0, 0)
    assert states(archive) == [State.COMPLETE] * 3
    for evaluation in archive.studies.evaluations("study"):
        assert evaluation.protocol == "diabetes/1"
        assert evaluation.value == min(evaluation.curve["valid_mse"]) == evaluation.metrics["valid_mse"] < 1.2
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
    thread = in_thread(daemon)
    try:
        curve = wait_until(lambda: archive.proposals.list("study")[0].curve, 60, "the first epochs")
        wait_until(lambda: len(archive.proposals.list("study")[0].curve["epoch"]) > len(curve["epoch"]))
    finally:
        daemon.stop()
        thread.join()
    (proposal,) = archive.proposals.list("study")
    assert (proposal.state, proposal.attempts) == (State.WAITING, 0)
    assert proposal.reason is None
    assert daemon.tally.returned == 1


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


def test_proposal_that_kills_its_process_fails_after_its_attempts(archive, monkeypatch, run):
    monkeypatch.setitem(registry.registry._loaded, "faulty", faulty.faulty(faulty.segfaults))
    propose(archive, NETS[:1], "faulty")
    assert run().failed == 3
    (proposal,) = archive.proposals.list("study")
    assert proposal.state is State.FAILED
    assert "SIGSEGV" in proposal.reason
    assert "3 attempts" in proposal.reason


def test_trial_with_unreadable_messages_fails_alone(archive, monkeypatch, run):
    monkeypatch.setitem(registry.registry._loaded, "faulty", faulty.faulty(faulty.babbles))
    propose(archive, NETS[:1], "faulty", name="bad")
    propose(archive, NETS[:1], name="good")
    tally = run()
    assert (tally.complete, tally.failed) == (1, 3)
    (bad,) = archive.proposals.list("bad")
    assert "a message of the trial cannot be read: it begins with" in bad.reason


@pytest.mark.parametrize(("waited_for", "rested"), [(False, [1, 2, 3]), (True, [])])
def test_trainer_with_a_parent_does_not_back_off(archive, monkeypatch, trainer, waited_for, rested):
    monkeypatch.setitem(registry.registry._loaded, "faulty", faulty.faulty(faulty.segfaults))
    propose(archive, NETS[:1], "faulty")
    daemon, rests = trainer(idle_seconds=0.3, parent=os.getpid() if waited_for else None), []
    monkeypatch.setattr(daemon.client, "back_off", lambda failures, _: rests.append(failures))
    assert daemon.run().failed == 3
    assert rests == rested


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


def test_unknown_protocol_is_left_to_other_workers(archive, trainer):
    propose(archive, NETS[:1], protocol="diabetes/99")
    daemon = trainer(idle_seconds=0.3)
    assert daemon.run() == Tally(returned=1)
    (proposal,) = archive.proposals.list("study")
    assert (proposal.state, proposal.attempts, proposal.refused_by) == (State.WAITING, 0, (daemon.worker,))
    assert "unknown protocol of the task diabetes 'diabetes/99'" in proposal.reason
    assert proposal.cause == Cause.ENVIRONMENT


def recipe(trainer, **others):
    """Give the machine of a trainer recipes of the tests."""
    trainer.paths.home.mkdir(exist_ok=True)
    path = trainer.paths.home / "recipes.toml"
    path.touch(0o600)
    entries = {"mine": "depth", **others}.items()
    path.write_text("".join(f'[{name}]\nfit = "tests.support.recipes:{function}"\n' for name, function in entries))
    return trainer


def test_a_study_is_trained_by_its_recipe_for_its_objective(archive, trainer):
    protocol = "diabetes/1+recipe:mine+objective:depth"
    propose(archive, NETS[:1], protocol=protocol, objective="depth", direction="maximise")
    cost = {"protocol": "diabetes/1+recipe:mine+objective:peak_memory_bytes", "objective": "peak_memory_bytes"}
    propose(archive, NETS[:1], name="cost", **cost)
    assert recipe(trainer(idle_seconds=0.3)).run().complete == 2
    (evaluation,) = archive.studies.evaluations("study")
    depth = float(NETS[0].depth)
    assert (evaluation.protocol, evaluation.value) == (protocol, depth)
    reported = {"depth": depth, "epochs/2": evaluation.epochs / 2, "valid_mse": 0.5}
    assert evaluation.metrics == {**reported, "peak_memory_bytes": evaluation.metrics["peak_memory_bytes"]}
    # What the archive measures can be an objective, too.
    (other,) = archive.studies.evaluations("cost")
    assert other.value == other.metrics["peak_memory_bytes"] > 0
    assert evaluation.curve["epochs/2"] == [epoch / 2 for epoch in evaluation.curve["epoch"]]
    rows = archive.query(
        "MATCH (e:Evaluation)-[:ON]->(t:Task) WHERE e.`metric_epochs/2` > 1 RETURN t.protocol, e.environment"
    ).rows
    assert len(rows) == 2
    assert all('"recipe": "mine"' in row[1] and '"by": "depth"' in row[1] for row in rows)
    # Nothing of it answers the default recipe, and the other way round.
    network = [Suggestion(NETS[0])]
    asked = dataclasses.replace(archive.studies.get("study"), name="new")
    assert archive.answers.known(asked, network)[0].value == depth
    assert archive.answers.known(dataclasses.replace(asked, protocol="diabetes/1"), network) == [None]


@pytest.mark.parametrize("allowed", [None, ("default",)])
def test_a_recipe_that_may_not_run_here_is_left_to_others(archive, trainer, tmp_path, allowed):
    propose(archive, NETS[:1], protocol="diabetes/1+recipe:mine")
    first = trainer(once=True, recipes=allowed)
    if allowed:
        recipe(first)
    assert first.run() == Tally()
    (proposal,) = archive.proposals.list("study")
    assert (proposal.state, proposal.attempts, proposal.refused_by) == (State.WAITING, 0, ())
    assert recipe(trainer(once=True)).run().complete == 1


@pytest.mark.parametrize(
    ("target", "limits", "reason"),
    [
        whole("hangs_in_native_code", {"trial_seconds": 8.0}, "the trial took longer than its limit of 8 s"),
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
    assert (bad.state, bad.attempts, [each.state for each in good]) == (State.FAILED, 0, [State.COMPLETE] * 2)
    assert bad.reason.startswith(reason)
    assert not list(scratch.iterdir())


def test_task_with_an_unknown_error_does_not_stop_the_trainer(archive, monkeypatch, caplog, run):
    task = dataclasses.replace(registry.DIABETES, name="broken", protocols=None)
    monkeypatch.setitem(registry.registry._loaded, "broken", task)
    propose(archive, NETS[:1], "broken", protocol="broken/1", name="bad")
    propose(archive, NETS[:1], name="good")
    assert run() == Tally(complete=1, returned=1)
    (bad,), (good,) = (archive.proposals.list(name) for name in ("bad", "good"))
    assert (bad.state, bad.attempts, good.state) == (State.WAITING, 0, State.COMPLETE)
    assert bad.reason == "TypeError: 'NoneType' object is not iterable"
    assert "cannot start proposal=bad#" in caplog.text


def test_unreadable_table_is_left_to_other_workers(archive, monkeypatch, run):
    def broken(*_):
        raise AttributeError("no column in cafe.csv")

    monkeypatch.setattr("archive.trainer.daemon.table_answers.look_up", broken)
    stores.propose(archive, stores.cells(1), task="nb201-cifar10", protocol="nb201/12")
    assert run() == Tally(returned=1)
    (proposal,) = archive.proposals.list("study")
    assert (proposal.state, proposal.attempts) == (State.WAITING, 0)
    assert proposal.reason == "AttributeError: no column in cafe.csv"


def test_reason_is_valid_unicode():
    claim = SimpleNamespace(id="s#00000", token="t")
    assert failure_notice(claim, TrialFailed("no column in caf\udce9.csv")).reason == "no column in caf?.csv"


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


def test_interrupted_trial_resumes_to_the_same_result(archive, trainer, tmp_path):
    """Handed back by one daemon, killed under the next, finished by the third: the same curve and value."""
    serve.know(serve.LONGER)
    for name in ("study", "undisturbed"):
        propose(archive, NETS[:1], "longer", name=name)
    happened = []
    first = trainer(study="study", checkpoint_seconds=0.0)
    first.observers.append(happened.append)
    thread = in_thread(first)
    wait_until(lambda: any(isinstance(event, events.EpochTrained) for event in happened), 60, "the first epoch")
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
        lambda event: isinstance(event, events.EpochTrained) and os.kill(second.in_flight[0].trial.pid, 9)
    )
    assert second.run().failed == 1

    done = []
    third = trainer(idle_seconds=0.3)
    third.observers.append(lambda event: isinstance(event, events.EpochTrained) and done.append(event.claim.study.name))
    assert third.run().complete == 2
    (disturbed,), (undisturbed,) = (archive.studies.evaluations(name) for name in ("study", "undisturbed"))
    assert archive.proposals.list("study")[0].attempts == 1
    assert disturbed.value == undisturbed.value
    assert _without_time(disturbed) == _without_time(undisturbed)
    # What was done before was not done again.
    assert done.count("study") < done.count("undisturbed") == undisturbed.epochs
    assert not list((tmp_path / "trainer" / "checkpoints").iterdir())


def _without_time(evaluation):
    return {name: values for name, values in evaluation.curve.items() if name != "seconds"}


def test_failing_observer_is_ignored(archive, trainer, caplog):
    propose(archive, NETS[:1])
    daemon = trainer(idle_seconds=0.3)

    def broken(event):
        raise ValueError("no such gauge")

    daemon.observers.append(broken)
    assert daemon.run().complete == 1
    assert "observer failed event=ProposalCompleted" in caplog.text


def test_a_lost_lease_ends_the_trial(archive, trainer):
    serve.know(serve.SLOW)
    (proposal,) = propose(archive, NETS[:1], "slow")
    daemon = trainer()
    thread = in_thread(daemon)
    try:
        wait_until(lambda: archive.proposals.list("study")[0].curve, 60, "the first epochs")
        pid = daemon.in_flight[0].trial.pid
        claim = daemon.in_flight[0].claim
        archive.proposals.fail(proposal.id, claim.token, "taken away by the test")
        wait_until(lambda: daemon.tally.returned, 60, "the end of the trial")
    finally:
        daemon.stop()
        thread.join()
    assert not psutil.pid_exists(pid)
    assert archive.proposals.get(proposal.id).reason == "taken away by the test"


def test_a_cancelled_proposal_stops_its_trial_and_can_be_tried_again(archive, trainer):
    serve.know(serve.SLOW)
    (proposal,) = propose(archive, NETS[:1], "slow")
    daemon = trainer()
    thread = in_thread(daemon)
    try:
        wait_until(lambda: archive.proposals.list("study")[0].curve, 60, "the first epochs")
        pid = daemon.in_flight[0].trial.pid
        assert archive.proposals.cancel(proposal.id)
        wait_until(lambda: daemon.tally.returned, 20, "the end of the trial")
        assert not psutil.pid_exists(pid)
        assert archive.proposals.get(proposal.id).cancelled
        archive.proposals.retry(proposal.id)
        wait_until(lambda: daemon.in_flight and daemon.in_flight[0].trial.pid != pid, 20, "the second trial")
    finally:
        daemon.stop()
        thread.join()


def test_second_claim_of_a_running_proposal_replaces_the_first(archive, trainer):
    serve.know(serve.SLOW)
    (proposal,) = propose(archive, NETS[:1], "slow")
    daemon, happened = trainer(slots=2), []
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


def test_checkpoint_stays_while_a_kill_would_lose_the_result(archive, monkeypatch, trainer, tmp_path):
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


def test_stale_checkpoints_are_removed_while_a_trainer_runs(archive, monkeypatch, trainer, tmp_path):
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
    assert not old.exists()


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
    settle, failures = archive.proposals.settle, []

    def unreliable(*arguments):
        if not failures:
            failures.append(1)
            raise StoreUnavailableError("no server answers")
        return settle(*arguments)

    monkeypatch.setattr(archive.proposals, "settle", unreliable)
    assert run(lease_seconds=3).complete == 1


def test_only_the_requested_study_is_served(archive, run):
    propose(archive, NETS[:1])
    propose(archive, NETS[:1], name="other")
    run(study="other")
    assert (states(archive), states(archive, "other")) == ([State.WAITING], [State.COMPLETE])


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
    wait_until(lambda: archive.proposals.get(proposal.id).attempts == 1 and curve(), 90, "the second attempt")
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
    assert (there.id, there.pid, there.slots, there.study) == (daemon.worker, os.getpid(), 2, "study")
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
