"""Trials of several ranks: one result, one failure, and no process that stays."""

from __future__ import annotations

from dataclasses import replace

import psutil
import pytest

from archive.queue.causes import Cause
from archive.store.records import Result
from archive.trainer.recipes.source import RecipeSource
from archive.trainer.tasks import registry
from archive.trainer.trial import group
from archive.trainer.trial.group import GroupEnd, TrialGroup
from archive.trainer.trial.messages import (
    EpochReport,
    TrialFailed,
    TrialFinished,
    TrialInterrupted,
)
from archive.trainer.trial.ranks import Ranks
from archive.trainer.trial.spec import TrialSpec
from tests.support import wait_until
from tests.support.networks.nets import TINY_MLP

pytestmark = pytest.mark.lasts(1)


def job(folder, function: str, **changes) -> TrialSpec:
    task = registry.get("diabetes")
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    spec = TrialSpec(
        TINY_MLP,
        task,
        replace(task.protocol(), epochs=3),
        1,
        "cpu",
        2,
        folder / "weights",
        recipe=RecipeSource(function, f"tests.support.clusters.ranks:{function}"),
        proposal="s#1",
        checkpoint_folder=folder / "checkpoints",
        scratch=scratch,
        log=folder / "log",
        ranks=Ranks(2),
    )
    return replace(spec, **changes)


def told(trial: TrialGroup, until=lambda message: not isinstance(message, EpochReport)):
    """The messages of a trial, up to one."""
    messages = []

    def arrived() -> bool:
        messages.extend(trial.messages())
        return any(map(until, messages))

    try:
        wait_until(arrived, 120.0, "a message of the trial")
    except BaseException:
        trial.kill()
        raise

    return messages


def alive(pids) -> list[int]:
    living = []
    for pid in pids:
        if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            living.append(pid)

    return living


@pytest.mark.parametrize("wrapped", [False, pytest.param(True, marks=pytest.mark.whole)])
def test_ranks_have_the_gradient_of_one_process_and_one_result(tmp_path, wrapped):
    trial = group.start(job(tmp_path, "gradient", hyperparameters={"wrapped": wrapped}))
    assert len(set(trial.pids)) == 2 and trial.pid == trial.pids[0]
    *epochs, last = told(trial)
    wait_until(lambda: not alive(trial.pids), 20, "the end of both")
    assert trial.messages() == []
    trial.kill()
    assert isinstance(last, TrialFinished)
    # Reports of the other rank are ignored, and so is its result.
    assert len(epochs) == 1
    assert last.result.value == epochs[0].metrics["valid_mse"] < 1e-6 < epochs[0].metrics["norm"]
    assert last.result.environment["world_size"] == 2
    known = last.result.environment["ranks"]
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK")
    variables = [tuple(about[name] for name in names) for about in known]
    assert variables == [("0", "2", "0", "2", "0"), ("1", "2", "1", "2", "0")]
    # The threads of the trial are shared out.
    assert {(about["device"], about["threads"]) for about in known} == {("cpu", 1)}
    folders = [about["scratch"] for about in known]
    assert folders == [str(tmp_path / "scratch" / f"rank-{rank}") for rank in range(2)]
    assert folders == [about["cwd"] for about in known]
    lines = (tmp_path / "log").read_text().splitlines()
    assert {"[rank 0] printed by 0", "[rank 1] printed by 1"} <= set(lines)


@pytest.mark.parametrize(
    ("fault", "reason", "cause"),
    [
        ("raises", "rank 1: ValueError: no such batch (ranks.py, line ", Cause.TRAINING),
        ("raises after it has left", "rank 1: ValueError: no such batch", Cause.TRAINING),
        ("dies", "rank 1: the trial's process was ended by SIGKILL", Cause.CRASH),
    ],
)
def test_failure_of_a_rank_is_the_failure_of_the_trial(tmp_path, fault, reason, cause):
    trial = group.start(job(tmp_path, "breaks", hyperparameters={"fault": fault}))
    *_, last = told(trial)
    trial.kill()
    assert isinstance(last, TrialFailed)
    assert last.reason.startswith(reason)
    assert (last.cause, last.retry) == (cause, cause is Cause.CRASH)
    assert not alive(trial.pids)
    # The end of its log has the rank's own lines alone.
    assert "rank 1 breaks" in last.log_tail
    assert "[rank" not in last.log_tail


def test_a_hanging_trial_is_ended_with_all_ranks_and_their_stacks(tmp_path):
    trial = group.start(job(tmp_path, "breaks"))
    told(trial, lambda message: isinstance(message, EpochReport))
    wait_until(lambda: "rank 1 breaks" in (tmp_path / "log").read_text(), 20, "rank 1")
    seen = trial.last_seen
    assert trial.messages() == []
    assert trial.last_seen == seen
    failed = trial.abandon("it hangs", Cause.LIMIT)
    assert (failed.reason, failed.retry) == ("it hangs", False)
    assert not alive(trial.pids)
    assert (tmp_path / "log").read_text().count("in breaks") == 2
    assert "in breaks" in failed.log_tail
    assert trial.messages() == []


def test_an_interrupted_trial_resumes_from_the_checkpoint_of_its_first_rank(tmp_path):
    trial = group.start(job(tmp_path, "resumes"))
    told(trial, lambda message: isinstance(message, EpochReport))
    trial.interrupt()
    *_, last = told(trial)
    trial.kill()
    assert last == TrialInterrupted(saved=True, epoch=1)
    assert not alive(trial.pids)

    *epochs, last = told(trial := group.start(job(tmp_path, "resumes")))
    trial.kill()
    assert [epoch.resumed for epoch in epochs] == [True, False, False]
    assert last.result.curve["valid_mse"] == [3.0, 9.0, 18.0]
    assert last.result.environment["states"] == [{"total": 3.0, "by": 0}] * 2


@pytest.mark.whole
@pytest.mark.parametrize("framework", ["pytorch_lightning", "accelerate"])
def test_frameworks_find_the_ranks(tmp_path, framework):
    """Each rank takes its half of the 64 examples in batches of 16, and all have one network."""
    pytest.importorskip(framework)
    function = f"by_{framework.removeprefix('pytorch_')}"
    trial = group.start(job(tmp_path, function))
    *_, last = told(trial)
    trial.kill()
    assert isinstance(last, TrialFinished), last
    assert (last.result.metrics["ranks"], last.result.metrics["steps"]) == (2, 2)
    assert last.result.value < 1e-6
    assert last.result.environment["rank"] == 0


PEER = TrialFailed("RuntimeError: [pair.cc:5] Connection closed by peer [127.0.0.1]:7")
RAISED = TrialFailed("rank 1: ValueError: no such batch")
DEAD = TrialFailed("rank 1: the trial's process was ended by SIGABRT", True, cause=Cause.CRASH)
DONE = TrialFinished(Result(0.5))
PAUSED = TrialInterrupted(True, 1)


@pytest.mark.parametrize(
    ("ends", "early", "late"),
    [
        ([(0, DONE)], None, DONE),
        ([(1, DONE)], None, None),
        ([(0, DONE), (1, DONE)], DONE, None),
        ([(1, DONE), (0, PAUSED)], PAUSED, None),
        ([(1, RAISED)], RAISED, None),
        ([(0, PEER), (1, RAISED)], RAISED, None),
        ([(0, PEER), (1, DEAD)], DEAD, None),
        # Nobody tells why a connection broke: the machine or the network may.
        ([(0, PEER)], None, replace(PEER, retry=True, cause=Cause.CRASH)),
        ([(0, PEER), (1, DONE)], replace(PEER, retry=True, cause=Cause.CRASH), None),
        # The end of the first rank breaks the others, and costs nothing.
        ([(0, DONE), (1, PEER)], DONE, None),
        ([(0, DONE), (1, DEAD)], DONE, None),
        ([(0, DONE), (1, RAISED)], RAISED, None),
    ],
)
def test_last_message_of_a_trial(monkeypatch, ends, early, late):
    now = [100.0]
    monkeypatch.setattr(group.time, "monotonic", lambda: now[0])
    end = GroupEnd(2)
    for member, message in ends:
        end.note(member, message)

    assert end.last() == early
    now[0] += group.SETTLE_SECONDS + group.END_SECONDS
    assert end.last() == late
    assert end.last() is None


def test_a_part_of_a_trial_leaves_a_broken_connection_to_the_whole():
    part, whole = GroupEnd(1, whole=False), GroupEnd(2)
    part.note(0, PEER)
    whole.note(0, part.last())
    assert whole.last() is None
    whole.note(1, DEAD)
    assert whole.last() == DEAD


def test_variables_are_those_of_torchrun():
    ranks = Ranks(2, 1, 3, 2, "10.0.0.1", 29500, "abc")
    variables = ranks.environment()
    assert (variables["RANK"], variables["WORLD_SIZE"]) == ("5", "6")
    assert (variables["LOCAL_RANK"], variables["GROUP_RANK"]) == ("1", "2")
    assert (variables["MASTER_ADDR"], variables["MASTER_PORT"]) == ("10.0.0.1", "29500")
    assert Ranks().environment() == {}
