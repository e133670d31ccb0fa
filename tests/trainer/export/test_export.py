"""Export of trained networks: modules and files that give the outputs of the training, and clear
errors."""

from __future__ import annotations

import dataclasses
import io
import json

import numpy as np
import onnxruntime
import pytest
import torch
from safetensors.torch import load as load_tensors

from archive import spaces
from archive.errors import (
    InvalidArchitectureError,
    SettingsError,
    TrainingError,
    UnknownNameError,
    UsageError,
    WeightsError,
)
from archive.store.records import Evaluation, Result, Study
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.trainer import Trainer
from archive.trainer.export import formats, trained
from archive.trainer.nn import builders
from archive.trainer.storage import weights_file
from archive.trainer.tasks import registry
from tests.support import whole
from tests.support.commands import Shell
from tests.support.networks.nets import TINY_CNN, TINY_MLP
from tests.support.stores import suggest

pytestmark = pytest.mark.lasts(4)


def torch_program(content: bytes, x: np.ndarray) -> np.ndarray:
    return torch.export.load(io.BytesIO(content)).module()(torch.from_numpy(x)).detach().numpy()


def onnx_graph(content: bytes, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return session.run(None, {"input": x})[0]


RUN = {".pt2": torch_program, ".onnx": onnx_graph}


def propose(archive, architectures, task, protocol, name):
    study = Study(
        name,
        task.name,
        protocol,
        architectures[0].space,
        task.objective,
        task.direction,
        budget=9,
        seed=3,
    )
    archive.studies.create(study)
    agent = archive.proposals.register_agent("random", {}, "1")
    return archive.proposals.create(name, agent, suggest(architectures))


def record(archive, study, home, seed=0):
    """Complete the first proposal of a study with the weights of a network, and return the
    network."""
    claim = archive.proposals.claim("w", study=study)
    task = registry.get(claim.study.task)
    form = task.form(task.protocol(claim.study.protocol))
    module = builders.build(claim.architecture.canonical, form, seed)
    with torch.no_grad():
        # As after a training: no normalisation is an identity.
        for buffer in module.buffers():
            buffer.copy_(torch.rand(buffer.shape) + 0.5)

    metadata = {"form": dataclasses.asdict(form)}
    saved = weights_file.save(
        home / "weights", claim.architecture.canonical, module.state_dict(), metadata
    )
    archive.proposals.complete(claim.id, claim.token, Result(0.5, weights=saved))
    return module.eval()


@pytest.fixture
def evaluated(archive, store_settings):
    """An archive with an evaluation of each kind of network, `images#00000` and `values#00000`."""
    propose(archive, [TINY_CNN], registry.DIGITS, "digits/small", "images")
    propose(archive, [TINY_MLP], registry.DIABETES, "diabetes/1", "values")
    for study in ("images", "values"):
        record(archive, study, store_settings.home)

    return archive


def test_an_exported_model_has_the_metric_of_the_training(archive, store_settings):
    propose(archive, [TINY_CNN], registry.DIGITS, "digits/small", "images")
    Trainer(
        archive, TrainerOptions(threads=1, device="cpu", idle_seconds=0.3), home=store_settings.home
    ).run()
    network = trained.network(archive, "images#00000")
    test = registry.DIGITS.load(registry.DIGITS.protocol("digits/small")).test
    content, _ = formats.serialise(network, ".pt2")
    outputs = torch_program(content, np.ascontiguousarray(test.inputs))
    accuracy = float((outputs.argmax(1) == test.targets).mean())
    assert accuracy == pytest.approx(network.evaluation.metrics["test_accuracy"], abs=1e-6)


# The .pt2 of a network of images is that of a training, above.
@pytest.mark.parametrize(
    ("study", "exports"), [("images", {".onnx": True}), ("values", {".onnx": False, ".pt2": True})]
)
def test_exported_models_give_the_outputs_of_the_network(evaluated, study, exports):
    network = trained.network(evaluated, f"{study}#00000")
    task = registry.get(network.evaluation.task)
    scaling = network.scaling
    test = task.load(task.protocol(network.evaluation.protocol)).test
    x = np.ascontiguousarray(test.inputs)
    raw = (x.astype(np.float64) * scaling.deviation + scaling.mean).astype(np.float32)
    # Pixels of the digits are whole numbers from 0 to 16; progress of the disease is from 25 to
    # 346.
    if study == "images":
        assert (
            np.allclose(raw, np.round(raw), atol=1e-4)
            and 0 <= round(raw.min()) < round(raw.max()) == 16
        )
        assert scaling.target is None
    else:
        progress = test.targets * scaling.target[1] + scaling.target[0]
        assert (
            np.allclose(progress, np.round(progress), atol=1e-3)
            and 25 <= progress.min() < progress.max() <= 346
        )

    assert not network.module.training
    expected = network.module(torch.from_numpy(x)).numpy()
    for suffix, raw_inputs in exports.items():
        content, about = formats.serialise(network, suffix, raw_inputs=raw_inputs)
        inputs, closeness = (
            (raw, {"rtol": 1e-3, "atol": 1e-4}) if raw_inputs else (x, {"rtol": 1e-4, "atol": 1e-5})
        )
        for count in (1, 7, len(x)):
            np.testing.assert_allclose(
                RUN[suffix](content, inputs[:count]), expected[:count], **closeness
            )

        assert about.input.scaling.startswith("none: raw") == raw_inputs
        assert about.input.shape == ["batch", *task.input_shape]
        assert about.output.shape == ["batch", task.outputs]


# The exporter takes seconds for the many layers of a genotype.
@pytest.mark.parametrize(
    "space",
    [
        whole("nasbench201"),
        *(pytest.param(name, marks=pytest.mark.one_space) for name in ("nasbench101", "darts")),
    ],
)
def test_networks_of_cells_are_exported(space):
    architecture = spaces.get(space).sample(np.random.default_rng(0))
    protocol = registry.DIGITS.protocol(None, space)
    form = registry.DIGITS.form(protocol)
    record = Evaluation("s#00000", "s", 0, "digits", protocol.name, architecture, 0.5)
    network = trained.TrainedNetwork(
        record, form, builders.build(architecture.canonical, form).eval(), None
    )
    # Its outputs are compared with those of the network.
    content, _ = formats.serialise(network, ".onnx")
    assert onnx_graph(content, np.zeros((5, *form.input_shape), np.float32)).shape == (5, 10)


def test_a_model_that_gives_other_outputs_is_refused(evaluated, monkeypatch):
    network = trained.network(evaluated, "values#00000")
    content, _ = formats.serialise(network, ".pt2")
    with torch.no_grad():
        next(network.module.parameters()).add_(0.1)

    with pytest.raises(TrainingError, match="gives other outputs than the network"):
        formats._check(content, ".pt2", network.module, torch.zeros((2, 10)))


def test_the_command_writes_each_format(evaluated, store_settings, tmp_path):
    user = Shell(store_settings, tmp_path)
    described = {}
    shown = user.types(
        "weights", "export", "images#00000", "--to", str(tmp_path / "model.pt2")
    ).stdout
    assert "(batch, 1, 8, 8)" in shown and "logits of the classes" in shown
    for form in (".onnx", ".safetensors"):
        path = tmp_path / f"model{form}"
        said = user.types("weights", "export", "images#00000", "--to", str(path), "--json").stdout
        described[form] = json.loads(said)
        assert described[form]["bytes"] == path.stat().st_size

    kept = evaluated.weights.of_evaluation("images#00000")
    mine = tmp_path / "mine.safetensors"
    mine.write_bytes(b"of another network")
    again = ("weights", "export", "images#00000", "--to", str(mine))
    refused = user.types(*again, code=2).stderr
    assert f"{mine} exists: choose another name, or replace it with --force" in " ".join(
        refused.split()
    )
    assert mine.read_bytes() == b"of another network"
    user.types(*again, "--force")
    assert mine.read_bytes() == weights_file.path_of(kept.uri).read_bytes()
    copy = (tmp_path / "model.safetensors").read_bytes()
    assert copy == weights_file.path_of(kept.uri).read_bytes()
    module = evaluated.module("images#00000")
    assert {name: tensor.tolist() for name, tensor in load_tensors(copy).items()} == {
        name: tensor.tolist() for name, tensor in module.state_dict().items()
    }
    extra = {"archive.json": ""}
    torch.export.load(tmp_path / "model.pt2", extra_files=extra)
    metadata = (
        onnxruntime.InferenceSession(tmp_path / "model.onnx")
        .get_modelmeta()
        .custom_metadata_map["archive"]
    )
    assert json.loads(extra["archive.json"]) == json.loads(metadata)
    assert json.loads(metadata).items() <= described[".onnx"].items()


def test_an_answered_proposal_has_the_weights_that_it_repeats(evaluated):
    (proposal,) = propose(evaluated, [TINY_MLP], registry.DIABETES, "diabetes/1", "again")
    claim = evaluated.proposals.claim("w", study="again")
    evaluated.proposals.complete(claim.id, claim.token, Result(1.0, answered_from="values#00000"))
    assert trained.weights(evaluated, proposal.id).evaluation.id == "values#00000"


def test_weights_know_the_form_of_their_network(evaluated):
    # As on a machine without the task.
    evaluated.query("MATCH (t:Task {name: 'diabetes'}) SET t.name = 'elsewhere'", write=True)
    network = trained.network(evaluated, "values#00000")
    assert (network.evaluation.task, network.form) == ("elsewhere", registry.DIABETES.form())
    assert network.scaling is None
    with pytest.raises(UsageError, match="scaling of the inputs is not known here"):
        formats.serialise(network, ".pt2", raw_inputs=True)


def test_errors_name_what_is_wrong(evaluated, monkeypatch):
    assert trained.weights(evaluated, "images#0").evaluation.id == "images#00000"
    with pytest.raises(UnknownNameError, match="unknown evaluation 'images#7'"):
        evaluated.module("images#7")

    uri = evaluated.weights.of_evaluation("images#00000").uri
    path = weights_file.path_of(uri)
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(WeightsError, match="were altered"):
        evaluated.module("images#00000")

    path.unlink()
    with pytest.raises(WeightsError, match=r"cannot read weights .*No such file"):
        evaluated.module("images#00000")

    path.write_bytes(content)
    monkeypatch.setitem(builders.registry.built_in, "cnn", "no_such_module:Builder")
    monkeypatch.delitem(builders.registry._loaded, "cnn", raising=False)
    monkeypatch.setattr(builders, "names", lambda: ("mlp",))
    with pytest.raises(InvalidArchitectureError, match="builds networks of mlp, got cnn"):
        evaluated.module("images#00000")

    # The weights alone need no builder.
    assert trained.weights(evaluated, "images#00000").content == content


def test_weights_outside_of_the_archives_own_are_not_read(evaluated, tmp_path):
    kept = evaluated.weights.of_evaluation("values#00000")
    moved = weights_file.path_of(kept.uri)
    target = tmp_path / moved.parent.name / moved.name
    target.parent.mkdir()
    target.write_bytes(moved.read_bytes())
    evaluated.query(
        "MATCH (c:Weights {uri: $before}) SET c.uri = $after",
        {"before": kept.uri, "after": target.as_uri()},
        write=True,
    )
    with pytest.raises(SettingsError, match="--weights-from"):
        evaluated.module("values#00000")

    assert isinstance(evaluated.module("values#00000", [tmp_path]), torch.nn.Module)


def test_evaluations_without_weights_say_why(archive):
    propose(archive, [TINY_MLP], registry.DIABETES, "diabetes/1", "values")
    claim = archive.proposals.claim("w", study="values")
    archive.proposals.complete(claim.id, claim.token, Result(1.0))
    with pytest.raises(
        UsageError,
        match=r"no weights of the evaluation 'values#00000' are kept: "
        r".*--retrain",
    ):
        archive.module("values#00000")

    archive.query("MATCH (e:Evaluation {id: 'values#00000'}) SET e.device = 'table'", write=True)
    with pytest.raises(
        UsageError, match="its result is that of a table, and no network was trained"
    ):
        archive.module("values#00000")


@pytest.mark.parametrize("name", ["model.pt", "model", "none/model.onnx"])
def test_a_path_that_cannot_be_written_is_refused_first(tmp_path, name):
    with pytest.raises(UsageError):
        formats.check_path(tmp_path / name)


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "_ONNX", ("no_such_package",))
    with pytest.raises(SettingsError, match=r"no_such_package .*pip install 'nas-archive\[onnx\]'"):
        formats.check_path(tmp_path / "model.onnx")

    assert formats.check_path(tmp_path / "model.PT2") == ".pt2"
