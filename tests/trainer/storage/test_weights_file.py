"""Files of weights: whole, verified, and named by their content."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from pathlib import Path

import pytest
import torch

from archive.errors import WeightsError
from archive.store.records import Weights
from archive.trainer.nn import builders
from archive.trainer.protocols.networks import NetworkForm
from archive.trainer.storage import weights_file
from tests.support.networks.nets import TINY_CNN

ABOUT = {"task": "digits", "protocol": "digits/1", "seed": 3}


@pytest.fixture
def weights() -> dict[str, torch.Tensor]:
    return builders.build(TINY_CNN, NetworkForm((1, 8, 8), 10, "classification")).state_dict()


@pytest.fixture
def saved(tmp_path, weights) -> Weights:
    return weights_file.save(tmp_path / "a folder", TINY_CNN, weights, ABOUT)


def file_of(saved: Weights) -> Path:
    return weights_file.path_of(saved.uri)


def test_saved_content_is_loaded(saved, weights):
    back = weights_file.load(saved)
    assert back.architecture == TINY_CNN
    assert back.metadata == ABOUT
    assert sorted(back.weights) == sorted(weights)
    assert all(torch.equal(back.weights[name], tensor) for name, tensor in weights.items())


def test_the_name_is_the_digest_of_the_content(saved):
    path = file_of(saved)
    content = path.read_bytes()
    assert hashlib.sha256(content).hexdigest() == saved.sha256 == path.stem
    assert path.parent.name == saved.sha256[:2]
    assert len(content) == saved.bytes


def test_equal_content_is_one_file(tmp_path, saved, weights):
    assert weights_file.save(tmp_path / "a folder", TINY_CNN, weights, ABOUT) == saved
    assert len([path for path in (tmp_path / "a folder").rglob("*") if path.is_file()]) == 1


@pytest.mark.parametrize("at", [0, 8, 100, -1])
def test_an_altered_byte_is_noticed(saved, at):
    content = bytearray(file_of(saved).read_bytes())
    content[at] ^= 1
    file_of(saved).write_bytes(content)
    with pytest.raises(WeightsError, match="were altered"):
        weights_file.load(saved)


def test_a_file_cut_off_is_noticed(saved):
    os.truncate(file_of(saved), saved.bytes // 2)
    with pytest.raises(WeightsError, match=f"must be {saved.bytes} bytes long"):
        weights_file.load(saved)


def test_a_missing_file_is_named(saved):
    file_of(saved).unlink()
    with pytest.raises(WeightsError, match=r"cannot read weights from .*No such file"):
        weights_file.load(saved)


def test_file_of_another_format_is_refused(tmp_path):
    path = tmp_path / "notes.safetensors"
    path.write_bytes(b"not tensors at all")
    made_up = Weights(
        path.as_uri(), hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size
    )
    with pytest.raises(WeightsError, match="no weights file of the archive"):
        weights_file.load(made_up)


def test_weights_at_an_unknown_kind_of_address_are_not_read(saved):
    with pytest.raises(WeightsError, match="cannot read weights from carrier-pigeon"):
        weights_file.load(dataclasses.replace(saved, uri="carrier-pigeon://example.org/weights"))


def test_full_disk_leaves_no_file_behind(tmp_path, weights, monkeypatch):
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WeightsError, match="No space left on device"):
        weights_file.save(tmp_path / "weights", TINY_CNN, weights, ABOUT)

    assert not [path for path in (tmp_path / "weights").rglob("*") if path.is_file()]
