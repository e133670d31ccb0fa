"""SMAC3 as an agent: spaces in ConfigSpace's terms, and proposals that depend on the seed alone."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from archive import agents, space, spaces
from archive.agents.base import History, Observation, Pending
from archive.errors import SettingsError, UsageError
from tests.agents.configurations.test_search import SPACES, keys, observed
from tests.support import installed_agents

needs_smac = pytest.mark.skipif(
    "smac" not in installed_agents(), reason="SMAC3 is not installed: an extra of its own"
)


def mixed():
    """Conditions and constraints of each form, some of which ConfigSpace does not have."""
    return space.Space(
        option=space.choice(["x", None, True]),
        large=space.integer(0, 2**53),
        stepped=space.integer(4, 100, step=3),
        grid=space.real(0.1, 1.0, step=0.1),
        three=space.constant(3),
        number=space.real(0, 1),
        between=space.real(0, 1, when="number * 2 > 0.7 and number < 0.8"),
        either=space.choice([1, 2], when="option == 'x' or stepped > 50"),
        log=space.integer(1, 9, log=True, when="large > 1000000000"),
        other=space.real(1, 2, when="(option == 'x') == (either == 1)"),
        rank=space.ordinal([1, 2, 5], when="three * stepped > 60"),
        constraints=["stepped < 90 or option == 'x'", "number + stepped <= 99.5", "rank != 5"],
    )


def native(parameters):
    from archive.agents.baselines.configspace_translation import NativeParameters

    return NativeParameters(spaces.get("parameters", parameters=parameters))


def native_decisions(name):
    from archive.agents.baselines.configspace_translation import NativeDecisions

    return NativeDecisions(spaces.get(name).decisions())


@needs_smac
@pytest.mark.parametrize("make", [*SPACES.values(), mixed], ids=[*SPACES, "mixed"])
def test_configurations_are_the_same_in_both_terms(make):
    parameters = make()
    translated = native(parameters)
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = parameters.sample(rng)
        configuration = translated.encode(values)
        configuration.check_valid_configuration()
        assert translated.allows(configuration)
        decoded = translated.decode(configuration)
        assert list(decoded) == list(values)
        for name, value in values.items():
            is_real = isinstance(value, float)
            assert decoded[name] == (pytest.approx(value, rel=1e-9) if is_real else value)


@needs_smac
@pytest.mark.parametrize("make", [*SPACES.values(), mixed], ids=[*SPACES, "mixed"])
def test_drawn_configurations_are_of_the_space(make):
    parameters = make()
    translated = native(parameters)
    translated.configspace.seed(0)
    superfluous = set()
    for configuration in translated.configspace.sample_configuration(100):
        values = translated.decode(configuration)
        assert parameters.existing(values) == values
        assert translated.allows(configuration) == parameters.allows(values)
        superfluous |= set(configuration) - set(values)

    # The condition of `other` is true on no product of sets, nor outside one.
    assert superfluous <= ({"other"} if make is mixed else set())


@needs_smac
def test_conditions_and_constraints_are_those_of_configspace_where_it_has_them():
    translated = native(mixed())
    shown = str(translated.configspace)
    for text in (
        "(between | number > 0.35 && between | number < 0.8)",
        "log | large > 1000000000",
        "(either | option in {0} || either | stepped in {16",
        "Forbidden: rank in {2}",
        "Forbidden: option in {1, 2}",
    ):
        assert text in shown

    assert [constraint.text for constraint in translated.constraints] == [
        "number + stepped <= 99.5"
    ]


@needs_smac
@pytest.mark.parametrize("name", ["mlp", "cnn", "nasbench101", "nasbench201"])
def test_networks_are_the_same_as_decisions_of_configspace(name):
    translated = native_decisions(name)
    networks = spaces.get(name)
    rng = np.random.default_rng(0)
    encoded = 0
    for _ in range(30):
        network = networks.sample(rng)
        configuration = translated.encode_network(network)
        if configuration is not None:
            encoded += 1
            vector = translated.decisions.encode(network)
            expected = translated.decisions.decode(vector)
            assert translated.decode_network(configuration).key == expected.key

    assert encoded > 3


@needs_smac
def test_decisions_exist_as_in_the_space():
    translated = native_decisions("mlp")
    translated.configspace.seed(0)
    for configuration in translated.configspace.sample_configuration(20):
        assert translated.decode_network(configuration) is not None


@needs_smac
def test_larger_scores_are_better():
    parameters = space.Space(x=space.real(0.0, 1.0), op=space.choice(["a", "b", "c"]))
    searched = spaces.get("parameters", parameters=parameters)
    rng = np.random.default_rng(1)
    observations = []
    for number in range(30):
        network = searched.sample(rng)
        values = searched.named(network)
        score = -abs(values["x"] - 0.3) - (values["op"] != "b")
        observations.append(Observation(network, score=score, id=str(number)))

    agent = agents.get("smac", searched, challengers=100, random=0.0)
    for suggestion in agent.propose(History(tuple(observations)), 4, np.random.default_rng(0)):
        assert abs(searched.named(suggestion.architecture)["x"] - 0.3) < 0.15


@needs_smac
def test_scores_of_any_size_and_equal_ones_have_proposals():
    searched = spaces.get("parameters", parameters=SPACES["numbers"]())
    agent = agents.get("smac", searched, challengers=20, startup=3)
    seen = observed(searched, 12).observations
    for scores in (np.full(12, -1e9), 1e12 + np.arange(12.0), np.repeat([0.0, -1e80], 6)):
        history = History(
            tuple(
                Observation(observation.architecture, score=float(score), id=observation.id)
                for observation, score in zip(seen, scores, strict=True)
            )
        )
        assert len(keys(agent.propose(history, 2, np.random.default_rng(0)))) == 2


@needs_smac
def test_constraints_that_hardly_anything_meets_are_met():
    parameters = space.Space(
        a=space.real(0.0, 1.0),
        b=space.real(0.0, 1.0),
        c=space.real(0.0, 1.0),
        constraints=["a + b + c <= 0.2"],
    )
    searched = spaces.get("parameters", parameters=parameters)
    agent = agents.get("smac", searched, challengers=50, random=0.0)
    history = observed(searched, 12)
    for suggestion in agent.propose(history, 3, np.random.default_rng(0)):
        searched.validate(suggestion.architecture)


PROPOSAL = """
import numpy as np
from archive import agents, spaces
from tests.agents.configurations.test_search import SPACES, keys, observed
searched = spaces.get("parameters", parameters=SPACES["conditional"]())
agent = agents.get("smac", searched, challengers=50)
print(keys(agent.propose(observed(searched, 12), 3, np.random.default_rng(0))))
"""


@needs_smac
def test_proposals_are_the_same_in_every_process():
    printed = set()
    for salt in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", PROPOSAL],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": salt},
        )
        printed.add(run.stdout)

    assert len(printed) == 1


@needs_smac
def test_pending_configurations_are_not_proposed():
    searched = spaces.get("parameters", parameters=SPACES["conditional"]())
    agent = agents.get("smac", searched, challengers=50)
    history = observed(searched, 13)
    (first,) = agent.propose(history, 1, np.random.default_rng(0))
    pending = History(history.observations, (Pending(first.architecture),))
    assert keys(agent.propose(pending, 1, np.random.default_rng(0))) != keys([first])


def test_without_smac_the_way_out_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "smac", None)
    searched = spaces.get("parameters", parameters=SPACES["numbers"]())
    with pytest.raises(
        SettingsError, match=r"agent smac needs SMAC3: pip install 'nas-archive\[smac\]'"
    ):
        agents.get("smac", searched)


def test_settings_are_checked():
    searched = spaces.get("parameters", parameters=SPACES["numbers"]())
    with pytest.raises(UsageError, match="startup must be >= 1, got 0"):
        agents.get("smac", searched, startup=0)

    with pytest.raises(UsageError, match="random must be a probability from 0 to 1, got 2"):
        agents.get("smac", searched, random=2.0)
