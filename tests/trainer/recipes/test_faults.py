"""Faulty recipes in real processes: each fails alone with its reason, and leaves no process or file
behind."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from archive.queue.causes import Cause
from archive.trainer.daemon.scratch import ScratchFolders
from archive.trainer.recipes.source import RecipeSource
from archive.trainer.tasks import registry
from archive.trainer.trial.messages import TrialFailed, TrialFinished, TrialInterrupted
from archive.trainer.trial.process import TrialProcess
from archive.trainer.trial.spec import TrialSpec
from tests.support import ROOT, recipes, wait_until, whole
from tests.support.networks.nets import TINY_MLP
from tests.trainer.trial.test_process import told

pytestmark = pytest.mark.lasts(0.5)

TASK = registry.DIABETES


@pytest.fixture
def start(tmp_path):
    """Starts trials of recipes of the tests; all end with the test."""
    started = []
    folders = ScratchFolders(tmp_path / "scratch")

    def start(recipe: str, /, **changes) -> TrialProcess:
        source = RecipeSource("mine", f"tests.support.recipes:{recipe}")
        given = {
            "recipe": source,
            "log": tmp_path / "a.log",
            "scratch": folders.create().path,
            **changes,
        }
        started.append(
            TrialProcess(TrialSpec(TINY_MLP, TASK, TASK.protocol(), 0, "cpu", 1, tmp_path, **given))
        )
        return started[-1]

    yield start
    for trial in started:
        trial.kill()


@pytest.mark.parametrize(
    ("recipe", "reason", "retry"),
    [
        ("raises", r"^ValueError: no such column \(recipes.py, line \d+\)$", False),
        ("raises_in_a_library", r"^ValueError: .*'five' \(recipes.py, line \d+\)$", False),
        ("raises_at_length", r"^ValueError: x{1988} \(recipes.py, line \d+\)$", False),
        ("leaves", "^the recipe ended the process: SystemExit: 3$", False),
        ("is_cancelled", "^the recipe ended the process: CancelledError: by a library$", False),
        (
            "raises_without_words",
            "^SpeechlessError, whose message cannot be read: AttributeError$",
            False,
        ),
        ("dies", "^the trial's process ended with status 7 before it had a result$", True),
        ("finds_the_disk_full", "^no space left on the disk", True),
        ("diverges", "^training diverged: loss is inf in step 1$", False),
        ("gone", "^the recipe 'mine' cannot be loaded .*AttributeError", True),
        ("babbles", "^a message of the trial cannot be read: it begins with", True),
        ("boasts", "^a message of the trial cannot be read: it has 4294967295 bytes", True),
        ("dies_while_its_child_holds_the_pipe", "^the trial's process ended with status 7", True),
    ],
)
def test_a_faulty_recipe_fails_with_its_reason(start, recipe, reason, retry):
    *_, last = told(start(recipe))
    assert isinstance(last, TrialFailed)
    assert last.retry is retry
    assert re.search(reason, last.reason)


def test_the_reason_has_the_innermost_line_of_the_recipe(start):
    *_, last = told(start("raises_in_a_library"))
    number = int(re.search(r"line (\d+)\)$", last.reason)[1])
    assert "return Fraction(text)" in Path(recipes.__file__).read_text().splitlines()[number - 1]


def test_a_broken_pipe_of_a_recipe_is_no_dead_daemon(start):
    trial = start("loses_its_helper")
    *_, last = told(trial)
    assert isinstance(last, TrialFailed)
    assert re.search(
        r"^BrokenPipeError: \[Errno 32\] Broken pipe \(recipes.py, line \d+\)$", last.reason
    )
    assert last.cause is Cause.ENVIRONMENT
    assert "Traceback" in last.log_tail and "in loses_its_helper" in trial.spec.log.read_text()


@pytest.mark.parametrize(
    "recipe", ["hangs", "hangs_in_native_code", "stammers", "closes_everything"]
)
def test_a_recipe_that_hangs_never_blocks_the_daemon_and_can_be_killed(start, recipe):
    trial = start(recipe)
    process = psutil.Process(trial.pid)
    wait_until(
        lambda: "attempt began" in trial.spec.log.read_text() if trial.spec.log.exists() else False
    )
    time.sleep(0.3)
    if sys.platform == "linux":
        # Where memory runs out, the kernel ends the trial rather than the daemon or the database.
        assert Path(f"/proc/{trial.pid}/oom_score_adj").read_text() == "1000\n"

    began = time.process_time()
    for _ in range(20):
        assert not any(isinstance(message, TrialFailed) for message in trial.messages())

    assert time.process_time() - began < 1
    failed = trial.abandon("too long", Cause.LIMIT)
    assert (failed.reason, failed.retry) == ("too long", False)
    assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_what_a_recipe_prints_is_in_its_log_alone(start):
    trial = start("prints")
    (last,) = told(trial)
    assert isinstance(last, TrialFinished)
    logged = trial.spec.log.read_bytes()
    assert all(
        text in logged
        for text in (b'{"kind": "TrialFailed"}', bytes(range(256)), b"native", b"a program")
    )


def test_the_record_names_the_file_that_was_imported(start, tmp_path):
    text = """
def fit(trial):
    with open(__file__, "a") as file:
        file.write("# Edited during the training.")
    return FitResult({"valid_mse": 1.0}, environment={"recipe": "another", "by": "hand"})
"""
    file = tmp_path / "edited.py"
    file.write_text("from archive.trainer.recipes.base import FitResult\n" + text)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    environment = told(start("", recipe=RecipeSource("mine", f"{file}:fit", "recipes.toml")))[
        -1
    ].result.environment
    assert file.read_text().endswith("training.")
    known = {name: environment[name] for name in ("recipe", "recipe_version", "by")}
    assert known == {"recipe": "mine", "recipe_version": f"sha256:{digest}", "by": "hand"}


def test_a_forked_child_cannot_report(start):
    report, last = told(start("reports_from_a_fork"))
    assert report.metrics["valid_mse"] == last.result.value == 1.0


def test_a_recipe_may_work_in_processes(start):
    assert told(start("works_in_processes"))[-1].result.value == 28.0


@pytest.mark.parametrize("recipe", ["litters", "leaves_files_on_a_slow_disk", "hangs"])
def test_temporary_files_end_with_the_trial(tmp_path, recipe):
    folders = ScratchFolders(tmp_path / "scratch")
    folder = folders.create()
    assert stat.S_IMODE(folder.path.parent.stat().st_mode) == 0o700
    source = RecipeSource("mine", f"tests.support.recipes:{recipe}")
    spec = TrialSpec(
        TINY_MLP, TASK, TASK.protocol(), 0, "cpu", 1, tmp_path, recipe=source, scratch=folder.path
    )
    trial = TrialProcess(spec)
    if recipe == "leaves_files_on_a_slow_disk":
        # The result does not wait for the deletion.
        assert told(trial)[-1].result.value == 1.0
    elif recipe == "litters":
        # The file here, the temporary one, the one in the scratch folder, and a folder without
        # rights.
        assert told(trial)[-1].result.value == 4.0
    else:
        wait_until(trial.messages, what="the report")
        trial.kill()

    folder.delete()
    assert not folder.path.exists()
    folders.close()
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.parametrize(
    "end",
    ["finishes", whole("raises"), whole("dies"), "hangs", "is killed", whole("is interrupted")],
)
def test_all_processes_end_with_the_trial(start, tmp_path, end):
    note = tmp_path / "pids"
    neighbour = start("hangs", log=None)
    trial = start(
        "family",
        hyperparameters={"note": str(note), "end": "hangs" if end.startswith("is") else end},
    )
    wait_until(note.exists, 60, "the family")
    if end == "is killed":
        os.kill(trial.pid, signal.SIGKILL)
    elif end == "is interrupted":
        trial.interrupt()

    if end == "hangs":
        trial.abandon("too long", Cause.STALL)
    else:
        *_, last = told(trial)
        kind = {"finishes": TrialFinished, "is interrupted": TrialInterrupted}.get(end, TrialFailed)
        assert isinstance(last, kind)

    pids = [int(pid) for pid in note.read_text().split()]
    assert len(pids) == 5
    wait_until(lambda: not any(map(_lives, pids)), what="the end of all processes")
    assert _lives(neighbour.pid)


def test_all_processes_end_with_the_daemon(tmp_path):
    """The trial kills its family when it finds that its daemon is gone."""
    note = tmp_path / "pids"
    code = f"""
        import time
        from pathlib import Path
        from archive.trainer.recipes.source import RecipeSource
        from archive.trainer.tasks import registry
        from archive.trainer.trial.process import TrialProcess
        from archive.trainer.trial.spec import TrialSpec
        from tests.support.networks.nets import TINY_MLP
        task, recipe = registry.DIABETES, RecipeSource("mine", "tests.support.recipes:family")
        asked = {{"note": {str(note)!r}, "end": "hangs"}}
        # Without the reference its pipe would be closed at once.
        trial = TrialProcess(
            TrialSpec(TINY_MLP, task, task.protocol(), 0, "cpu", 1, Path(), hyperparameters=asked, recipe=recipe)
        )
        time.sleep(600)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT) as daemon:
        wait_until(lambda: note.exists() and len(note.read_text().split()) == 5, 120, "the family")
        daemon.kill()

    pids = [int(pid) for pid in note.read_text().split()]
    wait_until(lambda: not any(map(_lives, pids)), 60, what="the end of all processes")


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
