"""Candidates among pairs of a network and a configuration of parameters.

Evolution of the acquisition over both parts comes first, then rounds of smaller and smaller steps:
in each, the parameters of the best pairs are varied with their networks, and their networks are
mutated with their parameters.
"""

from __future__ import annotations

from typing import final

import numpy as np

from archive.agents.acquisition.candidate_generators import CandidateGenerator, EvolvedCandidates
from archive.agents.acquisition.evolution import (
    Candidate,
    Rank,
    Ranked,
    best_first,
    distinct_candidates,
    mutate,
    starts,
    with_ranks,
)
from archive.agents.base import History
from archive.agents.configurations.candidates import Candidates
from archive.agents.joint.model import JointCodes
from archive.architecture.graph import Architecture
from archive.architecture.networks import architectures_of
from archive.architecture.parameter_operations import join
from archive.spaces.base import Space
from archive.spaces.joint import JointSpace

_SCALES = (0.2, 0.1, 0.05, 0.02)
"""Standard deviations of the steps of a number in each round, as shares of its scale."""
_BEST = 8
_VARIATIONS = 12
_MUTATIONS = 2
"""Pairs that each round begins at, variations of the parameters of each, and mutations of each."""
_CROSSED = 100
"""Pairs of an observed network and the parameters of another observation."""


@final
class JointCandidates(CandidateGenerator):
    """Evolution over both parts, then steps of falling size.

    Args:
        space: The pairs that may be proposed: `joint`, or its pairs that meet constraints.
        joint: The space of pairs.
        codes: Codes of its parameters.
    """

    name = "joint"

    def __init__(self, space: Space, joint: JointSpace, codes: JointCodes) -> None:
        self.space = space
        self.joint = joint
        self._codes = codes
        self._evolution = EvolvedCandidates(space, climbs=0)
        self._parameters = Candidates(joint.parameters)

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
        evolved = self._evolution.candidates(
            history, rank, 10 * _CROSSED, rng, logarithmic=logarithmic
        )
        by_key = {entry.architecture.functional_key: entry for entry in evolved}
        self._add(self._crossed(history, rng), by_key, history, rank)
        for scale in _SCALES:
            top = best_first(list(by_key.values()))[:_BEST]
            self._add(self._near(top, scale, rng), by_key, history, rank)

        return best_first(list(by_key.values()))[:count]

    def _add(
        self, candidates: list[Candidate], by_key: dict[str, Ranked], history: History, rank: Rank
    ) -> None:
        """Rank the new ones among candidates."""
        fresh = distinct_candidates(candidates, {**history.known, **by_key})
        if fresh:
            for entry in with_ranks(fresh, rank(architectures_of(fresh))):
                by_key[entry.architecture.functional_key] = entry

    def _crossed(self, history: History, rng: np.random.Generator) -> list[Candidate]:
        """Return observed networks with parameters of other observations, or drawn ones."""
        members = list(filter(self.joint.contains, starts(history)))
        if not members:
            return []

        drawn = self._parameters.sample(_CROSSED, rng)
        crossed = []
        for codes in drawn:
            network, other = rng.integers(len(members), size=2).tolist()
            values = members[other].configuration
            if rng.random() < 0.5:
                values = self.joint.parameters.decode(codes)

            crossed.append(Candidate(join(members[network], values)))

        return self._allowed(crossed)

    def _near(self, top: list[Ranked], scale: float, rng: np.random.Generator) -> list[Candidate]:
        """Return variations of the parameters of pairs, and mutations of their networks."""
        near = []
        for entry in top:
            member = entry.architecture
            codes = np.repeat(self._codes.encode(member)[None], _VARIATIONS, axis=0)
            for row in self._parameters.batches.vary(codes, rng, scale=scale):
                near.append(Candidate(join(member, self.joint.parameters.decode(row))))

            for _ in range(_MUTATIONS):
                near.append(mutate(self.space, entry.candidate, rng))

        return self._allowed(near)

    def _allowed(self, candidates: list[Candidate]) -> list[Candidate]:
        """Leave out pairs that constraints forbid."""
        allowed = []
        for candidate in candidates:
            if self._is_allowed(candidate.architecture):
                allowed.append(candidate)

        return allowed

    def _is_allowed(self, member: Architecture) -> bool:
        if self.space is not self.joint:
            return self.space.contains(member)

        return self.joint.parameters.allows(member.configuration)
