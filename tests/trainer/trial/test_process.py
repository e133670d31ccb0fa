"""Trials in separate processes: their results, and the reasons of their deaths."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time
from multiprocessing import spawn, util

import psutil
import pytest

from archive.queue.causes import Cause
from archive.trainer.fit.train import train
from archive.trainer.storage import weights_file
from archive.trainer.tasks import registry
from archive.trainer.trial import devices, fork_server
from archive.trainer.trial.messages import EpochReport, TrialFailed, TrialFinished
from archive.trainer.trial.process import TrialProcess
from archive.trainer.trial.spec import TrialSpec
from tests.support import ROOT, faulty, wait_until, whole
from tests.support.networks.nets import TINY_CNN, TINY_MLP

pytestmark = pytest.mark.lasts(1)


def job(task, folder, architecture=TINY_MLP, seed=1):
    protocol = task.protocol(f"{task.name}/1")
    return TrialSpec(
        architecture,
        task,
        dataclasses.replace(protocol, epochs=min(protocol.epochs, 10)),
        seed,
        "cpu",
        1,
        folder,
        {"proposal": "s#1"},
    )


def told(trial: TrialProcess, seconds: float = 120.0):
    """All messages of a trial, to its last."""
    messages = []

    def over():
        messages.extend(trial.messages())
        return messages and not isinstance(messages[-1], EpochReport)

    try:
        wait_until(over, seconds, "the end of the trial")
    finally:
        trial.kill()

    return messages


def test_trial_reports_epochs_and_saves_weights(tmp_path):
    task = registry.get("diabetes")
    *epochs, last = told(TrialProcess(job(task, tmp_path)))
    assert isinstance(last, TrialFinished)
    result = last.result
    assert [epoch.metrics["valid_mse"] for epoch in epochs] == result.curve["valid_mse"]
    assert result.value == result.metrics["valid_mse"] == min(result.curve["valid_mse"])
    assert (result.seed, result.device, result.epochs) == (1, "cpu", len(epochs))
    assert result.environment["threads"] == 1
    saved = weights_file.load(result.weights)
    assert saved.architecture == TINY_MLP.canonical
    form = json.loads(json.dumps(dataclasses.asdict(task.form())))
    about = {"task": "diabetes", "protocol": "diabetes/1", "seed": 1, "proposal": "s#1"}
    assert saved.metadata == {**about, "form": form}


def test_trial_has_the_result_of_the_loop(tmp_path):
    task = registry.get("digits")
    # The epochs are alike.
    protocol = dataclasses.replace(task.protocol("digits/1"), epochs=3)
    spec = dataclasses.replace(job(task, tmp_path, TINY_CNN), protocol=protocol)
    *_, last = told(TrialProcess(spec))
    here = train(TINY_CNN, task, protocol, seed=1)
    assert last.result.curve["valid_accuracy"] == pytest.approx(
        here.curve["valid_accuracy"], abs=0.01
    )


def test_weights_that_cannot_be_saved_do_not_cost_the_result(tmp_path):
    (tmp_path / "weights").write_text("a file where the folder should be")
    *_, last = told(TrialProcess(job(registry.get("diabetes"), tmp_path / "weights")))
    assert isinstance(last, TrialFinished)
    assert last.result.weights is None
    assert "cannot write weights" in last.result.environment["weights_not_saved"]


@pytest.mark.parametrize(
    ("loader", "reason", "cause", "retry", "refused"),
    [
        (faulty.exits, "ended with status 7", Cause.CRASH, True, False),
        (faulty.segfaults, "ended by SIGSEGV", Cause.CRASH, True, False),
        (faulty.is_killed, "ended by SIGKILL.*out of memory", Cause.CRASH, True, False),
        (faulty.raises, "ValueError: no such column", Cause.TRAINING, False, False),
        (
            faulty.is_not_here,
            "^the data of faulty are not found in /nowhere$",
            Cause.DATA,
            True,
            True,
        ),
        (faulty.has_no_files_left, "Too many open files", Cause.ENVIRONMENT, True, True),
        (faulty.runs_out_of_memory, "^out of memory$", Cause.OUT_OF_MEMORY, False, False),
        (
            faulty.asks_for_too_much,
            "^out of memory( on cpu)?: .*you tried to",
            Cause.OUT_OF_MEMORY,
            False,
            False,
        ),
        (
            faulty.breaks_the_device,
            "^the device failed: CUDA error: an illegal memory",
            Cause.DEVICE,
            True,
            True,
        ),
        (
            faulty.has_holes,
            "training diverged: train_loss is nan in epoch 1",
            Cause.TRAINING,
            False,
            False,
        ),
    ],
)
def test_failed_trial_has_a_reason_and_a_cause(tmp_path, loader, reason, cause, retry, refused):
    (last,) = told(TrialProcess(job(faulty.faulty(loader), tmp_path)))
    assert isinstance(last, TrialFailed)
    assert (last.cause, last.retry, last.refused) == (cause, retry, refused)
    assert (last.memory is not None) == (cause is Cause.OUT_OF_MEMORY)
    if loader is faulty.asks_for_too_much:
        assert last.memory.needed > 1 << 60 > last.memory.capacity

    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(last.reason)


def test_unsuitable_network_fails_without_retry(tmp_path):
    (last,) = told(TrialProcess(job(registry.get("diabetes"), tmp_path, TINY_CNN)))
    assert isinstance(last, TrialFailed)
    assert not last.retry
    assert "needs images" in last.reason


def test_a_trial_can_be_ended_at_any_time(tmp_path):
    trial = TrialProcess(job(faulty.faulty(faulty.hangs), tmp_path))
    process = psutil.Process(trial.pid)
    trial.kill()
    wait_until(
        lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE,
        what="its death",
    )


@pytest.mark.whole
def test_a_trial_does_not_run_the_main_module_again(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import sys
            sys.path.insert(0, {str(ROOT)!r})
            from archive.trainer.trial import devices, fork_server
            print("once", devices.find("cpu")[0].label)
            """
        )
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.split()[:2] == ["once", "cpu"]
    assert done.stdout.count("once") == 1
    assert not done.stderr


def test_main_is_hidden_from_a_trial_and_not_from_other_threads(monkeypatch):
    """The hiding is of the thread that starts a trial: others pickle classes of their script
    meanwhile."""
    seen = []
    main = sys.modules["__main__"]

    def looks() -> None:
        seen.extend(
            [
                sys.modules["__main__"] is main,
                "init_main_from_path" in spawn.get_preparation_data("other"),
            ]
        )

    monkeypatch.setattr(main, "__spec__", None)
    monkeypatch.setattr(main, "__file__", "/a/script.py", raising=False)
    start = multiprocessing.get_context("forkserver").Process.start

    def slow(process) -> None:
        seen.append(
            [name for name in spawn.get_preparation_data("trial") if name.startswith("init_main")]
        )
        thread = threading.Thread(target=looks)
        thread.start()
        thread.join()
        start(process)

    monkeypatch.setattr(multiprocessing.get_context("forkserver").Process, "start", slow)
    assert devices.find("cpu")[0].label == "cpu"
    assert seen == [[], True, True]
    assert "init_main_from_path" in spawn.get_preparation_data("later")


def test_loader_of_the_script_itself_is_refused(monkeypatch, tmp_path):
    def loader(_):
        raise AssertionError

    loader.__module__ = "__main__"
    loader.__qualname__ = "loader"
    monkeypatch.setattr(sys.modules["__main__"], "loader", loader, raising=False)
    with pytest.raises(
        pickle.PicklingError, match="loader is defined in the script itself: put it into a module"
    ):
        TrialProcess(job(faulty.faulty(loader), tmp_path))


LOGIN = {
    "ARCHIVE_PASSWORD": "S3cr3t",
    "ARCHIVE_PASSWORD_FILE": "/run/secrets/S3cr3t",
    "ARCHIVE_USER": "S3cr3t",
    "ARCHIVE_DB": "bolt://S3cr3t:7687",
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """Returns a separate process that starts trials, with the login, and the lines that it prints
    once a last one hangs."""
    daemons = {}

    def daemon(started="by the daemon"):
        if started in daemons:
            return daemons[started]

        code = f"""
            import multiprocessing, os, sys, time
            from multiprocessing import connection, forkserver
            from pathlib import Path
            if __name__ == "__main__":
                if {started!r} != "by the daemon":
                    forkserver.ensure_running()
                from archive.trainer.tasks import registry as tasks
                from archive.trainer.trial.messages import TrialFailed, TrialFinished
                from archive.trainer.trial.process import TrialProcess
                from archive.trainer.trial.spec import TrialSpec
                from tests.support import faulty
                from tests.support.networks.nets import TINY_MLP

                folder = Path({str(tmp_path_factory.mktemp("weights"))!r})

                def start(task):
                    return TrialProcess(TrialSpec(TINY_MLP, task, task.protocol(), 0, "cpu", 1, folder))

                def last_message(task):
                    trial, last = start(task), None
                    while not isinstance(last, (TrialFailed, TrialFinished)):
                        connection.wait(trial.waitable)
                        last = (trial.messages() or [last])[-1]
                    return last

                assert isinstance(last_message(tasks.get("diabetes")), TrialFinished)
                reason = last_message(faulty.faulty(faulty.tells_its_environment)).reason
                assert "torch" not in sys.modules
                assert os.environ["ARCHIVE_PASSWORD"] == "S3cr3t"
                trial = start(faulty.faulty(faulty.hangs))
                print(reason)
                print(trial.pid, flush=True)
                time.sleep(600)
        """
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)],
            cwd=ROOT,
            env={**os.environ, **LOGIN, "OTHER": "stays"},
            stdout=subprocess.PIPE,
            text=True,
        )
        daemons[started] = process, [process.stdout.readline() for _ in range(2)]
        return daemons[started]

    yield daemon
    for process, _ in daemons.values():
        with process:
            process.kill()


@pytest.mark.parametrize("started", ["by the daemon", whole("by others, before")])
def test_a_trial_does_not_have_the_login_of_the_database(daemon, started):
    """In a separate process, whose fork server has this environment or not; nor does a process that
    starts trials need torch."""
    _, (reason, _) = daemon(started)
    found, initial = reason.rstrip().removeprefix("ValueError: ").split("|")
    assert "OTHER" in found.split(",")
    assert not LOGIN.keys() & set(found.split(","))
    if started == "by the daemon":
        assert not LOGIN.keys() & set(initial.split(","))


def test_a_trial_ends_when_its_daemon_is_killed(daemon):
    process, (_, pid) = daemon()
    trial = psutil.Process(int(pid))
    process.kill()
    wait_until(
        lambda: not trial.is_running() or trial.status() == psutil.STATUS_ZOMBIE,
        60,
        "the end of the trial",
    )


def test_the_login_stays_in_the_environment_of_this_process(monkeypatch, tmp_path):
    # Another thread may connect to the database while the fork server starts.
    for name, value in {**LOGIN, "OTHER": "stays"}.items():
        monkeypatch.setenv(name, value)

    def names(own):
        before = dict(os.environ)
        with own:
            process = util.spawnv_passfds(
                b"/bin/sh", ["/bin/sh", "-c", f"env > '{tmp_path}/environment'"], []
            )
            assert dict(os.environ) == before
            os.waitpid(process, 0)

        return {
            line.partition("=")[0] for line in (tmp_path / "environment").read_text().splitlines()
        }

    assert {*LOGIN, "OTHER"} <= names(contextlib.nullcontext())
    of_fork_server = names(fork_server._separately())
    assert "OTHER" in of_fork_server and not LOGIN.keys() & of_fork_server


def test_signals_to_the_whole_group_leave_the_decision_to_the_daemon(tmp_path):
    trial = TrialProcess(job(faulty.faulty(faulty.hangs), tmp_path))
    process = psutil.Process(trial.pid)
    server = process.parent()
    for each in (server, process):
        os.kill(each.pid, 15)

    time.sleep(0.5)
    assert process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    assert server.is_running()
    trial.kill()


def test_a_fork_server_that_is_killed_is_replaced(tmp_path):
    task = registry.get("diabetes")
    running = TrialProcess(job(task, tmp_path))
    server = psutil.Process(running.pid).parent()
    server.kill()
    assert isinstance(told(running)[-1], TrialFinished)
    again = TrialProcess(job(task, tmp_path))
    assert psutil.Process(again.pid).ppid() != server.pid
    assert isinstance(told(again)[-1], TrialFinished)


def test_an_orphan_of_the_fork_server_can_be_ended(tmp_path):
    trial = TrialProcess(job(faulty.faulty(faulty.hangs), tmp_path))
    process = psutil.Process(trial.pid)
    process.parent().kill()
    time.sleep(0.2)
    trial.kill()
    wait_until(
        lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE,
        what="its death",
    )
