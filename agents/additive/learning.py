"""What a history tells about single decisions: its parent, its effects, and those of its sources."""

from __future__ import annotations

from dataclasses import dataclass

from archive.agents.additive.effects import Effects
from archive.agents.additive.surrogate import learn_effects
from archive.agents.additive.vectors import VectorSpace, is_known
from archive.agents.base import History
from archive.agents.observations import SourceStudy, is_score, scores_of
from archive.architecture.graph import Architecture
from archive.architecture.networks import architectures_of, functional_forms


@dataclass(frozen=True)
class HistoryEffects:
    """Reads the effects of histories of one space.

    Attributes:
        vectors: Decisions of the space.
        key: Key of the parent, or its beginning; None for the network with the most others that
            differ in one decision, of equally many the best.
    """

    vectors: VectorSpace
    key: str | None = None

    def of(self, history: History) -> Effects | None:
        """Return the effects that the results tell; None where no network has decisions."""
        if not history.usable:
            return None

        encoded = self.vectors.encode(history.inputs)
        return learn_effects(encoded, history.scores, self.parent(history), self.prior(history))

    def parent(self, history: History) -> list[int] | None:
        """Return the decisions of the parent that the key names; None without one."""
        network = self.named(history)
        if network is None:
            return None

        encoded = self.vectors.encode([network.functional])
        return encoded[0].tolist() if is_known(encoded)[0] else None

    def named(self, history: History) -> Architecture | None:
        """Return the network of the key, in the history or a source; None without a key."""
        if self.key is None:
            return None

        sources = [observation for source in history.sources for observation in source.observations]
        for network in [*history.known.values(), *architectures_of(sources)]:
            if network.key.startswith(self.key) or network.functional_key.startswith(self.key):
                return network

        return None

    def prior(self, history: History) -> Effects | None:
        """Return the effects in the source of the same space with the most results; None without."""
        best: Effects | None = None
        for source in history.sources:
            effects = self._of_source(source)
            if effects is not None and (best is None or len(effects.vectors) > len(best.vectors)):
                best = effects

        return best

    def _of_source(self, source: SourceStudy) -> Effects | None:
        if source.space != self.vectors.space.name:
            return None

        usable = [entry for entry in source.observations if is_score(entry.score)]
        if not usable:
            return None

        encoded = self.vectors.encode(functional_forms(architectures_of(usable)))
        return learn_effects(encoded, scores_of(usable))
