"""Checkpoints on disk: whole, of the right trial, and removed in time."""

from __future__ import annotations

import os
import time

import pytest
import torch
from fsspec.implementations.memory import MemoryFileSystem

from archive.errors import CheckpointError, StorageUnavailableError
from archive.trainer.storage import checkpoints, remote_files
from archive.trainer.storage.checkpoints import TrainingCheckpoint
from archive.trainer.storage.file_names import file_name

JOB = {"seed": 1, "shape": [3, 3]}
STATE = TrainingCheckpoint(
    {"best": [3, 0.1 + 0.2, float("-inf")], "resumed": 2},
    {
        "a": torch.randn(2, 3, 3, 3, generator=torch.Generator().manual_seed(0)).to(
            memory_format=torch.channels_last
        ),
        "steps": torch.tensor(7.0),
        "order": torch.Generator().manual_seed(1).get_state(),
        "none": torch.empty(0),
    },
)


@pytest.fixture
def path(tmp_path):
    path = checkpoints.path_of(tmp_path / "a folder", "my study/ü#7")
    checkpoints.save(path, JOB, STATE)
    return path


def test_saved_content_is_loaded(path):
    back = checkpoints.load(path, {"shape": (3, 3), "seed": 1})
    assert back.metadata == STATE.metadata
    assert back.tensors.keys() == STATE.tensors.keys()
    for name, tensor in STATE.tensors.items():
        assert back.tensors[name].dtype == tensor.dtype
        assert torch.equal(back.tensors[name], tensor)


@pytest.mark.parametrize("scheme", ["memory", "local"])
def test_a_checkpoint_behind_a_url_is_replaced_and_removed(scheme, tmp_path):
    root = f"{scheme}://{tmp_path}/shared"
    at = checkpoints.path_of(root, "my study/ü#7")
    assert checkpoints.load(at, JOB) is None
    for resumed in (1, 2):
        checkpoints.save(at, JOB, TrainingCheckpoint({"resumed": resumed}, STATE.tensors))

    back = checkpoints.load(at, JOB)
    assert back.metadata == {"resumed": 2}
    assert torch.equal(back.tensors["a"], STATE.tensors["a"])
    with pytest.raises(CheckpointError, match="another seed"):
        checkpoints.load(at, {**JOB, "seed": 2})

    (file,) = remote_files.listed(root)
    assert (file.uri, file.name) == (at, f"{file_name('my study/ü#7')}.checkpoint")
    if scheme == "local":
        # The rest of a writer that was killed.
        (tmp_path / "shared" / f"{file.name}.0123abcd.part").write_bytes(b"half")

    checkpoints.remove(root, "my study/ü#7")
    assert list(remote_files.listed(root)) == []
    checkpoints.remove(root, "my study/ü#7")


def test_a_location_that_does_not_answer_is_no_missing_checkpoint(tmp_path, monkeypatch):
    def away(*_):
        raise ConnectionError("no route to host")

    at = f"memory://{tmp_path}/a.checkpoint"
    checkpoints.save(at, JOB, STATE)
    monkeypatch.setattr(remote_files, "PAUSE_SECONDS", 0.0)
    for name in ("cat_file", "pipe_file"):
        monkeypatch.setattr(MemoryFileSystem, name, away)

    with pytest.raises(StorageUnavailableError, match="no route to host"):
        checkpoints.load(at, JOB)

    with pytest.raises(CheckpointError, match="no route to host"):
        checkpoints.save(at, JOB, TrainingCheckpoint({}, {}))

    monkeypatch.undo()
    assert checkpoints.load(at, JOB).metadata == STATE.metadata


def test_missing_checkpoint_is_none(tmp_path):
    assert checkpoints.load(tmp_path / "none.checkpoint", JOB) is None


@pytest.mark.parametrize("at", [0, 5, 20, 60, 400, -1])
def test_an_altered_byte_is_noticed(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(
        CheckpointError,
        match=r"was cut off or altered|no checkpoint that this "
        r"release can read",
    ):
        checkpoints.load(path, JOB)


@pytest.mark.parametrize("size", [0, 10, 40, 100, -1])
def test_a_file_cut_off_is_noticed(path, size):
    os.truncate(path, size if size >= 0 else path.stat().st_size - 1)
    with pytest.raises(
        CheckpointError,
        match=r"was cut off or altered|no checkpoint that this "
        r"release can read",
    ):
        checkpoints.load(path, JOB)


def test_a_folder_in_its_place_is_refused(tmp_path):
    (tmp_path / "a.checkpoint").mkdir()
    with pytest.raises(CheckpointError, match="cannot read the checkpoint"):
        checkpoints.load(tmp_path / "a.checkpoint", JOB)


def test_checkpoint_of_another_training_names_the_difference(path):
    with pytest.raises(CheckpointError, match=r"another seed: 1, not 2$"):
        checkpoints.load(path, {**JOB, "seed": 2})

    with pytest.raises(CheckpointError, match=r"another extra: None, not 5$"):
        checkpoints.load(path, {**JOB, "extra": 5})

    with pytest.raises(CheckpointError, match=r"another shape$"):
        checkpoints.load(path, {**JOB, "shape": list(range(100))})


def test_failed_write_keeps_the_former_checkpoint(path, monkeypatch):
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match="No space left on device"):
        checkpoints.save(path, {"seed": 9}, STATE)

    monkeypatch.undo()
    assert checkpoints.load(path, JOB).metadata == STATE.metadata
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_checkpoints_are_removed(path):
    checkpoints.remove(path.parent, "my study/ü#7")
    checkpoints.remove(path.parent, "my study/ü#7")
    checkpoints.remove(None, "x")
    assert not path.exists()


def test_only_stale_checkpoints_are_removed(path):
    orphan = checkpoints.path_of(path.parent, "b")
    rest = path.parent / ".b.checkpoint-xyz.part"
    checkpoints.save(orphan, JOB, STATE)
    rest.write_bytes(b"half")
    (path.parent / "notes.txt").write_text("mine")
    for file in (orphan, rest, path.parent / "notes.txt"):
        os.utime(file, (time.time() - 100,) * 2)

    assert checkpoints.remove_stale(path.parent, 50) == 2
    assert sorted(file.name for file in path.parent.iterdir()) == sorted([path.name, "notes.txt"])
    assert checkpoints.remove_stale(path.parent / "none", 50) == 0


def test_unremovable_checkpoint_stops_nothing(path, caplog):
    # Even who may do everything cannot remove a folder as if it were a file.
    stuck, other = (checkpoints.path_of(path.parent, name) for name in ("b", "c"))
    stuck.mkdir()
    other.write_bytes(b"old")
    for file in (stuck, other, path):
        os.utime(file, (time.time() - 100,) * 2)

    checkpoints.remove(path.parent, "b")
    assert "checkpoint not removed" in caplog.text
    assert checkpoints.remove_stale(path.parent, 50) == 2
    assert list(path.parent.iterdir()) == [stuck]
    assert "old checkpoints not removed" in caplog.text


def test_names_are_distinct_and_stay_in_their_folder():
    ids = ["s#1", "s#11", "a/b", "a%2Fb", "..", ".", "ü", "x" * 300, "x" * 301, "A b", "-"]
    names = [file_name(identifier) for identifier in ids]
    assert len(set(names)) == len(ids)
    assert all("/" not in name and not name.startswith(".") and len(name) <= 200 for name in names)
    assert file_name("s#1") == "s%231"
