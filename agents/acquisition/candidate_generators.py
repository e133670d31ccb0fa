"""Candidate generators: the networks among which an acquisition chooses.

| name        | candidates                                                               | for                     |
|-------------|--------------------------------------------------------------------------|-------------------------|
| `members`   | every network of the space, ranked                                       | listed spaces with      |
|             |                                                                          | cheap kernels           |
| `part`      | 50,000 networks of the space, ranked, then local search from the best    | larger ones             |
| `evolution` | NASBOT's evolution of the acquisition, then local search from its best   | any space               |
| `mutations` | random mutations of the best observed networks, ranked (BANANAS, alg. 1) | BANANAS as published    |
| `pool`      | a pool of 100 by evolution, ranked (tree-Wasserstein, section 3)         | that paper as published |

All return a short list, best first: the cost of batch rules grows with the square or cube of its
length. Candidates left out have a lower acquisition than all those returned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import cycle, islice
from typing import ClassVar, final

import numpy as np

from archive.agents.acquisition import listing
from archive.agents.acquisition.evolution import (
    Candidate,
    Rank,
    Ranked,
    best_first,
    distinct_candidates,
    evaluations_at,
    evolve,
    mutate,
    starts,
    with_ranks,
)
from archive.agents.acquisition.listing import Listing, members_of, not_listed
from archive.agents.base import History
from archive.architecture.graph import Architecture
from archive.architecture.networks import architectures_of, functional_forms
from archive.errors import UnknownNameError
from archive.spaces.base import Space
from archive.values import require_at_least

BLOCK = 4096
"""Number of members that are ranked at a time, so that memory does not grow with the space."""
DRAWS = 16
"""Random mutations in place of a large neighbourhood: with tens of layers, a neighbour takes a
millisecond."""
WIDEST = 500
"""Most neighbours of one network."""


class CandidateGenerator(ABC):
    """A generator of candidates for a batch; immutable.

    Attributes:
        name: Name in configurations.
    """

    name: ClassVar[str]

    @abstractmethod
    def candidates(
        self,
        history: History,
        rank: Rank,
        count: int,
        rng: np.random.Generator,
        *,
        logarithmic: bool = False,
    ) -> list[Ranked]:
        """Return candidates of high rank.

        Args:
            history: The history; its networks are not returned.
            rank: The acquisition, (m,) float64 for m networks; larger is better, never NaN. It
                accounts for pending proposals.
            count: Most networks to return.
            rng: Source of randomness.
            logarithmic: Whether `rank` returns logarithms.

        Returns:
            At most `count` networks of the space, all different, best first.
        """


@final
class ListedCandidates(CandidateGenerator):
    """All members of a space, or a given list of them; deterministic but for the draws of `rank`.

    Args:
        space: A space that can be listed.
        members: The members to rank; None for all.

    Attributes:
        listing: The members without dead layers, as agents compare them.

    Raises:
        UsageError: The space cannot be listed.
    """

    name = "members"

    def __init__(self, space: Space, members: Sequence[Architecture] | None = None) -> None:
        listed = space.members() if members is None else members
        if listed is None:
            raise not_listed(space)

        self._members = listed
        self.listing = Listing(functional_forms(listed))
        self._keys = [member.functional_key for member in listed]

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
        members = self._members
        # Blocks of equal size: distances to few columns are not cached, those to many are.
        blocks = np.array_split(np.arange(len(members)), -(-len(members) // BLOCK))
        ranks = np.concatenate([rank(members[block[0] : block[-1] + 1]) for block in blocks])
        # Stable: ties keep the order of the list, which never changes.
        best: list[Ranked] = []
        for index in np.argsort(-ranks, kind="stable").tolist():
            if len(best) == count:
                break

            if self._keys[index] not in history.known:
                best.append(Ranked(Candidate(members[index]), float(ranks[index])))

        return best


@final
class EvolvedCandidates(CandidateGenerator):
    """NASBOT's evolution across the space, then local search from its best candidates.

    Args:
        space: The space, which defines the mutations.
        evaluations: Children of the evolution; None for NASBOT's number at the time, 50 to 500.
        climbs: Number of local searches.
        steps: Most steps of each.
        width: Largest neighbourhood that is ranked whole; `DRAWS` random mutations replace larger
            ones.
    """

    name = "evolution"

    def __init__(
        self,
        space: Space,
        evaluations: int | None = None,
        climbs: int = 2,
        steps: int = 5,
        width: int = 64,
    ) -> None:
        require_at_least(1, evaluations=evaluations, width=width)
        require_at_least(0, climbs=climbs, steps=steps)
        self.space = space
        self.evaluations = evaluations
        self.climbs = climbs
        self.steps = steps
        self.width = width
        # The first neighbours of a large neighbourhood are all of one kind; random mutations are of
        # all kinds.
        self._many = len(list(islice(space.neighbours(space.initial_pool()[0]), width + 1))) > width

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
        start = [*self.space.initial_pool(), *filter(self.space.contains, starts(history))]
        evaluations = self.evaluations or evaluations_at(len(history.usable) + len(history.pending))
        ranked = evolve(self.space, start, rank, evaluations, rng, logarithmic=logarithmic)
        return self.climb(ranked, history, rank, rng)[:count]

    def climb(
        self, ranked: Sequence[Ranked], history: History, rank: Rank, rng: np.random.Generator
    ) -> list[Ranked]:
        """Add local search from the best candidates; returns unknown networks, best first."""
        by_key = {entry.architecture.functional_key: entry for entry in ranked}
        for start in self._fresh(ranked, history.known)[: self.climbs]:
            self._climb(start, rank, by_key, history.known, rng)

        return self._fresh(list(by_key.values()), history.known)

    def _climb(
        self,
        top: Ranked,
        rank: Rank,
        by_key: dict[str, Ranked],
        excluded: Mapping[str, Architecture],
        rng: np.random.Generator,
    ) -> None:
        for _ in range(self.steps):
            near = distinct_candidates(self._near(top.candidate, rng), by_key)
            if not near:
                return

            valued = with_ranks(near, rank(architectures_of(near)))
            for entry in valued:
                by_key[entry.architecture.functional_key] = entry

            fresh = self._fresh(valued, excluded)
            if not fresh or fresh[0].rank <= top.rank:
                return

            top = fresh[0]

    def _near(self, candidate: Candidate, rng: np.random.Generator) -> list[Candidate]:
        if self._many:
            return [mutate(self.space, candidate, rng) for _ in range(DRAWS)]

        neighbours = self.space.neighbours(candidate.architecture)
        return list(map(candidate.after, islice(neighbours, WIDEST)))

    def _fresh(
        self, ranked: Sequence[Ranked], excluded: Mapping[str, Architecture]
    ) -> list[Ranked]:
        fresh = []
        for entry in ranked:
            if entry.architecture.functional_key not in excluded:
                fresh.append(entry)

        return best_first(fresh)


@final
class SampledCandidates(CandidateGenerator):
    """A fixed sample of a space (`acquisition.listing`), then local search from its best.

    Args:
        space: A space that can be listed.

    Attributes:
        drawn: The sample.

    Raises:
        UsageError: The space cannot be listed.
    """

    name = "part"

    def __init__(self, space: Space) -> None:
        """Draw the sample."""
        self.drawn = ListedCandidates(space, members_of(space))
        self._evolution = EvolvedCandidates(space)

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
        return self._evolution.climb(
            self.drawn.candidates(history, rank, count, rng), history, rank, rng
        )[:count]


@final
class MutatedCandidates(CandidateGenerator):
    """Random mutations of the best observed networks; candidates stay in their neighbourhood.

    Args:
        space: The space, which defines the mutations.
        candidates: c, the number of mutations that are drawn and ranked.
        parents: k, the number of best networks that are mutated, in turns.
    """

    name = "mutations"

    def __init__(self, space: Space, candidates: int = 100, parents: int = 10) -> None:
        require_at_least(1, candidates=candidates, parents=parents)
        self.space = space
        self.most = candidates
        self.parents = parents

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
        drawn = []
        for parent in islice(cycle(self._best(history)), self.most):
            drawn.append(mutate(self.space, parent, rng))

        fresh = distinct_candidates(drawn, history.known)
        if not fresh:
            return []

        return best_first(with_ranks(fresh, rank(architectures_of(fresh))))[:count]

    def _best(self, history: History) -> list[Candidate]:
        scores: dict[str, list[float]] = {}
        for observation in history.usable:
            scores.setdefault(observation.architecture.functional_key, []).append(observation.score)

        ordered = sorted(scores, key=lambda key: -float(np.mean(scores[key])))
        members = filter(self.space.contains, map(history.known.__getitem__, ordered))
        return list(map(Candidate, islice(members, self.parents)))


def listing_of(generator: CandidateGenerator) -> Listing | None:
    """Return the listing of a generator, for models of the same agent to share.

    None where it lists no members.
    """
    generator = generator.drawn if isinstance(generator, SampledCandidates) else generator
    return generator.listing if isinstance(generator, ListedCandidates) else None


NAMES = ("auto", "evolution", "members", "mutations", "part", "pool")


def get(name: str, space: Space, *, cheap: bool = True) -> CandidateGenerator:
    """Return a candidate generator by name.

    Args:
        name: Its name. `auto` is `evolution` where ranking is not cheap or the space cannot be
            listed, else `part` where it has more than
            `archive.agents.acquisition.listing.MOST_LISTED` members, else `members`.
        space: The space to search.
        cheap: Whether thousands of networks can be ranked for one proposal.

    Raises:
        UnknownNameError: There is no such generator.
        UsageError: `members` or `part` of a space that cannot be listed.
    """
    if name not in NAMES:
        raise UnknownNameError("candidates", name, NAMES)

    if name == "auto":
        members = space.members() if cheap else None
        if members is None:
            name = "evolution"
        else:
            name = "members" if len(members) <= listing.MOST_LISTED else "part"

    if name == "part":
        return SampledCandidates(space)

    if name == "members":
        return ListedCandidates(space)

    if name == "mutations":
        return MutatedCandidates(space)

    return EvolvedCandidates(space, 100, climbs=0) if name == "pool" else EvolvedCandidates(space)
