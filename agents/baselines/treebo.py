"""TreeBO: optimisation of tree-structured decisions (Jenatton et al., 2017).

NASBOT has it as a baseline.

As no implementation was published, NASBOT's authors wrote one: feed-forward networks only, of every
depth of the space, the space's constraints checked before an evaluation, the whole covariance
matrix, and no training hyperparameters (appendix C.1). This implementation follows theirs. Cells
have one shape and are a single leaf; the model keeps its linear part and the leaf's Gaussian
process.

    step 1   the leaf with the largest acquisition among random completions and variants of the best observations
    step 2   local search in that leaf: the best change of one decision, until none is better
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import final

import numpy as np

from archive.agents.acquisition import functions as acquisitions
from archive.agents.base import (
    Agent,
    AgentInfo,
    History,
    Pending,
    Suggestion,
    check_count,
    first_of_pool,
    keys_of,
)
from archive.agents.baselines.random_search import samples
from archive.agents.encodings import ABSENT, Vector, decisions_of
from archive.agents.surrogates.base import Array
from archive.agents.surrogates.gp.tree import FittedTree, TreeFeatures, fit
from archive.spaces.base import Space
from archive.values import require_at_least

_RANDOM = 200
_BEST = 5
_VARIANTS = 20
"""Numbers of step 1: random completions, best observations, and variants of each of these."""
_ROUNDS = 15
_CHANGES = 60
"""Numbers of step 2: steps of a climb, and changes ranked in a step: all of a cell, some of a deep
chain's hundreds."""
_DECODED = 40
_LEAVES = 3
"""Number of best candidates of a leaf to decode, and of leaves, before a random network is
suggested."""


@final
class TreeBO(Agent):
    """Bayesian optimisation with a Gaussian process on conditional decisions.

    The space's initial pool comes first. Branched networks are ignored: they have no decisions.

    Args:
        space: The search space: cells, or `mlp` and `cnn`, of which it finds chains only.
        n_initial: Number of evaluations of the pool before the first of the model.
        acquisition: `ei`, `ucb` or `pi`.
        climbs: Number of local searches in a leaf.

    Raises:
        UsageError: A setting is out of range, or the space is not made of decisions.
    """

    kind = "treebo"
    info = AgentInfo(
        summary="Gaussian process over tree-structured decisions, a linear part shared by all "
        "leaves",
        paper="Jenatton et al., 2017, as in NASBOT",
        cost="O(n^3); half a second at 100 observations",
        when="feed-forward networks of open depth",
    )

    def __init__(
        self, space: Space, n_initial: int = 10, acquisition: str = "ei", climbs: int = 2
    ) -> None:
        """Check and keep the settings."""
        super().__init__(space)
        require_at_least(0, n_initial=n_initial)
        require_at_least(1, climbs=climbs)
        self.n_initial = n_initial
        self.acquisition = acquisition
        self.climbs = climbs
        self._acquisition = acquisitions.get_marginal(self.kind, acquisition)
        self._decisions = decisions_of(space, self.kind)
        self._features = TreeFeatures(self._decisions)

    def propose(self, history: History, n: int, rng: np.random.Generator) -> list[Suggestion]:
        """See `Agent.propose`."""
        check_count(n)
        suggestions = first_of_pool(self.space, history, self.n_initial, n, rng)
        taken = {*history.known, *keys_of(suggestions)}
        pending = history.with_pending(suggestions).pending
        model = self._learn(history, pending, rng) if len(suggestions) < n else None
        while model is not None and len(suggestions) < n:
            choice = self._choose(model, taken, rng)
            if choice is None:
                break

            vector, suggestion = choice
            suggestions.append(suggestion)
            taken.add(suggestion.architecture.functional_key)
            model = model.hallucinate([vector])

        # No usable evaluation is finished, or the leaf has no new member.
        return [*suggestions, *samples(self.space, n - len(suggestions), taken, rng)]

    def _learn(
        self, history: History, pending: Sequence[Pending], rng: np.random.Generator
    ) -> FittedTree | None:
        vectors: list[Vector] = []
        values: list[float] = []
        for observation in history.usable:
            vector = self._decisions.encode(observation.architecture)
            if vector is not None:
                vectors.append(vector)
                values.append(observation.score)

        if not vectors:
            return None

        scores = np.array(values, dtype=np.float64)
        fantasies = []
        for proposal in pending:
            vector = self._decisions.encode(proposal.architecture)
            if vector is not None:
                fantasies.append(vector)

        return fit(self._features, vectors, scores, rng).hallucinate(fantasies)

    def _choose(
        self, model: FittedTree, taken: Collection[str], rng: np.random.Generator
    ) -> tuple[Vector, Suggestion] | None:
        valued = self._predict(model, self._candidates(model, rng), rng)
        # The next leaf follows where the best candidates of one are no members, or known.
        leaves: dict[Vector, dict[Vector, float]] = {}
        for vector, rank in valued.items():
            leaves.setdefault(vector[: self._decisions.roots], {})[vector] = rank

        for inside in list(leaves.values())[:_LEAVES]:
            for vector, rank in list(self._climb(model, inside, rng).items())[:_DECODED]:
                network = self._decisions.decode(vector)
                if network is not None and network.functional_key not in taken:
                    posterior = model.posterior([vector])
                    value = self._acquisition.value(rank)
                    mean = float(posterior.mean[0])
                    std = float(posterior.std[0])
                    return vector, Suggestion(network, acquisition=value, mean=mean, std=std)

        return None

    def _candidates(self, model: FittedTree, rng: np.random.Generator) -> list[Vector]:
        nothing = [ABSENT] * len(self._decisions.decisions)
        random = [self._decisions.complete(nothing, rng) for _ in range(_RANDOM)]
        order = np.argsort(-model.process.values, kind="stable")[:_BEST]
        variants: list[Vector] = []
        for row in order:
            variants += [self._variant(model.vectors[row], rng) for _ in range(_VARIANTS)]

        return [*random, *variants]

    def _variant(self, vector: Vector, rng: np.random.Generator) -> Vector:
        """Return decisions with one of them redrawn; the depth is as likely as any other."""
        decided = [d for d, choice in enumerate(vector) if choice != ABSENT]
        changed = list(vector)
        changed[decided[rng.integers(len(decided))]] = ABSENT
        return self._decisions.complete(changed, rng)

    def _climb(
        self, model: FittedTree, inside: dict[Vector, float], rng: np.random.Generator
    ) -> dict[Vector, float]:
        """Return all decisions of one leaf that the local search ranked, best first."""
        for start in list(inside)[: self.climbs]:
            current = start
            for _ in range(_ROUNDS):
                around = self._predict(
                    model,
                    [vector for vector in self._changes(current, rng) if vector not in inside],
                    rng,
                )
                inside = {**inside, **around}
                best = next(iter(around), current)
                if inside[best] <= inside[current]:
                    break

                current = best

        return _best_first(inside)

    def _changes(self, vector: Vector, rng: np.random.Generator) -> list[Vector]:
        """Return neighbours by one choice in the same leaf, a random part of many."""
        changes: list[tuple[int, int]] = []
        for d in range(self._decisions.roots, len(vector)):
            if vector[d] != ABSENT:
                choices = range(len(self._decisions.decisions[d].choices))
                changes += [(d, choice) for choice in choices if choice != vector[d]]

        neighbours = []
        for index in rng.permutation(len(changes))[:_CHANGES]:
            d, choice = changes[index]
            changed = (*vector[:d], choice, *vector[d + 1 :])
            neighbours.append(self._decisions.complete(changed, rng))

        return neighbours

    def _predict(
        self, model: FittedTree, vectors: Sequence[Vector], rng: np.random.Generator
    ) -> dict[Vector, float]:
        """Return the acquisition of each, best first."""
        distinct = list(dict.fromkeys(vectors))
        if not distinct:
            return {}

        ranks: Array = self._acquisition.rank(model.posterior(distinct), rng)
        return _best_first(dict(zip(distinct, ranks.tolist(), strict=True)))


def _best_first(valued: dict[Vector, float]) -> dict[Vector, float]:
    return dict(sorted(valued.items(), key=lambda item: -item[1]))
