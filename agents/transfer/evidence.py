"""Evidence that a source predicts the evaluations of a study: a Bayes factor of their correlation.

| symbol | meaning                                                                   | shape  |
|--------|---------------------------------------------------------------------------|--------|
| y      | scores of the study's own evaluations, standardised                       | (n,)   |
| rho    | correlation of the two tasks (`surrogates.gp.coregionalised`)             | scalar |
| k, w_k | models of the source, one for each kernel; their stacking weights         | (K,)   |
| E      | log sum_k w_k p(y | k, rho != 0) - log sum_k w_k p(y | k, rho = 0)        | nats   |

Both likelihoods are marginal: over the grids of correlations and of noise levels, with their prior
probabilities. A source takes part where E >= `LEAST_NATS`. There is no evidence before `FIRST`
evaluations. If rho is more probably negative than positive, the source is `reversed`: models of its
negated scores replace its own.

The evidence uses standardised scores. The models' transform `log-regret` spreads the best scores,
of which there are few; with it, unrelated sources have evidence by chance more often. The Bayes
factor separates sources better than the leave-one-out density of the stacked models. Measurements:
docs/benchmarks-log.md, `python docs/scripts/evidence.py`.
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
from archive.agents.observations import scores_of
from archive.agents.surrogates.base import Array
from archive.agents.surrogates.gp.coregionalised import CoregionalisedGP, LogLikelihoods
from archive.agents.transfer.source_model import SourceGP
from archive.architecture.networks import architectures_of, functional_forms
from archive.errors import NumericalError

FIRST = 5
"""Least number of evaluations for evidence."""

TRANSFORM = "standardise"
"""Outcome transform of the scores, with noise, too."""

LEAST_NATS = 1.0
"""Least evidence for a source that takes part."""

MOST_VERDICTS = 64
"""Number of cached results of the comparison with sources."""


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
            while len(self._cache) > MOST_VERDICTS:
                self._cache.popitem(last=False)

            return self._cache[key]

    def _verdict(self, models: Sequence[SourceGP], observations: Sequence[Observation]) -> Verdict:
        """Return the evidence, not cached."""
        scores = scores_of(observations)
        if scores.max() <= scores.min():
            return NONE

        networks = functional_forms(architectures_of(observations))
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
        nats = total.correlated - total.uncorrelated
        # Reversed if p(rho < 0 | y, rho != 0) > 1/2.
        return Verdict(nats, total.reversed > total.correlated - math.log(2.0))
