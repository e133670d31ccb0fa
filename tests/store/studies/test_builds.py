"""Networks of configurations on each server: stored once, linked, twins, dump and load."""

from __future__ import annotations

from dataclasses import replace

import pytest

from archive import agents, space, spaces
from archive.exchange.dump import dump
from archive.exchange.load import load
from archive.queue.reuse import PARAMETERS_READ
from archive.store.records import Result
from archive.store.studies.builds import Build
from tests.conftest import wipe
from tests.support.networks.torch_nets import chain, layer, residual
from tests.support.stores import Suggestion

pytestmark = pytest.mark.every_server

SPACE = spaces.of(
    space.Space(width=space.integer(1, 9), act=["relu", "none"], lr=space.real(0.0, 1.0))
)
NETWORK = chain(layer("relu"), layer("gelu"))


def configuration(**values):
    return SPACE.of_names({"width": 1, "act": "relu", "lr": 0.5, **values})


def build(network=NETWORK, **values):
    """Return a build of a configuration, by a model that reads its width and its activation."""
    return Build(
        configuration(**values), network, "models.py:build", "sha256:1", ["act", "width"], "a"
    )


FIRST = build()
"""The configuration that has a result, or is proposed."""


def keys_of(archive, changed):
    archive.builds.add([FIRST, changed])
    twins = archive.builds.twins([changed.configuration.key]).get(changed.configuration.key, [])
    return [twin.key for twin in twins]


def test_a_network_is_stored_once_and_linked_from_each_configuration(archive):
    second = build(width=2)
    other = build(residual(), width=3)
    archive.builds.add([FIRST, second, other])
    archive.builds.add([FIRST, second])
    assert archive.query("MATCH (n:Architecture {space: 'torch'}) RETURN count(n)").rows == [(2,)]
    assert archive.query("MATCH ()-[b:BUILDS]->() RETURN count(b)").rows == [(3,)]
    first_key, second_key = FIRST.configuration.key, second.configuration.key
    rows = archive.builds.of([first_key, second_key, NETWORK.key])
    assert {key: row.network for key, row in rows.items()} == {
        first_key: NETWORK.key,
        second_key: NETWORK.key,
    }
    assert archive.builds.of([first_key], "other.py:build") == {}
    assert archive.builds.configurations([NETWORK.key, first_key]) == {
        NETWORK.key: sorted([first_key, second_key])
    }
    assert archive.architectures.get(NETWORK.key) == NETWORK.canonical


def test_a_later_version_of_the_model_replaces_the_network_for_readers(archive):
    archive.builds.add([FIRST])
    archive.builds.add([replace(FIRST, network=residual(), version="sha256:2")])
    key = FIRST.configuration.key
    assert archive.builds.of([key])[key].network == residual().key
    assert archive.query("MATCH ()-[b:BUILDS]->() RETURN count(b)").rows == [(2,)]


@pytest.mark.parametrize(
    ("changed", "is_twin"),
    [
        (build(width=2), True),
        (build(width=2, act="none"), True),
        (build(lr=0.25), False),
        (build(width=2, lr=0.25), False),
        (build(residual(), width=2), False),
        (replace(build(width=2), state="b"), False),
        (replace(build(width=2), state=None), False),
        (replace(build(width=2), version="sha256:2"), False),
        (replace(build(width=2), model="other.py:build"), False),
        (replace(build(width=2), reads=None), False),
    ],
)
def test_twins_agree_in_all_that_the_network_does_not_say(archive, changed, is_twin):
    assert keys_of(archive, changed) == ([FIRST.configuration.key] if is_twin else [])


@pytest.mark.parametrize(
    ("environment", "answered"),
    [
        ({PARAMETERS_READ: ["lr"]}, True),
        ({PARAMETERS_READ: []}, True),
        ({PARAMETERS_READ: ["lr", "width"]}, False),
        ({}, False),
    ],
)
def test_a_twin_has_the_result_of_a_training_that_read_no_difference(
    archive, environment, answered
):
    study = agents.study(archive, "mine", SPACE)
    study.enqueue(width=1, act="relu", lr=0.5)
    archive.builds.add([FIRST, build(width=2)])
    claim = archive.proposals.claim("w", study="mine")
    suggestions = [Suggestion(configuration(width=2)), Suggestion(configuration(lr=0.25))]
    twins = archive.builds.open("mine", [claim.architecture.key, suggestions[0].architecture.key])
    assert twins == {FIRST.configuration.key}
    archive.proposals.complete(claim.id, claim.token, Result(0.5, environment=environment))
    known = archive.answers.known(study.record, suggestions)
    assert [None if result is None else result.answered_from for result in known] == [
        claim.id if answered else None,
        None,
    ]
    assert archive.builds.open("mine", [claim.architecture.key]) == set()


def test_a_dump_of_a_study_has_the_networks_of_its_configurations(archive, connection, tmp_path):
    study = agents.study(archive, "mine", SPACE)
    study.enqueue(width=1, act="relu", lr=0.5)
    archive.builds.add([FIRST])
    before = archive.query("MATCH (c)-[b:BUILDS]->(n) RETURN c.key, n.key, properties(b)").rows
    dump(connection, tmp_path / "mine.jsonl", studies=["mine"])
    wipe(connection)
    load(connection, tmp_path / "mine.jsonl")
    load(connection, tmp_path / "mine.jsonl")
    after = archive.query("MATCH (c)-[b:BUILDS]->(n) RETURN c.key, n.key, properties(b)").rows
    assert after == before
    assert archive.architectures.get(NETWORK.key) == NETWORK.canonical
