"""Folders of a daemon: which old files it removes there, and when."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace

import pytest

from archive.errors import SettingsError, StoreUnavailableError
from archive.queue.updates import Completion
from archive.store.records import Result
from archive.trainer.daemon import paths
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.paths import TrainerPaths
from archive.trainer.daemon.placement import TrainerDevices
from archive.trainer.storage import checkpoints
from archive.trainer.tasks import registry
from archive.trainer.trial import devices

CLAIM = SimpleNamespace(id="s#1", token="token")
COMPLETION = Completion("s#1", "token", Result(0.5))


@pytest.fixture
def folders(tmp_path):
    return TrainerPaths(tmp_path, TrainerOptions(device="cpu"))


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """The removal of old files has no thread of its own."""
    monkeypatch.setattr(paths, "in_background", lambda work, name: work())


def stored(folders, proposal: str, age: float = 0.0):
    """Write a checkpoint of some age."""
    path = checkpoints.path_of(folders.checkpoints, proposal)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"state")
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_discarded_checkpoint_is_removed_when_the_result_is_on_disk(folders):
    spool, checkpoint, other = (
        folders.spool("x"),
        stored(folders, "s#1"),
        stored(folders, "s#2"),
    )
    spool.folder.write_text("a file where the folder should be")
    spool.put(COMPLETION)
    folders.discard_checkpoint(CLAIM)
    folders.clean_up(spool)
    assert checkpoint.exists()
    spool.folder.unlink()
    spool._unwritten.update(dict.fromkeys(spool._unwritten, 0.0))
    spool.put(COMPLETION)
    folders.clean_up(spool)
    assert not checkpoint.exists()
    assert other.exists()
    # The next attempt at the proposal keeps its checkpoint.
    checkpoint = stored(folders, "s#1")
    folders.clean_up(spool)
    assert checkpoint.exists()


def test_discarded_checkpoint_is_removed_when_the_result_is_delivered(folders):
    spool = folders.spool("x")
    checkpoint = stored(folders, "s#1")
    spool.folder.write_text("a file where the folder should be")
    spool.put(COMPLETION)
    folders.discard_checkpoint(CLAIM)
    folders.clean_up(spool)
    spool.discard(COMPLETION)
    folders.clean_up(spool)
    assert not checkpoint.exists()


def test_stale_checkpoints_are_removed_once_a_day(folders, monkeypatch):
    now = [5.0]
    monkeypatch.setattr(paths.time, "monotonic", lambda: now[0])
    spool = folders.spool("x")
    young = stored(folders, "young")
    old = stored(folders, "old", 2 * paths.CHECKPOINT_LIFETIME)
    folders.clean_up(spool)
    assert not old.exists()
    old = stored(folders, "old", 2 * paths.CHECKPOINT_LIFETIME)
    now[0] += 86_000.0
    folders.clean_up(spool)
    assert old.exists()
    now[0] += 1_000.0
    folders.clean_up(spool)
    assert not old.exists()
    assert young.exists()


def test_task_with_an_unknown_error_does_not_stop_the_trainer(folders, monkeypatch, caplog):
    def broken(_):
        raise AttributeError("no such column")

    monkeypatch.setattr(registry, "_of_name", broken)
    cpu = devices.Device("cpu", "cpu", "none", 1 << 30)
    monkeypatch.setattr(devices, "find", lambda _: [cpu])
    archive = SimpleNamespace(studies=SimpleNamespace(get=lambda name: SimpleNamespace(task=name)))
    own = TrainerDevices(TrainerOptions(device="cpu", study="study"))
    own.find(archive, folders.task)
    assert own.placement.devices == (cpu,)
    assert "AttributeError: no such column" in caplog.text


def test_unreachable_store_is_no_broken_task(folders):
    def unreachable(_):
        raise StoreUnavailableError("no server answers")

    own = TrainerDevices(TrainerOptions(device="cpu", study="study"))
    with pytest.raises(StoreUnavailableError):
        own.find(SimpleNamespace(studies=SimpleNamespace(get=unreachable)), folders.task)


def test_the_folder_of_temporary_files_may_be_in_a_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/of-user")
    assert (
        str(TrainerPaths(tmp_path, TrainerOptions(scratch="~/scratch")).scratch.root)
        == "/of-user/scratch"
    )
    with pytest.raises(SettingsError, match="no home folder of ~nobody-of-this-name is known"):
        TrainerPaths(tmp_path, TrainerOptions(scratch="~nobody-of-this-name/x"))


def test_files_other_than_checkpoints_are_never_removed(folders):
    weights = folders.checkpoints / "3f" / "3f9a.safetensors"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"weights")
    os.utime(weights, (time.time() - 2 * paths.CHECKPOINT_LIFETIME,) * 2)
    old = stored(folders, "old", 2 * paths.CHECKPOINT_LIFETIME)
    folders.clean_up(folders.spool("x"))
    assert weights.exists() and not old.exists()
