"""Categorical decisions in a chain or a set: members, settings, and tables of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from archive import spaces
from archive.architecture.choice_operations import conflict
from archive.architecture.graph import Architecture, Layer
from archive.errors import InvalidArchitectureError, SettingsError, UnknownNameError, UsageError
from archive.spaces.tables.reader import Table
from tests.support.strategies import relabelled

CHAIN = spaces.get(
    "choices", decisions={"first": ["small", "large"], "last": ["large", "none", "small"]}
)
SET = spaces.get(
    "choices",
    decisions={"width": ["16", "32"], "depth": ["2", "16", "4"], "act": ["a", "b"]},
    form="set",
)


@pytest.mark.parametrize("space", [CHAIN, SET])
def test_every_combination_is_one_member(space):
    members = space.members()
    assert len({member.functional_key for member in members}) == len(members) == space.size
    named = [space.named(member) for member in members]
    assert named[1] == {**named[0], list(space.options)[-1]: list(space.options.values())[-1][1]}
    for at, member in enumerate(members):
        again = relabelled(member, at)
        assert space.named(again) == named[at]
        assert space.of_names(dict(reversed(named[at].items()))) == member
        neighbours = [one.child.functional_key for one in space.neighbours(member)]
        assert (
            len(neighbours)
            == len(set(neighbours))
            == sum(len(options) - 1 for options in space.options.values())
        )


def test_spaces_with_other_names_behind_a_label_conflict():
    def differing(form, decisions, others):
        one, other = (
            spaces.get("choices", decisions=each, form=form) for each in (decisions, others)
        )
        return conflict("choices", one.config, other.config)

    assert differing("chain", {"a": ["x", "y"]}, {"a": ["y", "x"]}) == ("'x'", "'y'")
    # The decisions of a chain are places, and the options operations.
    assert differing("chain", {"a": ["x", "y"]}, {"b": ["x", "y", "z"], "c": ["z", "x"]}) is None
    assert differing("set", {"a": ["x", "y"]}, {"b": ["x", "y"]}) == ("a 'x'", "b 'x'")
    assert differing("set", {"a": ["x", "y"]}, {"a": ["x", "y"], "b": ["x", "y"]}) is None
    assert conflict("choices", CHAIN.config, SET.config) == ("a chain", "a set")
    assert conflict("choices", {}, spaces.get("choices").config) is None
    assert conflict("cnn", {"max_layers": 10}, {"max_layers": 20}) is None


def test_a_chain_shares_its_options_and_a_set_does_not():
    first = next(
        one for one in CHAIN.members() if CHAIN.named(one) == {"first": "large", "last": "large"}
    )
    assert len({layer.op for layer in first.layers[1:-1]}) == 1
    same = next(
        one for one in SET.members() if SET.named(one) == {"width": "16", "depth": "16", "act": "a"}
    )
    assert len({layer.op for layer in same.layers[1:-1]}) == 3
    assert not SET.contains(first) and not CHAIN.contains(same)


def test_the_order_of_decisions_survives_a_record_with_sorted_names():
    config = json.loads(json.dumps(SET.config, sort_keys=True))
    assert list(spaces.get("choices", **config).options) == ["width", "depth", "act"]
    assert spaces.get("choices", **config) == SET != CHAIN


@pytest.mark.parametrize(
    ("labels", "edges", "reason"),
    [
        (["o0"], [(0, 1), (1, 2)], "has 2 decisions, got 1"),
        (["o0", "o5"], [(0, 1), (1, 2), (2, 3)], "'last' has no option with the label 'o5'"),
        (["o0", "o1"], [(0, 1), (1, 2), (2, 3), (0, 2)], "must be a chain of options, or a set"),
        (
            ["d1.0", "d1.1"],
            [(0, 1), (0, 2), (1, 3), (2, 3)],
            "must be a chain of options, or a set",
        ),
    ],
)
def test_other_networks_are_refused(labels, edges, reason):
    network = Architecture("choices", [Layer("ip"), *map(Layer, labels), Layer("op")], edges)
    with pytest.raises(InvalidArchitectureError, match=reason):
        CHAIN.validate(network)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"form": "tree"}, "form must be chain or set, got 'tree'"),
        ({"decisions": 3}, "decisions must give the options of each name, got 3"),
        ({"decisions": {}}, "decisions must be 1 to 32, got 0"),
        ({"decisions": {"a": "xy"}}, "options of 'a' must be a list of texts, got 'xy'"),
        ({"decisions": {"a": ["x"]}}, "options of 'a' must be 2 to 16, got 1"),
        ({"decisions": {"a": ["x", "x"]}}, "options of 'a' must be different texts"),
        (
            {"decisions": [["a", ["x", "y"]], ["a", ["x", "y"]]]},
            "must be a text of its own, got 'a'",
        ),
        (
            {"decisions": {name: [f"{name}{at}" for at in range(6)] for name in "abc"}},
            "at most 16 different options, got 18",
        ),
    ],
)
def test_settings_that_make_no_space(settings, reason):
    with pytest.raises(SettingsError, match=reason):
        spaces.get("choices", **settings)


def test_unknown_settings_are_named():
    with pytest.raises(UnknownNameError, match="setting of space choices 'options'"):
        spaces.get("choices", options={})


def test_columns_make_the_space_of_a_table(tmp_path):
    path = tmp_path / "widths.csv"
    path.write_text("set:width,score,set:act\n128,1,relu\n16,2,relu\n16,3,elu\n16,5,elu\n")
    space = spaces.get("choices", table=str(path))
    # Numbers are sorted by size, not as texts.
    assert space.config["decisions"] == [["width", ["16", "128"]], ["act", ["elu", "relu"]]]
    assert [decision.name for decision in space.decisions().decisions] == ["width", "act"]
    again = spaces.get("choices", **json.loads(json.dumps(space.config)))
    assert again == space and hash(again) == hash(space)
    table = Table.load(path)
    best = spaces.get("choices", decisions=space.config["decisions"], form="set").built([0, 0])
    assert table.column("score")[table.position(best)] == 4.0 and len(space.members()) == 3
    with pytest.raises(SettingsError, match="has other choices than the settings"):
        spaces.get("choices", table=str(path), form="chain")


def test_characters_are_decisions(tmp_path):
    path = tmp_path / "macro.csv"
    path.write_text("arch,score\n020,1\n110,2\n002,3\n")
    table = Table.load(path)
    space = spaces.get("choices", **table.space_config)
    assert list(space.options.values()) == [("0", "1"), ("0", "1", "2"), ("0", "2")]
    assert [space.named(one)["layer 2"] for one in table.architectures] == ["2", "1", "0"]
    for text, reason in (
        ("arch,score\n020,1\n11,2\n100,3\n012,1\n", "row 2 .* 3 decisions, got 2"),
        ("chain:a,score\nx,1\nx,2\n", "describes no choices: .* 2 to 16, got 1"),
        (
            "chain:a,set:b,score\nx,u,1\ny,v,2\n",
            "its decisions are columns chain:NAME and set:NAME: choose one form",
        ),
    ):
        path.write_text(text)
        with pytest.raises(UsageError, match=reason):
            Table.load(path)


def test_moves_draw_every_other_option():
    rng = np.random.default_rng(0)
    parent = SET.members()[0]
    children = {SET.mutate(parent, rng).child.functional_key for _ in range(60)}
    assert children == {one.child.functional_key for one in SET.neighbours(parent)}


def test_options_have_one_order_in_every_process(tmp_path):
    path = tmp_path / "results.csv"
    rates = ("0.5", "nan", "1e-2", "0.01", "0.1", "0.10", "NaN", "-1")
    path.write_text(
        "set:rate,set:depth,score\n"
        + "".join(f"{rate},{at},0.{at}\n" for at, rate in enumerate(rates))
    )
    show = (
        "import sys; from archive.spaces.tables.reader import Table; "
        "print(Table.load(sys.argv[1]).space_config)"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", show, str(path)],
            env={**os.environ, "PYTHONHASHSEED": str(seed), "ARCHIVE_HOME": str(tmp_path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in range(3)
    }
    assert len(printed) == 1
    assert "['-1', '0.01', '1e-2', '0.1', '0.10', '0.5', 'NaN', 'nan']" in printed.pop().replace(
        '"', "'"
    )
