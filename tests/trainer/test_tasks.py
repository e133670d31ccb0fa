"""Tasks, their protocols and their fixed splits."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from archive.errors import SettingsError, UnknownNameError
from archive.trainer import data, tasks


def test_names_and_tasks_need_neither_torch_nor_sklearn():
    code = (
        "import sys; from archive.trainer import tasks, daemon; tasks.get(tasks.names()[0]).protocol().as_dict();"
        "assert not {'torch', 'sklearn', 'numpy'} & set(sys.modules), 'heavy'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_names_say_what_is_near():
    with pytest.raises(UnknownNameError, match="did you mean digits"):
        tasks.get("digit")
    with pytest.raises(UnknownNameError, match="digits/1"):
        tasks.get("digits").protocol("digits/9")


def test_a_task_of_another_package_must_be_a_task(monkeypatch):
    monkeypatch.setitem(tasks.registry._loaded, "odd", object())
    with pytest.raises(SettingsError, match="must be a Task, got a object"):
        tasks.get("odd")


TRAINED = [name for name in tasks.names() if isinstance(tasks.get(name), tasks.Task)]


@pytest.mark.parametrize("name", TRAINED)
def test_a_task_describes_its_data(name):
    task = tasks.get(name)
    protocol = task.protocol()
    splits = task.load()
    for part in ("train", "valid", "test"):
        inputs, targets = (getattr(splits, part).inputs, getattr(splits, part).targets)
        assert inputs.shape == (getattr(protocol, part), *task.input_shape)
        assert inputs.dtype == np.float32
        assert targets.dtype == (np.int64 if task.kind == "classification" else np.float32)
    assert task.objective == f"valid_{task.metric}"
    assert protocol.name.startswith(f"{name}/")
    sizes = np.array([protocol.train, protocol.valid, protocol.test])
    np.testing.assert_allclose(sizes / sizes.sum(), [0.6, 0.2, 0.2], atol=0.002)


@pytest.mark.parametrize(
    ("name", "digest"),
    [("digits", "de0a37aacce0d3c7"), ("diabetes", "b6c1f5291cd2bb90")],
)
def test_the_split_of_a_protocol_never_changes(name, digest):
    splits = tasks.get(name).load()
    content = b"".join(np.round(getattr(splits, part).targets, 4).tobytes() for part in ("train", "valid", "test"))
    assert hashlib.sha256(content).hexdigest()[:16] == digest


def test_digits_are_stratified_and_standardised():
    splits = tasks.get("digits").load()
    for part in (splits.train, splits.valid, splits.test):
        shares = np.bincount(part.targets, minlength=10) / len(part)
        np.testing.assert_allclose(shares, 0.1, atol=0.01)
    assert abs(splits.train.inputs.mean()) < 1e-5
    assert splits.train.inputs.std() == pytest.approx(1, abs=1e-4)


def test_diabetes_is_standardised_by_its_training_part():
    splits = tasks.get("diabetes").load()
    np.testing.assert_allclose(splits.train.inputs.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(splits.train.inputs.std(axis=0), 1, atol=1e-5)
    assert splits.train.targets.std() == pytest.approx(1, abs=1e-5)
    assert abs(splits.valid.targets.mean()) > 1e-3


def test_no_row_is_in_two_parts():
    splits = tasks.get("diabetes").load()
    rows = np.concatenate([part.inputs for part in (splits.train, splits.valid, splits.test)])
    assert len(np.unique(rows, axis=0)) == 442


def test_sizes_must_fit_the_data():
    with pytest.raises(ValueError, match="must add up to 5 inputs, got"):
        data.split(np.zeros((5, 2)), np.zeros(5), tasks.DIABETES.protocol(), per_feature=True)
