"""Advice about a study: suggestions, predictions of candidates, and what the model has learnt."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from archive import agents, constraints, space, spaces
from archive.agents.advice import study_surrogate
from archive.agents.advice.decisions import levels_of, memberships
from archive.agents.advice.knowledge import state
from archive.agents.advice.overriding import consider
from archive.agents.advice.reading import read
from archive.agents.advice.suggesting import predict_candidates, suggest
from archive.agents.baselines.random_search import RandomSearch
from archive.agents.observations import Observation
from archive.errors import UnknownNameError, UsageError
from archive.spaces.parameters import Parameters
from archive.store.records import Objective, Result, Study
from tests.dashboard.recorded_runs import StoredRun, store_runs
from tests.support import stores
from tests.support.stores import cells, count

SEARCH = space.Space(
    x=space.real(0.0, 1.0), kind=space.choice(["a", "b"]), size=space.integer(1, 100)
)
COUNT = 24


def convolutions(network) -> int:
    return sum(layer.op.startswith("nor_conv") for layer in network.layers)


def value_of(network, named) -> float:
    """An accuracy that grows with convolutions, `b`, and layers."""
    if named:
        return 60.0 + 10.0 * (named["kind"] == "b") - 5.0 * abs(named["x"] - 0.3)

    if network.space == "mlp":
        return 50.0 + 1.0 * len(network.layers)

    return 60.0 + 5.0 * convolutions(network)


SPACES = {
    "nasbench201": lambda: spaces.get("nasbench201"),
    "mlp": lambda: spaces.get("mlp"),
    "parameters": lambda: Parameters(SEARCH),
}


def fill(archive, searched, number=COUNT, sign=1.0, **settings) -> list:
    """Create a study with results of random networks, and return the networks."""
    archive.studies.create(
        Study(
            "mine", "images", "images/1", searched.name, budget=100,
            space_config=searched.config, **settings,
        )
    )  # fmt: skip
    networks = spaces.base.distinct_sample(searched, number, np.random.default_rng(1))
    agent = archive.proposals.register_agent("random", {}, "1")
    outcomes = []
    for network in networks:
        value = sign * value_of(network, searched.named(network))
        metrics = {"latency_ms": 1.0 + convolutions(network)}
        outcomes.append(Result(value, metrics))

    archive.proposals.create("mine", agent, stores.suggest(networks), outcomes=outcomes)
    return networks


def proposals_and_agents(archive) -> tuple[int, int]:
    return count(archive.connection, "(n:Proposal)"), count(archive.connection, "(n:Agent)")


@pytest.mark.parametrize("name", SPACES)
def test_suggestions_and_candidates_have_predictions_of_one_model(archive, name):
    searched = SPACES[name]()
    networks = fill(archive, searched)
    before = proposals_and_agents(archive)
    report = suggest(archive, "mine", "random", count=3)
    assert (report.agent, report.reason, len(report.suggestions)) == ("random", None, 3)
    assert proposals_and_agents(archive) == before
    # The same call gives the same answer, and it can be stored as JSON.
    again = suggest(archive, "mine", RandomSearch(searched), count=3)
    assert again.suggestions == report.suggestions
    json.dumps(dataclasses.asdict(report), allow_nan=False)

    fresh = [network for network in spaces.base.distinct_sample(
        searched, 40, np.random.default_rng(2)) if network not in networks]  # fmt: skip
    candidates = predict_candidates(archive, "mine", fresh)
    assert all(candidate.member for candidate in candidates.candidates)
    predictions = [candidate.network.prediction for candidate in candidates.candidates]
    truth = [value_of(network, searched.named(network)) for network in fresh]
    correlation = np.corrcoef([entry.mean for entry in predictions], truth)[0, 1]
    assert correlation > 0.7
    assert all(entry.low < entry.mean < entry.high for entry in predictions)

    suggested = {entry.network.architecture for entry in report.suggestions}
    assert not suggested & {network.key for network in networks}
    (candidate,) = predict_candidates(archive, "mine", networks[:1]).candidates
    assert candidate.network.values == [value_of(networks[0], searched.named(networks[0]))]


@pytest.mark.parametrize("name", SPACES)
def test_the_state_names_what_brings_much(archive, name):
    searched = SPACES[name]()
    networks = fill(archive, searched)
    knowledge = state(archive, "mine")
    values = [value_of(network, searched.named(network)) for network in networks]
    assert (knowledge.results, knowledge.waiting, knowledge.left) == (COUNT, 0, 100 - COUNT)
    assert knowledge.best.value == knowledge.best.low == max(values)
    assert knowledge.front == []
    (learnt,) = knowledge.objectives
    assert learnt.noise == 0.0 and learnt.quality.networks == COUNT
    assert learnt.quality.rank_correlation > 0.6 and learnt.quality.coverage > 0.7
    certain = [effect for effect in learnt.effects if effect.certain]
    assert certain == learnt.effects[: len(certain)]
    assert all(effect.better == (effect.effect > 0.0) for effect in learnt.effects)
    assert all(region.std > region.usual for region in learnt.uncertain)
    if name == "parameters":
        first = {(effect.decision, effect.value): effect for effect in learnt.effects[:2]}
        # Half of the configurations have b: it brings half of the difference of 10.
        assert first["kind", "b"].effect == pytest.approx(5.0, abs=1.5)
        assert first["kind", "a"].effect == pytest.approx(-5.0, abs=1.5)
        taken = [searched.named(network)["kind"] for network in networks]
        assert first["kind", "b"].results == taken.count("b")
    elif name == "nasbench201":
        for effect in certain:
            assert effect.better == effect.value.startswith("nor_conv")

    json.dumps(dataclasses.asdict(knowledge), allow_nan=False)


def test_values_keep_the_direction_of_the_task(archive):
    searched = SPACES["nasbench201"]()
    networks = fill(archive, searched, sign=-1.0, objective="loss", direction="minimise")
    knowledge = state(archive, "mine")
    values = [-value_of(network, {}) for network in networks]
    assert knowledge.best.value == min(values)
    (learnt,) = knowledge.objectives
    for effect in learnt.effects:
        assert effect.low <= effect.effect <= effect.high
        assert effect.better == (effect.effect < 0.0)

    best = max(networks, key=convolutions)
    (candidate,) = predict_candidates(archive, "mine", [best]).candidates
    assert candidate.network.prediction.mean == pytest.approx(-value_of(best, {}), abs=1.0)


def test_results_that_break_a_constraint_are_neither_the_best_nor_recommended(archive):
    searched = SPACES["nasbench201"]()
    networks = fill(archive, searched, constraints=(constraints.parse("latency_ms <= 3"),))
    best = max(value_of(network, {}) for network in networks if convolutions(network) <= 2)
    assert best < max(value_of(network, {}) for network in networks)
    assert read(archive, "mine").best_score == best
    assert state(archive, "mine").best.value == best


def test_a_study_of_recorded_runs_has_results_without_a_model_or_a_limit(archive):
    store_runs(archive, [StoredRun({"lr": number}, float(number)) for number in range(6)])
    knowledge = state(archive, "study")
    assert (knowledge.results, knowledge.left, knowledge.best.value) == (6, None, 0.0)
    # No run has a repeat: nothing is known of its noise.
    assert knowledge.best.low is None
    assert "no model compares them" in knowledge.objectives[0].reason


def test_levels_of_many_whole_numbers_are_named_by_the_numbers_in_them():
    rows = [{"layers": number} for number in (1, 1, 1, 2, 2, 2, 3, 4, 5, 6, 7)]
    levels = levels_of(rows)["layers"]
    assert [level.text for level in levels] == ["1", "2 to 3", "4 to 7"]
    assert memberships(levels, rows).sum(axis=0).tolist() == [3, 4, 4]


def test_several_objectives_have_a_front_and_a_model_each(archive):
    searched = SPACES["nasbench201"]()
    networks = fill(archive, searched, further=(Objective("latency_ms", "minimise"),))
    knowledge = state(archive, "mine")
    assert knowledge.best is None and knowledge.gain is None and knowledge.agent == "portfolio"
    assert [entry.objective for entry in knowledge.objectives] == ["accuracy", "latency_ms"]
    # Each number of convolutions is another compromise.
    assert len(knowledge.front) == len({convolutions(network) for network in networks})
    latencies = [entry.further["latency_ms"] for entry in knowledge.front]
    assert latencies == sorted(latencies, reverse=True)
    report = suggest(archive, "mine", count=1)
    (proposal,) = report.suggestions
    assert proposal.network.prediction.mean > 50.0
    assert 0.0 < proposal.network.further["latency_ms"].mean < 10.0


def test_without_enough_results_there_is_a_reason_and_no_number(archive):
    searched = SPACES["nasbench201"]()
    fill(archive, searched, number=4)
    report = suggest(archive, "mine", "random", count=1)
    assert report.model is None
    assert report.reason == "a prediction needs results of 5 different networks, got 4"
    assert report.suggestions[0].network.prediction is None
    knowledge = state(archive, "mine")
    assert knowledge.objectives[0].reason == report.reason and knowledge.objectives[0].effects == []
    assert knowledge.best is not None
    with pytest.raises(UsageError, match="at least one"):
        suggest(archive, "mine", count=0)

    with pytest.raises(UnknownNameError, match="agent"):
        suggest(archive, "mine", "nonsense")


def test_a_candidate_outside_of_the_space_is_answered_with_the_reason(archive):
    searched = SPACES["parameters"]()
    fill(archive, searched)
    report = predict_candidates(
        archive, "mine", [{"x": 0.3, "kind": "b"}, {"x": 7.0}, {"depth": 3}, cells(1)[0]]
    )
    first, *others = report.candidates
    assert first.member and first.network.configuration["x"] == 0.3
    assert first.network.network is None and first.network.configuration["size"] > 0
    assert [entry.member for entry in others] == [False, False, False]
    assert "7.0" in others[0].reason and "depth" in others[1].reason
    assert all(entry.network is None for entry in others)


def test_pairs_of_networks_and_parameters_are_predicted_together(archive):
    beside = spaces.beside("nasbench201", space.Space(lr=space.real(1e-4, 1e-1, log=True)))
    rng = np.random.default_rng(0)
    observations = []
    for number in range(20):
        member = beside.sample(rng)
        score = -abs(np.log10(member.configuration["lr"]) + 2.0)
        observations.append(Observation(member, score, f"mine#{number}"))

    surrogate = study_surrogate.fit(beside, observations).surrogate
    network = observations[0].architecture.network
    means, _ = surrogate.predict([beside.member(network, {"lr": lr}) for lr in (1e-2, 1e-4)])
    assert means[0] > means[1]


def test_noise_is_estimated_and_left_out_predictions_cover_the_results():
    searched = SPACES["nasbench201"]()
    rng = np.random.default_rng(3)
    observations = []
    for number, network in enumerate(spaces.base.distinct_sample(searched, 40, rng)):
        score = value_of(network, {}) + float(rng.normal(0.0, 2.0))
        observations.append(Observation(network, score, f"mine#{number}", seed=number))

    surrogate = study_surrogate.fit(searched, observations).surrogate
    assert 1.0 < surrogate.noise < 4.0
    left = surrogate.left_out()
    np.testing.assert_allclose(left.observed, [entry.score for entry in observations])
    assert (np.abs(left.observed - left.means) <= 1.96 * left.stds).mean() >= 0.85
    # The mean of joint samples is the prediction.
    some = [entry.architecture for entry in observations[:3]]
    means, stds = surrogate.predict(some)
    drawn = surrogate.sample(some, 4000, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.mean(axis=0), means, atol=0.3)
    np.testing.assert_allclose(drawn.std(axis=0), stds, atol=0.3)


def test_all_agents_names_are_answered_as_their_search_would(archive):
    # What `suggest` shows is what the search proposes next.
    searched = SPACES["nasbench201"]()
    fill(archive, searched)
    (shown,) = suggest(archive, "mine", "portfolio", count=1).suggestions
    asked = agents.study(archive, "mine", searched, task="images", protocol="images/1")
    (lease,) = asked.ask("portfolio", 1)
    assert lease.proposal.architecture_key == shown.network.architecture


def test_an_override_is_judged_by_its_prediction_and_by_earlier_ones(archive):
    searched = SPACES["nasbench201"]()
    networks = fill(archive, searched)
    others = [network for network in cells(400) if network not in networks]
    few = min(others, key=convolutions)
    many = max(others, key=convolutions)
    good = consider(archive, "mine", many, RandomSearch(searched))
    assert good.results == 0 and good.advice.endswith("has a prediction and a result)")
    bad = consider(archive, "mine", few, "portfolio")
    assert bad.accepted is False and bad.advice.startswith("prefer the agent's suggestion")
    assert bad.candidate.network.architecture == few.key
    # Three candidates that were predicted to be much better than they were.
    agent = archive.proposals.register_agent("language-model", {}, "1")
    overrides = [network for network in others if network not in (few, many)][:3]
    suggestions = []
    for network in overrides:
        suggestions.append(stores.Suggestion(network, mean=value_of(network, {}) + 4.0, std=2.0))

    outcomes = [Result(value_of(network, {}), {"latency_ms": 1.0}) for network in overrides]
    archive.proposals.create("mine", agent, suggestions, outcomes=outcomes)
    later = consider(archive, "mine", many, RandomSearch(searched))
    assert later.results == 3 and later.advantage == pytest.approx(-1.5)
    assert consider(archive, "mine", many, proposer="person").results == 0


def test_what_is_no_candidate_cannot_be_judged(archive):
    searched = SPACES["parameters"]()
    fill(archive, searched, number=3)
    report = consider(archive, "mine", {"x": 7.0})
    assert report.accepted is None and "it is no candidate" in report.advice
    report = consider(archive, "mine", {"x": 0.5})
    assert report.accepted is None and "results of 5 different networks, got 3" in report.advice
