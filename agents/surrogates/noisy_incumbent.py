"""Incumbent of noisy evaluations: the observed network of the greatest posterior mean.

| symbol | meaning                                                              | shape  |
|--------|----------------------------------------------------------------------|--------|
| x_i    | observed networks, and fantasised ones                               | (u,)   |
| mu, s2 | posterior mean and variance of g(score), by member                   | (S, u) |
| eta2   | variance of the noise of an evaluation of g(score), by member        | (S,)   |
| tau    | max_i mu(x_i), by member                                             | (S,)   |
| c      | s2 / sqrt(s2 + eta2), see below                                      | (S, u) |

The greatest of n noisy scores exceeds the true score of its network, the more so the larger n is:
as an incumbent it hides improvements. tau is the plug-in incumbent of Picheny, Wagner, Ginsbourger
(A benchmark of kriging-based infill criteria for noisy optimization, 2013).

One more evaluation of a network changes its posterior mean by a normal variable of standard
deviation c. The expected rise of the greatest posterior mean, through the network's own mean alone,
is the knowledge gradient of independent beliefs (Frazier, Powell, Dayanik: A knowledge-gradient
policy for sequential information collection, 2008):

    another network      c h((mu - tau) / c)                     h of `archive.agents.acquisition.functions`
    an observed one      c h(-|mu - tau'| / c)                   tau': the greatest mean of all others

Both are improvements of the recommendation, in one unit, so that the larger decides between a new
network and a repeat (`repeat_gains`). Without noise, c = s for a new network, the ordinary expected
improvement, and 0 for an observed one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np

from archive.agents.surrogates.base import Array, Fitted, Posterior
from archive.architecture.graph import Architecture
from archive.architecture.networks import network_keys


@final
@dataclass(frozen=True, eq=False)
class NoisyIncumbent(Fitted):
    """A fitted surrogate with the incumbent tau, and with the noise in its posterior.

    Attributes:
        fitted: The surrogate; its `noises` are known.
        networks: x_i, at least one.
    """

    fitted: Fitted
    networks: tuple[Architecture, ...]

    @cached_property
    def observed(self) -> Posterior:
        """The posterior of the networks x_i."""
        inner = self.fitted.posterior(self.networks)
        return replace(inner, best=inner.means.max(axis=1), noises=self.noises())

    def posterior(self, architectures: Sequence[Architecture], *, joint: bool = False) -> Posterior:
        """See `Fitted.posterior`."""
        inner = self.fitted.posterior(architectures, joint=joint)
        return replace(inner, best=self.observed.best, noises=self.noises())

    def hallucinate(self, architectures: Sequence[Architecture]) -> NoisyIncumbent:
        """See `Fitted.hallucinate`."""
        if len(architectures) == 0:
            return self

        keys = set(network_keys(self.networks))
        added = (network for network in architectures if network.key not in keys)
        return NoisyIncumbent(self.fitted.hallucinate(architectures), (*self.networks, *added))

    def noises(self) -> Array | None:
        """See `Fitted.noises`."""
        return self.fitted.noises()

    def task_correlations(self) -> Mapping[str, float]:
        """See `Fitted.task_correlations`."""
        return self.fitted.task_correlations()


def mean_change(variances: Array, noises: Array) -> Array:
    """Return c: (S, m) float64.

    Args:
        variances: (S, m) float64: s2.
        noises: (S,) float64: eta2.
    """
    total = variances + noises[:, None]
    change: Array = np.divide(
        variances, np.sqrt(total), out=np.zeros_like(variances), where=total > 0.0
    )
    return change


def rivals(means: Array) -> Array:
    """Return tau' of each network: (S, u) for (S, u) means; -inf for a single network."""
    if means.shape[1] == 1:
        return np.full_like(means, -np.inf)

    first = means.argmax(axis=1)
    second = np.partition(means, -2, axis=1)[:, -2]
    others = np.repeat(means.max(axis=1)[:, None], means.shape[1], axis=1)
    others[np.arange(len(means)), first] = second
    return others
