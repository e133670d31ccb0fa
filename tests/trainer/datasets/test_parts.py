"""Parts of a data set: the split, and the copies that are kept of it."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from dataclasses import replace

import numpy as np
import pytest

from archive.errors import TrainingError
from archive.trainer.datasets import cache, layout, sources
from archive.trainer.datasets.layout import Rows
from archive.trainer.tasks import registry

SMALL = registry.get("fashion-mnist").protocol("fashion-mnist/small")


@pytest.fixture
def rows():
    rng = np.random.default_rng(1)
    targets = rng.permutation(np.repeat(np.arange(10), 1000))
    inputs = np.arange(10_000)[:, None, None, None] * np.ones((1, 1, 1, 3), dtype=np.int64)
    return Rows((inputs % 251).astype(np.uint8), targets, held_out=2000)


@pytest.mark.parametrize("split", ["stratified", "shuffled", "held-out", "given"])
def test_no_row_is_in_two_parts_and_classes_have_their_share(rows, split):
    protocol = replace(SMALL, split=split)
    chosen = layout.choose(rows, protocol)
    together = np.concatenate([*chosen.values()])
    assert [len(at) for at in chosen.values()] == [3000, 1500, 1500]
    assert len(np.unique(together)) == len(together)
    if split == "held-out":
        assert chosen["test"].min() >= 8000 > max(chosen["train"].max(), chosen["valid"].max())

    if split == "given":
        np.testing.assert_array_equal(together, np.arange(6000))

    if split in ("stratified", "held-out"):
        whole = {name: rows.targets for name in chosen}
        if split == "held-out":
            whole = {
                name: rows.targets[8000:] if name == "test" else rows.targets[:8000]
                for name in chosen
            }

        for name, at in chosen.items():
            counts = np.bincount(rows.targets[at], minlength=10)
            np.testing.assert_allclose(
                counts, np.bincount(whole[name]) * len(at) / len(whole[name]), atol=1
            )


@pytest.mark.parametrize("split", ["stratified", "held-out"])
def test_too_few_rows_are_refused(rows, split):
    with pytest.raises(TrainingError, match=r"need 12000 rows, the data have 10000"):
        layout.choose(rows, replace(SMALL, split=split, train=9000))


def test_whole_numbers_and_floats_have_the_same_moments(rows):
    at = np.arange(0, 10_000, 3)
    for ours, theirs in zip(
        layout.moments(rows.inputs, at),
        layout.moments(rows.inputs.astype(np.float64), at),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_cached_parts_are_built_once_and_rebuilt_when_altered(rows):
    calls = []

    def build():
        calls.append(1)
        return layout.cut(rows, SMALL)

    first = cache.splits("some", SMALL, build).train.inputs.copy()
    assert first.shape == (3000, 3, 1, 1)
    cache.splits("some", SMALL, build)
    assert len(calls) == 1
    cache.splits("some", replace(SMALL, split_seed=1), build)
    cache.splits("some", replace(SMALL, epochs=1, name="x/9"), build)
    assert len(calls) == 2

    (folder,) = [
        path
        for path in sources.home().glob("parts/some-*")
        if path.name.endswith(cache._key("some", SMALL))
    ]
    (folder / "train-inputs.npy").touch()
    cache.splits("some", SMALL, build)
    assert len(calls) == 2, "only touched"
    content = bytearray((folder / "train-inputs.npy").read_bytes())
    content[-1] ^= 1
    (folder / "train-inputs.npy").write_bytes(content)
    mended = cache.splits("some", SMALL, build)
    assert len(calls) == 3
    np.testing.assert_array_equal(mended.train.inputs, first)
    (folder / "content.json").write_text(json.dumps({"../../x": {}}))
    cache.splits("some", SMALL, build)
    assert len(calls) == 4
    assert not list(sources.home().glob("parts/.new-*"))


def test_a_trial_that_writes_to_its_inputs_changes_nothing_for_the_next(rows):
    def build():
        return layout.cut(rows, SMALL)

    cache.splits("some", SMALL, build)
    mapped = cache.splits("some", SMALL, build).train.inputs
    before = mapped.copy()
    mapped[:] = 7
    np.testing.assert_array_equal(cache.splits("some", SMALL, build).train.inputs, before)


def test_parts_are_loaded_without_a_writable_cache(rows, monkeypatch, tmp_path, caplog):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ARCHIVE_HOME", str(tmp_path / "file"))
    splits = cache.splits("some", SMALL, lambda: layout.cut(rows, SMALL))
    assert len(splits.train) == 3000
    assert "data not cached" in caplog.text


def _built_at_once(barrier, done):
    rng = np.random.default_rng(0)
    rows = Rows(rng.normal(size=(6000, 4)), np.arange(6000) % 2)

    def build():
        time.sleep(0.5)
        return layout.cut(rows, replace(SMALL, split="stratified"))

    barrier.wait(30)
    done.put(
        float(cache.splits("race", replace(SMALL, split="stratified"), build).train.inputs.sum())
    )


def test_processes_that_build_the_same_parts_at_once_all_have_them():
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(4)
    done = context.Queue()
    processes = [context.Process(target=_built_at_once, args=(barrier, done)) for _ in range(4)]
    for process in processes:
        process.start()

    assert len({done.get(timeout=60) for _ in processes}) == 1
    for process in processes:
        process.join()

    assert len(list(sources.home().glob("parts/*"))) == 1
    assert not list(sources.home().glob("parts/.new-*"))


def test_parts_that_were_restored_with_other_times_are_hashed_once(tmp_path, monkeypatch):
    def build():
        return {part: (np.zeros((4, 2), np.float32), np.arange(4)) for part in cache.NAMES}

    cache.splits("kept", SMALL, build)
    (folder,) = (sources.home() / "parts").glob("kept-*")
    hashed = []
    sha256 = cache._sha256
    monkeypatch.setattr(cache, "_sha256", lambda path: hashed.append(path.name) or sha256(path))
    for path in folder.iterdir():
        os.utime(path, (1, 1))

    for _ in range(2):
        cache.splits("kept", SMALL, lambda: pytest.fail("built again"))

    assert sorted(hashed) == sorted(path.name for path in folder.glob("*.npy"))
    # What has changed is still noticed, whatever is on record of its time.
    np.save(folder / "train-inputs.npy", np.ones((4, 2), np.float32))
    built = []
    cache.splits("kept", SMALL, lambda: built.append(1) or build())
    assert built
