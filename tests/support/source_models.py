"""Models of a source task on points, to transfer from."""

from __future__ import annotations

import numpy as np

from archive.agents.base import SourceStudy
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.agents.surrogates.gp.marginal_likelihood import MarginalLikelihood
from archive.agents.transfer.source_model import SourceGP, SourceGroup
from archive.kernels.covariance.base import exponential
from tests.support.gp_points import Differences, points, smooth


def source_model(count=25, everywhere=(), sign=1.0):
    networks = points(count, seed=7)
    learner = DistanceGP(Differences(), exponential(3), MarginalLikelihood(starts=1))
    fitted = learner.fit(networks, sign * smooth(networks, noise=0.02), np.random.default_rng(0))
    return SourceGP(
        SourceGroup((SourceStudy("s", "t", "t/1", "points", ()),)), fitted, 1.0, False, everywhere
    )
