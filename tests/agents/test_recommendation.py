"""Noise of a history, and the recommendation of its best networks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archive import space as own_space
from archive import spaces
from archive.agents import recommendation
from archive.agents.observations import Observation, is_noisy
from archive.agents.recommendation import LEAST, EstimatesFile, recommend
from archive.spaces.nasbench201 import NasBench201
from tests.support.histories import Chains, observed

FIRST, SECOND = Chains().every()[:2]


@pytest.mark.parametrize(
    ("networks", "scores", "seeds", "noisy"),
    [
        ((FIRST, SECOND), (0.1, 0.2), (None, None), False),
        ((FIRST, SECOND), (0.1, 0.2), (0, 0), True),
        ((FIRST, FIRST), (0.1, 0.2), (None, None), True),
        ((FIRST, FIRST), (0.1, 0.1), (None, None), False),
        # The copy of one training is no second training.
        ((FIRST, FIRST), (0.1, 0.1), (3, 3), True),
        ((FIRST, FIRST), (0.1, 0.1), (3, 4), False),
        ((FIRST, FIRST, SECOND, SECOND), (0.1, 0.1, 0.2, 0.3), (0, 1, 2, 3), True),
    ],
)
def test_noise_by_seeds_and_replicates(networks, scores, seeds, noisy):
    seen = [
        replace(one, seed=seed) for one, seed in zip(observed(networks, scores), seeds, strict=True)
    ]
    assert is_noisy(seen) is noisy


def test_other_hyperparameters_are_no_replicates():
    seen = observed((FIRST, FIRST), (0.1, 0.2))
    assert not is_noisy([seen[0], replace(seen[1], hyperparameters={"rate": 0.1})])


def test_without_noise_the_best_value_is_recommended_exactly():
    networks = Chains().every()[:12]
    scores = np.random.default_rng(0).normal(size=12)
    recommended = recommend(Chains(), observed(networks, scores))
    assert recommended.noise == 0.0
    assert [one.score for one in recommended.ranked] == sorted(scores.tolist(), reverse=True)
    best = recommended.ranked[0]
    assert (best.architecture, best.low, best.high) == (
        networks[int(scores.argmax())],
        best.score,
        best.score,
    )


def test_few_noisy_networks_are_ranked_by_their_means():
    several = [FIRST, FIRST, FIRST, SECOND, SECOND]
    recommended = recommend(Chains(), observed(several, [0.9, 0.1, 0.2, 0.6, 0.5]))
    assert len(recommended.ranked) < LEAST
    assert [one.architecture for one in recommended.ranked] == [SECOND, FIRST]
    assert [one.score for one in recommended.ranked] == pytest.approx([0.55, 0.4])
    assert (recommended.noise, recommended.ranked[0].low) == (None, None)


def test_the_best_of_many_noisy_networks_are_estimated_and_only_those_asked_for(monkeypatch):
    monkeypatch.setattr(recommendation, "MOST", 6)
    networks = Chains().every()[:12]
    seen = [replace(one, seed=0) for one in observed(networks, range(12))]
    assert {one.architecture for one in recommend(Chains(), seen).ranked} == set(networks[6:])
    some = {networks[1].functional_key, networks[9].functional_key}
    assert {
        one.architecture.functional_key for one in recommend(Chains(), seen, some).ranked
    } == some


def test_the_luckiest_of_noisy_values_is_not_recommended():
    space = NasBench201()
    rng = np.random.default_rng(1)
    networks = list(
        {one.functional_key: one for one in (space.sample(rng) for _ in range(40))}.values()
    )
    truth = np.linspace(0.0, 1.0, len(networks))
    # Three evaluations of each; a single one of a mediocre network is lucky.
    scores = [level + 0.1 * z for level in truth for z in rng.normal(size=3)]
    lucky = len(networks) // 2
    scores[3 * lucky] = 1.6
    recommended = recommend(space, observed([one for one in networks for _ in range(3)], scores))
    values = {one.functional_key: level for one, level in zip(networks, truth, strict=True)}
    best = recommended.ranked[0]
    assert (
        max(recommended.ranked, key=lambda one: one.luckiest.score).architecture == networks[lucky]
    )
    assert values[best.architecture.functional_key] > 0.9
    # The standard deviation is 0.1, and 0.15 with the outlier.
    assert 0.07 < recommended.noise < 0.25
    inside = [
        one.low <= values[one.architecture.functional_key] <= one.high for one in recommended.ranked
    ]
    assert np.mean(inside) > 0.8


def test_the_noise_is_that_of_scores_and_not_of_compressed_ones():
    space = NasBench201()
    rng = np.random.default_rng(2)
    networks = list(
        {one.functional_key: one for one in (space.sample(rng) for _ in range(50))}.values()
    )
    levels = [sum(layer.op == "nor_conv_3x3" for layer in one.layers) for one in networks]
    scores = [level + 0.5 * z for level in levels for z in rng.normal(size=4)]
    recommended = recommend(space, observed([one for one in networks for _ in range(4)], scores))
    # By the compressed scores alone: 0.35.
    assert recommended.noise == pytest.approx(0.5, rel=0.15)


@pytest.mark.parametrize(
    ("evaluated", "noise"),
    [
        # With the prior of length scales for the noise: 0.18.
        (20, 0.05),
        # With a nugget, which single evaluations do not tell from noise: 0.65.
        (40, 0.02),
    ],
)
def test_intervals_hold_the_true_scores_of_networks_with_one_evaluation(evaluated, noise):
    names = {f"decision {at}": ["a", "b", "c"] for at in range(4)}
    space = spaces.get("choices", decisions=names, form="set")
    inside = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        effects = rng.normal(0.0, 0.05, (4, 3))
        networks = [space.members()[at] for at in rng.permutation(81)[:evaluated]]
        truth = [float(effects[range(4), space.decisions().encode(one)].sum()) for one in networks]
        scores = np.array(truth) + rng.normal(0.0, noise, evaluated)
        seen = [replace(one, seed=at) for at, one in enumerate(observed(networks, scores.tolist()))]
        values = {one.key: value for one, value in zip(networks, truth, strict=True)}
        ranked = recommend(space, seen).ranked
        inside += [one.low <= values[one.architecture.key] <= one.high for one in ranked]

    assert np.mean(inside) > 0.75


def test_replicates_tell_noise_from_what_networks_differ_for_good():
    space = NasBench201()
    rng = np.random.default_rng(4)
    networks = list(
        {one.functional_key: one for one in (space.sample(rng) for _ in range(80))}.values()
    )[:50]
    truth = rng.normal(0.0, 1.0, 50)
    at = np.concatenate([np.repeat(np.arange(15), 8), np.arange(15, 50)])
    seen = observed([networks[row] for row in at], truth[at] + rng.normal(0.0, 0.1, len(at)))
    # Without a nugget: 0.14.
    assert recommend(space, seen).noise == pytest.approx(0.1, rel=0.25)


@pytest.fixture
def fits(monkeypatch):
    """Names of the calls that fitted a model."""
    calls = []
    fit = recommendation.fit_networks
    monkeypatch.setattr(
        recommendation, "fit_networks", lambda *arguments: calls.append("fit") or fit(*arguments)
    )
    return calls


SEEN = [
    replace(one, seed=at)
    for at, one in enumerate(
        observed([NasBench201().members()[at] for at in range(0, 3000, 500)], range(6))
    )
]
KEYS = {one.architecture.functional_key for one in SEEN}


def estimates_of(recommendations):
    rows = [(one.architecture.key, one.score, one.low, one.high) for one in recommendations.ranked]
    return rows, recommendations.noise


def test_an_unchanged_history_is_fitted_once(tmp_path, fits):
    file = EstimatesFile(tmp_path, "study", "accuracy")
    first = recommend(NasBench201(), SEEN, KEYS, file)
    # Other ids and agents are no inputs of the model.
    again = recommend(
        NasBench201(), [replace(one, id=f"x{at}") for at, one in enumerate(SEEN)], KEYS, file
    )
    assert (
        estimates_of(first)
        == estimates_of(again)
        == estimates_of(recommend(NasBench201(), SEEN, KEYS))
    )
    assert again.ranked[0].evaluations[0].id.startswith("x")
    assert len(fits) == 2


@pytest.mark.parametrize(
    ("observations", "among", "study"),
    [
        ([*SEEN[:-1], replace(SEEN[-1], score=0.5)], KEYS, "study"),
        ([*SEEN, replace(SEEN[0], score=9.0, seed=7)], KEYS, "study"),
        (SEEN[:-1], KEYS, "study"),
        (SEEN, set(sorted(KEYS)[1:]), "study"),
        (SEEN, KEYS, "another"),
    ],
    ids=["a value", "a replicate", "a result less", "a constraint", "another study"],
)
def test_a_changed_history_is_fitted_again(tmp_path, fits, observations, among, study):
    recommend(NasBench201(), SEEN, KEYS, EstimatesFile(tmp_path, "study", "accuracy"))
    changed = recommend(
        NasBench201(), observations, among, EstimatesFile(tmp_path, study, "accuracy")
    )
    assert len(fits) == 2
    assert estimates_of(changed) == estimates_of(recommend(NasBench201(), observations, among))


def test_a_damaged_file_is_replaced(tmp_path, fits):
    file = EstimatesFile(tmp_path, "study", "accuracy")
    first = recommend(NasBench201(), SEEN, KEYS, file)
    (kept,) = (tmp_path / "cache" / "estimates").iterdir()
    kept.write_bytes(kept.read_bytes()[:100])
    assert estimates_of(recommend(NasBench201(), SEEN, KEYS, file)) == estimates_of(first)
    recommend(NasBench201(), SEEN, KEYS, file)
    assert len(fits) == 2


def test_configurations_are_recommended_by_models_of_their_values():
    parameters = own_space.Space(x=own_space.real(0, 1), y=own_space.real(0, 1), kind=["a", "b"])
    space = spaces.get("parameters", parameters=parameters)
    rng = np.random.default_rng(0)
    observations = []
    truth = {}
    for number in range(60):
        network = space.sample(rng)
        values = space.named(network)
        truth[network.functional_key] = -((values["x"] - 0.3) ** 2) - 0.3 * (values["kind"] == "b")
        score = truth[network.functional_key] + 0.1 * float(rng.standard_normal())
        observations.append(Observation(network, score=score, id=str(number), seed=number))

    found = recommend(space, observations)
    best = found.ranked[0]
    assert found.noise == pytest.approx(0.1, rel=0.5)
    assert truth[best.architecture.functional_key] > -0.02
    assert best.low is not None and best.low < truth[best.architecture.functional_key] < best.high
    held = [one.low <= truth[one.architecture.functional_key] <= one.high for one in found.ranked]
    assert np.mean(held) > 0.8
