"""A Gaussian process of a thousand networks, for the networks that trees rank highest.

The posterior of tens of thousands of networks under a process of a thousand takes seconds; trees
select those whose posterior can matter. The hyperparameters are those of the prefix, and
evaluations since then are added to the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from archive.agents.surrogates.base import Array, Fitted, Posterior
from archive.agents.surrogates.many.features import Integers
from archive.agents.surrogates.many.prefix import Prefix
from archive.agents.surrogates.many.relevance import Merged, relevant
from archive.agents.surrogates.stacking import FittedStackedGP
from archive.architecture.graph import Architecture

BLOCK = 1024
PROMISING = 80
"""In a call with more than `BLOCK` networks, only the `PROMISING` ones have an exact posterior.

After 1,001 evaluations of NAS-Bench-101, nine of the ten networks of greatest expected improvement,
the greatest too, were among the first 58 of 4,001 by the trees."""
LATER = 250
"""Most networks whose evaluations after the prefix are added to the process."""


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
        """Return the process of a prefix with the evaluations since of the relevant networks among
        them.
        """
        content = Merged.of(architectures, scores)
        # All evaluations of a network or none of them: the best ones alone would be lucky ones.
        chosen = {content.networks[at].key for at in relevant(content.means, LATER).tolist()}
        near = [at for at, one in enumerate(architectures) if one.key in chosen]
        return cls(prefix, process.observe([architectures[at] for at in near], scores[near]))

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
        inner = self._exact([architectures[at] for at in rows.tolist()])
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
        """Return the posterior under the process, cached: a short list consists of networks that
        were ranked before.
        """
        new = {one.key: one for one in architectures if one.key not in self._known}
        inner = self.process.posterior(list(new.values()))
        self._known.update(
            zip(new, zip(inner.means.T, inner.variances.T, strict=True), strict=True)
        )
        known = [self._known[one.key] for one in architectures]
        means, variances = (np.stack([each[part] for each in known], axis=1) for part in (0, 1))
        return replace(inner, means=means, variances=variances)


def promising(means: Array, variances: Array, most: int) -> Integers:
    """Return the positions of the networks of greatest f + 2 s, best first.

    Args:
        means: (m,) float64: f.
        variances: (m,) float64: s2.
        most: Number of positions; all if there are fewer networks.
    """
    return np.argsort(-(means + 2.0 * np.sqrt(variances)), kind="stable")[:most]
