"""The contract of every agent: see `archive.agents.base.Agent.propose`."""

from __future__ import annotations

import copy
import functools
import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

from archive import agents, spaces
from archive.agents import study_setup
from archive.agents.base import Agent, History, Observation, Pending
from archive.agents.bayesopt.gaussian_process import Baseline
from archive.agents.registry import registry
from archive.errors import UnknownNameError, UsageError
from archive.store.records import Objective, Study
from tests.support import installed_agents
from tests.support.histories import Chains, grown, observed, with_goals

# The baselines differ in their kernels alone, which have a separate contract: two of them represent
# all, one on a kernel with features and one on a kernel of pairs.
VARIANTS = {name for name in agents.names() if issubclass(registry.load(name), Baseline)} - {
    "gp-wl",
    "gp-wasserstein",
}


pytestmark = pytest.mark.usefixtures("few_candidates")


def parameter(kind):
    # `tw-kdpp` is `tw` with another choice of batches.
    variant = kind in VARIANTS or kind == "tw-kdpp"
    return pytest.param(kind, marks=pytest.mark.variant) if variant else kind


@pytest.fixture(params=list(map(parameter, installed_agents())))
def kind(request):
    return request.param


# Settings that make proposals cheaper and take the same path through the code.
CHEAP = {
    **{
        kind: {"candidates": "mutations"}
        for kind in agents.names()
        if kind.startswith("gp-") or kind in ("gp", "tw")
    },
    "arc": {"samples": 3, "burn_in": 3},
    "morphism": {"children": 4, "decay": 0.7},
    "bananas": {"members": 2, "width": 8},
    "block-additive": {"replacements": 2, "top": 3},
    "gp-optuna": {"startup": 50},
    "nasbot": {"samples": 2},
    "random-forest": {"trees": 3},
    "portfolio": {"members": ["subtrees"], "candidates": "mutations"},
    "smac": {"challengers": 20, "trees": 2},
    "treebo": {"climbs": 1},
}


ONLY_ON = {"arc": ("mlp",)}


def made(kind, space, **settings):
    if space.name not in ONLY_ON.get(kind, (space.name,)):
        with pytest.raises(UsageError, match=space.name):
            agents.get(kind, space)

        pytest.skip(f"{kind} searches {ONLY_ON[kind]} only")

    return agents.get(kind, space, **{**CHEAP.get(kind, {}), **settings})


WITH_POOL = [name for name in agents.names() if "n_initial" in agents.settings(name)]


@pytest.fixture
def agent(kind, space):
    return made(kind, space)


def propose(agent, history, n=2, seed=0):
    return agent.propose(history, n, np.random.default_rng(seed))


@functools.cache
def proposed(kind, make_space):
    """An agent after one proposal, with its history and its suggestions; several tests share
    them."""
    space = make_space()
    agent = made(kind, space)
    history = grown(space, 13)
    return agent, history, propose(agent, history)


def check(agent, history, suggestions, n):
    keys = [suggestion.architecture.functional_key for suggestion in suggestions]
    assert len(keys) == len(set(keys)) == n
    assert not {one.architecture.functional_key for one in suggestions if not one.repeat} & set(
        history.known
    )
    repeated = {one.architecture.functional_key for one in suggestions if one.repeat}
    assert repeated <= {seen.architecture.functional_key for seen in history.usable}
    for suggestion in suggestions:
        agent.space.validate(suggestion.architecture)
        if suggestion.parent is not None:
            roots = {
                *history.known,
                *(each.functional_key for each in agent.space.initial_pool()),
                *keys,
            }
            assert suggestion.parent.functional_key in roots
            assert suggestion.operations

        for number in (suggestion.acquisition, suggestion.mean, suggestion.std):
            assert number is None or np.isfinite(number)


def test_empty_history(agent):
    # More than the initial pool has.
    check(agent, History(), propose(agent, History(), 12), 12)


def test_full_history(kind, space):
    check(*proposed(kind, type(space)), 2)


@pytest.mark.one_space
def test_one_observation(kind, space):
    agent = made(kind, space, **({"n_initial": 1} if kind in WITH_POOL else {}))
    history = grown(space, 1)
    check(agent, history, propose(agent, history), 2)


@pytest.mark.one_space
def test_equal_values(agent):
    history = History(
        observed([o.architecture for o in grown(agent.space, 12).observations], [0.25] * 12)
    )
    check(agent, history, propose(agent, history), 2)


@pytest.mark.one_space
def test_two_observations_of_one_network_only(kind, space):
    agent = made(kind, space, **({"n_initial": 1} if kind in WITH_POOL else {}))
    architecture = space.initial_pool()[0]
    history = History(observed([architecture, architecture], [0.1, 0.3]))
    check(agent, history, propose(agent, history), 2)


@pytest.mark.one_space
def test_pending_only(agent):
    history = History(
        pending=tuple(Pending(o.architecture) for o in grown(agent.space, 12).observations)
    )
    check(agent, history, propose(agent, history), 2)


@pytest.mark.one_space
def test_observed_and_pending(agent):
    seen = grown(agent.space, 15).observations
    history = History(seen[:11], tuple(Pending(o.architecture) for o in seen[11:]))
    check(agent, history, propose(agent, history), 2)


@pytest.mark.one_space
def test_repeats_of_one_architecture(agent):
    seen = grown(agent.space, 11).observations
    history = History((*seen, *observed([seen[0].architecture] * 3, [0.2, 0.21, 0.19])))
    check(agent, history, propose(agent, history), 2)


@pytest.mark.one_space
def test_projected_scores(agent):
    seen = grown(agent.space, 12).observations
    history = History(tuple(replace(one, variance=0.01 * (at % 3)) for at, one in enumerate(seen)))
    check(agent, history, propose(agent, history), 2)


@pytest.mark.one_space
def test_failed_evaluations(agent):
    seen = grown(agent.space, 15).observations
    broken = tuple(
        Observation(one.architecture, score, f"study#{at:05d}")
        for at, (one, score) in enumerate(
            zip(seen[:4], (math.nan, math.inf, -math.inf, -1e308), strict=True), start=99
        )
    )
    history = History((*seen[3:13], *broken), failed=tuple(o.architecture for o in seen[13:]))
    check(agent, history, propose(agent, history), 2)


@pytest.mark.one_space
def test_everything_failed(agent):
    history = History(failed=tuple(o.architecture for o in grown(agent.space, 12).observations))
    check(agent, history, propose(agent, history), 2)


@pytest.mark.one_space
def test_huge_and_tiny_scores(agent):
    seen = grown(agent.space, 12).observations
    for scale in (1e12, 1e-12):
        history = History(observed([o.architecture for o in seen], [scale * o.score for o in seen]))
        check(agent, history, propose(agent, history, 1), 1)


@pytest.mark.one_space
def test_same_seed_same_suggestions(kind, space):
    agent, history, suggestions = proposed(kind, type(space))
    assert propose(agent, history) == suggestions
    assert propose(made(kind, space), copy.deepcopy(history)) == suggestions


@pytest.mark.one_space
def test_what_an_agent_has_prepared_changes_no_suggestion(kind, space):
    # As a study grows: caches of a shorter history change nothing.
    _, history, suggestions = proposed(kind, type(space))
    kept = made(kind, space)
    propose(kept, grown(space, 11), 1, seed=1)
    assert propose(kept, history) == suggestions


@pytest.mark.one_space
def test_several_objectives(kind, space):
    agent = made(kind, space)
    if not agent.several_objectives:
        study = Study(
            "two", "digits", "digits/1", space.name, further=(Objective("params", "minimise"),)
        )
        with pytest.raises(
            UsageError, match=f"the agent {kind} searches for one objective.*nsga2, portfolio"
        ):
            study_setup.check_agent(agent, study)

        return

    seen = grown(space, 15).observations
    history = with_goals(History(seen[:12], tuple(Pending(o.architecture) for o in seen[12:])))
    check(agent, history, propose(agent, history), 2)
    # Before the first result that has all objectives.
    history = with_goals(History(seen[:1]))
    check(agent, history, propose(agent, history), 2)


@pytest.mark.one_space
def test_other_seed_other_suggestions(kind, space):
    agent, history, suggestions = proposed(kind, type(space))
    assert propose(agent, history, seed=1) != suggestions


@pytest.mark.one_space
def test_nothing_is_changed(agent):
    history = grown(agent.space, 12)
    before = pickle.dumps((history.observations, history.pending, history.failed))
    config = agent.config
    np.random.seed(11)
    state = np.random.get_state()[1].copy()
    propose(agent, history)
    assert pickle.dumps((history.observations, history.pending, history.failed)) == before
    assert agent.config == config
    assert (np.random.get_state()[1] == state).all()


def test_a_space_that_runs_out(kind):
    chains = Chains()
    agent = made(kind, chains)
    every = chains.every()
    history = History(observed(every[:17], np.linspace(0, 1, 17)))
    last = propose(agent, history, 5)
    assert {s.architecture.functional_key for s in last} == {a.functional_key for a in every[17:]}
    assert propose(agent, History(observed(every, np.linspace(0, 1, 20))), 2) == []


@pytest.mark.one_space
def test_count_is_checked(agent):
    with pytest.raises(UsageError, match="got n = 0"):
        propose(agent, History(), 0)


@pytest.mark.one_space
def test_config_remakes_the_agent(kind, agent):
    agent = agents.get(kind, agent.space)
    assert isinstance(agent, Agent)
    assert agent.kind == kind
    config = json.loads(json.dumps(agent.config))
    assert config == agents.settings(kind)
    assert agents.get(kind, agent.space, **config).config == config


@pytest.mark.one_space
def test_config_has_what_was_given(kind, space):
    agent = made(kind, space)
    assert agent.config == {**agents.settings(kind), **CHEAP.get(kind, {})}


def test_unknown_names():
    space = spaces.get("mlp")
    with pytest.raises(UnknownNameError, match="unknown agent 'nasbott': did you mean nasbot"):
        agents.get("nasbott", space)

    with pytest.raises(UnknownNameError, match="unknown setting of agent nasbot 'n_inital'"):
        agents.get("nasbot", space, n_inital=3)

    with pytest.raises(UnknownNameError, match="agent random has no settings"):
        agents.get("random", space, n_initial=3)


@pytest.mark.one_space
@pytest.mark.parametrize("kind", list(map(parameter, WITH_POOL)))
def test_warm_start_counts_as_the_pool(kind, space):
    pool = {architecture.functional_key for architecture in space.initial_pool()}
    elsewhere = [
        o for o in grown(space, 25).observations if o.architecture.functional_key not in pool
    ]
    assert len(elsewhere) >= 10
    suggestions = propose(made(kind, space), History(tuple(elsewhere)), 1)
    assert suggestions[0].parent is not None or suggestions[0].acquisition is not None


@pytest.mark.parametrize("kind", list(map(parameter, WITH_POOL)))
def test_pool_comes_first(kind, space):
    pool = space.initial_pool()
    agent = made(kind, space)
    assert [s.architecture for s in propose(agent, History(), 10)] == pool
    partly = History(observed(pool[2:4], [0.1, 0.2]), (Pending(pool[5]),))
    assert [s.architecture for s in propose(agent, partly, 3)] == [pool[0], pool[1], pool[4]]
    shorter = made(kind, space, n_initial=3)
    one_by_one = History()
    for expected in (pool[0], pool[4], pool[9]):
        (suggestion,) = propose(shorter, one_by_one, 1)
        assert suggestion.architecture == expected
        one_by_one = History(pending=(*one_by_one.pending, Pending(suggestion.architecture)))
