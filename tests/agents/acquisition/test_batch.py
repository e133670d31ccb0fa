"""Batch selection on Gaussian posteriors that are known exactly."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest

from archive.agents.acquisition import batch
from archive.agents.acquisition.batch import (
    GpBucb,
    KDpp,
    KrigingBeliever,
    QualityKDpp,
    Thompson,
    Top,
)
from archive.agents.acquisition.functions import log_h
from archive.agents.surrogates.base import Feasibility, Fitted, Posterior
from archive.errors import UnknownNameError, UsageError
from archive.kernels.covariance.dpp import KDPP


@dataclass(frozen=True)
class Known(Fitted):
    """A Gaussian over numbered candidates; `hallucinate` conditions it without noise."""

    means: np.ndarray
    covariance: np.ndarray
    best: float = 0.0

    def posterior(self, architectures, *, joint=False):
        at = np.asarray(architectures, dtype=int)
        covariance = self.covariance[np.ix_(at, at)]
        variances = np.clip(np.diagonal(covariance), 0.0, None)
        return Posterior(
            self.means[None, at],
            variances[None],
            np.array([self.best]),
            covariance[None] if joint else None,
        )

    def hallucinate(self, architectures):
        at = np.asarray(architectures, dtype=int)
        gain = self.covariance[:, at] @ np.linalg.pinv(self.covariance[np.ix_(at, at)])
        best = max(self.best, self.means[at].max())
        return Known(self.means, self.covariance - gain @ self.covariance[at], best)


@dataclass(frozen=True)
class Bounded(Known):
    """The same under constraints."""

    feasibility: Feasibility | None = None

    def posterior(self, architectures, *, joint=False):
        return replace(super().posterior(architectures, joint=joint), feasibility=self.feasibility)


# Candidates 0 and 1 are nearly equal; 2 and 3 are independent of them, and worse.
MEANS = np.array([1.0, 0.99, 0.9, -5.0])
TWINS = np.array([[1.0, 0.99, 0, 0], [0.99, 1.0, 0, 0], [0, 0, 1.0, 0], [0, 0, 0, 0.01]])
EVERY = [batch.get(name) for name in batch.names()]


def select(rule, count=2, means=MEANS, covariance=TWINS, seed=0, best=0.0):
    known = Known(np.asarray(means, dtype=float), np.asarray(covariance, dtype=float), best)
    return rule.select(known, range(len(means)), count, np.random.default_rng(seed))


@pytest.mark.parametrize("rule", EVERY, ids=lambda rule: rule.name)
def test_contract(rule):
    rng = np.random.default_rng(3)
    factor = rng.normal(size=(30, 4))
    for count in (1, 7, 29):
        chosen = select(rule, count, rng.normal(size=30), factor @ factor.T, seed=count)
        assert len(chosen) == len(set(chosen)) == count
        assert all(type(at) is int and 0 <= at < 30 for at in chosen)

    assert select(rule, 4) == [0, 1, 2, 3] == select(rule, 9)
    assert select(rule, 3, [], np.zeros((0, 0))) == []
    assert select(rule, 2, seed=5) == select(rule, 2, seed=5)
    with pytest.raises(UsageError, match="count must be >= 1, got 0"):
        select(rule, 0)


@pytest.mark.parametrize("rule", EVERY, ids=lambda rule: rule.name)
def test_candidates_that_are_certain_and_equal(rule):
    chosen = select(rule, 3, np.zeros(5), np.zeros((5, 5)))
    assert len(set(chosen)) == 3


def test_top_takes_twins_and_a_believer_does_not():
    assert select(Top("ucb")) == [0, 1]
    assert select(KrigingBeliever("ucb")) == [0, 2]
    assert select(KrigingBeliever("ei"), best=1.0) == [0, 2]
    assert select(GpBucb(kappa=2.0)) == [0, 2]
    # Without weight on the uncertainty only the mean counts.
    assert select(GpBucb(kappa=0.0), 3) == [0, 1, 2]


def test_thompson_takes_the_best_of_each_sample():
    firsts = Counter(
        select(Thompson(), 1, [0.0, 0.0, 1.0], np.eye(3), seed)[0] for seed in range(600)
    )
    # P(2 beats both): by simulation 0.5989 +- 0.0005.
    assert firsts[2] / 600 == pytest.approx(0.599, abs=0.06)
    # Twins rarely both win a sample of two before 2 does.
    assert select(Thompson(), 2, [0.0, 5.0, 9.0], 1e-6 * np.eye(3)) == [2, 1]


DRAWS = 900


def check_probabilities(rule, process, means, covariance, best=0.0):
    """Pairs must come as often as the process says, by four standard errors of a frequency."""
    counts = Counter(
        tuple(sorted(select(rule, 2, means, covariance, seed, best))) for seed in range(DRAWS)
    )
    for pair in ((0, 1), (0, 2), (1, 2)):
        probability = float(np.exp(process.log_probability(pair)))
        error = np.sqrt(probability * (1.0 - probability) / DRAWS)
        assert counts[pair] / DRAWS == pytest.approx(probability, abs=4.0 * error)


def test_kdpp_follows_the_covariance_alone():
    covariance = np.array([[1.0, 0.8, 0.1], [0.8, 1.0, 0.3], [0.1, 0.3, 0.5]])
    check_probabilities(KDpp(), KDPP(covariance, 2), [9.0, 0.0, -9.0], covariance)


@pytest.mark.parametrize("weight", [0.0, 2.0])
def test_quality_follows_equation_12(weight):
    covariance = np.array([[1.0, 0.8, 0.1], [0.8, 1.0, 0.3], [0.1, 0.3, 0.5]])
    means = np.array([0.3, 0.1, 0.9])
    quality = np.exp(weight * means / means.std())
    process = KDPP(quality[:, None] * covariance * quality, 2)
    check_probabilities(QualityKDpp(weight=weight), process, means, covariance)


def test_quality_may_be_an_acquisition():
    # Expected improvement over 5: s h(z) with z = mu - 5.
    means = np.array([4.0, 5.0, 6.0])
    log_quality = log_h(means - 5.0)
    process = KDPP(np.diag(np.exp(2 * log_quality)), 2)
    check_probabilities(QualityKDpp("ei"), process, means, np.eye(3), best=5.0)


def test_unit_of_the_scores_does_not_matter():
    rng = np.random.default_rng(1)
    factor = rng.normal(size=(20, 20))
    means = rng.normal(size=20)
    for name in ("kdpp", "quality-kdpp"):
        percent = select(batch.get(name), 5, 100 * means, 1e4 * factor @ factor.T)
        assert percent == select(batch.get(name), 5, means, factor @ factor.T)


def test_members_of_a_mixture_count_together():
    class Mixture(Known):
        def posterior(self, architectures, *, joint=False):
            zero = np.zeros((2, 3, 3)) if joint else None
            means = np.array([[0.0, 0.0, 0.0], [2.0, 2.0, -1.0]])
            return Posterior(means, np.zeros((2, 3)), np.zeros(2), zero)

    # The disagreement of the members is the same on the first two candidates, and different on the
    # third.
    chosen = [
        KDpp().select(Mixture(MEANS, TWINS), range(3), 1, np.random.default_rng(s))[0]
        for s in range(600)
    ]
    assert chosen.count(2) / 600 == pytest.approx(0.25 / 2.25, abs=0.05)


def test_hopeless_candidates_still_fill_a_batch():
    # z^2 overflows, so that the logarithm of EI is -inf.
    for weight in (0.0, 1.0):
        chosen = select(QualityKDpp("ei", weight), 3, np.full(6, -1e5), np.zeros((6, 6)), best=1.0)
        assert len(set(chosen)) == 3
        # Only the last candidate has a positive quality: it is almost surely selected.
        chosen = select(
            QualityKDpp("ei", weight), 3, [-1e5] * 5 + [2.0], np.diag([0.0] * 5 + [1.0]), best=1.0
        )
        assert len(set(chosen)) == 3 and 5 in chosen


def test_names_and_settings():
    assert batch.get("bucb", kappa=0.5).kappa == 0.5
    with pytest.raises(UnknownNameError, match="unknown batch selection 'kdp'"):
        batch.get("kdp")

    with pytest.raises(UnknownNameError, match="unknown acquisition"):
        Top("greedy")

    with pytest.raises(UsageError, match="weight must be >= 0 and finite, got -1"):
        QualityKDpp(weight=-1.0)

    with pytest.raises(UsageError, match="kappa must be >= 0"):
        GpBucb(-1.0)


@pytest.mark.parametrize("incumbent", [True, False])
@pytest.mark.parametrize("rule", [KDpp(), QualityKDpp()], ids=lambda rule: rule.name)
def test_under_constraints_each_network_of_a_diverse_batch_counts_by_its_feasibility(
    rule, incumbent
):
    covariance = np.array([[1.0, 0.8, 0.1], [0.8, 1.0, 0.3], [0.1, 0.3, 0.5]])
    means = np.array([0.3, 0.1, 0.9])
    feasible = np.array([0.9, 0.5, 0.05])
    by_mean = isinstance(rule, QualityKDpp) and incumbent
    factor = np.sqrt(feasible) * (np.exp(means / means.std()) if by_mean else 1.0)
    process = KDPP(factor[:, None] * covariance * factor, 2)
    counts = Counter()
    for seed in range(DRAWS):
        known = Bounded(
            means, covariance, feasibility=Feasibility(np.log(feasible), -5.0, incumbent)
        )
        counts[tuple(sorted(rule.select(known, range(3), 2, np.random.default_rng(seed))))] += 1

    for pair in ((0, 1), (0, 2), (1, 2)):
        probability = float(np.exp(process.log_probability(pair)))
        error = np.sqrt(probability * (1.0 - probability) / DRAWS)
        assert counts[pair] / DRAWS == pytest.approx(probability, abs=4.0 * error)
