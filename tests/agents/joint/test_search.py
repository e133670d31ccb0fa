"""Agents on networks with parameters beside them: their contract, and what their models see."""

from __future__ import annotations

import numpy as np
import pytest

from archive import agents, space, spaces
from archive.agents.base import History, Observation, Pending
from archive.agents.joint.model import JointCodes, JointDistances, joint_model
from archive.architecture.parameter_operations import join
from archive.constraints import parse
from archive.errors import UsageError
from archive.kernels.distances.otmann import OTMANN
from archive.spaces.constrained import constrain
from tests.support import whole

KNOBS = space.Space(
    lr=space.real(1e-4, 1e-1, log=True),
    optimiser=["sgd", "adam"],
    momentum=space.real(0, 0.99, when="optimiser == 'sgd'"),
    constraints=["momentum + lr < 1"],
)
SPACES = ("nasbench201", "choices")
AGENTS = {
    "portfolio": {},
    "random": {},
    "evolution": {},
    "regularized-evolution": {},
    "hill-climbing": {},
    "local-search": {},
    "random-forest": {"trees": 5},
    "tpe": {},
    "arc": {"samples": 2, "burn_in": 1},
}
MODELS = ("portfolio", "random-forest")


def score(member):
    """Return a score whose best learning rate depends on the network."""
    values = member.configuration
    best = -2.0 - 0.1 * len(member.layers)
    penalty = 0.2 if values["optimiser"] == "adam" else abs(values["momentum"] - 0.9)
    return -abs(np.log10(values["lr"]) - best) - penalty


def observed(searched, count, seed=0):
    rng = np.random.default_rng(seed)
    observations = []
    for number in range(count):
        member = searched.sample(rng)
        observations.append(Observation(member, score(member), f"e{number}"))

    return History(tuple(observations))


def keys(suggestions):
    return [suggestion.architecture.functional_key for suggestion in suggestions]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        # The models of choices alone are under the contract of tests/agents/test_choices.py.
        whole(kind, name) if name == "choices" and kind in MODELS else (kind, name)
        for kind in AGENTS
        for name in SPACES
    ],
)
def test_suggestions_are_new_members_and_depend_on_the_seed_alone(kind, name):
    searched = spaces.beside(name, KNOBS)
    history = observed(searched, 13)
    first, *rest = history.observations
    # A plain network and a pair that the space forbids are no obstacles.
    history = History(tuple(rest), (Pending(first.architecture),), (rest[0].architecture,))
    suggestions = []
    for _ in range(2):
        agent = agents.get(kind, searched, **AGENTS[kind])
        suggestions.append(agent.propose(history, 2, np.random.default_rng(3)))

    one, other = suggestions
    assert keys(one) == keys(other)
    assert len(set(keys(one))) == 2
    assert not set(keys(one)) & set(history.known)
    for suggestion in one:
        searched.validate(suggestion.architecture)


@pytest.mark.parametrize("kind", AGENTS)
def test_an_empty_history_has_suggestions(kind):
    searched = spaces.beside("mlp", KNOBS)
    agent = agents.get(kind, searched, **AGENTS[kind])
    suggestions = agent.propose(History(), 12, np.random.default_rng(0))
    assert len(set(keys(suggestions))) == 12
    assert len({suggestion.architecture.network.key for suggestion in suggestions}) > 3


def test_a_model_predicts_pairs_that_it_has_not_seen():
    searched = spaces.beside("mlp", KNOBS)
    history = observed(searched, 40)
    codes = JointCodes(searched)
    model = joint_model("subtrees", searched, codes).surrogate("standardise")
    fitted = model.fit(history.inputs, history.scores, np.random.default_rng(0))
    others = observed(searched, 30, seed=1)
    predicted = fitted.posterior(others.inputs).in_scores().mean
    assert np.corrcoef(predicted, others.scores)[0, 1] > 0.7


def test_the_expected_values_are_tried_first():
    knobs = space.Space(lr=space.real(0, 1, default=0.25), wd=space.real(0, 1, prior=0.75))
    searched = spaces.beside("nasbench201", knobs)
    agent = agents.get("portfolio", searched)
    first, *_ = agent.propose(History(), 4, np.random.default_rng(0))
    assert first.architecture.configuration == {"lr": 0.25, "wd": 0.75}


def test_constraints_on_known_costs_are_met():
    searched = constrain(
        spaces.beside("mlp", KNOBS),
        [parse("layers<=5")],
        {"layers": lambda networks: [len(network.layers) for network in networks]},
    )
    history = observed(searched.whole, 12)
    agent = agents.get("portfolio", searched)
    for suggestion in agent.propose(history, 2, np.random.default_rng(0)):
        assert len(suggestion.architecture.layers) <= 5


def test_distances_are_those_of_the_networks_then_of_each_parameter():
    searched = spaces.beside("mlp", KNOBS)
    rng = np.random.default_rng(0)
    first, second = searched.networks.sample(rng), searched.networks.sample(rng)
    sgd = {"lr": 1e-4, "optimiser": "sgd", "momentum": 0.0}
    adam = {"lr": 1e-1, "optimiser": "adam"}
    members = [join(first, sgd), join(second, sgd), join(first, adam), join(first, sgd)]
    distances = JointDistances(OTMANN(), JointCodes(searched))
    stack = distances.distances(members).stack
    plain = OTMANN().distances([member.network for member in members]).stack
    assert distances.parameters == 3
    assert stack[:-3] == pytest.approx(plain)
    assert stack[-3:, 0, 1] == pytest.approx([0.0, 0.0, 0.0])
    # Bounds, two options, and a parameter that one of the two lacks are at distance 1.
    assert stack[-3:, 0, 2] == pytest.approx([1.0, 1.0, 1.0])
    assert distances.distances(members[:2], members).stack == pytest.approx(stack[:, :2])


def test_agents_of_networks_alone_name_others():
    searched = spaces.beside("cnn", KNOBS)
    with pytest.raises(UsageError, match=r"choose one of.*portfolio, random") as raised:
        agents.get("nasbot", searched)

    assert "\n" not in str(raised.value)
