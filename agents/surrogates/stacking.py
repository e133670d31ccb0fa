"""Several surrogates that learn the same scores, each heard by how well it foretells them.

    symbol   meaning                                                                      shape
    K, n     members; observed architectures                                              scalars
    y        their values, as a member sees them; of replicates the mean                  (n,)
    B, a     covariance of the values with noise; B^-1 y                                  (n, n), (n,)
    m_i,v_i  mean and variance of y_i given all the others                                (n,)
    l_ik     log p_k(y_i | the others)                                                    (n, K)
    w        shares, of sum 1                                                             (K,)
    c        evaluations that each member is taken to have loo_log_densities before there are any  scalar

    m_i = y_i - a_i / (B^-1)_ii,  v_i = 1 / (B^-1)_ii            Rasmussen & Williams, 2006, eqs. (5.10) to (5.12)
    w   = argmax sum_i log sum_k w_k exp(l_ik) + c sum_k log w_k  Yao, Vehtari, Simpson, Gelman, 2018, eq. (4)

Stacking of predictive distributions asks for the mixture that foretells best, not for the member that does: where two
are right about different architectures, both are heard; of two that say the same, together no more than one. Of twenty
evaluations it would still trust one member alone, by luck: so w is the most probable under a Dirichlet prior, which is
soon outweighed. The objective is concave, and expectation maximisation climbs it.

Hyperparameters are those that all observations made most probable, with none left out: learning them n times more
would cost n times as much. Members may transform scores each in its own way: l is the density of the scores, that of
the values times dy/dscore.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from archive.agents.surrogates.base import Array, Fitted, Posterior, Surrogate
from archive.agents.surrogates.gp.coregionalised import CoregionalisedGP, FittedCoregionalisedGP
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.agents.surrogates.gp.fitted import FittedGP
from archive.architecture.graph import Architecture
from archive.errors import UsageError

Member = DistanceGP | CoregionalisedGP
FittedMember = FittedGP | FittedCoregionalisedGP

# A member of a smaller share changes no decision, and costs as much as any other.
LEAST_SHARE = 0.01
# Steps of expectation maximisation, and the change of the shares at which it stops.
MOST_STEPS = 2000
SMALLEST_STEP = 1e-6


@final
class StackedGP(Surrogate):
    """Gaussian processes on different distances, or of differently transformed scores, mixed by stacking.

    Expected improvements add up where all transforms leave scores above the best as they are.

    Args:
        members: One or more.
        prior: c, at least 0.

    Raises:
        UsageError: There are no members, or the prior is negative.
    """

    def __init__(self, members: Sequence[Member], prior: float = 1.0) -> None:
        """Check the arguments."""
        self.members, self.prior = tuple(members), prior
        if not self.members:
            raise UsageError("a committee needs one or more members, got none")
        if not 0.0 <= prior < np.inf:
            raise UsageError(f"prior must be >= 0 and finite, got {prior}")

    def fit(self, architectures: Sequence[Architecture], scores: Array, rng: np.random.Generator) -> FittedStackedGP:
        """See `Surrogate.fit`."""
        fitted = tuple(member.fit(architectures, scores, rng) for member in self.members)
        return FittedStackedGP.keep_weighty(fitted, stacking_weights(loo_log_densities(fitted, scores), self.prior))


@final
@dataclass(frozen=True, eq=False)
class FittedStackedGP(Fitted):
    """What the members have learnt.

    Attributes:
        members: Those whose share is at least `LEAST_SHARE`.
        weights: (S,) float64, the share of every set of hyperparameters of every one of them, of sum 1.
        shares: (K,) float64: w, of all members.
    """

    members: tuple[FittedMember, ...]
    weights: Array
    shares: Array

    @classmethod
    def keep_weighty(cls, members: Sequence[FittedMember], shares: Array) -> FittedStackedGP:
        """Return the members that are heard; the others' shares go to these."""
        kept = np.flatnonzero(shares >= min(LEAST_SHARE, float(shares.max()))).tolist()
        chosen = tuple(members[at] for at in kept)
        weights = np.concatenate([np.full(members[at].sets, shares[at] / members[at].sets) for at in kept])
        return cls(chosen, weights / weights.sum(), shares)

    def posterior(self, architectures: Sequence[Architecture], *, joint: bool = False) -> Posterior:
        """See `Fitted.posterior`."""
        parts = [member.posterior(architectures, joint=joint) for member in self.members]
        covariances = [part.covariances for part in parts if part.covariances is not None]
        return Posterior(
            means=np.concatenate([part.means for part in parts]),
            variances=np.concatenate([part.variances for part in parts]),
            best=np.concatenate([part.best for part in parts]),
            covariances=np.concatenate(covariances) if joint else None,
            weights=self.weights,
            scales=tuple(scale for part in parts for scale in part.scales),
        )

    def task_correlations(self) -> Mapping[str, float]:
        """See `Fitted.task_correlations`: rho of the members that a study helps, by their shares."""
        found: dict[str, float] = {}
        at = 0
        for member in self.members:
            share = float(self.weights[at : at + member.sets].sum())
            at += member.sets
            if isinstance(member, FittedCoregionalisedGP):
                for study in member.source_model.studies:
                    found[study] = found.get(study, 0.0) + share * member.rho
        return found

    def hallucinate(self, architectures: Sequence[Architecture]) -> FittedStackedGP:
        """See `Fitted.hallucinate`. Each member believes in its own mean."""
        return replace(self, members=tuple(member.hallucinate(architectures) for member in self.members))


def loo_log_densities(members: Sequence[FittedMember], scores: Array) -> Array:
    """Return l: (n, K) float64. Sets of hyperparameters of one member are a mixture.

    Args:
        members: What they have learnt.
        scores: All that was observed; repeats count at the first.
    """
    columns = []
    for member in members:
        slopes = member.scale.log_slopes(scores)[member.observations.first]
        columns.append(member.loo_log_densities() + slopes)
    return np.stack(columns, axis=1)


def stacking_weights(likelihoods: Array, prior: float = 1.0) -> Array:
    """Return w: (K,) float64.

    Args:
        likelihoods: (n, K) float64, finite: l.
        prior: c, at least 0.
    """
    n, count = likelihoods.shape
    weights = np.full(count, 1.0 / count)
    # One step from equal shares shows the way; without evaluations and prior there is none.
    if n + prior == 0:
        return weights
    scaled = np.exp(likelihoods - likelihoods.max(axis=1, keepdims=True))
    for _ in range(MOST_STEPS):
        heard = scaled * weights
        heard /= np.maximum(heard.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        found = (heard.sum(axis=0) + prior) / (n + count * prior)
        moved = float(np.abs(found - weights).max())
        weights = found
        if moved < SMALLEST_STEP:
            break
    return weights
