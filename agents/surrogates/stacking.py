"""Stacking of Gaussian processes by leave-one-out (LOO) predictive density.

    symbol   meaning                                                                      shape
    K, n     members; observed architectures                                              scalars
    y        observed values as transformed by a member; replicates averaged              (n,)
    B, a     covariance of the values with noise; B^-1 y                                  (n, n), (n,)
    m_i,v_i  LOO mean and variance of y_i                                                 (n,)
    l_ik     LOO log predictive density, log p_k(y_i | the others)                        (n, K)
    w        stacking weights, of sum 1                                                   (K,)
    c        prior count: pseudo-evaluations of each member                               scalar

    m_i = y_i - a_i / (B^-1)_ii,  v_i = 1 / (B^-1)_ii            Rasmussen & Williams, 2006, eqs. (5.10) to (5.12)
    w   = argmax sum_i log sum_k w_k exp(l_ik) + c sum_k log w_k  Yao, Vehtari, Simpson, Gelman, 2018, eq. (4)

Stacking optimises the LOO log density of the mixture instead of selecting one model: complementary
models share the weight, redundant ones split it. With some twenty evaluations the optimum often
degenerates to one model by chance, so w is a maximum a posteriori under a Dirichlet(1 + c) prior,
which more evaluations soon outweigh. The objective is concave, and expectation maximisation (EM)
climbs it.

Hyperparameters are fitted once to all observations, with none left out: n further fits would cost n
times as much. Members may use different outcome transforms: l is the density of the scores, which
is the density of the transformed values times dy/dscore.
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
from archive.agents.surrogates.outcome_transforms import Scale
from archive.architecture.graph import Architecture
from archive.architecture.networks import take
from archive.errors import UsageError

Member = DistanceGP | CoregionalisedGP
FittedMember = FittedGP | FittedCoregionalisedGP

LEAST_WEIGHT = 0.01
"""Least weight of a member that is kept: one of smaller weight changes no decision, and costs as
much as any other."""
MOST_STEPS = 2000
"""Limit of EM steps."""
SMALLEST_STEP = 1e-6
"""Change of the weights below which EM stops."""


@final
class StackedGP(Surrogate):
    """Gaussian processes with different distances or outcome transforms, mixed by stacking.

    Expected improvements of the members can be averaged where every transform is the identity above
    the incumbent.

    Args:
        members: One or more.
        prior: c, at least 0.

    Raises:
        UsageError: There are no members, or the prior is negative.
    """

    def __init__(self, members: Sequence[Member], prior: float = 1.0) -> None:
        self.members = tuple(members)
        self.prior = prior
        if not self.members:
            raise UsageError("a stacked GP needs one or more members, got none")

        if not 0.0 <= prior < np.inf:
            raise UsageError(f"prior must be >= 0 and finite, got {prior}")

    def fit(
        self,
        architectures: Sequence[Architecture],
        scores: Array,
        rng: np.random.Generator,
        variances: Array | None = None,
    ) -> FittedStackedGP:
        """See `Surrogate.fit`."""
        fitted = tuple(member.fit(architectures, scores, rng, variances) for member in self.members)
        return FittedStackedGP.without_negligible(
            fitted, stacking_weights(loo_log_densities(fitted, scores), self.prior)
        )


@final
@dataclass(frozen=True, eq=False)
class FittedStackedGP(Fitted):
    """A fitted `StackedGP`.

    Attributes:
        members: The members with a stacking weight of at least `LEAST_WEIGHT`.
        weights: (S,) float64, the weight of each hyperparameter set of each of these, of sum 1.
        stacking: (K,) float64: w, of all members.
    """

    members: tuple[FittedMember, ...]
    weights: Array
    stacking: Array

    @classmethod
    def without_negligible(
        cls, members: Sequence[FittedMember], stacking: Array
    ) -> FittedStackedGP:
        """Drop members of negligible weight and renormalise the weights of the others."""
        kept = np.flatnonzero(stacking >= min(LEAST_WEIGHT, float(stacking.max()))).tolist()
        heavy = tuple(take(members, kept))
        sets = [member.sets for member in heavy]
        weights = np.repeat(stacking[kept] / sets, sets)
        return cls(heavy, weights / weights.sum(), stacking)

    def posterior(self, architectures: Sequence[Architecture], *, joint: bool = False) -> Posterior:
        """See `Fitted.posterior`."""
        means = []
        variances = []
        best = []
        covariances = []
        scales: list[Scale] = []
        for member in self.members:
            part = member.posterior(architectures, joint=joint)
            means.append(part.means)
            variances.append(part.variances)
            best.append(part.best)
            scales += part.scales
            if part.covariances is not None:
                covariances.append(part.covariances)

        return Posterior(
            means=np.concatenate(means),
            variances=np.concatenate(variances),
            best=np.concatenate(best),
            covariances=np.concatenate(covariances) if joint else None,
            weights=self.weights,
            scales=tuple(scales),
        )

    def noises(self) -> Array:
        """See `Fitted.noises`."""
        return np.concatenate([member.noises() for member in self.members])

    def task_correlations(self) -> Mapping[str, float]:
        """See `Fitted.task_correlations`: sums of weight times correlation over the members."""
        correlations: dict[str, float] = {}
        begin = 0
        for member in self.members:
            weight = float(self.weights[begin : begin + member.sets].sum())
            begin += member.sets
            if isinstance(member, FittedCoregionalisedGP):
                for study in member.source_model.studies:
                    correlations[study] = (
                        correlations.get(study, 0.0) + weight * member.task_correlation
                    )

        return correlations

    def observe(self, architectures: Sequence[Architecture], scores: Array) -> FittedStackedGP:
        """Return the surrogate with k more observations; nothing else changes.

        Hyperparameters, scales and weights stay the same.

        Args:
            architectures: k networks.
            scores: (k,) float64, finite.

        Raises:
            UsageError: A member uses source studies.
        """
        without_sources = [member for member in self.members if isinstance(member, FittedGP)]
        if len(without_sources) < len(self.members):
            raise UsageError(
                "observations cannot be added to a stacked GP with members that use source studies"
            )

        observed = tuple(member.observe(architectures, scores) for member in without_sources)
        return replace(self, members=observed)

    def hallucinate(self, architectures: Sequence[Architecture]) -> FittedStackedGP:
        """See `Fitted.hallucinate`. Each member is conditioned on its own means."""
        members = tuple(member.hallucinate(architectures) for member in self.members)
        return replace(self, members=members)


def loo_log_densities(members: Sequence[FittedMember], scores: Array) -> Array:
    """Return l: (n, K) float64. The hyperparameter sets of one member form a mixture.

    Args:
        members: The fitted members.
        scores: All observed scores; the slope of a replicated architecture is taken at its first
            evaluation.
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
    # Without data and prior the EM update is 0 / 0: the weights stay uniform.
    if n + prior == 0:
        return weights

    scaled = np.exp(likelihoods - likelihoods.max(axis=1, keepdims=True))
    for _ in range(MOST_STEPS):
        responsibilities = scaled * weights
        responsibilities /= np.maximum(
            responsibilities.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny
        )
        updated = (responsibilities.sum(axis=0) + prior) / (n + count * prior)
        change = float(np.abs(updated - weights).max())
        weights = updated
        if change < SMALLEST_STEP:
            break

    return weights
