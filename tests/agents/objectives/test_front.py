"""The front that hypervolume improvement is measured from: measured without noise, estimated with
it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from archive import agents
from archive.agents.acquisition.ehvi import LogEhvi, free_boxes
from archive.agents.base import History, Pending
from archive.agents.constraints.slacks import StudyConstraints
from archive.agents.objectives import front, selection
from archive.agents.objectives.front import Front, estimate_front, reference_point
from archive.agents.objectives.goals import Goals, points
from archive.constraints import parse
from archive.objectives.pareto import hypervolume
from archive.store.records import Objective
from tests.support.histories import observed, units

RNG = np.random.default_rng
LEARNT = Goals(
    (Objective("accuracy"), Objective("loss", "minimise"), Objective("units", "minimise")),
    {"units": units},
)
KNOWN = Goals((Objective("accuracy"), Objective("units", "minimise")), {"units": units})


@pytest.fixture
def agent(chains, monkeypatch):
    # Every network of the space is a candidate.
    monkeypatch.setattr(type(chains), "members", lambda self: self.every())
    return agents.get("gp", chains, n_initial=3, candidates="members", kernel="topology")


def told(networks, scores, losses, goals=LEARNT, **settings):
    """Results with two learnt objectives; replicates of a network follow each other."""
    seen = observed(networks, scores)
    return History(
        tuple(
            replace(one, further=(-loss, np.nan)) for one, loss in zip(seen, losses, strict=True)
        ),
        goals=goals,
        **settings,
    )


def noisy(every, spread=0.3):
    """Three evaluations of each of eight networks; the first one of a bad network is lucky."""
    rng = RNG(5)
    networks = [one for one in every[:8] for _ in range(3)]
    scores = np.log(units(networks)) + spread * rng.standard_normal(24)
    scores[3] += 2.0
    seen = told(networks, scores, 0.1 * units(networks))
    return replace(
        seen, observations=tuple(replace(one, seed=at) for at, one in enumerate(seen.observations))
    )


def models_of(agent, history):
    return selection.ObjectiveModels.fit(agent.method, agent.slacks, history, history.goals, RNG(0))


def measured(history, fitted=None, *, posterior=False):
    """The plain path: the front of all results that meet the constraints."""
    seen, scores = points(history)
    met = slice(None) if history.constraints is None else history.constraints.met(seen)
    return Front(scores[met], reference_point(scores))


def exact(every):
    """Histories without noise: none, exact replicates, constraints, pending proposals."""
    rng = RNG(3)
    networks = every[:9]
    scores = np.log(units(every[:9]))
    losses = rng.standard_normal(9)
    plain = told(networks, scores, losses)
    copies = (replace(plain.observations[at], id=f"x#{at}") for at in (2, 5, 2))
    again = replace(plain, observations=(*plain.observations, *copies))
    limits = StudyConstraints((parse("latency_ms<=40"),))
    latencies = [(float(each),) for each in np.linspace(20, 60, 9)]
    limited = tuple(
        replace(one, measured=each) for one, each in zip(plain.observations, latencies, strict=True)
    )
    return {
        "plain": plain,
        "known costs": replace(plain, goals=KNOWN),
        "exact replicates": again,
        "constraints": replace(plain, observations=limited, constraints=limits),
        "pending": replace(plain, pending=(Pending(every[12]), Pending(every[14]))),
    }


@pytest.mark.parametrize(
    "name", ["plain", "known costs", "exact replicates", "constraints", "pending"]
)
def test_without_noise_every_proposal_is_that_of_the_measured_front_to_the_last_bit(
    agent, chains, name, monkeypatch
):
    history = exact(chains.every())[name]
    made = agent.propose(history, 3, RNG(0))
    monkeypatch.setattr(selection, "estimate_front", measured)
    assert made == agent.propose(history, 3, RNG(0))


def test_without_noise_the_front_is_that_of_the_results(agent, chains):
    for history in exact(chains.every()).values():
        ours = estimate_front(history, models_of(agent, history).fitted, posterior=True)
        plain = measured(history)
        assert (ours.reference == plain.reference).all()
        for boxes, others in zip(free_boxes(*ours), free_boxes(*plain), strict=True):
            assert np.array_equal(boxes, others)


def test_with_noise_the_front_is_of_posterior_means_and_known_costs(agent, chains):
    every = chains.every()
    history = noisy(every)
    models = models_of(agent, history)
    ours = estimate_front(history, models.fitted, posterior=True)
    assert ours.scores.shape == (8, 3)
    for at, network in enumerate(every[:8]):
        alone = [
            models.fitted[each].posterior([network.functional]).in_scores().mean[0]
            for each in (0, 1)
        ]
        # The loss has no noise: three equal values with three seeds.
        assert ours.scores[at] == pytest.approx(
            [alone[0], -0.1 * units([network])[0], -units([network])[0]]
        )

    lucky = points(history)[1]
    assert hypervolume(ours.scores, ours.reference) < hypervolume(lucky, ours.reference)
    # The estimates are nearer to the truth than the luckiest value of each network.
    truth = np.log(units(every[:8]))
    best = lucky[:, 0].reshape(8, 3).max(axis=1)
    assert np.abs(ours.scores[:, 0] - truth).mean() < np.abs(best - truth).mean()


def test_the_suggestion_under_noise_is_the_best_over_the_estimated_front(agent, chains):
    every = chains.every()
    history = noisy(every)
    (suggestion,) = agent.propose(history, 1, RNG(0))
    models = models_of(agent, history)
    scores, reference = estimate_front(history, models.fitted, posterior=True)
    gains = LogEhvi(*free_boxes(scores, reference))(models.posteriors(every[8:]))
    assert suggestion.architecture == every[8 + int(np.argmax(gains))]
    assert suggestion.acquisition == pytest.approx(np.exp(gains.max()))
    plain = LogEhvi(*free_boxes(*measured(history)))(models.posteriors(every[8:]))
    # Lucky results hide improvements.
    assert plain.max() < gains.max()


@pytest.mark.parametrize("posterior", [False, True])
def test_models_without_noise_have_the_means_over_replicates(chains, posterior):
    history = noisy(chains.every())
    forest = agents.get("random-forest", chains, n_initial=3)
    models = models_of(forest, history)
    assert models.fitted[0].noises() is None
    ours = estimate_front(history, models.fitted, posterior=posterior)
    means = points(history)[1].reshape(8, 3, 3).mean(axis=1)
    assert ours.scores == pytest.approx(means)
    assert ours.reference == pytest.approx(reference_point(means))


def test_replicates_meet_a_constraint_by_their_mean(chains):
    every = chains.every()
    networks = [every[0], every[0], every[1], every[2], every[2]]
    limits = StudyConstraints((parse("latency_ms<=40"),))
    history = told(networks, [1.0, 2.0, 3.0, 4.0, 6.0], np.zeros(5), constraints=limits)
    latencies = [30.0, 60.0, 20.0, np.nan, 35.0]
    seen = tuple(
        replace(one, measured=(each,))
        for one, each in zip(history.observations, latencies, strict=True)
    )
    ours = estimate_front(replace(history, observations=seen), {}, posterior=False)
    assert ours.scores[:, 0].tolist() == [3.0, 5.0]


def test_other_hyperparameters_are_other_networks_and_are_not_modelled(agent, chains):
    every = chains.every()
    history = told([every[0], every[0], every[1], every[1]], [1.0, 3.0, 5.0, 6.0], np.zeros(4))
    fitted = models_of(agent, history).fitted
    first, *rest = history.observations
    varied = replace(history, observations=(replace(first, hyperparameters={"rate": 0.1}), *rest))
    assert estimate_front(varied, fitted, posterior=True).scores[:, 0].tolist() == [1.0, 3.0, 5.5]


def test_of_many_networks_those_of_the_first_ranks_are_estimated(agent, chains, monkeypatch):
    monkeypatch.setattr(front, "MOST", 3)
    every = chains.every()
    history = noisy(every, spread=0.01)
    models = models_of(agent, history)
    ours = estimate_front(history, models.fitted, posterior=True)
    whole = points(history)[1].reshape(8, 3, 3).mean(axis=1)
    left = list(range(8))
    ranked = []
    while left:
        best = [at for at in left if not any(dominates(whole[other], whole[at]) for other in left)]
        left = [at for at in left if at not in best]
        ranked = [*ranked, *best]

    expected = [every[at] for at in sorted(ranked[:3])]
    assert (ours.scores[:, 2] == -units(expected)).all()
    assert ours.scores[:, 0] == pytest.approx(
        models.fitted[0].posterior([one.functional for one in expected]).in_scores().mean
    )
    assert (ours.reference == reference_point(whole)).all()


def test_a_training_that_went_wrong_does_not_move_the_reference_point():
    rng = np.random.default_rng(0)
    usual = np.stack([-rng.uniform(0.4, 0.9, 20), -rng.uniform(1.0, 30.0, 20)], axis=1)
    expected = usual.min(axis=0) - 0.1 * np.ptp(usual, axis=0)
    assert reference_point(usual).tolist() == expected.tolist()
    for diverged in ([-1000.0, -12.0], [-1000.0, 0.0]):
        reference = reference_point(np.vstack([usual, diverged]))
        assert reference[0] == expected[0]
        assert reference[1] == pytest.approx(expected[1], abs=0.3)

    # Of values of which most are equal, none is an outlier; nor is the end of a long tail.
    assert reference_point(np.array([[1.0], [1.0], [1.0], [1.0], [0.0]]))[0] == pytest.approx(-0.1)
    tail = -np.exp(np.linspace(0.0, 3.0, 20))[:, None]
    assert reference_point(tail)[0] == pytest.approx(tail.min() - 0.1 * np.ptp(tail))
    assert reference_point(np.array([[2.0, 3.0]])).tolist() == pytest.approx([1.9, 2.9])


def dominates(one, other):
    return (one >= other).all() and (one > other).any()
