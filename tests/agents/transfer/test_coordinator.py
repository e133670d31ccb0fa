"""Transfer of agents: good sources help, misleading ones lose their weight, and other agents ignore
them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from archive import agents, spaces
from archive.agents.base import History, Observation, SourceStudy
from archive.agents.catalogue import infos
from archive.agents.transfer.coordinator import DESIGN, MOST_GROUPS, OTHER_SPACES, TOP
from archive.architecture import codec
from tests.support import installed_agents
from tests.support.histories import Chains
from tests.support.listed import score, small_table

TRANSFER = ("bananas", "portfolio", "tw", "tw-kdpp")


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    return small_table(tmp_path_factory.mktemp("table"))


def source(networks, scores, study="s", task="t"):
    pairs = enumerate(zip(networks, scores, strict=True))
    seen = tuple(Observation(one, float(value), f"{study}#{at}") for at, (one, value) in pairs)
    return SourceStudy(study, task, f"{task}/1", networks[0].space, seen)


def half(space):
    return list(space.members())[::2]


def trusting(kind, space):
    """The agent with sources that take part from the first proposal on."""
    return agents.get(kind, space, **({"sources": "trusted"} if kind == "portfolio" else {}))


def search(agent, sources, budget, seed=0):
    """The cells that an agent evaluates, and its last estimates of the correlations."""
    evaluated = []
    correlations = {}
    while len(evaluated) < budget:
        observations = tuple(
            Observation(one, score(one), f"own#{at}") for at, one in enumerate(evaluated)
        )
        history = History(observations, sources=tuple(sources))
        (suggestion,) = agent.propose(history, 1, np.random.default_rng([seed, len(evaluated)]))
        evaluated.append(suggestion.architecture)
        correlations = suggestion.task_correlations or correlations

    return evaluated, correlations


@pytest.mark.parametrize("kind", TRANSFER)
def test_a_good_source_shows_where_to_begin(kind, space):
    known = half(space)
    # Another unit and origin, and a nonlinear map: only the order is informative.
    one_source = source(known, [np.exp(score(one)) - 40.0 for one in known])
    evaluated, correlations = search(trusting(kind, space), [one_source], TOP + DESIGN + 1)
    ranks = sorted((score(one) for one in space.members()), reverse=True)
    assert min(ranks.index(score(one)) for one in evaluated[:TOP]) <= 3
    assert correlations["s"] > 0.3


@pytest.mark.parametrize("kind", ["portfolio", "bananas"])
def test_a_source_of_reversed_scores_gets_a_negative_correlation_or_no_weight(kind, space):
    known = half(space)
    evaluated, correlations = search(
        trusting(kind, space), [source(known, [-score(one) for one in known])], 11
    )
    assert correlations["s"] < 0.0
    best = max(score(one) for one in space.members())
    assert max(score(one) for one in evaluated) >= best - 1.0


def test_the_weight_of_an_unrelated_source_decays(space):
    known = half(space)
    noise = np.random.default_rng(3).normal(size=len(known))
    evaluated, correlations = search(trusting("portfolio", space), [source(known, noise)], 14)
    assert abs(correlations["s"]) < 0.4
    assert max(score(one) for one in evaluated) >= max(score(one) for one in space.members()) - 0.5


@pytest.mark.parametrize("kind", TRANSFER)
def test_units_of_a_source_do_not_matter(kind, space):
    known = half(space)
    agent = trusting(kind, space)
    plain, scaled = (
        [factor * score(one) + origin for one in known]
        for factor, origin in ((1.0, 0.0), (1e4, -7.0))
    )
    history = History(tuple(Observation(one, score(one), one.key) for one in known[:9]))
    one, other = (
        agent.propose(
            dataclasses.replace(history, sources=(source(known, values),)),
            2,
            np.random.default_rng(1),
        )
        for values in (plain, scaled)
    )
    assert [each.architecture for each in one] == [each.architecture for each in other]


def test_two_sources_both_enter_and_those_of_one_task_are_learnt_together(space):
    known = half(space)
    scores = [score(one) for one in known]
    three = [source(known[:20], scores[:20], "a"), source(known[20:], scores[20:], "b")]
    three.append(source(known, scores[::-1], "c", task="u"))
    _, correlations = search(trusting("portfolio", space), three, TOP + DESIGN + 1)
    assert correlations.keys() == {"a", "b", "c"}
    assert correlations["a"] == correlations["b"] != correlations["c"]


def test_groups_propose_in_turns(space):
    known = half(space)
    best = {"a": known[3], "b": known[8]}
    two = [
        source(
            known,
            [2.0 * (one == best[name]) + 0.001 * at for at, one in enumerate(known)],
            name,
            task=name,
        )
        for name in best
    ]
    suggestions = trusting("portfolio", space).propose(
        History(sources=tuple(two)), 2, np.random.default_rng(0)
    )
    assert [each.architecture for each in suggestions] == [best["a"], best["b"]]


@pytest.mark.parametrize("kind", TRANSFER)
def test_a_batch_is_whole_and_new(kind, space):
    known = half(space)
    history = History(sources=(source(known, [score(one) for one in known]),))
    suggestions = trusting(kind, space).propose(history, 6, np.random.default_rng(0))
    assert len({each.architecture.functional_key for each in suggestions}) == 6


def test_the_cache_changes_no_suggestion(space):
    known = half(space)
    one_source = source(known, [score(one) for one in known])
    history = History(
        tuple(Observation(one, score(one), one.key) for one in known[:9]), sources=(one_source,)
    )
    agent = trusting("portfolio", space)
    agent.propose(
        dataclasses.replace(history, sources=(source(known, range(len(known)), "x"),)),
        1,
        np.random.default_rng(1),
    )
    answers = [
        each.propose(history, 3, np.random.default_rng(2))
        for each in (agent, agent, trusting("portfolio", space))
    ]
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("kind", TRANSFER)
@pytest.mark.parametrize(
    "scores", [[1.0] * 12, [0.1, 0.2, 0.3], [float("nan")] * 12, [float("inf"), 1.0, 2.0, 3.0]]
)
def test_uninformative_sources_change_nothing(kind, scores, space):
    known = half(space)
    history = History(tuple(Observation(one, score(one), one.key) for one in known[-11:]))
    one_source = source(known[: len(scores)], scores)
    agent = trusting(kind, space)
    for some in (History(), history):
        with_it = dataclasses.replace(some, sources=(one_source,))
        plain, other = (
            agent.propose(each, 2, np.random.default_rng(4)) for each in (some, with_it)
        )
        assert plain == other


def test_the_preset_paper_does_not_transfer(space):
    known = half(space)
    history = History(sources=(source(known, [score(one) for one in known]),))
    for kind in ("bananas", "tw", "tw-kdpp"):
        agent = agents.get(kind, space, preset="paper")
        assert not agent.transfers
        plain, other = (
            agent.propose(each, 2, np.random.default_rng(4)) for each in (History(), history)
        )
        assert plain == other


def test_the_catalogue_says_who_transfers():
    space = Chains()
    networks = space.every()
    history = History(sources=(source(networks, range(20)),))
    known = infos()
    for kind in installed_agents():
        info = known[kind]
        agent = agents.get(kind, space)
        transfers = kind in (*TRANSFER, "source-best", "block-additive")
        assert agent.transfers == info.transfers == transfers
        if not agent.transfers and kind != "arc":
            plain, other = (
                agent.propose(each, 2, np.random.default_rng(4)) for each in (History(), history)
            )
            assert plain == other


def test_networks_whose_layers_have_units():
    space = Chains()
    networks = space.every()
    one_source = source(
        networks, [sum(layer.units or 0 for layer in one.layers) for one in networks]
    )
    (first,) = trusting("portfolio", space).propose(
        History(sources=(one_source,)), 1, np.random.default_rng(0)
    )
    assert sum(layer.units or 0 for layer in first.architecture.layers) == 32


def test_cells_of_another_benchmark(space):
    other = spaces.get("nasbench101")
    rng = np.random.default_rng(0)
    cells = [other.sample(rng) for _ in range(60)]
    one_source = source(
        cells, [sum(layer.op == "conv3x3-bn-relu" for layer in one.layers) for one in cells]
    )
    evaluated, correlations = search(trusting("portfolio", space), [one_source], TOP + DESIGN + 1)
    assert max(score(one) for one in evaluated[:TOP]) >= 3.0
    assert correlations["s"] > 0.0


@pytest.mark.parametrize("kind", TRANSFER)
def test_sources_of_other_spaces_are_dropped_after_some_evaluations(kind, space):
    other = spaces.get("nasbench101")
    rng = np.random.default_rng(0)
    cells = [other.sample(rng) for _ in range(40)]
    one_source = source(cells, rng.normal(size=len(cells)))
    agent = trusting(kind, space)
    seen = [Observation(one, score(one), one.key) for one in half(space)[:OTHER_SPACES]]
    for count in (OTHER_SPACES - 1, OTHER_SPACES):
        alone = History(tuple(seen[:count]))
        plain, helped = (
            agent.propose(each, 1, np.random.default_rng(1))
            for each in (alone, dataclasses.replace(alone, sources=(one_source,)))
        )
        assert bool(helped[0].task_correlations) == (count < OTHER_SPACES)
        assert count < OTHER_SPACES or plain == helped


def test_dropped_sources_are_not_fitted(space, monkeypatch):
    def refuse(*_):
        raise AssertionError("fitted a dropped source")

    monkeypatch.setattr("archive.agents.transfer.coordinator.learn", refuse)
    other = spaces.get("nasbench101")
    rng = np.random.default_rng(0)
    cells = [other.sample(rng) for _ in range(20)]
    # More sources than first evaluations: none of them chooses a network.
    sources = tuple(
        source(cells, rng.normal(size=20), f"s{at}", f"t{at}") for at in range(OTHER_SPACES + 2)
    )
    alone = History(
        tuple(Observation(one, score(one), one.key) for one in half(space)[:OTHER_SPACES])
    )
    agent = trusting("portfolio", space)
    cold, warm = (
        agent.propose(history, 2, np.random.default_rng(0))
        for history in (alone, dataclasses.replace(alone, sources=sources))
    )
    assert cold == warm


def test_of_many_tasks_the_larger_ones_are_used(space):
    cells = list(space.members())
    rng = np.random.default_rng(0)
    sizes = [6 + at for at in range(MOST_GROUPS + 3)]
    sources = tuple(source(cells[:n], rng.normal(size=n), f"s{n}", f"t{n}") for n in sizes)
    seen = tuple(
        Observation(one, score(one), one.key) for one in cells[40 : 40 + MOST_GROUPS + DESIGN]
    )
    (suggestion,) = trusting("portfolio", space).propose(
        History(seen, sources=sources), 1, np.random.default_rng(0)
    )
    assert set(suggestion.task_correlations) == {f"s{n}" for n in sizes[3:]}


def test_incomparable_sources_are_ignored(space):
    other = Chains().every()
    agent = trusting("portfolio", space)
    one_source = source(other, range(20))
    plain, with_it = (
        agent.propose(each, 2, np.random.default_rng(4))
        for each in (History(), History(sources=(one_source,)))
    )
    assert plain == with_it
    assert codec.to_nasbench201(plain[0].architecture)


def test_a_source_of_choices_says_which_options_are_best():
    ranked = spaces.get("choices", decisions={name: list("01234") for name in "abcde"}, form="set")

    def value(network):
        a, b, *_ = ranked.vector_of(network)
        return -float((a - 3) ** 2 + abs(b - 1))

    drawn = np.random.default_rng(1).permutation(len(ranked.members()))[:30]
    known = [ranked.members()[at] for at in drawn]
    history = History(sources=(source(known, [value(one) for one in known]),))
    suggestions = trusting("portfolio", ranked).propose(history, TOP, np.random.default_rng(0))
    # No network of the source has both of the best options.
    assert max(map(value, known)) == -1.0
    assert [value(one.architecture) for one in suggestions] == [0.0] * TOP
