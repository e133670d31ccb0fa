"""Known variances of scores: every surrogate with a likelihood weights the scores by them."""

from __future__ import annotations

import numpy as np
import pytest

from archive.agents.surrogates.gp.coregionalised import CoregionalisedGP
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.agents.surrogates.gp.marginal_likelihood import MarginalLikelihood
from archive.agents.surrogates.outcome_transforms import LogRegret, Standardise
from archive.agents.surrogates.stacking import StackedGP
from archive.agents.surrogates.transformed import OutcomeTransformed, SourceResidual
from archive.agents.transfer.pooled import PooledSurrogate
from archive.kernels.covariance.base import exponential
from tests.support.gp_points import Differences, points, smooth
from tests.support.source_models import source_model


def process(transform="standardise"):
    return DistanceGP(
        Differences(), exponential(3), MarginalLikelihood(starts=1), transform=transform
    )


def pooled():
    networks = points(4, seed=5)
    return PooledSurrogate(
        process("none"),
        tuple(networks),
        Standardise().learn(smooth(networks)).standardise(smooth(networks)),
    )


@pytest.mark.parametrize(
    "make",
    [
        process,
        lambda: process("log-regret"),
        lambda: StackedGP([process(), process("log-regret")]),
        lambda: OutcomeTransformed(process("none"), LogRegret()),
        lambda: CoregionalisedGP(source_model(), "standardise"),
        lambda: SourceResidual(process("none"), Standardise(), [source_model()]),
        pooled,
    ],
    ids=["gp", "log-regret", "stacked", "transformed", "coregionalised", "residual", "pooled"],
)
def test_a_score_of_a_large_variance_is_hardly_used(make):
    networks = points(20)
    rng = np.random.default_rng
    scores = smooth(networks, noise=0.02)
    wrong = scores.copy()
    wrong[3] -= 2.0
    surrogate = make()
    variances = np.zeros(20)
    variances[3] = 4.0
    true, told, trusted = (
        surrogate.fit(networks, values, rng(0), known).posterior(networks[3:4]).in_scores().mean[0]
        for values, known in ((scores, None), (wrong, variances), (wrong, None))
    )
    assert abs(told - true) < 0.6 * abs(trusted - true)


def test_variances_of_zero_change_nothing():
    networks = points(12)
    scores = smooth(networks)
    for surrogate in (process("log-regret"), StackedGP([process(), process("log-regret")])):
        one, two = (
            surrogate.fit(networks, scores, np.random.default_rng(0), each)
            for each in (None, np.zeros(12))
        )
        np.testing.assert_array_equal(one.posterior(networks).means, two.posterior(networks).means)
