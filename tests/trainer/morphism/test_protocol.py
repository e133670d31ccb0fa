"""Trials that inherit weights: their initial weights, the length of their training, and their
record."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import replace

import pytest
import torch

from archive.store.records import Study
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.trainer import Trainer
from archive.trainer.morphism import inherited_weights
from archive.trainer.nn import builders
from archive.trainer.protocols.base import inherited_seed, shorten
from archive.trainer.storage import locations, weights_file, weights_store
from archive.trainer.tasks import registry
from tests.support import whole
from tests.support.networks.nets import net
from tests.support.stores import Suggestion

DIABETES = registry.get("diabetes")
PROTOCOL = DIABETES.protocol("diabetes/1+morph")
PARENT = net("mlp", "relu/16 linear")
CHILD = net("mlp", "relu/16 relu/16 linear")
GRANDCHILD = net("mlp", "relu/32 relu/16 linear")
LARGER = net("mlp", "relu/40 linear")


@pytest.fixture
def run(archive, tmp_path):
    """Lets a daemon work until there is nothing to do."""
    options = TrainerOptions(threads=1, device="cpu", idle_seconds=0.3)
    return lambda: Trainer(archive, options, home=tmp_path / "trainer").run()


@pytest.fixture
def own(tmp_path):
    """Where that daemon keeps weights."""
    return (tmp_path / "trainer" / "weights",)


def propose(
    archive, network, parent=None, protocol="diabetes/1+morph", name=None, operations=("deepen",)
):
    name = name or protocol
    archive.studies.create(
        Study(
            name,
            "diabetes",
            protocol,
            "mlp",
            DIABETES.objective,
            DIABETES.direction,
            budget=100,
            seed=3,
        )
    )
    agent = archive.proposals.register_agent("morphism", {}, "1")
    (proposal,) = archive.proposals.create(
        name, agent, [Suggestion(network, parent=parent, operations=operations)]
    )
    return proposal.id


def result_of(archive, id_):
    query = "MATCH (e:Evaluation {id: $id}) RETURN e.value, e.epochs, e.environment"
    ((value, epochs, environment),) = archive.query(query, {"id": id_}).rows
    return value, epochs, json.loads(environment)


def test_the_rule_is_part_of_the_protocol():
    assert (PROTOCOL.name, PROTOCOL.epochs, PROTOCOL.inherited_epochs) == (
        "diabetes/1+morph",
        60,
        12,
    )
    shortened = shorten(PROTOCOL)
    assert shortened == replace(PROTOCOL, epochs=12)
    assert DIABETES.protocol("diabetes/1").inherited_epochs is None


def test_child_inherits_its_parents_weights(archive, run):
    first = propose(archive, PARENT)
    run()
    value, epochs, environment = result_of(archive, first)
    assert "inherited" not in environment
    assert epochs > PROTOCOL.inherited_epochs

    second = propose(archive, CHILD, PARENT)
    run()
    _, epochs, environment = result_of(archive, second)
    saved = archive.weights.of_evaluation(first)
    assert epochs <= PROTOCOL.inherited_epochs
    assert environment["inherited"] == {
        "architecture": PARENT.key,
        "evaluation": first,
        "protocol": "diabetes/1+morph",
        "hops": 1,
        "operations": ["deepen 2 relu/16"],
        "uri": saved.uri,
        "sha256": saved.sha256,
    }
    (evaluation,) = [one for one in archive.studies.evaluations(PROTOCOL.name) if one.id == second]
    assert evaluation.seed == inherited_seed(3, CHILD.key) != 3
    # From its seed it would be where a constant predictor is.
    assert evaluation.curve["valid_mse"][0] < value + 0.1


def test_inherited_weights_keep_the_parents_function(archive, run, own):
    propose(archive, PARENT)
    run()
    found, _ = inherited_weights.find_ancestor(archive, CHILD, DIABETES, PROTOCOL, 0, own) or (
        None,
        None,
    )
    assert found is None
    propose(archive, CHILD, PARENT)
    found, _ = inherited_weights.find_ancestor(archive, CHILD, DIABETES, PROTOCOL, 0, own)
    saved = weights_file.load(found.weights)
    inputs = torch.from_numpy(DIABETES.load().test.inputs)
    outputs = []
    for network, learned in (
        (saved.architecture, saved.weights),
        (CHILD.canonical, pickle.loads(pickle.dumps(found))()),
    ):
        built = builders.build(network, DIABETES.form()).eval()
        built.load_state_dict(learned)
        outputs.append(built(inputs))

    torch.testing.assert_close(*outputs)


def test_new_normalisations_are_calibrated_on_the_task():
    digits = registry.get("digits")
    protocol = digits.protocol("digits/1+morph")
    parent = net("cnn", "conv3/8 softmax")
    child = net("cnn", "conv3/8 conv3/8 softmax")
    learned = builders.build(parent, digits.form(protocol), 1).state_dict()
    found = inherited_weights.adapt(parent, learned, child, digits, protocol, 0)
    assert found["layers.2.filter.norm.running_mean"].abs().max() > 0.01


@pytest.mark.whole
def test_ancestor_with_another_function_is_skipped(archive, run):
    first = propose(archive, PARENT)
    run()
    archive.architectures.record_morph(PARENT, LARGER, ["widen"])
    propose(archive, LARGER, PARENT, name="larger", operations=("widen",))
    run()
    archive.architectures.record_morph(LARGER, GRANDCHILD, ["dec_single"])
    archive.architectures.record_morph(PARENT, CHILD, ["deepen"])
    archive.architectures.record_morph(CHILD, GRANDCHILD, ["widen"])
    last = propose(archive, GRANDCHILD, CHILD, operations=("widen",))
    run()
    _, _, environment = result_of(archive, last)
    assert (environment["inherited"]["evaluation"], environment["inherited"]["hops"]) == (first, 2)
    steps = {
        (step.parent, step.child): step.operations for step in archive.lineage.of(GRANDCHILD.key)
    }
    assert steps[PARENT.key, GRANDCHILD.key] == ("widen 1 16->32", "deepen 2 relu/16")
    assert steps[CHILD.key, GRANDCHILD.key] == ("widen",)


@pytest.mark.whole
def test_plain_weights_are_inherited_but_not_vice_versa(archive, run):
    plain = propose(archive, PARENT, protocol="diabetes/1")
    run()
    child = propose(archive, CHILD, PARENT)
    run()
    assert result_of(archive, child)[2]["inherited"]["evaluation"] == plain
    alone = propose(archive, GRANDCHILD, CHILD, protocol="diabetes/1")
    run()
    _, epochs, environment = result_of(archive, alone)
    assert "inherited" not in environment
    assert epochs > PROTOCOL.inherited_epochs


@pytest.mark.whole
def test_missing_weights_are_not_inherited(archive, run):
    first = propose(archive, PARENT)
    run()
    weights_store.remove(archive.weights.of_evaluation(first).uri)
    child = propose(archive, CHILD, PARENT)
    run()
    _, epochs, environment = result_of(archive, child)
    assert "inherited" not in environment
    assert epochs > PROTOCOL.inherited_epochs


@pytest.mark.whole
def test_altered_weights_are_not_inherited_and_training_starts_from_the_seed(archive, run):
    first = propose(archive, PARENT)
    run()
    locations.local_folder(archive.weights.of_evaluation(first).uri).write_bytes(b"")
    child = propose(archive, CHILD, PARENT)
    run()
    value, epochs, environment = result_of(archive, child)
    assert "must be" in environment["inherited"]["error"]
    (evaluation,) = [one for one in archive.studies.evaluations(PROTOCOL.name) if one.id == child]
    assert evaluation.seed == 3
    plain = propose(archive, CHILD, protocol="diabetes/1")
    run()
    assert (value, epochs) == result_of(archive, plain)[:2]


def replaced(archive, evaluation, own, tensors):
    """Give an evaluation other weights, as a recipe may return them."""
    architecture = weights_file.load(archive.weights.of_evaluation(evaluation)).architecture
    other = weights_file.save(own[0], architecture, tensors, {})
    query = "MATCH (e:Evaluation {id: $id})-[:SAVED]->(w:Weights) SET w += $new"
    new = {"uri": other.uri, "sha256": other.sha256, "bytes": other.bytes}
    archive.query(query, {"id": evaluation, "new": new}, write=True)


@pytest.mark.parametrize("number", [float("nan"), whole(float("inf"))])
def test_weights_that_are_not_finite_are_not_inherited_and_training_starts_from_the_seed(
    archive, run, own, number
):
    first = propose(archive, PARENT)
    run()
    tensors = weights_file.load(archive.weights.of_evaluation(first)).weights
    tensors["layers.1.affine.weight"][0, 0] = number
    replaced(archive, first, own, tensors)
    child = propose(archive, CHILD, PARENT)
    run()
    value, epochs, environment = result_of(archive, child)
    error = environment["inherited"]["error"]
    assert error.endswith("are not finite: NaN or infinity in layers.1.affine.weight")
    assert epochs > PROTOCOL.inherited_epochs
    assert math.isfinite(value)


def test_inherited_weights_are_reserved(archive, run, own):
    propose(archive, PARENT)
    run()
    propose(archive, CHILD, PARENT)
    assert archive.query("MATCH (w:Weights) WHERE w.used IS NOT NULL RETURN w.uri").rows == []
    found, _ = inherited_weights.find_ancestor(archive, CHILD, DIABETES, PROTOCOL, 0, own)
    ((uri,),) = archive.query("MATCH (w:Weights) WHERE w.used IS NOT NULL RETURN w.uri").rows
    assert uri == found.weights.uri


def moved(archive, evaluation, uri):
    """Give the weights of an evaluation another address, as a dump from elsewhere may have it."""
    query = "MATCH (e:Evaluation {id: $id})-[:SAVED]->(w:Weights) SET w.uri = $uri"
    archive.query(query, {"id": evaluation, "uri": uri}, write=True)


def test_foreign_locations_are_not_contacted(archive, run, own, monkeypatch):
    first = propose(archive, PARENT)
    run()
    saved = archive.weights.of_evaluation(first)
    tail = f"{saved.sha256[:2]}/{saved.sha256}.safetensors"
    propose(archive, CHILD, PARENT)

    def asked(*arguments):
        raise AssertionError(f"asked for {arguments}")

    monkeypatch.setattr("archive.trainer.storage.weights_store.file_system", asked)
    monkeypatch.setattr("archive.trainer.storage.weights_store.exists", asked)
    for uri in (
        f"http://127.0.0.1:1/{tail}",
        f"simplecache::http://127.0.0.1:1/{tail}",
        f"simplecache::{saved.uri}",
        f"zip://{tail}::{own[0].as_uri()}/{tail}",
        f"local://{own[0]}/{tail}",
        f"file:///etc/{tail}",
        f"file://elsewhere{own[0]}/{tail}",
        f"{own[0].as_uri()}/../weights/../elsewhere/{tail}",
        f"{own[0].as_uri()}/{saved.sha256[:2]}/other.safetensors",
        f"{own[0].as_uri()}/{tail}%00",
        "file:///etc/passwd",
    ):
        moved(archive, first, uri)
        assert (
            inherited_weights.find_ancestor(archive, CHILD, DIABETES, PROTOCOL, 0, own) is None
        ), uri


@pytest.mark.whole
def test_weights_at_a_configured_location_are_inherited(archive, run, own, tmp_path):
    first = propose(archive, PARENT)
    run()
    archived = tmp_path / "archived"
    own[0].rename(archived)
    (tmp_path / "linked").symlink_to(archived)
    uri = archive.weights.of_evaluation(first).uri.replace("/trainer/weights/", "/archived/")
    moved(archive, first, uri)
    child = propose(archive, CHILD, PARENT)
    assert inherited_weights.find_ancestor(archive, CHILD, DIABETES, PROTOCOL, 0, own) is None
    options = TrainerOptions(
        threads=1, device="cpu", idle_seconds=0.3, weights_from=(str(tmp_path / "linked"),)
    )
    Trainer(archive, options, home=tmp_path / "trainer").run()
    assert result_of(archive, child)[2]["inherited"]["uri"] == uri
