"""Readers of data sets: real data, formats of files, and other data under the name of a file."""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import tarfile
import zipfile

import numpy as np
import pytest

from archive.errors import TrainingError
from archive.trainer.datasets import readers, sources
from archive.trainer.tasks import registry
from tests.support import data_dir, whole
from tests.support.datasets import images_npz


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
    with pytest.raises(
        TrainingError,
        match=r"uci_naval\.npz has other data than the protocols "
        r"of naval",
    ):
        registry.get("naval").load()

    np.savez(tmp_path / "mnist.npz", **images_npz(7, 3))
    with pytest.raises(TrainingError, match=r"mnist\.npz has other data"):
        registry.get("mnist").load()

    for content in (b"", b"PK\x03\x04 cut off", gzip.compress(b"no zip")):
        (tmp_path / "uci_protein.npz").write_bytes(content)
        with pytest.raises(
            TrainingError,
            match=r"uci_protein\.npz cannot be read as data of "
            r"protein",
        ):
            registry.get("protein").load()

    np.savez(tmp_path / "uci_protein.npz", data=np.array([{"a": 1}], dtype=object))
    with pytest.raises(TrainingError, match="cannot be read"):
        registry.get("protein").load()

    assert not list(sources.home().glob("parts/*"))


def idx(array):
    return gzip.compress(
        struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()
    )


def test_the_files_of_mnist_s_format_and_the_arrays_are_the_same_rows(tmp_path):
    arrays = images_npz(30, 20)
    np.savez(tmp_path / "all.npz", **arrays)
    paths = [tmp_path / f"{name}.gz" for name in ("x_train", "y_train", "x_test", "y_test")]
    for path in paths:
        path.write_bytes(idx(arrays[path.stem]))

    assert readers.digest(readers._idx(paths)) == readers.digest(
        readers._keras_npz([tmp_path / "all.npz"])
    )


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
