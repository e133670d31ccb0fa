"""Locations of weights: folders and fsspec URLs behave alike, and every read is verified."""

from __future__ import annotations

import dataclasses
import uuid
from pathlib import Path

import fsspec
import pytest
import torch

from archive.errors import SettingsError, WeightsError
from archive.trainer.nn import builders
from archive.trainer.protocols.networks import NetworkForm
from archive.trainer.storage import locations, weights_file, weights_store
from tests.support.networks.nets import TINY_CNN

CONTENT = b"not really weights"


@pytest.fixture(params=["folder", "file", "memory"])
def root(request, tmp_path):
    if request.param == "memory":
        return f"memory://{uuid.uuid4().hex}/weights"

    folder = tmp_path / "a folder"
    return folder if request.param == "folder" else folder.as_uri()


def overwrite(uri: str, content: bytes) -> None:
    with fsspec.open(uri.replace("%20", " "), "wb") as file:
        file.write(content)


def test_written_content_is_read(root):
    kept = weights_store.write(root, CONTENT)
    assert weights_store.read(kept) == CONTENT
    assert weights_store.exists(kept.uri)
    assert kept.uri.startswith(weights_store.root_uri(root))
    assert kept.uri.endswith(f"/{kept.sha256[:2]}/{kept.sha256}.safetensors")
    assert kept.bytes == len(CONTENT)


def test_equal_content_is_one_file(root):
    assert weights_store.write(root, CONTENT) == weights_store.write(root, CONTENT)
    assert [one.bytes for one in weights_store.listed(root)] == [len(CONTENT)]


def test_files_are_listed_by_the_address_they_are_known_by(root):
    kept = sorted(
        [weights_store.write(root, bytes([at])) for at in range(5)], key=lambda one: one.uri
    )
    assert [(one.uri, one.sha256, one.bytes) for one in weights_store.listed(root)] == [
        (one.uri, one.sha256, one.bytes) for one in kept
    ]
    assert all(one.modified is not None for one in weights_store.listed(root))


def test_an_altered_or_cut_off_file_is_noticed(root):
    kept = weights_store.write(root, CONTENT)
    overwrite(kept.uri, CONTENT[:-1] + b"!")
    with pytest.raises(WeightsError, match="were altered"):
        weights_store.read(kept)

    overwrite(kept.uri, CONTENT[:-1])
    with pytest.raises(WeightsError, match=f"must be {len(CONTENT)} bytes long, and are not"):
        weights_store.read(kept)


def test_a_file_that_was_cut_off_is_written_again(root):
    kept = weights_store.write(root, CONTENT)
    overwrite(kept.uri, CONTENT[:4])
    assert weights_store.write(root, CONTENT) == kept
    assert weights_store.read(kept) == CONTENT


def test_a_removed_file_is_gone_and_may_be_removed_again(root):
    kept = weights_store.write(root, CONTENT)
    weights_store.remove(kept.uri)
    weights_store.remove(kept.uri)
    assert not weights_store.exists(kept.uri)
    assert list(weights_store.listed(root)) == []
    with pytest.raises(WeightsError, match="cannot read weights from"):
        weights_store.read(kept)


def test_empty_location_has_no_files(root):
    if not str(root).startswith("memory"):
        assert list(weights_store.listed(root)) == []


def test_weights_are_stored_at_a_url(root):
    network = builders.build(TINY_CNN, NetworkForm((1, 8, 8), 10, "classification"))
    saved = weights_file.save(root, TINY_CNN, network.state_dict(), {"seed": 3})
    back = weights_file.load(saved)
    assert (back.architecture, back.metadata) == (TINY_CNN, {"seed": 3})
    assert all(
        torch.equal(back.weights[name], tensor) for name, tensor in network.state_dict().items()
    )


def test_unusable_location_is_refused_before_any_write():
    with pytest.raises(SettingsError, match="carrier-pigeon"):
        weights_store.root_uri("carrier-pigeon://loft")

    with pytest.raises(WeightsError, match="carrier-pigeon"):
        weights_store.write("carrier-pigeon://loft", CONTENT)

    with pytest.raises(SettingsError, match="another machine"):
        weights_store.root_uri("file://elsewhere/weights")


@pytest.mark.parametrize("chain", ["", "simplecache::"])
@pytest.mark.parametrize("password", ["hunter2", "/hunter2", "hu#nter2?", "hunter2@hunter2"])
def test_a_password_in_an_address_is_refused_and_never_shown(chain, password):
    calls = (
        locations.check_location,
        weights_store.root_uri,
        weights_store.exists,
        lambda uri: weights_store.write(uri, CONTENT),
    )
    for call in calls:
        with pytest.raises(
            (SettingsError, WeightsError), match="must not carry a password"
        ) as caught:
            call(f"{chain}sftp://me:{password}@host/weights")

        assert "nter2" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "ftp://127.0.0.1:1/weights/v1:2@best",
        "ftp://127.0.0.1/weights/v1:2@best",
        "simplecache::ftp://127.0.0.1/weights@1:2/best@3",
    ],
)
def test_a_path_with_an_at_sign_is_no_login(address):
    locations.check_location(address)
    assert locations.printable(address) == address


def test_a_login_is_not_shown_and_the_path_behind_it_is():
    for chain in ("", "simplecache::"):
        address = f"{chain}ftp://me@127.0.0.1/weights/v1:2@best"
        locations.check_location(address)
        assert locations.printable(address) == f"{chain}ftp://127.0.0.1/weights/v1:2@best"


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("carrier-pigeon://loft", "carrier-pigeon"),
        ("file://elsewhere/weights", "another machine"),
        ("memory://weights", "ends with each trial's process"),
        ("simplecache::memory://weights", "ends with each trial's process"),
    ],
)
def test_unusable_location_is_refused_by_the_check(place, said):
    with pytest.raises(SettingsError, match=said):
        locations.check_location(place)


def test_a_folder_that_cannot_be_written_is_refused_by_the_check(tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below", f"file://{tmp_path}/file/below"):
        locations.check_location(place)
        with pytest.raises(SettingsError, match=r"cannot be kept at .*file.*: it is no folder"):
            locations.check_location(place, writable=True)

    locations.check_location(tmp_path / "new" / "folder", writable=True)
    assert not (tmp_path / "new").exists()


def test_unreachable_location_passes_the_check(tmp_path):
    locations.check_location("ftp://127.0.0.1:1/weights")
    locations.check_location(tmp_path)


def test_files_of_another_machine_do_not_exist_here(tmp_path):
    kept = weights_store.write(tmp_path, CONTENT)
    away = dataclasses.replace(kept, uri=kept.uri.replace("file:///", "file://elsewhere/"))
    with pytest.raises(WeightsError, match="another machine"):
        weights_store.read(away)

    assert not weights_store.exists(Path("/nowhere/at/all").as_uri())


def test_only_canonical_addresses_are_stored_at_a_location(root, tmp_path):
    kept = weights_store.write(root, CONTENT)
    assert weights_store.is_stored_at(kept, root)
    assert weights_store.is_stored_at(kept, f"{root}/")
    assert not weights_store.is_stored_at(kept, tmp_path / "another")
    assert not weights_store.is_stored_at(kept, "s3://bucket/weights")
    tail = f"{kept.sha256[:2]}/{kept.sha256}.safetensors"
    for uri in (f"simplecache::{kept.uri}", f"{kept.uri}x", f"{kept.uri}::{kept.uri}", tail, ""):
        assert not weights_store.is_stored_at(dataclasses.replace(kept, uri=uri), root), uri

    assert not weights_store.is_stored_at(
        dataclasses.replace(kept, sha256="../../etc/passwd"), root
    )
