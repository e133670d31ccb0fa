"""The first suggestions of a study: replacements of one decision of the parent.

| history                              | suggestions                                              |
|--------------------------------------|----------------------------------------------------------|
| no result, a source with effects     | the members of the best sums of the source               |
| fewer networks than the pool has     | the pool                                                 |
| fewer replacements than asked for    | replacements of the parent, of each decision in turn     |
| any other                            | none: the surrogate suggests                             |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from archive.agents.acquisition.candidate_generators import CandidateGenerator
from archive.agents.additive.effects import Effects
from archive.agents.additive.learning import HistoryEffects
from archive.agents.additive.members import BestSums
from archive.agents.additive.surrogate import AdditiveResidual
from archive.agents.additive.vectors import Replacement, changed, is_known
from archive.agents.base import History, Suggestion
from archive.agents.surrogates.base import Surrogate
from archive.architecture.graph import Architecture
from archive.errors import UsageError


@final
class Opening:
    """The opening of a study, and what its sources tell: see `model_based.SourceUse`.

    Args:
        effects: Reads effects.
        n_initial: Networks of the pool that come first; without effect with a parent or a source.
        replacements: Networks with one changed decision that follow.
    """

    def __init__(self, effects: HistoryEffects, n_initial: int, replacements: int) -> None:
        self.effects = effects
        self.n_initial = n_initial
        self.replacements = replacements

    def suggest_first(
        self, history: History, generator: CandidateGenerator, n: int, rng: np.random.Generator
    ) -> tuple[list[Suggestion], int | None]:
        """See `SourceUse.suggest_first`."""
        del generator
        named = self._named(history)
        prior = self.effects.prior(history)
        if prior is not None:
            return ([] if history.usable else self._of_source(prior, history, n)), 0

        first = self.n_initial if named is None else 0
        evaluations = len(history.usable) + len(history.pending)
        if evaluations < first:
            return [], None

        parent = self._best(history) if named is None else named
        count = min(n, first + self.replacements - evaluations)
        if parent is None or count < 1:
            return [], first

        return self._replace(parent, history, count, rng), first

    def with_sources(self, cold: Surrogate, history: History) -> Surrogate:
        """See `SourceUse.with_sources`: the effects of a source are the prior of the study's."""
        assert isinstance(cold, AdditiveResidual)
        parent = self.effects.parent(history)
        return AdditiveResidual(cold.vectors, cold.residual, parent, self.effects.prior(history))

    def _of_source(self, prior: Effects, history: History, n: int) -> list[Suggestion]:
        vectors = self.effects.vectors
        best = BestSums(vectors, prior).best(n, history.known)
        suggestions = []
        for member in best:
            suggestions.append(Suggestion(member.architecture))

        return suggestions

    def _named(self, history: History) -> Architecture | None:
        """Return the network of the parent's key; None without a key.

        Raises:
            UsageError: No network has the key, or several begin with it.
        """
        key = self.effects.key
        if key is None:
            return None

        networks = self.effects.named(history)
        if not networks:
            raise UsageError(
                f"parent {key!r} is the key of no network with decisions in the "
                "study or its sources: archive study best shows keys"
            )

        if len(networks) > 1:
            keys = ", ".join(network.key[: len(key) + 4] for network in networks[:4])
            raise UsageError(f"several networks begin with the parent {key!r}, such as {keys}")

        return networks[0]

    def _best(self, history: History) -> Architecture | None:
        """Return the parent of the effects; None where no network has decisions."""
        effects = self.effects.of(history)
        if effects is None:
            return None

        network = self.effects.vectors.build(effects.parent.tolist())
        return None if network is None else history.known.get(network.functional_key)

    def _replace(
        self, parent: Architecture, history: History, count: int, rng: np.random.Generator
    ) -> list[Suggestion]:
        vectors = self.effects.vectors
        start = vectors.encode([parent.functional])[0].tolist()
        taken = set(history.known)
        suggestions: list[Suggestion] = []
        if parent.functional_key not in taken and vectors.space.contains(parent):
            # The parent is known of a source alone.
            taken.add(parent.functional_key)
            suggestions.append(Suggestion(parent))

        waiting = self._waiting(start, rng)
        tried = self._tried(start, history)
        while waiting and len(suggestions) < count:
            position = min(waiting, key=lambda position: tried.get(position, 0))
            replacement = waiting[position].pop()
            if not waiting[position]:
                del waiting[position]

            network = vectors.build(vectors.replace(start, replacement))
            if network is None or network.functional_key in taken:
                continue

            if not vectors.space.contains(network):
                continue

            taken.add(network.functional_key)
            tried[position] = tried.get(position, 0) + 1
            operations = vectors.changes(start, vectors.encode([network])[0].tolist())
            if operations:
                suggestions.append(Suggestion(network, parent=parent, operations=operations))

        return suggestions

    def _waiting(
        self, start: Sequence[int], rng: np.random.Generator
    ) -> dict[int, list[Replacement]]:
        """Return the replacements by decision, both in random order."""
        replacements = list(self.effects.vectors.replacements(start))
        waiting: dict[int, list[Replacement]] = {}
        for index in rng.permutation(len(replacements)).tolist():
            replacement = replacements[index]
            waiting.setdefault(replacement.position, []).append(replacement)

        return waiting

    def _tried(self, start: Sequence[int], history: History) -> dict[int, int]:
        """Return the number of choices of each decision that networks have."""
        encoded = self.effects.vectors.encode(list(history.known.values()))
        encoded = encoded[is_known(encoded)]
        single = encoded[changed(encoded, start).sum(axis=1) == 1]
        tried: dict[int, int] = {}
        for position in range(encoded.shape[1]):
            choices = {*single[:, position].tolist()} - {start[position]}
            tried[position] = len(choices)

        return tried
