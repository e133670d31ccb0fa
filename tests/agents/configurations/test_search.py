"""The portfolio on spaces of parameters: proposals, priors and constraints."""

from __future__ import annotations

import numpy as np
import pytest

from archive import agents, space, spaces
from archive.agents.base import History, Observation, Pending


def conditional():
    return space.Space(
        depth=space.integer(1, 6),
        lr=space.real(1e-5, 1e-1, log=True),
        act=space.choice(["relu", "gelu", None]),
        dropout=space.real(0.0, 0.5, when="depth >= 4"),
        momentum=space.real(0.0, 1.0, when="act == 'relu'"),
        layers=space.repeat({"op": space.choice(["conv", "skip"])}, "depth"),
    )


def grid():
    return space.Space(
        width=space.ordinal([16, 32, 64, 128]),
        depth=space.integer(1, 8),
        act=space.choice(["relu", "gelu"]),
        constraints=["width * depth <= 512"],
    )


def numbers():
    return space.Space(x=space.real(0.0, 1.0), y=space.real(0.0, 1.0))


SPACES = {"conditional": conditional, "grid": grid, "numbers": numbers}


def score(values):
    total = 0.0
    for value in values.values():
        total += value if isinstance(value, int | float) else len(str(value))

    return float(np.sin(total))


def observed(searched, count, seed=0, *, noisy=False):
    rng = np.random.default_rng(seed)
    observations = []
    for number in range(count):
        network = searched.sample(rng)
        observations.append(
            Observation(
                network,
                score=score(searched.named(network)),
                id=str(number),
                seed=number if noisy else None,
            )
        )

    return History(tuple(observations))


@pytest.fixture(params=SPACES.values(), ids=SPACES)
def searched(request):
    return spaces.get("parameters", parameters=request.param())


def propose(agent, history, n=2, seed=0):
    return agent.propose(history, n, np.random.default_rng(seed))


def keys(suggestions):
    return [suggestion.architecture.functional_key for suggestion in suggestions]


@pytest.mark.parametrize("count", [0, 1, 13])
@pytest.mark.parametrize("noisy", [False, True])
def test_proposals_are_new_members(searched, count, noisy):
    history = observed(searched, count, noisy=noisy)
    agent = agents.get("portfolio", searched)
    suggestions = propose(agent, history, 3)
    assert len(set(keys(suggestions))) == 3
    assert not set(keys(suggestions)) & set(history.known)
    for suggestion in suggestions:
        searched.validate(suggestion.architecture)

    assert keys(propose(agents.get("portfolio", searched), history, 3)) == keys(suggestions)


def test_pending_configurations_are_not_proposed_again(searched):
    history = observed(searched, 13)
    agent = agents.get("portfolio", searched)
    first = propose(agent, history, 1)
    pending = History(history.observations, (Pending(first[0].architecture),))
    assert keys(propose(agent, pending, 1)) != keys(first)


def test_an_exhausted_space_ends_the_search():
    searched = spaces.get("parameters", parameters=space.Space(x=space.integer(1, 3)))
    history = observed(searched, 1)
    agent = agents.get("portfolio", searched, n_design=1)
    assert len(propose(agent, history, 5)) == 2


def test_the_expected_configuration_comes_first_and_a_wrong_prior_costs_little():
    parameters = space.Space(
        x=space.real(0.0, 1.0, prior=(0.9, "high")), y=space.real(0.0, 1.0, prior=(0.9, "high"))
    )
    searched = spaces.get("parameters", parameters=parameters)
    agent = agents.get("portfolio", searched)
    (first,) = propose(agent, History(), 1)
    assert searched.named(first.architecture) == {"x": 0.9, "y": 0.9}
    rng = np.random.default_rng(0)
    observations = []
    for number in range(40):
        (suggestion,) = agent.propose(History(tuple(observations)), 1, rng)
        values = searched.named(suggestion.architecture)
        loss = (values["x"] - 0.2) ** 2 + (values["y"] - 0.3) ** 2
        observations.append(Observation(suggestion.architecture, score=-loss, id=str(number)))

    assert max(observation.score for observation in observations) > -1e-3


def test_the_optimum_of_a_smooth_function_is_found():
    searched = spaces.get("parameters", parameters=numbers())
    rng = np.random.default_rng(0)
    agent = agents.get("portfolio", searched)
    observations = []
    for number in range(30):
        (suggestion,) = agent.propose(History(tuple(observations)), 1, rng)
        values = searched.named(suggestion.architecture)
        loss = (values["x"] - 0.31) ** 2 + (values["y"] - 0.77) ** 2
        observations.append(Observation(suggestion.architecture, score=-loss, id=str(number)))

    assert max(observation.score for observation in observations) > -1e-4
