"""Configurations of proposals on each server: stored at admission, asked by Cypher, or computed."""

from __future__ import annotations

import numpy as np
import pytest

from archive import frames, spaces
from archive.agents.base import Suggestion
from archive.cli.study.items import proposal_item
from archive.database.user_query import run_query
from archive.exchange.dump import dump
from archive.exchange.load import load
from archive.exchange.study_rows import flat, rows_of
from archive.plots.data.hyperparameters import parallel_coordinates
from archive.store.records import Result, Study
from archive.store.snapshots import read_view
from archive.store.studies.configurations import (
    configuration_of_network,
    configurations_of,
    read_configurations,
)

pytestmark = pytest.mark.every_server

PARAMETERS = spaces.get(
    "parameters",
    parameters=[
        ["depth", {"kind": "integer", "low": 1, "high": 4}],
        ["lr", {"kind": "real", "low": 1e-4, "high": 0.1, "log": True}],
        ["act", {"kind": "choice", "options": ["relu", "gelu"]}],
        ["norm", {"kind": "choice", "options": [None, [1, 2], True]}],
    ],
)
CHOICES = spaces.get("choices", decisions={"act": ["relu", "gelu"], "k v": ["3`", "5"]}, form="set")

VALUES = [
    {"depth": 4, "lr": 3e-4, "act": "relu", "norm": None},
    {"depth": 2, "lr": 0.03, "act": "gelu", "norm": [1, 2]},
    {"depth": 1, "lr": 0.002, "act": "gelu", "norm": True},
]
FORGET = """
MATCH (p:Proposal)
REMOVE p.configuration, p.parameter_depth, p.parameter_lr, p.parameter_act, p.parameter_norm
"""


def create(archive, space, values, **hyperparameters):
    record = Study("mine", "toy", "toy/1", space.name, space_config=space.config, budget=100)
    archive.studies.create(record)
    agent = archive.proposals.register_agent("random", {}, "1")
    suggestions = []
    for names in values:
        network = space.of_names(names)
        suggestions.append(Suggestion(network, hyperparameters=hyperparameters))

    archive.proposals.create("mine", agent, suggestions)
    return archive.studies.get("mine")


def shown(archive):
    return [dict(view.configuration) for view in archive.studies.snapshot("mine").proposals]


def test_values_are_named_in_the_order_of_the_space_and_asked_for_by_cypher(archive):
    study = create(archive, PARAMETERS, VALUES)
    assert shown(archive) == VALUES
    assert list(shown(archive)[0]) == ["depth", "lr", "act", "norm"]
    assert read_configurations(archive.connection, study) == dict(enumerate(VALUES))
    query = "MATCH (p:Proposal) WHERE p.parameter_lr < 0.01 RETURN p.number, p.parameter_norm"
    assert sorted(run_query(archive.connection, query).rows) == [(0, "null"), (2, True)]
    first = archive.studies.snapshot("mine").proposals[0]
    assert proposal_item(study, first).configuration == VALUES[0]


def test_a_proposal_of_an_earlier_release_is_named_by_its_network(archive):
    study = create(archive, PARAMETERS, VALUES)
    look = archive.studies.follow("mine")
    look()
    run_query(archive.connection, FORGET, write=True)
    assert shown(archive) == VALUES
    assert look() == look() == archive.studies.snapshot("mine")
    assert read_configurations(archive.connection, study) == dict(enumerate(VALUES))
    assert configurations_of(archive.connection, study, [1]) == {1: VALUES[1]}
    assert read_view(archive.connection, "mine#00002", study).configuration == VALUES[2]
    rows = flat(rows_of(archive, "mine"))
    assert [row["parameter_depth"] for row in rows] == [4, 2, 1]


def test_hyperparameters_follow_the_decisions(archive):
    create(archive, CHOICES, [{"act": "gelu", "k v": "3`"}], act="ignored", wd=np.float64(0.1))
    assert shown(archive) == [{"act": "gelu", "k v": "3`", "wd": 0.1}]
    query = "MATCH (p:Proposal) RETURN p.parameter_act, p.`parameter_k v`, p.parameter_wd"
    assert run_query(archive.connection, query).rows == [("gelu", "3`", 0.1)]


def test_a_network_of_choices_has_the_names_of_its_study(archive):
    create(archive, CHOICES, [{"act": "gelu", "k v": "5"}])
    network = CHOICES.of_names({"act": "gelu", "k v": "5"})
    assert configuration_of_network(archive.connection, network) == {"act": "gelu", "k v": "5"}
    other = CHOICES.of_names({"act": "relu", "k v": "5"})
    assert configuration_of_network(archive.connection, other) == {}


def test_a_configuration_without_a_study_is_named_by_its_graph(archive):
    network = PARAMETERS.of_names(VALUES[1])
    assert configuration_of_network(archive.connection, network) == VALUES[1]


def test_dumps_keep_the_names(archive, tmp_path):
    create(archive, PARAMETERS, VALUES)
    dump(archive.connection, tmp_path / "mine.archive")
    archive.studies.delete("mine")
    load(archive.connection, tmp_path / "mine.archive")
    assert shown(archive) == VALUES
    query = "MATCH (p:Proposal) WHERE p.parameter_depth >= 2 RETURN count(p)"
    assert run_query(archive.connection, query).rows == [(2,)]


def test_frames_and_parallel_coordinates_have_an_axis_for_each_name(archive):
    create(archive, PARAMETERS, VALUES)
    for value in (0.1, 0.3, 0.2):
        proposal = archive.proposals.claim("w", study="mine")
        archive.proposals.complete(proposal.id, proposal.token, Result(value, {}))

    assert list(frames.proposals(archive, "mine")["parameter_act"]) == ["relu", "gelu", "gelu"]
    assert sorted(frames.evaluations(archive, "mine")["parameter_depth"]) == [1, 2, 4]
    drawn = parallel_coordinates(archive, "mine")
    names = [axis.name for axis in drawn.axes[:-1]]
    assert names == ["depth", "lr", "act", "norm"]
    assert drawn.axes[1].scaling == "logarithmic" or drawn.axes[1].scaling == "linear"
    assert [label for _, label in drawn.axes[2].ticks] == ["relu", "gelu"]
