"""Evidence for a source: the Bayes factor of a correlation of its task with the study's.

| symbol | meaning                                                                                 | shape  |
|--------|-----------------------------------------------------------------------------------------|--------|
| y      | scores of the study's own evaluations, standardised                                     | (n,)   |
| rho    | correlation of the two tasks (`surrogates.gp.coregionalised`)                           | scalar |
| k, w_k | models of the source, one for each kernel; their stacking weights                       | (K,)   |
| E      | log sum_k w_k p(y | k, rho != 0) - log sum_k w_k p(y | k, rho = 0)                      | nats   |

Both likelihoods are marginal: over the grids of correlations and of noise levels, with their prior
probabilities. A source takes part where E >= `LEAST_NATS`. There is no evidence before `FIRST`
evaluations. If rho is more probably negative than positive, the source is `reversed`: models of its
negated scores replace its own.

A source without evidence changes no proposal. Networks that a source recommends before there is
evidence are mostly better than an initial design. But if the source tells bad networks from good
ones and not which of the good ones is best, they delay the study's own search.

The scores are standardised, not transformed by the models' `log-regret`. Few scores are near the
best one, where `log-regret` resolves most: unrelated sources have evidence by chance more often,
and related ones have it later. Evidence under both transforms delays related sources as well.
Without it, sources are hardly more behind a cold start than a cold start with other draws is
(docs/benchmarks-log.md).

The Bayes factor tells sources apart better than the leave-one-out density of the stacked models
does. After ten evaluations of TransNAS-Bench-101, E has a median of 4.4 nats from scene to object
classification with 200 evaluations of the source (gain of the leave-one-out density: 2.8), and of
-3.6 from scene classification to autoencoding (0.3): `python docs/scripts/evidence.py`.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from threading import Lock
from typing import NamedTuple, final

import numpy as np
from scipy.special import logsumexp

from archive.agents.base import Observation
from archive.agents.surrogates.base import Array
from archive.agents.surrogates.gp.coregionalised import CoregionalisedGP, LogLikelihoods
from archive.agents.transfer.source_model import SourceGP
from archive.errors import NumericalError

FIRST = 5
"""Least number of evaluations."""

TRANSFORM = "standardise"
"""Outcome transform of the scores, with noise, too."""

LEAST_NATS = 1.0
"""Least evidence for a source that takes part."""

MOST = 64
"""Number of cached results."""


class Verdict(NamedTuple):
    """The result of comparing a source with the evaluations of a study.

    Attributes:
        nats: E.
        reversed: Whether rho is more probably negative than positive.
    """

    nats: float
    reversed: bool

    @property
    def suffices(self) -> bool:
        """Whether the source takes part."""
        return self.nats >= LEAST_NATS


NONE = Verdict(0.0, False)


@final
class Evidence:
    """Evidence for sources, cached. Threads may share one.

    Args:
        transform: Outcome transform of the scores.
    """

    def __init__(self, transform: str = TRANSFORM) -> None:
        """Start with an empty cache."""
        self.transform = transform
        self._cache: OrderedDict[Hashable, Verdict] = OrderedDict()
        self._lock = Lock()

    def verdict(self, models: Sequence[SourceGP], observations: Sequence[Observation]) -> Verdict:
        """Return the evidence for a source.

        It is 0 nats for fewer than `FIRST` evaluations, for equal scores, and for scores without a
        finite likelihood.

        Args:
            models: The models of one source, or of several sources of one task, of unchanged
                scores.
            observations: The usable evaluations of the study.
        """
        if len(observations) < FIRST:
            return NONE

        evaluated = []
        for observed in observations:
            evaluated.append((observed.architecture.key, observed.score, observed.variance))

        key = (tuple(evaluated), tuple(models[0].group.contents))
        with self._lock:
            if key not in self._cache:
                self._cache[key] = self._verdict(models, observations)

            self._cache.move_to_end(key)
            while len(self._cache) > MOST:
                self._cache.popitem(last=False)

            return self._cache[key]

    def _verdict(self, models: Sequence[SourceGP], observations: Sequence[Observation]) -> Verdict:
        """Return the evidence, not cached."""
        scores: Array = np.array([observed.score for observed in observations], np.float64)
        if scores.max() <= scores.min():
            return NONE

        networks = [observed.architecture.functional for observed in observations]
        stored: Array = np.array([observed.variance for observed in observations], np.float64)
        variances = stored if stored.any() else None
        # (K, 3)
        likelihoods = []
        try:
            for model in models:
                process = CoregionalisedGP(model, self.transform)
                likelihoods.append(process.log_likelihoods(networks, scores, variances))
        except NumericalError:
            return NONE

        weights = np.array([model.weight for model in models])
        total = LogLikelihoods(*logsumexp(likelihoods, axis=0, b=weights[:, None]).tolist())
        return Verdict(
            total.correlated - total.uncorrelated, total.reversed > total.correlated - math.log(2.0)
        )
