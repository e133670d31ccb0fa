"""Tasks, their protocols and their fixed splits."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

from archive.errors import SettingsError, UnknownNameError, UsageError
from archive.trainer.datasets import scikit_learn
from archive.trainer.nn import builders
from archive.trainer.protocols.base import SMALL_CELLS, TrainingProtocol
from archive.trainer.tasks import registry

DIGITS = registry.get("digits")
DEFAULTS = {
    field.name: field.default
    for field in dataclasses.fields(TrainingProtocol)
    if field.default is not dataclasses.MISSING
} | {"network": {}}


def test_names_and_tasks_need_neither_torch_nor_sklearn():
    code = (
        "import sys; from archive.trainer.daemon import trainer; from archive.trainer.tasks "
        "import registry as tasks;"
        "tasks.get(tasks.names()[0]).protocol().as_dict();"
        "assert not {'torch', 'sklearn', 'numpy'} & set(sys.modules), 'heavy';"
        "assert 'nasbench201' in tasks.get('digits').suitable_spaces();"
        "assert not {'torch', 'sklearn'} & set(sys.modules), 'heavy'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean digits"):
        registry.get("digit")

    with pytest.raises(UnknownNameError, match="digits/1"):
        registry.get("digits").protocol("digits/9")


def test_a_task_of_another_package_must_be_a_task(monkeypatch):
    monkeypatch.setitem(registry.registry._loaded, "odd", object())
    with pytest.raises(SettingsError, match="must be a Task, got object"):
        registry.get("odd")


def test_a_task_of_another_package_has_the_name_of_its_entry_point(monkeypatch):
    monkeypatch.setitem(registry.registry._loaded, "odd", registry.DIABETES)
    with pytest.raises(
        SettingsError, match="the task 'odd' of another package has the name 'diabetes'"
    ):
        registry.get("odd")


TRAINED = [name for name in registry.names() if isinstance(registry.get(name), registry.Task)]
PROTOCOLS = [(name, protocol) for name in TRAINED for protocol in registry.get(name).protocols]
# Python's reference text differs from version to version, and so do the names of its protocols.
FIXED = [(name, protocol) for name, protocol in PROTOCOLS if name != "pydoc-topics"]


@pytest.mark.parametrize(
    ("name", "protocol"), PROTOCOLS, ids=lambda each: getattr(each, "name", None)
)
def test_every_protocol_is_named_after_its_task_and_consistent(name, protocol):
    task = registry.get(name)
    assert protocol.name.startswith(f"{name}/")
    assert task.protocol(protocol.name) is protocol
    assert task.objective == f"valid_{task.metric}"
    assert 0 < protocol.patience <= protocol.epochs
    assert protocol.loss == "likelihood" or task.kind == "regression"
    assert protocol.augmentation == "none" or len(task.input_shape) == 3
    assert (protocol.threshold > 0) == (protocol.convergence == "threshold")
    assert protocol.schedule == "cosine" or protocol.warmup == 0
    assert json.loads(json.dumps(protocol.as_dict())) == protocol.as_dict()
    sent = pickle.loads(pickle.dumps((task, protocol)))
    assert (sent[0].name, sent[0].protocols, sent[1]) == (name, task.protocols, protocol)


def test_nasbots_protocol_is_that_of_the_paper():
    for name in ("naval", "protein"):
        protocol = registry.get(name).protocol(f"{name}/nasbot")
        assert (protocol.epochs * protocol.epoch_steps, protocol.epoch_steps, protocol.batch) == (
            20_000,
            100,
            256,
        )
        assert (protocol.optimiser, protocol.momentum, protocol.weight_decay) == ("sgd", 0, 0)
        assert (protocol.schedule, protocol.learning_rate, protocol.normalisation) == (
            "constant",
            1e-5,
            "none",
        )
        sizes = np.array([protocol.train, protocol.valid, protocol.test])
        np.testing.assert_allclose(sizes / sizes.sum(), [0.6, 0.2, 0.2], atol=1e-4)

    protocol = registry.get("cifar10").protocol("cifar10/nasbot")
    assert (protocol.epochs * protocol.epoch_steps, protocol.epoch_steps, protocol.batch) == (
        24_000,
        400,
        64,
    )
    assert (protocol.train, protocol.valid, protocol.test) == (40_000, 10_000, 10_000)
    assert (protocol.schedule, protocol.learning_rate) == ("constant", 1e-4)


@pytest.mark.parametrize(
    ("name", "images"), [("mnist", 70_000), ("fashion-mnist", 70_000), ("cifar10", 60_000)]
)
def test_auto_keras_protocol_splits_all_images(name, images):
    protocol = registry.get(name).protocol(f"{name}/autokeras")
    assert (protocol.train, protocol.valid, protocol.test) == (
        images * 6 // 10,
        images // 5,
        images // 5,
    )
    assert (protocol.convergence, protocol.patience, protocol.threshold) == ("threshold", 5, 1e-4)


def test_a_task_of_images_has_the_networks_of_every_builder():
    digits = registry.get("digits")
    diabetes = registry.get("diabetes")
    assert (
        {"cnn", "mlp", "nasbench101", "nasbench201"}
        <= {*digits.suitable_spaces()}
        <= {*builders.names()}
    )
    assert digits.suitable_spaces()[0] == digits.search_space().name == "cnn"
    assert diabetes.suitable_spaces() == ("mlp", "torch")
    with pytest.raises(
        UsageError,
        match=r"'diabetes' has no networks in the space "
        r"'nasbench201': .* images.*try mlp",
    ):
        diabetes.search_space("nasbench201")


@pytest.mark.parametrize("name", ["digits", "mnist", "fashion-mnist", "cifar10"])
def test_cells_are_trained_in_a_small_network_by_default(name):
    task = registry.get(name)
    small = task.protocol(space="nasbench201")
    few = task.protocol(f"{name}/small")
    assert small.name == f"{name}/cells-small" and task.protocol(space="cnn") == task.protocol()
    rules = {
        "name": small.name,
        "network": SMALL_CELLS,
        "epochs": small.epochs,
        "patience": small.patience,
    }
    assert small == dataclasses.replace(few, **rules)
    assert task.form(space="nasbench201").options == SMALL_CELLS and task.form().options == {}


def test_a_protocol_with_options_of_the_network_is_hashable():
    small = registry.get("digits").protocol("digits/cells-small")
    assert hash(small) == hash(dataclasses.replace(small, network={**SMALL_CELLS}))


@pytest.mark.parametrize("name", ["digits", "diabetes"])
def test_a_task_describes_its_data(name):
    task = registry.get(name)
    protocol = task.protocol(f"{name}/1")
    splits = task.load(protocol)
    for part in ("train", "valid", "test"):
        inputs = getattr(splits, part).inputs
        targets = getattr(splits, part).targets
        assert inputs.shape == (getattr(protocol, part), *task.input_shape)
        assert inputs.dtype == np.float32
        assert targets.dtype == (np.int64 if task.kind == "classification" else np.float32)

    sizes = np.array([protocol.train, protocol.valid, protocol.test])
    np.testing.assert_allclose(sizes / sizes.sum(), [0.6, 0.2, 0.2], atol=0.002)


# What every field of a protocol was when results were first recorded under its name.
RECORDED = {
    "cifar10/1": "00cc1cd897d5",
    "cifar10/cells-small": "74061cf06bb2",
    "cifar10/autokeras": "c3f198779203",
    "cifar10/jpeg": "6217c355a95a",
    "cifar10/jpeg-small": "4730c6a80dde",
    "cifar10/nasbot": "2182f4e7c4b1",
    "cifar10/small": "0b22fdb23ccb",
    "diabetes/1": "41505334e5ac",
    "diabetes/long": "5a296a784f14",
    "digits/1": "745bfef14be1",
    "digits/cells-small": "f435a014008d",
    "digits/long": "bb8dea16a6c2",
    "digits/small": "aae9c7e47fbf",
    "fashion-mnist/1": "6395e45bde88",
    "fashion-mnist/cells-small": "7db338a1ee7a",
    "fashion-mnist/autokeras": "03ce939e96a6",
    "fashion-mnist/small": "f9f15f7f87dd",
    "mnist/1": "92396a12d8ab",
    "mnist/cells-small": "02403072aee7",
    "mnist/autokeras": "a7088107c216",
    "mnist/small": "734f46ab3147",
    "naval/1": "22c3b49b33b7",
    "naval/long": "8773bca33f00",
    "naval/nasbot": "ef7f0b88a905",
    "protein/1": "475188fb9658",
    "protein/long": "6af139b32803",
    "protein/nasbot": "24dc1fcaf71e",
}


@pytest.mark.parametrize(("name", "protocol"), FIXED, ids=lambda each: getattr(each, "name", None))
def test_the_choices_of_a_protocol_never_change(name, protocol):
    choices = {
        key: value for key, value in protocol.as_dict().items() if value != DEFAULTS.get(key, ...)
    }
    digest = hashlib.sha256(json.dumps(choices, sort_keys=True).encode()).hexdigest()[:12]
    assert digest == RECORDED[protocol.name], "a changed rule is a new protocol"


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("digits/1", "de0a37aacce0d3c7"),
        ("digits/small", "de0a37aacce0d3c7"),
        ("diabetes/1", "b6c1f5291cd2bb90"),
    ],
)
def test_the_split_of_a_protocol_never_changes(name, digest):
    task = registry.get(name.partition("/")[0])
    splits = task.load(task.protocol(name))
    content = b"".join(
        np.round(getattr(splits, part).targets, 4).tobytes() for part in ("train", "valid", "test")
    )
    assert hashlib.sha256(content).hexdigest()[:16] == digest


@pytest.mark.parametrize("name", ["digits/1", "digits/small"])
def test_digits_are_stratified_and_standardised(name):
    splits = DIGITS.load(DIGITS.protocol(name))
    for part in (splits.train, splits.valid, splits.test):
        shares = np.bincount(part.targets, minlength=10) / len(part)
        np.testing.assert_allclose(shares, 0.1, atol=0.01)

    assert abs(splits.train.inputs.mean()) < 1e-5
    assert splits.train.inputs.std() == pytest.approx(1, abs=1e-4)


def test_diabetes_is_standardised_by_its_training_part():
    splits = registry.get("diabetes").load()
    np.testing.assert_allclose(splits.train.inputs.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(splits.train.inputs.std(axis=0), 1, atol=1e-5)
    assert splits.train.targets.std() == pytest.approx(1, abs=1e-5)
    assert abs(splits.valid.targets.mean()) > 1e-3


def test_the_first_command_learns_from_few_digits_and_validates_on_many():
    few = DIGITS.protocol()
    many = DIGITS.protocol("digits/1")
    assert few.name == "digits/small"
    assert few.train < many.train / 4 and few.valid > 3 * many.valid
    # Twenty trainings must be a matter of seconds.
    steps = [-(-each.train // each.batch) * each.epochs for each in (few, many)]
    assert steps[0] < steps[1] / 5


def test_few_digits_are_a_partition_with_the_test_images_of_all():
    few, many = (DIGITS.load(DIGITS.protocol(name)) for name in ("digits/small", "digits/1"))
    raw = [pixels(few, part) for part in ("train", "valid", "test")]
    images = np.vstack(raw)
    # The images differ from each other: each is in one part, and none is missing.
    assert images.shape == (1797, 64) == np.unique(images, axis=0).shape
    assert not set(map(bytes, raw[0])) & (set(map(bytes, raw[1])) | set(map(bytes, raw[2])))
    np.testing.assert_array_equal(few.test.targets, many.test.targets)
    np.testing.assert_array_equal(raw[2], pixels(many, "test"))


def pixels(splits, part):
    """Return the images of a part as rows of pixels from 0 to 16, as they were before they were
    standardised."""
    inputs = getattr(splits, part).inputs.reshape(-1, 64)
    low, high = (
        function(s.inputs) for function, s in ((np.min, splits.train), (np.max, splits.train))
    )
    return np.round(16 * (inputs - low) / (high - low)).astype(np.int8)


def test_no_row_is_in_two_parts():
    splits = registry.get("diabetes").load()
    rows = np.concatenate([part.inputs for part in (splits.train, splits.valid, splits.test)])
    assert len(np.unique(rows, axis=0)) == 442


def test_sizes_must_fit_the_data():
    with pytest.raises(ValueError, match="must add up to 5 inputs, got"):
        scikit_learn.split(
            np.zeros((5, 2)), np.zeros(5), registry.DIABETES.protocol(), per_feature=True
        )
