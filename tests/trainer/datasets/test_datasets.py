"""The data sets as they come: their parts, the copies kept of them, and what becomes of altered files."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import multiprocessing
import os
import struct
import tarfile
import time
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from archive.errors import SettingsError, TrainingError
from archive.trainer.datasets import cache, layout, loading, readers, sources
from archive.trainer.datasets.layout import Rows
from archive.trainer.datasets.sources import DownloadSource, FileForm, SourceFile
from archive.trainer.tasks import registry
from tests.support import data_dir, whole

SMALL = registry.get("fashion-mnist").protocol("fashion-mnist/small")


@pytest.fixture
def real(monkeypatch):
    folder = data_dir()
    monkeypatch.setenv("ARCHIVE_DATA_DIR", str(folder))
    return folder / "data"


def needed(folder, name):
    if not (folder / name).is_file():
        pytest.skip(f"{name} is not in {folder}")


# The targets of all parts, of the first task of each file: the split of a protocol never changes.
REAL = [
    ("naval", "naval/1", "uci_naval.npz", "c080aaa049651407"),
    ("protein", "protein/1", "uci_protein.npz", "cc1719742380f40c"),
    ("fashion-mnist", "fashion-mnist/small", "fashion_mnist.npz", "258f375bcb59db98"),
    whole("cifar10", "cifar10/jpeg-small", "cifar10_jpegbytes.npz", "ed8ce1f4bc8ad106"),
]


@pytest.mark.parametrize(("name", "protocol_name", "file", "digest"), REAL)
def test_the_parts_of_real_data(real, monkeypatch, name, protocol_name, file, digest):
    needed(real, file)
    if name == "cifar10":
        pytest.importorskip("PIL")
    task = registry.get(name)
    protocol = task.protocol(protocol_name)
    registry.prepare(task, protocol)
    splits = task.load(protocol)
    parts = [splits.train, splits.valid, splits.test]
    for part, size in zip(parts, (protocol.train, protocol.valid, protocol.test), strict=True):
        assert part.inputs.shape == (size, *task.input_shape)
        assert part.inputs.dtype == np.float32
        assert np.isfinite(part.inputs).all()
        if task.kind == "classification":
            assert part.targets.dtype == np.int64
            shares = np.bincount(part.targets, minlength=task.outputs) / len(part)
            np.testing.assert_allclose(shares, 1 / task.outputs, atol=0.003)
    axes = (0,) if len(task.input_shape) == 1 else (0, 2, 3)
    np.testing.assert_allclose(splits.train.inputs.mean(axis=axes, dtype=np.float64), 0, atol=1e-5)
    deviation = splits.train.inputs.std(axis=axes, dtype=np.float64)
    np.testing.assert_allclose(deviation[deviation > 0], 1, atol=1e-4)
    assert np.abs(splits.valid.inputs.mean(axis=axes)).max() > 1e-5
    content = b"".join(np.round(part.targets, 4).tobytes() for part in parts)
    assert hashlib.sha256(content).hexdigest()[:16] == digest
    # The second time nothing is read but what was kept: not even the file needs to be there.
    monkeypatch.setenv("ARCHIVE_DATA_DIR", "/nowhere")
    again = task.load(protocol)
    for part, same in zip(parts, (again.train, again.valid, again.test), strict=True):
        np.testing.assert_array_equal(part.inputs, same.inputs)
        np.testing.assert_array_equal(part.targets, same.targets)


def test_constants_among_the_measurements_are_zero_and_not_blown_up(real):
    needed(real, "uci_naval.npz")
    train = registry.get("naval").load().train
    constant = np.flatnonzero(train.inputs.std(axis=0) < 1e-3)
    assert len(constant) == 2
    assert np.abs(train.inputs[:, constant]).max() < 1e-6


def test_the_order_of_the_rows_in_a_table_does_not_matter(real, tmp_path, monkeypatch):
    needed(real, "uci_naval.npz")
    before = registry.get("naval").load()
    table = np.load(real / "uci_naval.npz")["data"][::-1]
    with zipfile.ZipFile(tmp_path / "UCI CBM Dataset.zip", "w") as archive:
        text = "\n".join("   ".join(f"{value:.7e}" for value in row) for row in table)
        archive.writestr("UCI CBM Dataset/data.txt", text)
    monkeypatch.setenv("ARCHIVE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("ARCHIVE_HOME", str(tmp_path / "home"))
    after = registry.get("naval").load()
    np.testing.assert_array_equal(before.train.inputs, after.train.inputs)
    np.testing.assert_array_equal(before.test.targets, after.test.targets)


def test_the_tables_of_protein_agree(real, tmp_path, monkeypatch):
    needed(real, "uci_protein.npz")
    table = np.load(real / "uci_protein.npz")["data"]
    lines = [",".join(map(repr, map(float, [row[-1], *row[:-1]]))) for row in table]
    (tmp_path / "CASP.csv").write_text("\n".join(["RMSD,F1,F2,F3,F4,F5,F6,F7,F8,F9", *lines]))
    monkeypatch.setenv("ARCHIVE_DATA_DIR", str(tmp_path))
    rows = readers.read("protein", sources.locate("protein", "official"))
    assert readers.digest(rows) == sources.SOURCES["protein", "official"].content


def test_other_data_under_the_name_of_a_file_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("ARCHIVE_DATA_DIR", str(tmp_path))
    np.savez(tmp_path / "uci_naval.npz", data=np.zeros((11934, 18)))
    with pytest.raises(TrainingError, match=r"uci_naval\.npz has other data than the protocols of naval"):
        registry.get("naval").load()
    np.savez(tmp_path / "mnist.npz", **images_npz(7, 3))
    with pytest.raises(TrainingError, match=r"mnist\.npz has other data"):
        registry.get("mnist").load()
    for content in (b"", b"PK\x03\x04 cut off", gzip.compress(b"no zip")):
        (tmp_path / "uci_protein.npz").write_bytes(content)
        with pytest.raises(TrainingError, match=r"uci_protein\.npz cannot be read as data of protein"):
            registry.get("protein").load()
    np.savez(tmp_path / "uci_protein.npz", data=np.array([{"a": 1}], dtype=object))
    with pytest.raises(TrainingError, match="cannot be read"):
        registry.get("protein").load()
    assert not list(sources.home().glob("parts/*"))


def images_npz(train, test, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "x_train": rng.integers(0, 256, (train, 28, 28), dtype=np.uint8),
        "y_train": (np.arange(train) % 10).astype(np.uint8),
        "x_test": rng.integers(0, 256, (test, 28, 28), dtype=np.uint8),
        "y_test": (np.arange(test) % 10).astype(np.uint8),
    }


def idx(array):
    return gzip.compress(struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes())


def test_the_files_of_mnist_s_format_and_the_arrays_are_the_same_rows(tmp_path):
    arrays = images_npz(30, 20)
    np.savez(tmp_path / "all.npz", **arrays)
    paths = [tmp_path / f"{name}.gz" for name in ("x_train", "y_train", "x_test", "y_test")]
    for path in paths:
        path.write_bytes(idx(arrays[path.stem]))
    assert readers.digest(readers._idx(paths)) == readers.digest(readers._keras_npz([tmp_path / "all.npz"]))


def test_the_binary_files_of_cifar_are_read_as_their_page_describes(tmp_path):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (60, 3, 32, 32), dtype=np.uint8)
    labels = rng.integers(0, 10, 60, dtype=np.uint8)
    names = [f"data_batch_{k}.bin" for k in range(1, 6)] + ["test_batch.bin"]
    path = tmp_path / "cifar-10-binary.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for k, name in enumerate(names):
            at = range(10 * k, 10 * k + 10)
            content = b"".join(bytes([labels[i]]) + pixels[i].tobytes() for i in at)
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    rows = readers._cifar_binary([path])
    np.testing.assert_array_equal(rows.inputs, pixels.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(rows.targets, labels)
    assert rows.held_out == 10


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
            whole = {name: rows.targets[8000:] if name == "test" else rows.targets[:8000] for name in chosen}
        for name, at in chosen.items():
            counts = np.bincount(rows.targets[at], minlength=10)
            np.testing.assert_allclose(counts, np.bincount(whole[name]) * len(at) / len(whole[name]), atol=1)


@pytest.mark.parametrize("split", ["stratified", "held-out"])
def test_too_few_rows_are_refused(rows, split):
    with pytest.raises(TrainingError, match=r"need 12000 rows, the data have 10000"):
        layout.choose(rows, replace(SMALL, split=split, train=9000))


def test_whole_numbers_and_floats_have_the_same_moments(rows):
    at = np.arange(0, 10_000, 3)
    for ours, theirs in zip(
        layout.moments(rows.inputs, at), layout.moments(rows.inputs.astype(np.float64), at), strict=True
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

    (folder,) = [path for path in sources.home().glob("parts/some-*") if path.name.endswith(cache._key("some", SMALL))]
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
    done.put(float(cache.splits("race", replace(SMALL, split="stratified"), build).train.inputs.sum()))


def test_processes_that_build_the_same_parts_at_once_all_have_them():
    context = multiprocessing.get_context("fork")
    barrier, done = context.Barrier(4), context.Queue()
    processes = [context.Process(target=_built_at_once, args=(barrier, done)) for _ in range(4)]
    for process in processes:
        process.start()
    assert len({done.get(timeout=60) for _ in processes}) == 1
    for process in processes:
        process.join()
    assert len(list(sources.home().glob("parts/*"))) == 1
    assert not list(sources.home().glob("parts/.new-*"))


def test_missing_file_is_named_with_its_destination_in_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("ARCHIVE_DATA_DIR", str(tmp_path))
    expected = {
        "mnist": r"data of mnist are not found in .* put mnist\.npz there, from https.*or unset ARCHIVE_DATA_DIR",
        "fashion-mnist": r"train-images-idx3-ubyte\.gz, .* and .* or fashion_mnist\.npz there",
        "naval": r"put UCI CBM Dataset\.zip or uci_naval\.npz there",
    }
    for name, said in expected.items():
        task = registry.get(name)
        with pytest.raises(SettingsError, match=said) as error:
            registry.prepare(task, task.protocol())
        assert "\n" not in str(error.value)
    task = registry.get("cifar10")
    with pytest.raises(SettingsError, match=r"cifar10 \(jpeg\).*cifar10_jpegbytes\.npz there, from [^,]*$"):
        registry.prepare(task, task.protocol("cifar10/jpeg"))
    monkeypatch.delenv("ARCHIVE_DATA_DIR")
    with pytest.raises(SettingsError, match=r"cifar10_jpegbytes\.npz, .* is not in .*data: put it there"):
        registry.prepare(task, task.protocol("cifar10/jpeg"))


def test_every_source_has_a_reader_and_every_address_a_hash_or_known_content():
    for (name, edition), source in sources.SOURCES.items():
        assert edition in {protocol.data for protocol in registry.get(name).protocols}
        for form in source.forms:
            assert form.reader in readers.READERS
            for file in form.files:
                assert source.content is not None or file.hash is not None
                digest = (file.hash or "sha256:" + "0" * 64).partition("sha256:")[2]
                assert len(bytes.fromhex(digest)) == 32
    for name in ("naval", "protein", "mnist", "fashion-mnist", "cifar10"):
        for protocol in registry.get(name).protocols:
            assert (name, protocol.data) in sources.SOURCES


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A data set that is served on this machine, and the requests for it."""
    import functools
    import http.server
    import threading

    folder = tmp_path / "served"
    folder.mkdir()
    np.savez(folder / "small.npz", **images_npz(60, 40))
    content = (folder / "small.npz").read_bytes()
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_request(self, *_):
            asked.append(self.path)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    file = SourceFile(
        "small.npz",
        f"http://127.0.0.1:{server.server_port}/small.npz",
        f"sha256:{hashlib.sha256(content).hexdigest()}",
    )
    monkeypatch.setitem(
        sources.SOURCES, ("small", "official"), DownloadSource("here", (FileForm("keras_npz", (file,)),))
    )
    monkeypatch.delenv("ARCHIVE_DATA_DIR", raising=False)
    yield folder / "small.npz", asked
    server.shutdown()
    thread.join()
    server.server_close()


PROTOCOL = replace(SMALL, train=40, valid=20, test=40)


def test_data_are_fetched_once_and_checked(published, capfd):
    _, asked = published
    splits = loading.load("small", PROTOCOL)
    assert splits.test.inputs.shape == (40, 1, 28, 28)
    sources.locate("small", "official")
    loading.load("small", replace(PROTOCOL, split_seed=3))
    assert asked == ["/small.npz"]
    assert (sources.home() / "small.npz").is_file()
    assert capfd.readouterr() == ("", "")


def test_a_corrupted_download_is_refused_and_not_kept(published):
    path, _ = published
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    with pytest.raises(SettingsError, match=r"small\.npz, .* cannot be fetched from http.*hash") as error:
        loading.load("small", PROTOCOL)
    assert "\n" not in str(error.value)
    assert not list(sources.home().rglob("*npz*"))


def test_failed_download_is_one_line(published):
    path, _ = published
    path.unlink()
    with pytest.raises(SettingsError, match=r"\(HTTPError: is there a network\?\): put it into .*data"):
        sources.locate("small", "official")


def test_a_local_file_that_was_altered_is_refused(published):
    sources.locate("small", "official")
    kept = sources.home() / "small.npz"
    np.savez(kept, **images_npz(60, 40, seed=1))
    with pytest.raises(TrainingError, match=r"small\.npz has other data"):
        loading.load("small", PROTOCOL)


def test_parts_that_were_restored_with_other_times_are_hashed_once(tmp_path, monkeypatch):
    def build():
        return {part: (np.zeros((4, 2), np.float32), np.arange(4)) for part in cache.NAMES}

    cache.splits("kept", SMALL, build)
    (folder,) = (sources.home() / "parts").glob("kept-*")
    hashed, sha256 = [], cache._sha256
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
