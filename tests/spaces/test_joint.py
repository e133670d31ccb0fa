"""Parameters beside networks: membership, moves, identity and JSON of the pairs."""

from __future__ import annotations

import json
import pickle
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive import space, spaces
from archive.architecture import codec
from archive.architecture.parameter_operations import join
from archive.errors import InvalidArchitectureError, SettingsError
from archive.spaces.constrained import constrain
from archive.spaces.joint import JointSpace, joint_space_of
from archive.spaces.stored_spaces import fixed_values, member_of
from tests.support import examples
from tests.support.strategies import generators, members

KNOBS = space.Space(
    learning_rate=space.real(1e-4, 1e-1, log=True),
    optimiser=space.choice(["sgd", "adam"]),
    momentum=space.real(0, 0.99, when="optimiser == 'sgd'"),
    augment=space.group({"size": space.integer(1, 8), "flip": [True, False]}),
    constraints=["augment_size * learning_rate < 0.6"],
)
NAMES = ("cnn", "mlp", "nasbench101", "nasbench201", "darts", "choices")


def joint(name: str) -> JointSpace:
    made = spaces.beside(name, KNOBS)
    assert isinstance(made, JointSpace)
    return made


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data(), rng=generators())
@examples(0.3)
def test_moves_stay_in_the_space_and_change_one_part(name, data, rng):
    whole = joint(name)
    network = data.draw(members(name))
    parent = whole.member(network, KNOBS.sample(rng))
    mutation = whole.mutate(parent, rng)
    assert mutation.child.functional_key != parent.functional_key
    children = [mutation, *islice(whole.neighbours(parent), 12)]
    for child in children:
        member = child.child
        whole.validate(member)
        assert member.space == name
        assert member.key != parent.key
        same_network = member.network.key == network.key
        same_values = member.configuration == parent.configuration
        assert same_network != same_values
        assert child.operations

    assert len({child.child.key for child in children[1:]}) == len(children) - 1


@given(network=members("cnn"), rng=generators(), other=generators())
@examples(0.5)
def test_a_member_is_its_network_and_its_values(network, rng, other):
    values = KNOBS.sample(rng)
    member = join(network, values)
    assert member.network == network
    assert member.configuration == values
    assert member.key != network.key
    assert member.canonical.network.key == network.key
    assert member.functional.configuration == values
    assert join(network, dict(reversed(values.items()))).key == member.key
    assert join(member, {}) == network
    assert pickle.loads(pickle.dumps(member)) == member
    assert codec.from_json(codec.to_json(member)) == member
    others = KNOBS.sample(other)
    assert (join(member, others).key == member.key) == (others == values)


def test_a_space_is_made_again_of_its_settings():
    whole = joint("cnn")
    config = json.loads(json.dumps(whole.config))
    assert spaces.get("cnn", **config) == whole
    assert spaces.get("cnn") != whole
    assert hash(spaces.get("cnn", **config)) == hash(whole)
    assert pickle.loads(pickle.dumps(whole)) == whole
    assert whole.is_cell == spaces.get("cnn").is_cell


def test_a_file_is_put_beside_a_space(tmp_path):
    file = tmp_path / "knobs.toml"
    file.write_text("[parameters]\nlearning_rate = {real = [1e-4, 0.1], log = true}\n")
    whole = spaces.beside("mlp", file)
    assert isinstance(whole, JointSpace)
    assert whole.parameters.names == ("learning_rate",)
    assert spaces.beside("mlp", str(file)) == whole


def test_the_pool_has_the_expected_values_once():
    knobs = space.Space(lr=space.real(0, 1, default=0.25))
    whole = spaces.beside("cnn", knobs)
    first, *rest = whole.initial_pool(np.random.default_rng(0))
    assert first.configuration == {"lr": 0.25}
    assert all(member.configuration != {"lr": 0.25} for member in rest)
    networks = spaces.get("cnn").initial_pool()
    assert {member.network.key for member in rest} <= {network.key for network in networks}
    assert len(rest) == len(networks) - 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"learning_rate": 1}, "learning_rate must be a number from 0.0001 to 0.1, got 1"),
        ({"rate": 1}, "unknown parameter 'rate'"),
        ({}, "learning_rate exists in this configuration and needs a value"),
    ],
)
def test_wrong_values_are_refused(values, message):
    whole = joint("cnn")
    network = spaces.get("cnn").initial_pool()[0]
    with pytest.raises(InvalidArchitectureError, match=message):
        whole.member(network, values)

    assert not whole.contains(join(network, values))
    assert whole.adopt(join(network, values)) is None


def test_a_network_alone_and_a_stranger_are_no_members():
    whole = joint("cnn")
    member = whole.initial_pool()[0]
    assert not whole.contains(member.network)
    assert not spaces.get("cnn").contains(member)
    stranger = joint("mlp").initial_pool()[0]
    assert not whole.contains(stranger)


@pytest.mark.parametrize(
    ("networks", "parameters", "message"),
    [
        ("parameters", KNOBS, "has parameters already"),
        (joint("cnn"), KNOBS, "has parameters already"),
        ("cnn", 3, r"space\.Space\(\.\.\.\) or a file of them, got 3"),
        (
            spaces.get("choices", decisions={"op": ["a", "b"]}),
            space.Space(op=["x", "y"]),
            "has a decision op already",
        ),
    ],
)
def test_what_cannot_be_beside_is_refused(networks, parameters, message):
    with pytest.raises(SettingsError, match=message):
        spaces.beside(networks, parameters)


def test_named_decisions_and_parameters_are_one_mapping():
    base = spaces.get("choices", decisions={"op": ["a", "b"], "size": ["1", "2"]})
    whole = spaces.beside(base, space.Space(lr=space.real(0, 1)))
    member = whole.of_names({"op": "b", "size": "1", "lr": 0.5})
    assert whole.named(member) == {"op": "b", "size": "1", "lr": 0.5}
    assert whole.of_names(whole.fill({"op": "a", "size": "2"})).configuration == {"lr": 0.5}


def test_groups_reach_a_training_as_a_tree():
    whole = joint("cnn")
    member = whole.complete(spaces.get("cnn").initial_pool()[0], {"augment": {"size": 3}})
    assert whole.named(member)["augment_size"] == 3
    assert whole.parameters_of(member)["augment"] == {"size": 3, "flip": True}
    assert whole.parameters_of(member.network) == {}


def test_members_of_a_small_space_are_all_pairs():
    base = spaces.get("choices", decisions={"op": ["a", "b", "c"]})
    whole = spaces.beside(base, space.Space(width=[1, 2]))
    listed = whole.members()
    assert listed is not None
    assert len({member.functional_key for member in listed}) == len(listed) == 6
    assert all(map(whole.contains, listed))
    assert joint("nasbench201").members() is None


@given(rng=generators())
@examples(0.3)
def test_decisions_of_both_parts_are_one_vector(rng):
    knobs = space.Space(opt=["sgd", "adam"], momentum=space.ordinal([0, 0.9], when="opt == 'sgd'"))
    whole = spaces.beside("nasbench201", knobs)
    decisions = whole.decisions()
    assert decisions is not None
    member = whole.sample(rng)
    vector = decisions.encode(member)
    assert vector is not None
    assert decisions.complete(vector, rng) == vector
    decoded = decisions.decode(vector)
    assert decoded is not None
    assert decoded.functional_key == member.functional_key
    assert decisions.encode(member.network) is None
    assert joint("nasbench201").decisions() is None


def test_a_part_of_the_parameters():
    whole = joint("cnn")
    part = whole.part(KNOBS.fix({"optimiser": "adam"}))
    assert fixed_values(part) == {"optimiser": "adam"}
    assert fixed_values(whole) == {}
    rng = np.random.default_rng(0)
    member = part.sample(rng)
    assert member.configuration["optimiser"] == "adam"
    assert whole.contains(member)
    other = whole.complete(member.network, {"optimiser": "sgd"})
    assert part.adopt(other) is None
    assert part.adopt(member) == member


def test_a_stored_pair_is_joined_by_the_settings_of_its_space():
    whole = joint("cnn")
    member = whole.initial_pool()[0]
    again = member_of(whole.config, member.network, member.configuration)
    assert again.functional_key == member.functional_key
    plain = member_of(spaces.get("cnn").config, member.network, member.configuration)
    assert plain is member.network


def test_known_costs_are_those_of_the_network():
    from archive.constraints import parse

    whole = joint("cnn")
    seen = []

    def size(networks):
        seen.extend(networks)
        return [len(network.layers) for network in networks]

    small = constrain(whole, [parse("size<=7")], {"size": size})
    assert joint_space_of(small) is whole
    member = small.sample(np.random.default_rng(0))
    assert whole.contains(member)
    assert len(member.layers) <= 7
    assert not any(network.configuration for network in seen)
