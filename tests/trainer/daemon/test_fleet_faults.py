"""Faults of one machine of a fleet: its proposals wait untouched, and another machine finishes
them."""

from __future__ import annotations

import resource

import pytest

from archive.queue import workers
from archive.queue.causes import Cause
from archive.store.records import State
from archive.trainer.daemon import events
from archive.trainer.daemon.options import Tally
from archive.trainer.trial import devices
from archive.trainer.trial.devices import Device
from tests.support import serve, wait_until
from tests.support.daemons import NETS, in_thread, propose, recipe, states
from tests.support.networks.nets import net

GPU = Device("cuda", "cuda:0", "H100", 80 << 30, visible="0")
"""A GPU whose driver has gone after it was found: torch of the trials looks for it in vain."""

without_gpu = pytest.mark.skipif(bool(devices.system_gpus()), reason="a GPU is here")


@without_gpu
@pytest.mark.lasts(8)
def test_dead_gpu_fails_nothing(archive, monkeypatch, trainer):
    propose(archive, [net("mlp", f"relu/{8 + i} linear") for i in range(20)])
    monkeypatch.setattr(devices, "find", lambda _: [GPU])
    broken = trainer()
    assert broken.run() == Tally(returned=3)
    assert broken.outcomes.unfit
    proposals = archive.proposals.list("study")
    assert [(each.state, each.attempts) for each in proposals] == [(State.WAITING, 0)] * 20
    refused = [each for each in proposals if each.refused_by]
    assert [each.refused_by for each in refused] == [(broken.worker,)] * 3
    assert all(
        each.cause == Cause.DEVICE and each.reason.startswith("the device failed: ")
        for each in refused
    )
    (status,) = workers.statuses(archive.connection)
    assert (status.state, status.devices, status.capabilities.memory_bytes) == (
        "left",
        ("cuda:0 (H100)",),
        80 << 30,
    )
    monkeypatch.undo()
    sound = trainer(once=True)
    assert sound.run() == Tally(complete=1)
    assert archive.proposals.get(refused[0].id).state is State.COMPLETE


@pytest.mark.whole
def test_a_trial_that_finishes_at_the_end_leaves_the_machine_unfit(archive, trainer):
    propose(archive, NETS[:1], protocol="diabetes/1+recipe:mine", name="first")
    daemon = recipe(trainer(slots=2), mine="ends_when_told", faulty="no_such_function")
    reports = []
    daemon.observers.append(
        lambda event: isinstance(event, events.EpochTrained) and reports.append(event)
    )
    thread = in_thread(daemon)
    wait_until(lambda: reports, 60, "the training of the first study")
    propose(archive, NETS, protocol="diabetes/1+recipe:faulty", name="second")
    thread.join()
    assert daemon.tally == Tally(complete=1, returned=3)
    assert states(archive, "first") == [State.COMPLETE]
    assert daemon.outcomes.unfit and "no_such_function" in daemon.outcomes.refusal


def test_out_of_memory_beside_a_neighbour_is_tried_alone(archive, tmp_path, trainer):
    propose(archive, NETS[:2], protocol="diabetes/1+recipe:mine")
    daemon = recipe(
        trainer(slots=2, idle_seconds=0.5, scratch=tmp_path / "scratch"),
        mine="needs_most_of_the_memory",
    )
    tally = daemon.run()
    assert (tally.complete, tally.failed) == (2, 1)
    one, other = sorted(archive.proposals.list("study"), key=lambda each: each.alone)
    assert (one.state, other.state, one.attempts, other.attempts) == (
        State.COMPLETE,
        State.COMPLETE,
        0,
        0,
    )
    assert not one.alone and other.alone and other.memory_bytes > 3 << 20


def test_unknown_task_is_left_to_other_workers(archive, run):
    propose(archive, NETS[:1], protocol="elsewhere/1", name="study", task="diabetes")
    archive.query(
        "MATCH (:Study {name: 'study'})-[:ON]->(t:Task) SET t.name = 'elsewhere'", write=True
    )
    assert run() == Tally()
    (proposal,) = archive.proposals.list("study")
    assert (proposal.state, proposal.attempts, proposal.refused_by) == (State.WAITING, 0, ())


@pytest.mark.whole
@pytest.mark.lasts(8)
def test_full_disk_of_one_machine(archive, start, run):
    serve.know(serve.BULKY)
    propose(archive, NETS[:2], "bulky")
    full = start()
    # As a full disk, for files that are larger than a log.
    resource.prlimit(full.pid, resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
    wait_until(
        lambda: all(each.refused_by for each in archive.proposals.list("study")), 60, "two refusals"
    )
    proposals = archive.proposals.list("study")
    assert [(each.state, each.attempts, each.cause) for each in proposals] == [
        (State.WAITING, 0, "disk-full")
    ] * 2
    (status,) = workers.statuses(archive.connection)
    assert (status.state, status.rest_reason) == ("resting", "no space left on the disk")
    # A busy machine may starve a short lease.
    assert run(lease_seconds=120.0) == Tally(complete=2)
    assert states(archive) == [State.COMPLETE] * 2
    assert full.poll() is None
