"""Names of protocols: their parts, and one name for one meaning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.errors import UnknownNameError, UsageError
from archive.store.protocol_names import (
    FAMILIES,
    ProtocolName,
    check_owner,
    check_word,
    without_objective,
)
from archive.trainer.tasks import registry

WORDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_./@-]{0,10}", fullmatch=True)
BASES = st.sampled_from(["digits/1", "csv/0123456789ab", "a+b", "with space", "TASK/own"])


@given(BASES, st.booleans(), WORDS, st.none() | WORDS)
def test_a_name_and_its_parts_are_the_same(base, morph, recipe, objective):
    parts = ProtocolName(base, morph, recipe, objective)
    assert ProtocolName.parse(str(parts)) == parts
    assert without_objective(str(parts)) == str(ProtocolName(base, morph, recipe))


@given(st.text(min_size=1))
def test_any_text_is_a_name(text):
    assert str(ProtocolName.parse(text)) == text or "+recipe:default" in text


def test_defaults_are_left_out():
    assert str(ProtocolName("digits/1")) == "digits/1"
    assert ProtocolName.parse("digits/1+morph+recipe:sgd/2+objective:valid_loss") == ProtocolName(
        "digits/1", True, "sgd/2", "valid_loss"
    )


@pytest.mark.parametrize("name", ["", "-a", "a b", "a+b", "a:b", "a\n", "x" * 65])
def test_a_recipe_with_such_a_name_is_refused(name):
    with pytest.raises(UsageError, match="the name of a recipe must be"):
        check_word("recipe", name)


def test_a_task_has_each_protocol_with_each_recipe_and_objective():
    task = registry.DIABETES
    plain = task.protocol("diabetes/1")
    assert plain.recipe == "default"
    other = task.protocol("diabetes/1+recipe:mine+objective:valid_loss")
    assert (other.name, other.recipe) == ("diabetes/1+recipe:mine+objective:valid_loss", "mine")
    assert (other.epochs, other.train) == (plain.epochs, plain.train)
    assert task.protocol("diabetes/1+morph+recipe:mine").inherited_epochs


@pytest.mark.parametrize(
    "name", ["diabetes/1+recipe:default", "diabetes/1+objective:valid_mse", "no/1+recipe:mine"]
)
def test_a_second_name_for_one_meaning_is_unknown(name):
    with pytest.raises(UnknownNameError, match="unknown protocol of the task diabetes"):
        registry.DIABETES.protocol(name)


def test_every_task_of_this_package_has_a_family_of_protocols():
    # Tests of other modules register tasks of their own.
    for name in registry.registry.built_in:
        family = registry.get(name).protocol().name.partition("/")[0]
        assert name.startswith(FAMILIES[family]), name
        check_owner(name, registry.get(name).protocol().name)
        check_owner(f"{name}~0.1", f"{family}/1+recipe:mine")


@pytest.mark.parametrize(
    ("task", "protocol"),
    [
        ("csv:houses.csv#price", "digits/1+recipe:mine"),
        ("csv:houses.csv#price", "npz/0123456789ab"),
        ("digits", "csv/0123456789ab"),
        ("digits", "diabetes/1+morph"),
        ("nb201-cifar10", "nb101/108"),
        ("nb101", "nb201/12"),
        ("mine", "digits/small+objective:loss"),
        ("digits2", "digits/1"),
    ],
)
def test_a_protocol_of_another_task_is_refused(task, protocol):
    with pytest.raises(UsageError) as raised:
        check_owner(task, protocol)

    assert f"the protocol {protocol!r} is of " in str(raised.value) and f"not of {task!r}" in str(
        raised.value
    )


@pytest.mark.parametrize(
    ("task", "protocol"),
    [
        ("csv:a/b.csv#price", "csv:a/b.csv#price/own"),
        ("csv:a/b.csv#price", "csv/0123456789ab+recipe:mine"),
        ("nb201-cifar10~0.005", "nb201/200"),
        ("table:t.csv#x", "table/2"),
        ("mine", "mine/2+recipe:other"),
        ("mine", "lab protocol 7"),
        ("digits", "digits/own"),
        ("digits", "our/2"),
    ],
)
def test_own_and_free_names_of_protocols_are_accepted(task, protocol):
    check_owner(task, protocol)
