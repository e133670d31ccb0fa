"""Trust in a proposer: values computed by hand, and what many results make of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from archive.agents.advice.override_trust import LARGEST, Expectation, OverrideTrust


def log_improvement(mean: float, std: float, best: float) -> float:
    u = (mean - best) / std
    return math.log(std * (u * norm.cdf(u) + norm.pdf(u)))


def test_evidence_is_the_normal_posterior_of_the_advantage():
    trust = OverrideTrust()
    assert trust.advantage == (0.0, 1.0)
    trust = trust.with_result(Expectation(10.0, 2.0), 13.0)
    trust = trust.with_result(Expectation(10.0, 2.0), 11.0)
    # z are 1.5 and 0.5: the mean is 2 / 3, the variance 1 / 3.
    assert trust.surprises == (1.5, 0.5)
    assert trust.advantage == pytest.approx((2.0 / 3.0, math.sqrt(1.0 / 3.0)))


def test_one_surprise_is_limited_and_a_certain_prediction_says_nothing():
    trust = OverrideTrust().with_result(Expectation(0.0, 1.0), -1000.0)
    assert trust.surprises == (-LARGEST,)
    assert trust.with_result(Expectation(0.0, 0.0), 5.0) == trust


def test_the_verdict_compares_expected_improvements():
    trust = OverrideTrust((1.0, 1.0))
    verdict = trust.judge(Expectation(4.0, 1.0), Expectation(4.5, 1.0), best=5.0)
    shift = 2.0 / 3.0 + math.sqrt(1.0 / 3.0)
    assert verdict.override == pytest.approx(log_improvement(4.0 + shift, 1.0, 5.0))
    assert verdict.suggestion == pytest.approx(log_improvement(4.5, 1.0, 5.0))
    assert verdict.accepted and verdict.results == 2
    assert not trust.judge(Expectation(2.0, 1.0), Expectation(4.5, 1.0), best=5.0).accepted


def test_where_the_model_is_certain_a_proposer_has_nothing_to_add():
    believed = OverrideTrust((3.0,) * 20)
    certain = Expectation(4.0, 1e-6)
    assert not believed.judge(certain, Expectation(4.5, 0.5), best=5.0).accepted


@pytest.mark.parametrize(("surprise", "accepted"), [(-1.0, False), (1.0, True)])
def test_results_decide_about_equal_predictions(surprise, accepted):
    # The suggestion promises a little more than the override by itself.
    override = Expectation(4.0, 1.0)
    suggestion = Expectation(4.2, 1.0)
    trust = OverrideTrust()
    assert trust.judge(override, suggestion, best=5.0).accepted
    for _ in range(3):
        trust = trust.with_result(override, override.mean + surprise)

    assert trust.judge(override, suggestion, best=5.0).accepted is accepted


def test_a_wrong_proposer_costs_few_evaluations():
    rng = np.random.default_rng(0)
    trust = OverrideTrust()
    taken = 0
    for _ in range(30):
        override = Expectation(float(rng.normal(4.0, 0.5)), 1.0)
        suggestion = Expectation(4.5, 1.0)
        if trust.judge(override, suggestion, best=5.0).accepted:
            taken += 1
            trust = trust.with_result(override, float(rng.normal(override.mean - 1.0, 1.0)))

    assert taken <= 6
