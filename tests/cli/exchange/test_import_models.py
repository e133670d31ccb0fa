"""`archive import model`, typed as a user types it."""

from __future__ import annotations

import json
import sys

import pytest

from archive.cli.exchange.import_models import ModelImport
from tests.support.commands import shell
from tests.support.json_documents import faults

CODE = """
from torch import nn

print("hello from the module")

def net(width=8, blocks=0):
    print("hello from the factory")
    parts = [part for _ in range(blocks) for part in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(nn.Linear(4, width), *parts, nn.Linear(width, 3))

def pixels(classes=10):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, classes))

def deep():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 10))

class Broken(nn.Module):
    def __init__(self):
        raise ValueError("no such thing")

number = 3

def flat():
    return nn.Sequential(nn.Flatten(), nn.AdaptiveAvgPool1d(10))
"""
HOSTILE = """
import torch
from torch import nn

def endless():
    while True:
        pass

class Calling(nn.Module):
    def forward(self, x):
        return self(x)

def inside_itself():
    net = nn.Sequential(nn.Linear(4, 4))
    net.again = nn.ModuleList([net])
    return net

def branching():
    class Branch(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x
    return Branch()

def long():
    return nn.Sequential(*(nn.ReLU() for _ in range(20_001)))

def one_module_often():
    layer = nn.Linear(4, 4)
    return nn.Sequential(layer, layer, nn.Sequential(layer))

class Heavy(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.zeros(4, 2**23))

    def forward(self, x):
        return x @ self.table

def leaving():
    raise SystemExit(3)
"""
MODEL = ("import", "model", "own_models:net", "--input", "4")


@pytest.fixture
def user(archive, store_settings, tmp_path, monkeypatch):
    (tmp_path / "own_models.py").write_text(CODE)
    (tmp_path / "hostile_models.py").write_text(HOSTILE)
    (tmp_path / "broken_module.py").write_text("import no_such_package")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with shell(store_settings, tmp_path) as opened:
        yield opened

    for name in ("own_models", "hostile_models", "broken_module"):
        sys.modules.pop(name, None)


def imported(user, *arguments):
    done = user.types(*MODEL, *arguments, "--json")
    document = json.loads(done.stdout)
    assert not faults(document, ModelImport)
    return document


def test_a_model_with_arguments_and_metrics(user, archive):
    plain = imported(user)
    assert (plain["layers"], plain["params"], plain["flops"]) == (
        4,
        4 * 8 + 8 + 24 + 3,
        4 * 8 + 8 + 24 + 3,
    )
    assert plain["task"] is plain["evaluation"] is None
    wide = imported(
        user,
        "--set",
        "width=16",
        "--metric",
        "accuracy=0.9",
        "--metric",
        "loss=0.1",
        "--task",
        "iris",
        "--license",
        "MIT",
    )
    assert wide["key"] != plain["key"]
    assert wide["protocol"] == "iris/own"
    (evaluation,) = archive.studies.evaluations(task="iris")
    assert (evaluation.value, evaluation.metrics) == (0.9, {"accuracy": 0.9, "loss": 0.1})
    (origin,) = archive.query("MATCH (e:Evaluation) RETURN e.environment").rows
    assert json.loads(origin[0]) == {"imported": "own_models:net"}
    assert evaluation.provenance == {"source": "own_models:net", "license": "MIT"}
    shown = user.types(*MODEL).stdout
    assert plain["key"] in shown and "hello" not in shown


def test_results_of_a_file_in_a_study(user, archive, tmp_path):
    results = {
        "metrics": {"mse": 0.5},
        "curve": {"mse": [0.9, 0.5]},
        "epochs": 2,
        "seconds": 3.5,
        "seed": 1,
    }
    (tmp_path / "results.json").write_text(json.dumps(results))
    given = ("--results", "results.json", "--task", "iris", "--study", "mine", "--minimise")
    document = imported(user, *given)
    assert document["proposal"] == document["evaluation"] == "mine#00000"
    (evaluation,) = archive.studies.evaluations("mine")
    assert (evaluation.value, evaluation.seconds, evaluation.epochs) == (0.5, 3.5, 2)
    assert archive.studies.get("mine").direction == "minimise"


def test_a_model_to_be_trained(user, archive):
    model = (
        "import",
        "model",
        "own_models:pixels",
        "--input",
        "1x8x8",
        "--task",
        "digits",
        "--study",
        "mine",
    )
    document = json.loads(user.types(*model, "--json").stdout)
    assert (document["proposal"], document["evaluation"], document["protocol"]) == (
        "mine#00000",
        None,
        "digits/small",
    )
    assert archive.studies.get("mine").objective == "valid_accuracy"
    done = user.types(*model, "--set", "classes=9", code=2)
    assert (
        "the task digits cannot train this model: the network has outputs of the shape (9,)"
        in done.stderr
    )
    flat = user.types(*model[:2], "own_models:flat", *model[3:], code=2)
    assert (
        "the task digits cannot train this model, which has no weights: give a --metric"
        in flat.stderr
    )
    assert archive.studies.get("mine").budget == 1


@pytest.mark.parametrize(
    "given",
    [
        ("--protocol", "digits/small+recipe:own+objective:energy", "--minimise"),
        ("--protocol", "digits/small+recipe:own", "--objective", "energy", "--minimise"),
    ],
)
def test_a_model_is_trained_by_a_recipe_of_the_users_for_its_metric(user, archive, given):
    model = ("import", "model", "own_models:pixels", "--input", "1x8x8", "--study", "mine")
    user.types(*model, "--task", "digits", *given)
    stored = archive.studies.get("mine")
    assert (stored.protocol, stored.objective) == (
        "digits/small+recipe:own+objective:energy",
        "energy",
    )
    assert stored.direction == "minimise"
    # The study has the settings of further models.
    further = json.loads(user.types(*model[:2], "own_models:deep", *model[3:], "--json").stdout)
    assert (further["proposal"], further["protocol"]) == ("mine#00001", stored.protocol)
    refused = user.types(*model, "--objective", "valid_accuracy", code=2).stderr
    assert "study 'mine' exists with" in refused


def test_a_study_of_imported_results_has_one_objective(user, archive):
    metrics = ("--metric", "accuracy=0.5", "--metric", "loss=2", "--study", "mine")
    imported(user, *metrics, "--task", "iris", "--objective", "loss", "--minimise")
    assert imported(user, *metrics, "--set", "width=16")["task"] == "iris"
    assert [each.value for each in archive.studies.evaluations("mine")] == [2.0, 2.0]
    refused = user.types(
        *MODEL, "--set", "width=32", "--metric", "accuracy=0.5", "--study", "mine", code=2
    ).stderr
    assert "the objective 'loss' must be one of the metrics: accuracy" in refused


def test_one_module_in_several_places_is_one_set_of_weights(user):
    model = ("import", "model", "hostile_models:one_module_often", "--input", "4", "--json")
    assert json.loads(user.types(*model).stdout)["params"] == 20


def test_repeated_blocks_are_folded_on_request(user):
    whole, folded = (imported(user, "--set", "blocks=9", *extra) for extra in ((), ("--fold",)))
    assert (whole["layers"], folded["layers"]) == (22, 8)
    assert whole["params"] == folded["params"]


def test_a_file_of_onnx(user, tmp_path, archive):
    onnx = pytest.importorskip("onnx")
    parser = pytest.importorskip("onnx.parser")
    text = "g (float[N,64] x) => (float[N,10] y) <float[64,10] w> { y = MatMul(x, w) }"
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    model.graph.initializer.append(onnx.helper.make_tensor("w", 1, [64, 10], [0.5] * 640))
    onnx.save(model, tmp_path / "linear.onnx")
    given = ("--task", "iris", "--metric", "accuracy=0.5")
    document = json.loads(user.types("import", "onnx", "linear.onnx", *given, "--json").stdout)
    assert not faults(document, ModelImport)
    assert (document["layers"], document["params"], document["flops"]) == (3, 640, 640)
    (origin,) = archive.query("MATCH (e:Evaluation) RETURN e.environment").rows
    assert json.loads(origin[0]) == {"imported": "linear.onnx"}
    done = user.types("import", "onnx", "own_models.py", code=2)
    assert (
        done.stderr.startswith("error: own_models.py is no ONNX model")
        and done.stderr.count("\n") == 1
    )


FAULTS = {
    "no colon": (("own_models",), "a model is given as MODULE:FACTORY"),
    "no module": (("nowhere:net",), "there is no module 'nowhere'"),
    "no package": (
        ("broken_module:net",),
        "the module 'broken_module' cannot be imported: it needs 'no_such_package'",
    ),
    "no factory": (("own_models:nett",), "unknown factory of own_models 'nett': did you mean net?"),
    "no function": (("own_models:number",), "must be callable, got int"),
    "factory raises": (
        ("own_models:Broken",),
        r"raised ValueError: no such thing "
        r"(own_models.py:19)",
    ),
    "endless": (
        ("hostile_models:endless", "--timeout", "0.2"),
        "takes longer than 0.2 s: give it more by --timeout",
    ),
    "recursion": (("hostile_models:Calling",), "Calling is nested too deeply"),
    "a module in itself": (("hostile_models:inside_itself",), "Sequential is nested too deeply"),
    "a branch": (("hostile_models:branching",), "use torch.where"),
    "many layers": (("hostile_models:long",), "has 20001 layers"),
    "a large constant": (
        ("hostile_models:Heavy",),
        "the buffer table has 134217728 bytes, and a constant 67108864 at most",
    ),
    "an exit": (("hostile_models:leaving",), "raised SystemExit: 3"),
    "argument": (("own_models:net", "--set", "widht=3"), "unexpected keyword argument 'widht'"),
    "no model": (("builtins:dict",), "must return a torch.nn.Module, got dict"),
    "input": (("own_models:net", "--input", "4x"), "an input is given as 3x224x224"),
    "metric": (
        ("own_models:net", "--metric", "accuracy=high", "--task", "iris"),
        "accuracy must be a finite number, got high",
    ),
    "no task": (("own_models:net", "--metric", "accuracy=1"), "needs --task"),
    "no metric": (("own_models:net", "--task", "iris"), "--task needs a metric, or --study"),
    "table": (
        ("own_models:net", "--task", "nb201-cifar10", "--study", "s"),
        "nb201-cifar10 is a table",
    ),
    "objective": (
        ("own_models:net", "--metric", "a=1", "--task", "iris", "--objective", "b"),
        "must be one of the metrics",
    ),
    "no file": (
        ("own_models:net", "--results", "none.json", "--task", "iris"),
        "no results can be read from none.json",
    ),
    "key": (
        ("own_models:net", "--results", "key.json", "--task", "iris"),
        "unknown key 'accuracy'",
    ),
    "no metrics": (
        ("own_models:net", "--results", "bare.json"),
        "--results needs a metric: by --metric, or as one of",
    ),
    "no metrics of a study": (
        ("own_models:net", "--results", "bare.json", "--task", "digits", "--study", "s"),
        "--results needs a metric",
    ),
    "minimise nothing": (
        ("own_models:net", "--task", "digits", "--study", "s", "--minimise"),
        (
            "the task digits maximises valid_accuracy: --minimise needs a metric, or another "
            "--objective"
        ),
    ),
    "protocol of nothing": (
        ("own_models:net", "--protocol", "p"),
        "a protocol or a study needs --task",
    ),
    "no number": (
        ("own_models:net", "--metric", "a=NaN", "--task", "iris"),
        "a must be a finite number, got nan",
    ),
    "infinite": (
        ("own_models:net", "--results", "nan.json", "--metric", "a=1", "--task", "iris"),
        "the metric b must be a finite number, got -inf",
    ),
    "two values": (
        ("own_models:net", "--metric", "a=1", "--metric", "a=2", "--task", "iris"),
        "a metric must have one value, got a=1 and a=2",
    ),
    "two arguments": (
        ("own_models:net", "--set", "width=1", "--set", "width=2"),
        "an argument of the factory must have one value, got width=1 and width=2",
    ),
    "huge metric": (
        ("own_models:net", "--metric", f"a={'9' * 400}", "--task", "iris"),
        "must be a finite number, got 999",
    ),
    "huge seed": (
        ("own_models:net", "--results", "seed.json", "--task", "iris"),
        f"invalid seed: {2**64 - 1}; a whole number has 64 bits",
    ),
    "value": (
        ("own_models:net", "--results", "value.json", "--task", "iris"),
        "invalid epochs: ten",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_mistake_is_one_line(user, tmp_path, case):
    (tmp_path / "key.json").write_text('{"accuracy": 1}')
    (tmp_path / "value.json").write_text('{"metrics": {"a": 1}, "epochs": "ten"}')
    (tmp_path / "bare.json").write_text('{"curve": {"a": [1, 2]}, "epochs": 2}')
    (tmp_path / "nan.json").write_text('{"metrics": {"b": -1e999}}')
    (tmp_path / "seed.json").write_text(json.dumps({"metrics": {"a": 2**70}, "seed": 2**64 - 1}))
    arguments, reason = FAULTS[case]
    if "--input" not in arguments:
        arguments = (*arguments, "--input", "4")

    done = user.types("import", "model", *arguments, code=2)
    *printed, line = done.stderr.splitlines()
    assert reason in line
    assert all(each.startswith("hello") for each in printed)
