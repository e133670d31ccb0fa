"""Ask and tell with parameters beside networks: pairs in, pairs out, one node for each network."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from archive import agents, space, spaces
from archive.agents.ask_tell import enqueueing
from archive.agents.ask_tell.types import EnqueuedArchitecture
from archive.agents.provenance import history_of
from archive.agents.replay import recheck
from archive.database.user_query import run_query
from archive.errors import InvalidArchitectureError, StudyConflictError, UsageError
from archive.exchange.load import load
from tests.conftest import wipe
from tests.support import whole as only_whole
from tests.support.dumped import dumped

KNOBS = space.Space(
    lr=space.real(1e-4, 1e-1, log=True),
    aug=space.group({"size": space.integer(1, 8), "flip": [True, False]}),
)
NETWORK = spaces.get("mlp").initial_pool()[3]


def value(trial):
    return -abs(np.log10(trial.parameters["lr"]) + 3.0)


@pytest.fixture
def study(archive):
    return agents.study(archive, "joint", spaces.beside("mlp", KNOBS))


def count(archive, query):
    return run_query(archive.connection, query).rows[0][0]


@pytest.mark.every_server
def test_one_network_with_two_configurations_is_one_node_and_two_evaluations(archive, study):
    first = study.enqueue(NETWORK, lr=0.001)
    second = study.enqueue(NETWORK, lr=0.01, aug={"flip": False})
    assert study.enqueue(NETWORK, lr=0.001).id == first.id
    assert (first.architecture_key, second.number) == (NETWORK.key, 1)
    assert second.architecture_key == NETWORK.key
    assert second.hyperparameters == {"lr": 0.01, "aug_size": 4, "aug_flip": False}
    asked = study.ask("random", 2)
    assert [trial.architecture.key for trial in asked] == [NETWORK.key] * 2
    assert asked[1].parameters == {"lr": 0.01, "aug": {"size": 4, "flip": False}}
    for trial in asked:
        assert study.tell(trial, value(trial))

    assert len(study.evaluations()) == 2
    assert count(archive, "MATCH (a:Architecture) RETURN count(a)") == 1
    small = "MATCH (p:Proposal) WHERE p.parameter_lr < 0.005 RETURN count(p)"
    assert count(archive, small) == 1
    assert study.best().hyperparameters["lr"] == 0.001


def test_an_external_result_is_told_with_its_parameters(study):
    assert study.tell(NETWORK, 0.5, parameters={"lr": 0.01, "aug": {"size": 2, "flip": True}})
    member = study.space.member(NETWORK, {"lr": 0.02, "aug_size": 2, "aug_flip": True})
    assert study.tell(member, 0.7)
    assert study.best().hyperparameters == {"lr": 0.02, "aug_size": 2, "aug_flip": True}
    with pytest.raises(InvalidArchitectureError, match="lr exists in this configuration and needs"):
        study.tell(NETWORK, 0.5)

    with pytest.raises(InvalidArchitectureError, match="unknown parameter 'rate'"):
        study.enqueue(NETWORK, rate=0.1)


def test_parameters_are_told_in_their_own_space(archive):
    plain = agents.study(archive, "plain", "mlp")
    with pytest.raises(UsageError, match="the space mlp has no parameters beside its networks"):
        plain.tell(NETWORK, 0.5, parameters={"lr": 0.1})

    with pytest.raises(InvalidArchitectureError, match="no parameters beside its networks, got lr"):
        plain.tell(spaces.beside("mlp", space.Space(lr=[0.1])).complete(NETWORK, {}), 0.5)

    with pytest.raises(StudyConflictError, match="exists with the space"):
        agents.study(archive, "plain", spaces.beside("mlp", KNOBS))


@pytest.mark.parametrize("agent", ["random", "evolution", only_whole("regularized-evolution")])
def test_searches_never_propose_a_pair_twice_and_can_be_replayed(archive, agent):
    whole = spaces.beside("nasbench201", space.Space(lr=space.ordinal([0.1, 0.01])))
    study = agents.study(archive, "joint", whole)
    for _ in range(8):
        for trial in study.ask(agent, 3):
            study.tell(trial, value(trial) + 0.01 * len(trial.architecture.layers))

    evaluations = study.evaluations()
    pairs = {(seen.architecture.functional_key, str(seen.hyperparameters)) for seen in evaluations}
    assert len(pairs) == len(evaluations) == 24
    assert not recheck(archive, "joint").differing
    history, _ = history_of(archive, study.record)
    assert all(map(whole.contains, (seen.architecture for seen in history.observations)))


def test_failed_and_open_pairs_are_known_and_others_of_their_networks_are_not(archive, study):
    study.enqueue(NETWORK, lr=0.001)
    study.enqueue(NETWORK, lr=0.01)
    failed, opened = study.ask("random", 2)
    study.fail(failed, "out of memory")
    history, _ = history_of(archive, study.record)
    known = history.seen_from(study.space).known
    for trial in (failed, opened):
        assert study.space.complete(NETWORK, trial.parameters).functional_key in known

    assert study.space.complete(NETWORK, {"lr": 0.05}).functional_key not in known


def test_a_result_is_reused_with_equal_parameters_alone(archive, study):
    study.tell(NETWORK, 0.5, parameters={"lr": 0.01, "aug": {"size": 2, "flip": True}})
    whole = study.space
    archive.studies.create(dataclasses.replace(study.record, name="again", created=None))
    same = whole.member(NETWORK, {"lr": 0.01, "aug_size": 2, "aug_flip": True})
    other = whole.member(NETWORK, {"lr": 0.02, "aug_size": 2, "aug_flip": True})
    states = []
    for member in (same, other):
        enqueued = EnqueuedArchitecture(member)
        proposal, new = enqueueing.add(archive, "again", whole, enqueued, reuse=True)
        assert new
        states.append(proposal.state.value)

    assert states == ["COMPLETE", "WAITING"]


def test_pairs_are_restored_from_a_dump(archive, connection, study, tmp_path):
    for rate, told in ((0.01, 0.5), (0.02, 0.7)):
        study.tell(NETWORK, told, parameters={"lr": rate, "aug": {"size": 2, "flip": True}})

    file = tmp_path / "dump.jsonl.gz"
    first = dumped(archive, file)
    wipe(connection)
    load(connection, file)
    assert dumped(archive, file) == first
    again = agents.study(archive, "joint")
    assert again.space == study.space
    assert again.best().hyperparameters == {"lr": 0.02, "aug_size": 2, "aug_flip": True}
    small = "MATCH (p:Proposal) WHERE p.parameter_lr < 0.015 RETURN count(p)"
    assert count(archive, small) == 1


def test_parameters_grow_beside_networks(archive, study):
    study.tell(NETWORK, 0.5, parameters={"lr": 0.01, "aug": {"size": 2, "flip": True}})
    grown = space.Space(
        lr=space.real(1e-4, 1.0, log=True),
        aug=space.group({"size": space.integer(1, 8), "flip": [True, False]}),
        wd=space.real(0, 1, default=0.0),
    )
    again = agents.study(archive, "joint", spaces.beside("mlp", grown))
    assert again.ask("random")[0].parameters.keys() == {"lr", "aug", "wd"}
    history, _ = history_of(archive, again.record)
    (seen,) = history.seen_from(again.space).observations
    assert seen.architecture.configuration["wd"] == 0.0
    told = again.tell(NETWORK, 0.5, parameters={"lr": 0.01, "aug": {"size": 2, "flip": True}})
    assert told and len(again.evaluations()) == 1
    with pytest.raises(StudyConflictError, match="exists with other parameters"):
        agents.study(archive, "joint", spaces.beside("mlp", space.Space(lr=space.real(0, 1))))


def test_agents_of_networks_alone_are_refused_with_others(study):
    with pytest.raises(UsageError, match=r"nasbot searches networks alone.*evolution.*random"):
        study.ask("nasbot")


def test_an_objective_gets_both_parts(study):
    seen = []

    def objective(member):
        seen.append(member)
        return -member.configuration["lr"]

    study.run(objective, 3, "random")
    assert all(map(study.space.contains, seen))
    assert study.best().value == -min(member.configuration["lr"] for member in seen)
