"""Candidates of an acquisition: the members of the best sums, new replacements, and mutations."""

from __future__ import annotations

from typing import final

import numpy as np

from archive.agents.acquisition.candidate_generators import CandidateGenerator, MutatedCandidates
from archive.agents.acquisition.evolution import (
    Candidate,
    Rank,
    Ranked,
    best_first,
    distinct_candidates,
    with_ranks,
)
from archive.agents.additive.effects import Effects
from archive.agents.additive.learning import HistoryEffects
from archive.agents.additive.members import BestSums
from archive.agents.base import History
from archive.architecture.graph import Architecture
from archive.architecture.networks import architectures_of

FRESH = 30
"""Replacements that no network has yet, of the parent."""


@final
class AdditiveCandidates(CandidateGenerator):
    """The members of the best sums, replacements of the parent, and mutations of the best networks.

    Args:
        effects: Reads the effects of a history.
        top: Number of members of the best sums.
        mutations: Makes the mutations.
    """

    name = "sums"

    def __init__(self, effects: HistoryEffects, top: int, mutations: MutatedCandidates) -> None:
        self.effects = effects
        self.vectors = effects.vectors
        self.top = top
        self.mutations = mutations

    def candidates(
        self,
        history: History,
        rank: Rank,
        count: int,
        rng: np.random.Generator,
        *,
        logarithmic: bool = False,
    ) -> list[Ranked]:
        """See `CandidateGenerator.candidates`."""
        mutated = self.mutations.candidates(history, rank, count, rng, logarithmic=logarithmic)
        effects = self.effects.of(history)
        if effects is None:
            return mutated

        drawn = [*self._best(history, effects), *self._fresh(history, effects, rng)]
        new = distinct_candidates(drawn, history.known)
        ranked = with_ranks(new, rank(architectures_of(new))) if new else []
        by_key: dict[str, Ranked] = {}
        for entry in [*ranked, *mutated]:
            by_key.setdefault(entry.architecture.functional_key, entry)

        return best_first(list(by_key.values()))[:count]

    def _best(self, history: History, effects: Effects) -> list[Candidate]:
        members = []
        for member in BestSums(self.vectors, effects).best(self.top, history.known):
            members.append(self._candidate(history, effects, member.architecture))

        return members

    def _fresh(
        self, history: History, effects: Effects, rng: np.random.Generator
    ) -> list[Candidate]:
        parent = effects.parent.tolist()
        replacements = list(self.vectors.replacements(parent))
        fresh: list[Candidate] = []
        for index in rng.permutation(len(replacements)).tolist():
            if len(fresh) == FRESH:
                break

            network = self.vectors.build(self.vectors.replace(parent, replacements[index]))
            if network is not None and self.vectors.space.contains(network):
                fresh.append(self._candidate(history, effects, network))

        return fresh

    def _candidate(self, history: History, effects: Effects, network: Architecture) -> Candidate:
        parent = self.vectors.build(effects.parent.tolist())
        if parent is None or parent.functional_key not in history.known:
            return Candidate(network)

        parent = history.known[parent.functional_key]
        encoded = self.vectors.encode([network])[0]
        operations = self.vectors.changes(effects.parent.tolist(), encoded.tolist())
        return Candidate(network, parent, operations) if operations else Candidate(network)
