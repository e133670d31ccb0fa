"""A surrogate of any number of evaluations.

    up to 1,000 networks    the surrogate of few evaluations, unchanged, with any number of repeats
    more                    prefix of the history -> boosted trees of all its evaluations (`prefix`)
                            errors of the trees on the relevant networks -> Gaussian process near them
                            or, where it ranks held-out networks clearly better, a rival: a Gaussian
                            process of 1,000 of the networks (`prefix`)

| symbol | meaning                                                                        | shape  |
|--------|--------------------------------------------------------------------------------|--------|
| f, s2  | prediction of the trees, and the variance of the models of all folds (`trees`) | (m,)   |
| c      | standard deviation of the errors y - e of the prefix                           | scalar |
| A      | relevant networks: the best, the latest, and some others (`prefix.relevant`)   | scalar |
| r      | (y - e) / c of those in the prefix, (y - f) / c of those evaluated since       | (A,)   |
| mu, v  | posterior mean and variance of a Gaussian process of r                         | (m,)   |
| a      | its prior variance                                                             | scalar |

    g(score) ~ f + c mu, with variance v (c^2 + s2 / a)

Far from the relevant networks v = a, and the variance is the errors' plus s2. An evaluation of a network
reveals the error of the trees and of the models of the folds, so that both terms shrink alike. If s2 were added in full, a noisy network would be evaluated again for
ever.

The trees are fitted to every evaluation and predict well far from all of them. The Gaussian process
has three properties that trees lack: evaluations after the prefix change it at once, pending
proposals reduce its variance, and its variance is small near evaluated networks.

The posterior of tens of thousands of networks under the rival takes seconds: trees select the
networks for which it can matter (`ScreenedProcess`). The rival keeps the hyperparameters of the
prefix, and later evaluations are added to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from archive.agents.surrogates import outcome_transforms
from archive.agents.surrogates.base import Array, Fitted, Posterior, Surrogate, check_scores
from archive.agents.surrogates.gp.distance import DistanceGP
from archive.agents.surrogates.gp.fitted import FittedGP
from archive.agents.surrogates.many.features import Integers, Merged, SparseFeatures, relevant
from archive.agents.surrogates.many.prefix import (
    FIRST,
    RELEVANT,
    Prefix,
    Prefixes,
    prefix_size,
    process_of_errors,
)
from archive.agents.surrogates.many.trees import FOLDS
from archive.agents.surrogates.outcome_transforms import OutcomeTransform
from archive.agents.surrogates.stacking import FittedStackedGP, StackedGP
from archive.architecture.graph import Architecture
from archive.architecture.networks import network_keys, networks_by_key, take

BLOCK = 1024
PROMISING = 80
"""In a call with more than `BLOCK` networks, only the `PROMISING` ones have an exact posterior.

After 1,001 evaluations of NAS-Bench-101, nine of the ten networks of greatest expected improvement,
the greatest too, were among the first 58 of 4,001 by the trees."""
LATER = 250
"""Most networks with evaluations after the prefix that are added to the process."""


@final
@dataclass(frozen=True, eq=False)
class ScreenedProcess(Fitted):
    """A Gaussian process behind a screen of trees.

    Attributes:
        prefix: The trees.
        process: The process.
    """

    prefix: Prefix
    process: FittedStackedGP
    _known: dict[str, tuple[Array, Array]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls,
        prefix: Prefix,
        process: FittedStackedGP,
        architectures: Sequence[Architecture],
        scores: Array,
    ) -> ScreenedProcess:
        """Return the process of a prefix, with later evaluations of relevant networks."""
        content = Merged.of(architectures, scores)
        # All evaluations of a network or none of them: the best ones alone would be lucky ones.
        selected = set(network_keys(take(content.networks, relevant(content.means, LATER))))
        near = [row for row, network in enumerate(architectures) if network.key in selected]
        return cls(prefix, process.observe(take(architectures, near), scores[near]))

    def posterior(self, architectures: Sequence[Architecture], *, joint: bool = False) -> Posterior:
        """See `Fitted.posterior`.

        In a call with more than `BLOCK` networks, only the promising ones have the posterior of the
        process. The others have the least mean and the least variance among these, so that no
        acquisition prefers them.
        """
        if joint or not architectures:
            return self.process.posterior(architectures, joint=joint)

        if len(architectures) <= BLOCK:
            return self._exact(architectures)

        rows = promising(*self.prefix.predict(architectures), PROMISING)
        inner = self._exact(take(architectures, rows))
        filled = []
        for values in (inner.means, inner.variances):
            whole = np.repeat(values.min(axis=1)[:, None], len(architectures), axis=1)
            whole[:, rows] = values
            filled.append(whole)

        return replace(inner, means=filled[0], variances=filled[1])

    def hallucinate(self, architectures: Sequence[Architecture]) -> ScreenedProcess:
        """See `Fitted.hallucinate`."""
        return replace(self, process=self.process.hallucinate(architectures))

    def noises(self) -> Array:
        """See `Fitted.noises`."""
        return self.process.noises()

    def _exact(self, architectures: Sequence[Architecture]) -> Posterior:
        """Return the posterior under the process, cached: short lists were ranked before."""
        new = networks_by_key(architectures, self._known)
        inner = self.process.posterior(list(new.values()))
        self._known.update(
            zip(new, zip(inner.means.T, inner.variances.T, strict=True), strict=True)
        )
        marginals = map(self._known.__getitem__, network_keys(architectures))
        means, variances = zip(*marginals, strict=True)
        return replace(inner, means=np.stack(means, axis=1), variances=np.stack(variances, axis=1))


def promising(means: Array, variances: Array, most: int) -> Integers:
    """Return the positions of the networks of greatest f + 2 s, best first.

    Args:
        means: (m,) float64: f.
        variances: (m,) float64: s2.
        most: Number of positions; all if there are fewer networks.
    """
    return np.argsort(-(means + 2.0 * np.sqrt(variances)), kind="stable")[:most]


CORRECTED = 256
"""Networks that the process corrects in a call with more than `BLOCK`."""


@final
class ManyEvaluations(Surrogate):
    """A surrogate of any number of evaluations; see the module.

    Args:
        few: Surrogate of the evaluations of up to `first` networks.
        features: Features of the trees; several surrogates of a space may share them.
        process: Model of the errors of the trees; its transform is not used.
        rival: Model that replaces the trees where it ranks held-out networks clearly better. Its
            distances must be cheap: the comparison needs 1.5 million.
        transform: Outcome transform of the trees: one of
            `archive.agents.surrogates.outcome_transforms`, or its name.
        prefixes: Cache of the models, which several surrogates may share.
        first: Networks up to which `few` is fitted to all evaluations, and most networks that
            `rival` is fitted to.
        everywhere: See `everywhere`.

    Raises:
        UnknownNameError: There is no such transform.
    """

    def __init__(
        self,
        few: Surrogate,
        features: SparseFeatures,
        process: DistanceGP,
        rival: StackedGP,
        transform: str | OutcomeTransform,
        prefixes: Prefixes | None = None,
        first: int = FIRST,
        everywhere: bool = False,
    ) -> None:
        self.few = few
        self.features = features
        self.process = process
        self.rival = rival
        self.transform = outcome_transforms.get(transform)
        self.first = first
        self._prefixes = prefixes or Prefixes()
        self._everywhere = everywhere

    def applies(self, architectures: Sequence[Architecture]) -> bool:
        """Return whether the evaluations of these networks are too many for `few`."""
        return (
            len(architectures) > self.first and len(set(network_keys(architectures))) > self.first
        )

    def everywhere(self) -> ManyEvaluations:
        """Return a surrogate that predicts every network, not only the promising ones.

        A product of several models needs such predictions: a network of low rank by one model may
        have a high rank by the others. The rival is not used, because its predictions for all
        networks would take seconds.
        """
        return ManyEvaluations(
            self.few,
            self.features,
            self.process,
            self.rival,
            self.transform,
            self._prefixes,
            self.first,
            True,
        )

    def fit(
        self,
        architectures: Sequence[Architecture],
        scores: Array,
        rng: np.random.Generator,
        variances: Array | None = None,
    ) -> Fitted:
        """See `Surrogate.fit`.

        With more than `first` networks `rng` and `variances` have no effect.
        """
        check_scores(architectures, scores)
        if not self.applies(architectures):
            return self.few.fit(architectures, scores, rng, variances)

        size = prefix_size(len(architectures), self.first)
        if len(set(network_keys(architectures[:size]))) < FOLDS:
            size = len(architectures)

        head = architectures[:size]
        values = scores[:size]
        prefix = self._prefixes.of(
            head,
            values,
            self.transform,
            lambda: Prefix.fit(
                head, values, self.transform, self.features, self.process, self.rival, self.first
            ),
        )
        if prefix.rival is not None and not self._everywhere:
            return ScreenedProcess.of(prefix, prefix.rival, architectures[size:], scores[size:])

        corrected = CorrectedTrees.of(prefix, self.process, architectures[size:], scores[size:])
        return replace(corrected, everywhere=self._everywhere)

    def incumbents(
        self, architectures: Sequence[Architecture], scores: Array
    ) -> tuple[Architecture, ...]:
        """Return the networks of greatest mean score, of which one is the incumbent.

        Their evaluations are conditioned on in the Gaussian process of the errors. Evaluations of other
        networks affect the trees alone, so that a network with one lucky evaluation would be
        evaluated again for ever.

        Args:
            architectures: The network of each of n evaluations.
            scores: (n,) float64.
        """
        content = Merged.of(architectures, scores)
        best = np.sort(np.argsort(-content.means, kind="stable")[: RELEVANT // 2])
        return tuple(take(content.networks, best))


@final
@dataclass(frozen=True, eq=False)
class CorrectedTrees(Fitted):
    """Boosted trees with a Gaussian process of their errors.

    Attributes:
        prefix: The trees.
        process: The process, of r.
        unit: c.
        best: The greatest standardised score of a network, fantasies included.
        everywhere: Whether networks that are not promising have the variance far from the relevant
            ones.
    """

    prefix: Prefix
    process: FittedGP
    unit: float
    best: float
    everywhere: bool = False

    @classmethod
    def of(
        cls,
        prefix: Prefix,
        process: DistanceGP,
        architectures: Sequence[Architecture],
        scores: Array,
    ) -> CorrectedTrees:
        """Return the trees of a prefix, corrected by all evaluations."""
        content = prefix.content.adding(architectures, scores)
        networks = content.networks
        means = content.means
        selected = relevant(means, RELEVANT).tolist()
        near = take(networks, selected)
        values = prefix.scale.standardise(means[selected])
        predicted = prefix.predict(near)[0]
        for row, network in enumerate(near):
            if (position := prefix.content.position.get(network.key)) is not None:
                predicted[row] = prefix.trees.out_of_fold[position]

        # The mean of k evaluations has the noise variance of k equal ones. With the variance of
        # one evaluation, the network would be evaluated again for ever.
        counts = content.counts[selected]
        repeated: list[Architecture] = []
        for network, count in zip(near, counts.tolist(), strict=True):
            repeated += [network] * count

        residuals = np.repeat((values - predicted) / prefix.unit, counts)
        fitted = process_of_errors(process, prefix.distances, prefix.thetas, repeated, residuals)
        return cls(
            prefix,
            fitted,
            prefix.unit,
            float(prefix.scale.standardise(means.max(keepdims=True))[0]),
        )

    def posterior(self, architectures: Sequence[Architecture], *, joint: bool = False) -> Posterior:
        """See `Fitted.posterior`; of more than `BLOCK` networks the promising are corrected.

        The others have the posterior mean f. Their variance is the least among the corrected ones,
        so that acquisitions prefer those. With `everywhere`, it is the variance far from the
        relevant networks, c^2 a + s2.
        """
        means, variances = self.prefix.predict(architectures)
        if joint:
            inner = self.process.posterior(architectures, joint=True)
            assert inner.covariances is not None
            left = inner.variances[0] / self._prior
            covariances = self.unit**2 * inner.covariances + np.diag(variances * left)
            return self._posterior(
                means + self.unit * inner.means[0], np.diagonal(covariances[0]), covariances
            )

        rows = np.arange(len(means))
        if len(rows) > BLOCK:
            rows = promising(means, variances, CORRECTED)

        inner = self.process.posterior(take(architectures, rows))
        corrected = inner.variances[0] * (self.unit**2 + variances[rows] / self._prior)
        means[rows] += self.unit * inner.means[0]
        if self.everywhere:
            variances = self.unit**2 * self._prior + variances
        else:
            variances = np.full(
                len(means), corrected.min(initial=0.0 if len(rows) == 0 else np.inf)
            )

        variances[rows] = corrected
        return self._posterior(means, variances, None)

    def hallucinate(self, architectures: Sequence[Architecture]) -> CorrectedTrees:
        """See `Fitted.hallucinate`."""
        if len(architectures) == 0:
            return self

        expected = (
            self.prefix.predict(architectures)[0]
            + self.unit * self.process.posterior(architectures).means[0]
        )
        best = max(self.best, float(expected.max()))
        return replace(self, process=self.process.hallucinate(architectures), best=best)

    def noises(self) -> Array:
        """See `Fitted.noises`."""
        return (self.prefix.scale.spread * self.unit) ** 2 * self.process.noises()

    @property
    def _prior(self) -> float:
        return self.process.covariance.variance(self.process.thetas[0][:-1])

    def _posterior(self, means: Array, variances: Array, covariances: Array | None) -> Posterior:
        best = np.array([self.best])
        return Posterior.of_standardised(
            self.prefix.scale, means[None], variances[None], best, covariances
        )
