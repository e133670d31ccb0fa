"""Probability of feasibility: against the closed form, in acquisitions and hypervolumes, and
penalised scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from archive import agents
from archive.agents.acquisition import functions
from archive.agents.base import History
from archive.agents.baselines import nsga2, optuna_samplers
from archive.agents.constraints.feasibility import SlackModels, add_feasibility
from archive.agents.constraints.slacks import StudyConstraints, adapt, penalise
from archive.agents.objectives.front import estimate_front
from archive.agents.objectives.goals import Goals
from archive.agents.objectives.selection import ObjectiveModels
from archive.agents.surrogates.base import Feasibility, Posterior
from archive.constraints import parse
from archive.store.records import Objective
from tests.support.histories import observed, units

RNG = np.random.default_rng
LATENCY = StudyConstraints((parse("latency_ms<=40"),))


@pytest.fixture
def agent(chains, monkeypatch):
    # Every network of the space is a candidate.
    monkeypatch.setattr(type(chains), "members", lambda self: self.every())
    return agents.get("gp", chains, n_initial=3, candidates="members", kernel="topology")


def told(networks, latencies, constraints=LATENCY):
    """Larger networks are better; None is a latency that was not measured."""
    seen = observed(networks, np.log(units(networks)))
    measured = [np.nan if each is None else float(each) for each in latencies]
    return History(
        tuple(replace(one, measured=(at,)) for one, at in zip(seen, measured, strict=True)),
        constraints=constraints,
    )


def test_slacks_and_violations_have_known_and_measured_quantities(chains):
    every = chains.every()
    limits = StudyConstraints((parse("units>=16"), parse("latency_ms<40")), {"units": units})
    history = told(every[:3], [40.0, 10.0, None], limits)
    assert limits.measured == (1,)
    cost = units(every[:3])
    slacks = limits.slacks(history.observations)
    assert np.array_equal(
        slacks, np.stack([cost - 16, [0.0, 30.0, np.nan]], axis=1), equal_nan=True
    )
    expected = [False, bool(cost[1] >= 16), False]
    assert limits.met(history.observations).tolist() == expected
    assert limits.violations(history.observations)[2] == np.inf


def test_the_probability_is_that_of_the_models_of_the_slacks(agent, chains):
    every = chains.every()
    history = told(every[:9], [*np.linspace(20, 60, 8), None])
    models = SlackModels.fit(agent.slacks, history, RNG(0))
    (fitted,) = models.fitted
    posterior = fitted.posterior([one.functional for one in every])
    weights = np.full(len(posterior.means), 1.0) if posterior.weights is None else posterior.weights
    parts = norm.cdf(posterior.means / np.sqrt(posterior.variances))
    expected = np.average(parts, axis=0, weights=weights)
    assert models.log_probability(every) == pytest.approx(np.log(expected), abs=1e-9)
    known = np.exp(models.log_probability(every[:8]))
    assert known[0] > 0.9 and known[7] < 0.1
    # The network without a measured latency has no part in the fit.
    assert np.isfinite(models.log_probability(every[8:])).all()


def test_the_suggestion_has_the_greatest_product_of_improvement_and_probability(agent, chains):
    every = chains.every()
    history = told(every[:8], np.linspace(20, 60, 8))
    (suggestion,) = agent.propose(history, 1, RNG(0))
    networks = [one.functional for one in every[:8]]
    scores = np.array([seen.score for seen in history.usable])
    rng = RNG(0)
    fitted = agent.method.surrogate.fit(networks, scores, rng)
    model = add_feasibility(fitted, history, networks, agent.slacks, rng)
    rest = [one.functional for one in every[8:]]
    inner = fitted.posterior(rest)
    probability = np.exp(model.slacks.log_probability(rest))
    met = [one for one, good in zip(networks, LATENCY.met(history.usable), strict=True) if good]
    tau = fitted.posterior(met).means.max(axis=1)
    assert 0 < len(met) < 8 and (tau < inner.best).all()
    gains = (
        np.exp(functions.ExpectedImprovement().rank(replace(inner, best=tau), rng)) * probability
    )
    assert suggestion.architecture == every[8 + int(np.argmax(gains))]
    assert suggestion.acquisition == pytest.approx(gains.max())


def test_before_a_feasible_result_the_probability_alone_is_maximised(agent, chains):
    every = chains.every()
    history = told(every[:8], np.linspace(90, 50, 8))
    (suggestion,) = agent.propose(history, 1, RNG(0))
    rng = RNG(0)
    agent.method.surrogate.fit([one.functional for one in every[:8]], np.arange(8.0), rng)
    chances = SlackModels.fit(agent.slacks, history, rng).log_probability(every[8:])
    assert suggestion.architecture == every[8 + int(np.argmax(chances))]
    assert suggestion.acquisition == pytest.approx(np.exp(chances.max()))


def test_hypervolume_counts_feasible_results_and_probable_networks(agent, chains):
    every = chains.every()
    goals = Goals((Objective("accuracy"), Objective("units", "minimise")), {"units": units})
    free = replace(told(every[:8], np.linspace(20, 30, 8)), goals=goals)
    tight = replace(told(every[:8], np.linspace(20, 60, 8)), goals=goals)
    none = replace(told(every[:8], np.linspace(90, 50, 8)), goals=goals)
    (one,), (other,), (nearest,) = (agent.propose(each, 1, RNG(0)) for each in (free, tight, none))
    assert one.acquisition > 0.0 and other.acquisition > 0.0
    assert one.acquisition != other.acquisition
    models = SlackModels.fit(agent.slacks, none, RNG(0))
    chances = np.exp(models.log_probability(every[8:]))
    assert nearest.acquisition <= 1.0
    assert np.exp(models.log_probability([nearest.architecture]))[0] == pytest.approx(
        chances.max(), rel=0.05
    )
    two = agent.propose(tight, 2, RNG(0))
    assert two[0] == other and two[1].architecture != other.architecture


def test_acquisitions_that_are_no_logarithms_keep_their_order_below_the_floor():
    posterior = Posterior(np.array([[1.0, 2.0, -1.0, 2.0]]), np.zeros((1, 4)), np.array([1.5]))
    chance = np.log([1.0, 0.25, 0.5, 1e-300])
    ranks = functions.UpperConfidenceBound().rank(
        replace(posterior, feasibility=Feasibility(chance, 0.0, True)), RNG(0)
    )
    assert ranks == pytest.approx([1.0, 0.5, -1.0, 0.0], abs=1e-12)
    searching = replace(posterior, feasibility=Feasibility(chance, 0.0, False))
    assert functions.UpperConfidenceBound().rank(searching, RNG(0)) == pytest.approx(
        [1.0, 0.25, 0.5, 0.0]
    )
    assert (functions.ExpectedImprovement().rank(searching, RNG(0)) == chance).all()


def test_penalised_scores_put_feasible_results_first_and_the_others_by_their_violation():
    scores = np.array([[5.0], [1.0], [9.0], [7.0], [3.0]])
    violations = np.array([0.0, 0.0, 0.5, np.inf, 0.1])
    assert penalise(scores, violations)[:, 0].argsort().tolist() == [3, 2, 4, 1, 0]
    assert penalise(scores, violations)[:, 0].min() >= 1.0 - 4.0 * 1.1
    assert penalise(scores, violations[2:].repeat(2)[:5] + 1.0)[:, 0].max() < 0.0
    assert penalise(scores, np.zeros(5)) is scores


def test_agents_without_models_see_penalised_scores_and_failures_stay(chains):
    history = told(chains.every()[:4], [20, 50, 60, 30])
    failed = replace(history.observations[0], id="failed", score=float("nan"))
    history = replace(history, observations=(*history.observations, failed))
    evolution = agents.get("evolution", chains)
    portfolio = agents.get("portfolio", chains)
    assert adapt(portfolio, history) is history
    seen = adapt(evolution, history)
    assert seen.known.keys() == history.known.keys() and len(seen.usable) == 4
    scores = [one.score for one in seen.usable]
    assert scores[0] == history.usable[0].score and scores[3] == history.usable[3].score
    assert scores[2] < scores[1] < min(scores[0], scores[3])


def test_nsga2_ranks_feasible_results_before_better_ones(chains):
    history = told(chains.every()[:6], [20, 30, 50, 60, 70, 80])
    population = nsga2.Nsga2(chains)._population(history)
    assert [one.key for one in population[2:]] == [
        seen.architecture.key for seen in history.usable[2:]
    ]
    assert {one.key for one in population[:2]} == {
        seen.architecture.key for seen in history.usable[:2]
    }


def test_samplers_of_optuna_get_the_constraints(chains):
    agent = agents.get("tpe", chains)
    history = told(chains.every()[:3], [20, 50, None])
    with optuna_samplers._quiet(agent._optuna):
        trials = agent._study(history, 0).trials

    assert [trial.system_attrs["constraints"] for trial in trials] == [[-0.5], [0.25]]


def test_constraints_that_no_result_tells_of_change_no_suggestion(agent, chains):
    every = chains.every()
    history = told(every[:9], [None] * 9)
    assert agent.propose(history, 2, RNG(0)) == agent.propose(
        replace(history, constraints=None), 2, RNG(0)
    )


def test_where_no_result_tells_of_constraints_any_volume_is_an_improvement(agent, chains):
    every = chains.every()
    goals = Goals((Objective("accuracy"), Objective("units", "minimise")), {"units": units})
    history = replace(told(every[:9], [None] * 9), goals=goals)
    (first,) = agent.propose(history, 1, RNG(0))
    models = ObjectiveModels.fit(agent.method, agent.slacks, history, goals, RNG(0))
    front, reference = estimate_front(history, models.fitted, posterior=True)
    assert not len(front)
    assert (
        first.architecture == every[9 + int(np.argmax(models.ranking(front, reference)(every[9:])))]
    )
