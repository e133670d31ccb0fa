"""Networks of configurations, from a process that is bounded in time and memory."""

from __future__ import annotations

import logging
import sys

import pytest

from archive import agents, space, spaces
from archive.agents.searcher import Searcher
from archive.queue.reuse import PARAMETERS_READ
from archive.store.records import Result
from archive.trainer.intake.models import import_model
from archive.trainer.intake.reads import Reads, RecordedParameters
from archive.trainer.recipes import model_process
from archive.trainer.recipes.model_process import process_of
from tests.support import ROOT
from tests.support.networks.model_processes import InProcess

MODELS = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, bottleneck):
        super().__init__()
        self.first = nn.Conv2d(width, bottleneck, 1)
        self.norm = nn.BatchNorm2d(bottleneck)
        self.second = nn.Conv2d(bottleneck, width, 3, padding=1)

    def forward(self, x):
        return x + self.second(torch.relu(self.norm(self.first(x))))


def build(width, stage, dropout=0.0):
    blocks = []
    for entry in stage:
        blocks.append(Block(width, entry["bottleneck"]) if entry["op"] == "block" else nn.Identity())

    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(dropout), nn.Linear(width, 10)]
    return nn.Sequential(nn.Conv2d(1, width, 3, padding=1), *blocks, *head)


def perceptron(parameters):
    layers = [nn.Linear(8, parameters["width"])]
    if parameters["deep"]:
        layers += [nn.ReLU(), nn.Linear(parameters["width"], parameters["second"])]

    return nn.Sequential(*layers)


class Trained(nn.Module):
    def __init__(self, width, lr, init):
        super().__init__()
        self.lr = lr
        self.layer = nn.Linear(8, width)
        if init == "zero":
            nn.init.zeros_(self.layer.weight)

    def forward(self, x):
        return self.layer(x)


def with_rate(width, lr, init="usual"):
    return Trained(width, lr, init)


def of_any(**parameters):
    return nn.Linear(8, parameters["width"])


class Undecided(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


def undecided(width):
    return nn.Sequential(nn.Linear(8, width), Undecided())


class Several(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.table = nn.Embedding(5, 8)
        self.layer = nn.Linear(8, width)

    def forward(self, x, index):
        return self.layer(x + self.table(index))


def several(width):
    return Several(width)
"""

BLOCKS = {
    "width": space.choice([4, 8]),
    "dropout": space.real(0.0, 0.5),
    "lr": space.real(1e-4, 1e-1, log=True),
    "depth": space.integer(1, 3),
    "stage": space.repeat(
        {
            "op": ["block", "skip"],
            "bottleneck": space.choice([2, 4], when="op == 'block'"),
        },
        "depth",
    ),
}
VALUES = {"width": 4, "dropout": 0.0, "lr": 0.01, "depth": 1}
BLOCK = {"op": "block", "bottleneck": 2}
SKIP = {"op": "skip"}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    (folder / "built_nets.py").write_text(MODELS)
    return folder


@pytest.fixture(autouse=True)
def own_path(monkeypatch):
    """Models that are imported here put their folders first on the path."""
    monkeypatch.setattr(sys, "path", [*sys.path])


def declared(folder, function, parameters, example):
    declared = space.Space(parameters, model=f"built_nets.py:{function}", example=example)
    declared.model = declared.model.within(folder)
    return declared


@pytest.fixture(scope="module")
def started(folder):
    """A process, the one of these tests: each takes seconds to import torch; and its space."""
    blocks = declared(folder, "build", BLOCKS, (1, 8, 8))
    opened = process_of(blocks, None)
    yield opened, spaces.of(blocks)
    opened.close()


@pytest.fixture
def model(folder, monkeypatch):
    """Returns what answers here as the process of a function of the file, and a space with it."""

    def model(function, parameters, example=(8,)):
        found = declared(folder, function, parameters, example)
        return process_of(found, None), spaces.of(found)

    monkeypatch.setattr(model_process, "ModelProcess", InProcess)
    return model


def builds_of(process, found, *configurations):
    return process.builds([found.of_names(values) for values in configurations])


def test_two_settings_that_build_one_network_have_one(started):
    opened, found = started
    first, second, third, dropped, other = builds_of(
        opened,
        found,
        {**VALUES, "stage": [BLOCK]},
        {**VALUES, "depth": 2, "stage": [SKIP, BLOCK]},
        {**VALUES, "depth": 3, "stage": [BLOCK, SKIP, SKIP]},
        {**VALUES, "dropout": 0.5, "stage": [BLOCK]},
        {**VALUES, "depth": 2, "stage": [BLOCK, BLOCK]},
    )
    assert first.network == second.network == third.network
    assert first.state == second.state == third.state is not None
    assert first.reads == ["depth", "dropout", "stage", "width"]
    assert len({build.network.key for build in (first, dropped, other)}) == 3
    assert first.version.startswith("sha256:")
    assert {layer.op for layer in other.network.layers} >= {"convolution", "batch_norm", "add"}


def test_a_mapping_tells_what_was_read(model):
    parameters = {"width": [2, 4], "deep": [True, False], "second": [3, 5], "lr": [0.1, 0.2]}
    opened, found = model("perceptron", parameters)
    values = {"width": 2, "deep": True, "second": 3, "lr": 0.1}
    deep, flat = builds_of(opened, found, values, {**values, "deep": False})
    assert deep.reads == ["deep", "second", "width"]
    assert flat.reads == ["deep", "width"]
    assert deep.network.key != flat.network.key


def test_numbers_and_weights_beside_the_network_tell_modules_apart(model):
    parameters = {"width": [2, 4], "lr": [0.1, 0.2], "init": ["usual", "zero"]}
    opened, found = model("with_rate", parameters)
    values = {"width": 2, "lr": 0.1, "init": "usual"}
    first, rate, init = builds_of(
        opened, found, values, {**values, "lr": 0.2}, {**values, "init": "zero"}
    )
    assert first.network == rate.network == init.network
    assert len({build.state for build in (first, rate, init)}) == 3


def test_a_model_of_any_parameters_may_have_read_any(model):
    opened, found = model("of_any", {"width": [2, 4], "lr": [0.1, 0.2]})
    (build,) = builds_of(opened, found, {"width": 2, "lr": 0.1})
    assert build.reads is None and build.state is None
    assert len(build.network.layers) > 2


def test_a_model_that_cannot_be_exported_is_one_line(model, caplog):
    opened, found = model("undecided", {"width": [2, 4]})
    with caplog.at_level(logging.WARNING, "archive.trainer"):
        assert builds_of(opened, found, {"width": 2}, {"width": 4}) == [None, None]

    (record,) = caplog.records
    assert "network of the model unknown" in record.getMessage()
    assert "cannot be exported at built_nets.py" in record.getMessage()
    assert "\n" not in record.getMessage()


def test_a_model_of_several_inputs_has_a_network_and_costs(model):
    opened, found = model("several", {"width": [2, 4]}, ["8", "scalar:int64"])
    (build,) = builds_of(opened, found, {"width": 2})
    assert sum(layer.op == "ip" for layer in build.network.layers) >= 1
    costs = opened.known_costs()
    network = found.of_names({"width": 2})
    assert costs["params"]([network]) == [5 * 8 + 8 * 2 + 2]
    assert costs["flops"]([network]) == [8 * 2 + 2]


def test_a_network_is_that_of_an_imported_model(started, folder, monkeypatch):
    monkeypatch.syspath_prepend(str(folder))
    import built_nets

    from archive.architecture.aten.wiring import Input

    opened, found = started
    (build,) = builds_of(opened, found, {**VALUES, "stage": [BLOCK]})
    module = built_nets.build(4, [BLOCK], 0.0)
    assert import_model(module, [Input((1, 8, 8))]).architecture.key == build.network.key


def test_the_example_of_the_guide_builds_one_network_of_two_settings(monkeypatch):
    monkeypatch.setattr(model_process, "ModelProcess", InProcess)
    declared = space.load(str(ROOT / "docs" / "examples" / "models" / "space.toml"))
    opened = process_of(declared, None)
    found = spaces.of(declared)
    block = {"op": "residual", "bottleneck": 4}
    values = {"width": 8, "lr": 0.01}
    first, second = builds_of(
        opened,
        found,
        {**values, "depth": 1, "stage": [block]},
        {**values, "depth": 2, "stage": [{"op": "none"}, block]},
    )
    assert (first.network, first.state) == (second.network, second.state)
    assert "lr" not in first.reads


@pytest.mark.parametrize(
    ("read", "names"),
    [
        (lambda parameters: parameters["a"], ["a"]),
        (lambda parameters: parameters.get("gone"), ["gone"]),
        (lambda parameters: "b" in parameters, ["b"]),
        (dict, None),
        (lambda parameters: {**parameters}, None),
        (lambda parameters: list(parameters.items()), None),
        (str, None),
        (lambda parameters: None, []),
    ],
)
def test_reads_are_recorded(read, names):
    reads = Reads()
    parameters = RecordedParameters({"a": 1, "b": {"c": 2}}, reads)
    read(parameters)
    assert reads.known() == names
    assert parameters == {"a": 1, "b": {"c": 2}}


class Fixed:
    """An agent that suggests the same configurations in each call."""

    kind = "fixed"
    grams = None
    constraints = None

    def __init__(self, found, members):
        self.space = found
        self.members = members

    def propose(self, history, count, rng):
        return [agents.base.Suggestion(member) for member in self.members]


def test_a_search_trains_one_of_two_settings_with_one_network(archive, model):
    opened, found = model("build", BLOCKS, (1, 8, 8))
    study = agents.study(archive, "mine", found)
    members = []
    for stage in ([BLOCK], [SKIP, BLOCK], [BLOCK, BLOCK]):
        members.append(found.of_names({**VALUES, "depth": len(stage), "stage": stage}))

    agent = Fixed(found, members)
    id_ = archive.proposals.register_agent("fixed", {}, "1")
    searcher = Searcher(archive, builder=opened)
    made = searcher.propose(study.record, agent, id_, 3).made
    assert [proposal.architecture_key for proposal in made] == [members[0].key, members[2].key]
    for _ in made:
        claim = archive.proposals.claim("w", study="mine")
        environment = {PARAMETERS_READ: ["lr"]}
        archive.proposals.complete(claim.id, claim.token, Result(0.5, environment=environment))

    (answered,) = searcher.propose(study.record, agent, id_, 3).made
    assert answered.architecture_key == members[1].key
    assert archive.answers.count("mine") == 1
    assert len(study.evaluations()) == 3
    assert archive.proposals.claim("w", study="mine") is None
