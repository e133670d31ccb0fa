"""NASBOT's evolutionary optimiser of an acquisition function (section 4.2 and appendix B.2).

    symbol   meaning                                                      here
    t        time step: finished and pending evaluations                  `t`
    n_EA     acquisition evaluations for one suggestion                   `evaluations_at(t)`
    N_mut    candidates of one generation                                 `mutations_at(n_EA)`
    g        objective: the acquisition                                   `rank`
    sigma    standard deviation of g over all candidates so far           in `_weights`
    pi       probability of mutating z: proportional to exp(g(z)/sigma)   `_weights`

Each generation draws N_mut parents among all candidates so far from pi, mutates each, and ranks the
children in one call. The start is the space's initial pool with the networks already evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from archive.agents.base import History, keys_of
from archive.agents.surrogates.base import Array
from archive.architecture.graph import Architecture
from archive.architecture.networks import architectures_of, take
from archive.spaces.base import Mutation, Space

MOST_PARENTS = 1000
"""Most networks of a history in the initial population: each is checked and ranked for every
proposal."""

Rank = Callable[[Sequence[Architecture]], Array]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate network and its lineage.

    Attributes:
        architecture: The network.
        parent: Network of the initial population from which it descends; None for a member of that
            population.
        operations: The operations applied to the parent, in order.
    """

    architecture: Architecture
    parent: Architecture | None = None
    operations: tuple[str, ...] = ()

    def after(self, mutation: Mutation) -> Candidate:
        """Return the candidate after one more mutation, with the same parent."""
        parent = self.architecture if self.parent is None else self.parent
        return Candidate(mutation.child, parent, (*self.operations, *mutation.operations))


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate and its rank."""

    candidate: Candidate
    rank: float

    @property
    def architecture(self) -> Architecture:
        """The network."""
        return self.candidate.architecture

    def with_rank(self, rank: float) -> Ranked:
        """Return the candidate with another rank."""
        return Ranked(self.candidate, rank)


def evaluations_at(t: int) -> int:
    """Return n_EA at time t: 25 sqrt(t), at least 50 and at most 500.

    The paper gives O(sqrt(t)); the constants are from the authors' released code. 50 means
    seven generations from the pool in the first steps; 500 bounds the time of a suggestion in a
    long study.
    """
    return int(np.clip(round(25.0 * math.sqrt(max(t, 0))), 50, 500))


def mutations_at(evaluations: int) -> int:
    """Return N_mut for n_EA: its square root, rounded up.

    The paper gives O(sqrt(n_EA)). With a constant of 1 there are as many generations as candidates
    in each: breadth and depth grow alike, and a line of mutations can leave the neighbourhood of
    the start as n_EA grows.
    """
    return max(1, math.ceil(math.sqrt(evaluations)))


def evolve(
    space: Space,
    start: Sequence[Architecture],
    rank: Rank,
    evaluations: int,
    rng: np.random.Generator,
    *,
    logarithmic: bool = False,
) -> list[Ranked]:
    """Maximise `rank` over the space from `start`.

    Args:
        space: Makes the mutations.
        start: Initial networks, at least one; duplicates count once.
        rank: The objective, (m,) float64 for m networks; larger is better, never NaN.
        evaluations: n_EA, the number of children. Children differ from each other and from the
            start.
        rng: Source of randomness.
        logarithmic: Whether `rank` returns the logarithm of g.

    Returns:
        All candidates, the start included, best first. There are fewer children where mutations
        find fewer new networks.
    """
    first = distinct_candidates(list(map(Candidate, start)), set())
    seen = keys_of(first)
    candidates = first
    ranks = np.asarray(rank(architectures_of(first)), dtype=np.float64)
    target = len(first) + evaluations
    size = mutations_at(evaluations)
    barren = 0
    while len(candidates) < target and barren < 10:
        parents = rng.choice(len(candidates), size=size, p=_weights(ranks, logarithmic))
        children = distinct_candidates(
            [mutate(space, candidates[parent], rng) for parent in parents], seen
        )
        children = children[: target - len(candidates)]
        if not children:
            # A small space, or all neighbours of the start are known.
            barren += 1
            continue

        barren = 0
        seen |= keys_of(children)
        candidates = [*candidates, *children]
        ranks = np.concatenate([ranks, rank(architectures_of(children))])

    # Ties keep the order of creation, which depends on the random generator alone.
    return best_first(with_ranks(candidates, ranks))


def with_ranks(candidates: Iterable[Candidate], ranks: Array) -> list[Ranked]:
    """Return m candidates with their ranks, (m,) float64."""
    return list(map(Ranked, candidates, np.asarray(ranks, np.float64).tolist()))


def best_first(ranked: Iterable[Ranked]) -> list[Ranked]:
    """Return candidates by descending rank; candidates of equal rank keep their order."""
    return sorted(ranked, key=lambda entry: -entry.rank)


def best_new(ranked: Sequence[Ranked], taken: Collection[str]) -> Ranked | None:
    """Return the best candidate of a functional key not in `taken`; None if there is none."""
    for entry in ranked:
        if entry.architecture.functional_key not in taken:
            return entry

    return None


def selection_probabilities(scores: Array) -> Array:
    """Return pi: probabilities proportional to exp(score / standard deviation of the scores).

    Equal scores have equal probabilities. A score of -inf has probability 0, unless all have it.

    Args:
        scores: (n,) float64, n >= 1, no NaN and no +inf.
    """
    finite = np.isfinite(scores)
    if not finite.any():
        return np.full(len(scores), 1.0 / len(scores))

    sigma = scores[finite].std()
    if sigma == 0.0:
        sigma = 1.0

    weights = np.exp((scores - scores.max()) / sigma)
    probabilities: Array = weights / weights.sum()
    return probabilities


def _weights(ranks: Array, logarithmic: bool) -> Array:
    if not logarithmic or not np.isfinite(ranks).any():
        return selection_probabilities(ranks)

    # g / sigma is invariant to a constant factor of g, so that the logarithms can be shifted before
    # exp to avoid underflow.
    return selection_probabilities(np.exp(ranks - ranks.max()))


def starts(history: History) -> Sequence[Architecture]:
    """Return the evaluated networks of the initial population, at most `MOST_PARENTS`.

    Of more, these have the greatest scores.
    """
    if len(history.known) <= MOST_PARENTS:
        return list(history.known.values())

    best = np.argsort(-history.scores, kind="stable")[:MOST_PARENTS].tolist()
    return architectures_of(take(history.usable, best))


def mutate(space: Space, candidate: Candidate, rng: np.random.Generator) -> Candidate:
    """Return a random mutation of a candidate."""
    return candidate.after(space.mutate(candidate.architecture, rng))


def distinct_candidates(candidates: Sequence[Candidate], taken: Collection[str]) -> list[Candidate]:
    """Return the candidates in order, without taken and repeated functional keys."""
    by_key = {}
    for candidate in reversed(candidates):
        by_key[candidate.architecture.functional_key] = candidate

    return [candidate for key, candidate in reversed(by_key.items()) if key not in taken]
