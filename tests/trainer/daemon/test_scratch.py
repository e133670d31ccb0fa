"""Scratch folders: their size, measured in slices, and their deletion."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from archive.errors import TrainingError
from archive.store.records import State
from archive.trainer.daemon import scratch
from archive.trainer.daemon.in_flight import InFlight
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.scratch import ScratchFolders
from tests.support import wait_until
from tests.support.daemons import NETS, propose, running, states


@pytest.fixture
def folders(tmp_path):
    return ScratchFolders(tmp_path / "scratch")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(scratch, "MEASURE_SECONDS", 0.0)


def filled(folder, files, size):
    for at in range(files):
        inner = folder.path / str(at)
        inner.mkdir()
        inner.joinpath("file").write_bytes(bytes(size))


def used(folder) -> int:
    """The measured size, after enough slices for two measurements."""
    return max(folder.measure() for _ in range(1000))


def test_all_files_of_a_folder_are_measured(folders):
    folder = folders.create()
    assert used(folder) == 0
    filled(folder, 10, 1 << 16)
    os.symlink("/", folder.path / "all")
    assert 10 << 16 <= used(folder) < (10 << 16) + (1 << 18)


def test_a_large_folder_is_measured_in_slices(folders, monkeypatch):
    monkeypatch.setattr(scratch, "SLICE_SECONDS", -1.0)
    folder = folders.create()
    filled(folder, 10, 1 << 16)
    sizes = [folder.measure() for _ in range(30)]
    assert sizes[:3] == [0, *sorted(sizes[1:3])]
    assert max(sizes) >= 10 << 16
    # One entry a call: the first measurement of ten folders with one file each takes twenty.
    assert sizes[15] < max(sizes)


def test_a_folder_that_vanishes_is_empty(folders):
    folder = folders.create()
    filled(folder, 2, 10)
    folder.delete()
    assert used(folder) == 0


def deletions_wait(monkeypatch, only=None):
    """Let the deletion of a folder, or of every one, wait for the event that is returned."""
    delete = scratch._delete
    may_delete = threading.Event()

    def late(path):
        if only in (None, path):
            may_delete.wait()

        delete(path)

    monkeypatch.setattr(scratch, "_delete", late)
    return may_delete


def test_results_do_not_wait_for_the_deletion_of_files(archive, trainer, tmp_path, monkeypatch):
    may_delete = deletions_wait(monkeypatch)
    propose(archive, NETS[:2])
    with running(trainer(scratch=tmp_path / "scratch")):
        try:
            wait_until(lambda: states(archive) == [State.COMPLETE] * 2, 60, "both results")
            assert len(list(tmp_path.glob("scratch/*/*"))) == 2
        finally:
            may_delete.set()

    assert not list(tmp_path.glob("scratch/*"))


def test_a_trainer_does_not_wait_for_the_deletion_of_old_files(
    archive, trainer, tmp_path, monkeypatch
):
    left = tmp_path / "scratch" / f"{ScratchFolders()._prefix}-{2**22 + 1}-x"
    left.mkdir(parents=True)
    may_delete = deletions_wait(monkeypatch, left)
    propose(archive, NETS[:1])
    with running(trainer(scratch=tmp_path / "scratch")):
        try:
            wait_until(lambda: states(archive) == [State.COMPLETE], 60, "the result")
            assert left.is_dir()
        finally:
            may_delete.set()

        wait_until(lambda: not left.exists(), 10, "the deletion")


def test_a_trial_has_limits_of_time_and_space(folders):
    folder = folders.create()
    filled(folder, 2, 1 << 16)
    trial = SimpleNamespace(pid=None, pids=(), due=None, enforces_limits=False)
    each = InFlight(None, trial, scratch=folder)  # type: ignore[arg-type]
    assert each.excess(TrainerOptions(trial_seconds=100.0, scratch_bytes=1 << 30)) is None
    assert each.excess(TrainerOptions(scratch_bytes=None)) is None
    reasons = {each.excess(TrainerOptions(scratch_bytes=1 << 16)) for _ in range(50)} - {None}
    assert all(
        "temporary files took" in one and "more than its limit of 65536 (--scratch-limit)" in one
        for one in reasons
    )
    assert reasons
    each.began -= 101
    reason = each.excess(TrainerOptions(trial_seconds=100.0))
    assert reason == "the trial took longer than its limit of 100 s (--trial-timeout)"


def test_folders_of_trainers_that_were_killed_are_deleted(folders, tmp_path):
    code = (
        "import sys; from pathlib import Path; from archive.trainer.daemon.scratch import "
        "ScratchFolders;"
        "print(ScratchFolders(Path(sys.argv[1])).create().path)"
    )
    command = [sys.executable, "-c", code, str(folders.root)]
    left = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    own = folders.create()
    (folders.root / "archive-scratch-other-1-x").mkdir()
    (folders.root / "mine").mkdir()
    assert os.path.isdir(left)
    assert folders.remove_stale() == 1
    assert not os.path.exists(left)
    assert own.path.is_dir()
    assert (folders.root / "mine").is_dir() and (
        folders.root / "archive-scratch-other-1-x"
    ).is_dir()


def test_a_folder_that_cannot_be_created_is_a_reason(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        TrainingError,
        match=r"no scratch folder could be created in "
        r".*/file/deep: Not a directory",
    ):
        ScratchFolders(tmp_path / "file" / "deep").create()
