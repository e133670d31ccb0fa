"""Trials on several nodes of a Slurm job, by an srun that starts its tasks on this machine."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import psutil
import pytest

from archive.errors import SettingsError, UsageError
from archive.queue.causes import Cause
from archive.store.records import Result
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.dispatch.node_process import PART_BYTES, lines_of, part_of
from archive.trainer.dispatch.srun_executor import SrunExecutor
from archive.trainer.recipes.source import RecipeSource
from archive.trainer.tasks import registry
from archive.trainer.trial.messages import EpochReport, FrameReader, TrialFailed, TrialFinished
from archive.trainer.trial.ranks import Ranks
from archive.trainer.trial.spec import TrialSpec
from tests.support import ROOT, wait_until
from tests.support.networks.nets import TINY_MLP

pytestmark = pytest.mark.lasts(2)

SRUN = """#!{python} -S
import os, subprocess, sys, threading

words = sys.argv[1:]
count = int([word for word in words if word.startswith("--ntasks=")][0].partition("=")[2])
command = words[[word.startswith("--") for word in words].index(False):]
tasks = []
for number in range(count):
    variables = {{**os.environ, "SLURM_PROCID": str(number)}}
    tasks.append(subprocess.Popen(command, stdin=subprocess.PIPE, env=variables, cwd={root!r}))

def broadcast():
    while line := sys.stdin.buffer.readline():
        for task in tasks:
            task.stdin.write(line)
            task.stdin.flush()
    for task in tasks:
        task.stdin.close()

threading.Thread(target=broadcast, daemon=True).start()
codes = [task.wait() for task in tasks]
print("srun: task failed" if any(codes) else "", file=sys.stderr, flush=True)
os._exit(max(map(abs, codes)))
"""
JOB = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2", "SLURM_CPUS_PER_TASK": "2"}


@pytest.fixture
def executor(tmp_path, monkeypatch):
    """An executor in a job of two nodes; at its end none of its processes stays."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "srun").write_text(SRUN.format(python=sys.executable, root=str(ROOT)))
    (folder / "srun").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("ARCHIVE_PASSWORD", "s3cr3t")
    before = {process.pid for process in psutil.process_iter()}
    opened = SrunExecutor(TrainerOptions(device="cpu", scratch=tmp_path / "scratch"), JOB)
    yield opened
    opened.close()
    wait_until(lambda: not _working(before), 30, "the end of all processes")


def _working(before) -> list[int]:
    """The processes of nodes and ranks that did not run before."""
    working = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or ()
        if process.pid not in before and "archive.trainer.dispatch.node_process" in words:
            working.append(process.pid)

    return working


def job(folder, function: str, **changes) -> TrialSpec:
    task = registry.get("diabetes")
    spec = TrialSpec(
        TINY_MLP,
        task,
        replace(task.protocol(), epochs=2),
        1,
        "auto",
        None,
        folder / "weights",
        recipe=RecipeSource(function, f"tests.support.clusters.ranks:{function}"),
        proposal="s#1",
        checkpoint_folder=folder / "checkpoints",
        log=folder / "log",
        ranks=Ranks(1),
    )
    return replace(spec, **changes)


def told(trial):
    messages = []

    def over() -> bool:
        messages.extend(trial.messages())
        return bool(messages) and not isinstance(messages[-1], EpochReport)

    wait_until(over, 180.0, "the end of the trial")
    trial.kill()
    return messages


def test_ranks_on_two_nodes_have_one_result(executor, tmp_path):
    assert executor.hardware == "2 nodes of Slurm's job 7"
    trial, scratch = executor.start(job(tmp_path, "sums"))
    assert scratch is None and trial.enforces_limits
    *epochs, last = told(trial)
    assert isinstance(last, TrialFinished)
    # Ranks 0 and 1 have 1 and 2 times the number of the epoch.
    assert [epoch.metrics["valid_mse"] for epoch in epochs] == [3.0, 6.0]
    assert last.result.environment["world_size"] == 2
    known = last.result.environment["ranks"]
    places = [(about["RANK"], about["GROUP_RANK"], about["LOCAL_RANK"]) for about in known]
    assert places == [("0", "0", "0"), ("1", "1", "0")]
    assert {about["login"] for about in known} == {None}
    assert "[rank 1] rank 1 sums" in (tmp_path / "log.node1.log").read_text()
    assert not list((tmp_path / "scratch").glob("*/*"))


@pytest.mark.whole
@pytest.mark.parametrize(
    ("fault", "reason", "cause"),
    [
        ("raises", "rank 1: ValueError: no such batch", Cause.TRAINING),
        ("dies", "rank 1: the trial's process was ended by SIGKILL", Cause.CRASH),
        ("hangs", "the trial took longer than its limit of 15 s", Cause.LIMIT),
    ],
)
def test_a_rank_on_another_node_fails_the_trial(executor, tmp_path, fault, reason, cause):
    spec = job(tmp_path, "breaks", hyperparameters={"fault": fault})
    *_, last = told(executor.start(replace(spec, seconds=15.0 if fault == "hangs" else None))[0])
    assert isinstance(last, TrialFailed)
    assert last.reason.startswith(reason)
    assert (last.cause, last.retry) == (cause, cause is Cause.CRASH)


def test_a_step_that_cannot_start_costs_an_attempt(executor, tmp_path):
    (tmp_path / "bin" / "srun").write_text("#!/bin/sh\necho 'srun: error: no nodes' >&2; exit 3\n")
    (last,) = told(executor.start(job(tmp_path, "sums"))[0])
    assert (last.reason, last.retry) == ("srun ended with status 3: srun: error: no nodes", True)


def test_several_trials_or_no_job_are_refused():
    with pytest.raises(UsageError, match="one trial at a time on all nodes, got --slots 2"):
        SrunExecutor(TrainerOptions(slots=2), JOB)

    with pytest.raises(SettingsError, match="archive launch slurm --nodes 2"):
        SrunExecutor(TrainerOptions(), {})


def test_a_message_of_any_length_arrives_in_short_lines():
    message = TrialFinished(Result(0.5, curve={"valid_mse": [0.1] * 5000}))
    frames = FrameReader()
    lines = list(lines_of(3, message))
    assert len(lines) > 10 and max(map(len, lines)) < 1000 > PART_BYTES
    for line in lines:
        node, part = part_of(line.rstrip(b"\n"))
        assert node == 3
        frames.feed(part)

    assert frames.next() == message
    with pytest.raises(ValueError):
        part_of(b"srun: job 7 queued and waiting for resources")
