"""A daemon builds the networks of configurations whose network no search has built."""

from __future__ import annotations

import logging
import sys
import time
from dataclasses import dataclass, field, replace

import pytest

from archive import space, spaces
from archive.queue.reuse import PARAMETERS_READ, RETRAIN, takes_twins
from archive.store.records import Proposal, Result, State, Study
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.trainer import Trainer
from archive.trainer.recipes import model_process
from archive.trainer.trial.messages import TrialFinished
from tests.support import wait_until
from tests.support.daemons import Suggestion, running
from tests.support.networks.model_processes import InProcess

MODELS = """
import torch
from torch import nn


class Undecided(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


def build(width, depth):
    if width == 6:
        return nn.Sequential(nn.Linear(64, 10), Undecided())

    hidden = [nn.Linear(width, width) for _ in range(min(depth, 2))]
    return nn.Sequential(nn.Linear(64, width), *hidden, nn.Linear(width, 10))


def fit(trial):
    trial.module(), trial.parameters["lr"]
"""
PARAMETERS = {"width": [2, 4, 6], "depth": space.integer(1, 4), "lr": [0.1, 0.01]}
REFERENCE = "daemon_nets.py:build"


@dataclass
class Training:
    """A trial that ends when the test says so."""

    spec: object
    ends: bool = False
    pid = None
    pids = ()
    due = None
    enforces_limits = True
    waitable: list = field(default_factory=list)

    @property
    def last_seen(self):
        return time.monotonic()

    def messages(self):
        environment = {PARAMETERS_READ: ["lr"]}
        return [TrialFinished(Result(0.5, environment=environment))] if self.ends else []

    def interrupt(self):
        self.ends = True

    def kill(self):
        pass


class Executor:
    """Keeps the trials that it is asked for."""

    hardware = None

    def __init__(self):
        self.trials = []

    def start(self, spec):
        self.trials.append(Training(spec))
        return self.trials[-1], None

    def tidy(self):
        pass

    def close(self):
        pass


@pytest.fixture(scope="module")
def exporting():
    """An export, so that the imports of the first one are none of a daemon's time."""
    from torch import nn

    from archive.architecture.aten.wiring import Input
    from archive.trainer.intake.models import import_model

    import_model(nn.Linear(4, 2), [Input((4,))])


@pytest.fixture
def found(exporting, tmp_path, monkeypatch):
    """A space with a model, as it is in the database: without a folder."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "daemon_nets", raising=False)
    monkeypatch.setattr(model_process, "ModelProcess", InProcess)
    home = tmp_path / "trainer"
    home.mkdir()
    (home / "daemon_nets.py").write_text(MODELS)
    (home / "recipes.toml").write_text(
        f'[mine]\nfit = "daemon_nets.py:fit"\n[models]\n"{REFERENCE}" = "{REFERENCE}"\n'
    )
    return spaces.of(space.Space(PARAMETERS, model=REFERENCE, example=(64,)))


@pytest.fixture
def daemon(archive, tmp_path):
    options = TrainerOptions(threads=1, device="cpu", slots=2)
    return Trainer(archive, options, home=tmp_path / "trainer", executor=Executor())


def propose(archive, found, *configurations, **details):
    """Store proposals as a machine without the model does."""
    protocol = "digits/1+recipe:mine"
    study = Study(
        "mine",
        "digits",
        protocol,
        "parameters",
        "valid_accuracy",
        budget=9,
        space_config=found.config,
    )
    archive.studies.create(study)
    agent = archive.proposals.register_agent("random", {}, "1")
    suggestions = []
    for values in configurations:
        suggestions.append(Suggestion(found.of_names({"width": 2, "lr": 0.1, **values})))

    return archive.proposals.create("mine", agent, suggestions, **details)


def test_two_settings_of_one_network_are_trained_once(archive, found, daemon):
    first, second = propose(archive, found, {"depth": 2}, {"depth": 3})
    with running(daemon):
        (training,) = wait_until(lambda: daemon.executor.trials, 120, "the first trial")
        built = [first.architecture_key, second.architecture_key]
        wait_until(lambda: len(archive.builds.of(built)) == 2, 120, "both networks")
        assert [proposal.state for proposal in archive.proposals.list("mine")] == (
            [State.RUNNING] * 2
        )
        training.ends = True
        wait_until(lambda: daemon.tally.complete == 2, 120, "both results")

    assert len(daemon.executor.trials) == 1
    answered = {entry.id: entry.answered_from for entry in archive.studies.evaluations("mine")}
    trained = training.spec.proposal
    (other,) = {first.id, second.id} - {trained}
    assert answered == {trained: None, other: trained}
    rows = archive.builds.of(built, REFERENCE)
    assert len({row.network for row in rows.values()}) == 1


def test_other_trainings_begin_at_once(archive, found, daemon):
    propose(archive, found, {"depth": 2}, {"depth": 3, "lr": 0.01})
    with running(daemon):
        wait_until(lambda: len(daemon.executor.trials) == 2, 120, "both trials")


def test_some_proposals_take_no_result_of_a_twin():
    proposal = Proposal("mine#0", "mine", 0, State.RUNNING, "key", "functional key")
    study = Study("mine", "digits", "digits/1", "parameters")
    assert takes_twins(study, proposal)
    for changes in ({"based_on": {RETRAIN: True}}, {"repeat": True}, {"fidelity": 0.5}):
        assert not takes_twins(study, replace(proposal, **changes))

    assert not takes_twins(
        replace(study, config={"rungs": {"epochs": [1, 3], "reduction": 3}}), proposal
    )


def test_a_model_that_cannot_be_exported_is_trained(archive, found, daemon, caplog):
    (proposal,) = propose(archive, found, {"width": 6, "depth": 1})
    with caplog.at_level(logging.WARNING, "archive.trainer"), running(daemon):
        (training,) = wait_until(lambda: daemon.executor.trials, 120, "the trial")
        training.ends = True
        wait_until(lambda: daemon.tally.complete == 1, 120, "its result")

    (line,) = [record.getMessage() for record in caplog.records]
    assert "network of the model unknown" in line and "\n" not in line
    assert archive.builds.of([proposal.architecture_key]) == {}


def test_a_daemon_that_stops_hands_a_waiting_twin_back(archive, found, daemon):
    propose(archive, found, {"depth": 2}, {"depth": 3})
    with running(daemon):
        wait_until(lambda: len(daemon.in_flight) == 2 and daemon.executor.trials, 120, "a trial")
        # The fake trial ends with a result when it is interrupted.

    assert daemon.tally.complete + daemon.tally.returned == 2
    assert len(daemon.executor.trials) == 1
