"""Files of data sets: downloaded once and checked, missing, or altered."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from archive.errors import SettingsError, TrainingError
from archive.trainer.datasets import readers, sources
from archive.trainer.datasets.sources import DownloadSource, FileForm, SourceFile
from archive.trainer.tasks import registry
from tests.support.datasets import images_npz

SMALL = registry.get("fashion-mnist").protocol("fashion-mnist/small")


def test_missing_file_is_named_with_its_destination_in_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("ARCHIVE_DATA_DIR", str(tmp_path))
    expected = {
        "mnist": r"data of mnist are not found in .* put mnist\.npz there, from https.*or unset "
        r"ARCHIVE_DATA_DIR",
        "fashion-mnist": r"train-images-idx3-ubyte\.gz, .* and .* or fashion_mnist\.npz there",
        "naval": r"put UCI CBM Dataset\.zip or uci_naval\.npz there",
    }
    for name, said in expected.items():
        task = registry.get(name)
        with pytest.raises(SettingsError, match=said) as error:
            registry.prepare(task, task.protocol())

        assert "\n" not in str(error.value)

    task = registry.get("cifar10")
    with pytest.raises(
        SettingsError,
        match=r"cifar10 \(jpeg\).*cifar10_jpegbytes\.npz there, "
        r"from [^,]*$",
    ):
        registry.prepare(task, task.protocol("cifar10/jpeg"))

    monkeypatch.delenv("ARCHIVE_DATA_DIR")
    with pytest.raises(
        SettingsError,
        match=r"cifar10_jpegbytes\.npz, .* is not in .*data: put "
        r"it there",
    ):
        registry.prepare(task, task.protocol("cifar10/jpeg"))


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

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=folder)
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    file = SourceFile(
        "small.npz",
        f"http://127.0.0.1:{server.server_port}/small.npz",
        f"sha256:{hashlib.sha256(content).hexdigest()}",
    )
    monkeypatch.setitem(
        sources.SOURCES,
        ("small", "official"),
        DownloadSource("here", (FileForm("keras_npz", (file,)),)),
    )
    monkeypatch.delenv("ARCHIVE_DATA_DIR", raising=False)
    yield folder / "small.npz", asked
    server.shutdown()
    thread.join()
    server.server_close()


PROTOCOL = replace(SMALL, train=40, valid=20, test=40)


def test_data_are_fetched_once_and_checked(published, capfd):
    _, asked = published
    splits = readers.load("small", PROTOCOL)
    assert splits.test.inputs.shape == (40, 1, 28, 28)
    sources.locate("small", "official")
    readers.load("small", replace(PROTOCOL, split_seed=3))
    assert asked == ["/small.npz"]
    assert (sources.home() / "small.npz").is_file()
    assert capfd.readouterr() == ("", "")


def test_a_corrupted_download_is_refused_and_not_kept(published):
    path, _ = published
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    with pytest.raises(
        SettingsError, match=r"small\.npz, .* cannot be fetched from http.*hash"
    ) as error:
        readers.load("small", PROTOCOL)

    assert "\n" not in str(error.value)
    assert not list(sources.home().rglob("*npz*"))


def test_failed_download_is_one_line(published):
    path, _ = published
    path.unlink()
    with pytest.raises(
        SettingsError,
        match=r"\(HTTPError: is there a network\?\): put it into "
        r".*data",
    ):
        sources.locate("small", "official")


def test_a_local_file_that_was_altered_is_refused(published):
    sources.locate("small", "official")
    kept = sources.home() / "small.npz"
    np.savez(kept, **images_npz(60, 40, seed=1))
    with pytest.raises(TrainingError, match=r"small\.npz has other data"):
        readers.load("small", PROTOCOL)
