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
        networks = self.named(history)
        if not networks:
            return None

        choices: list[int] = self.vectors.encode([networks[0].functional])[0].tolist()
        return choices

    def named(self, history: History) -> list[Architecture]:
        """Return the networks with decisions in the history and its sources that the key names."""
        if self.key is None:
            return []

        networks = dict(history.known)
        for source in history.sources:
            for network in architectures_of(source.observations):
                networks.setdefault(network.functional_key, network)

        named = []
        for network in networks.values():
            begins = network.key.startswith(self.key) or network.functional_key.startswith(self.key)
            if begins and is_known(self.vectors.encode([network.functional]))[0]:
                named.append(network)

        return named

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
