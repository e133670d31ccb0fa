"""Tree search over network morphisms by simulated annealing (Jin, Song, Hu 2018, Algorithm 1).

    symbol    meaning                                                     here
    H         networks evaluated so far                                   `history.usable`
    alpha     acquisition, comparable with scores                         `rank`
    c_min     best value so far, of H or of a candidate                   `best`
    Q         priority queue, the best value first                        `queue`
    Omega(f)  operations that network f can be morphed by                 `Moves.of`
    T         temperature: from 1, multiplied by r at every expansion     `temperature`
    T_low     temperature at which the search ends                        `lowest`

    while Q is not empty and T > T_low:
        T <- r T;  f <- Q.pop();  for every child f' of f by an operation of Omega(f):
            with probability exp((alpha(f') - c_min) / T): Q.push(f');  c_min <- the better of c_min and alpha(f')

The paper minimises; signs are reversed here. Choices that the paper leaves open:

- Scores have no common unit: T is in standard deviations of the values in H.
- Networks of H enter with their acquisition, which equals their score without noise. Noise
  therefore does not affect the expansion, and any acquisition can be used, logarithmic ones
  included.
- Omega(f) is a random choice of `children` operations, as in the authors' code, with its values r =
  0.9, T_low = 1e-4 and 8 as defaults: 88 expansions, 700 networks. A network of `cnn` has several
  hundred operations.
- The best child is returned even when its acquisition does not exceed all of H, as in the authors'
  code.
"""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import final

import numpy as np

from archive.agents.acquisition.candidate_generators import CandidateGenerator
from archive.agents.acquisition.evolution import Candidate, Rank, Ranked, best_first, with_ranks
from archive.agents.base import History, by_key, keys_of
from archive.agents.baselines.local_search import Neighbourhood
from archive.agents.surrogates.base import Array
from archive.architecture.graph import Architecture
from archive.architecture.networks import architectures_of
from archive.architecture.operations import vocabulary
from archive.errors import InvalidArchitectureError, UsageError
from archive.spaces import morphism
from archive.spaces.base import Mutation, Space
from archive.values import require_at_least


class Moves(ABC):
    """The children of a network by one operation."""

    @abstractmethod
    def of(
        self, architecture: Architecture, n: int, taken: Collection[str], rng: np.random.Generator
    ) -> list[Mutation]:
        """Return up to n random children, distinct members with keys that are not taken."""


@final
class MorphismMoves(Moves):
    """Morphisms of `archive.spaces.morphism`: networks grow, and children inherit weights.

    Deepening, widening, additive and concatenative skips are equally likely, regardless of the
    number of places for each.

    Args:
        space: A space of layers with decisions, `mlp` or `cnn`; its limits apply.

    Raises:
        UsageError: The space has no morphisms.
    """

    def __init__(self, space: Space) -> None:
        if not vocabulary(space.name).decisions:
            raise UsageError(f"morphisms are defined in the spaces cnn and mlp, got {space.name}")

        self.space = space

    def of(
        self, architecture: Architecture, n: int, taken: Collection[str], rng: np.random.Generator
    ) -> list[Mutation]:
        """See `Moves.of`."""
        left: dict[str, list[morphism.Choice]] = {}
        for name, calls in morphism.choices(architecture).items():
            left[name] = list(rng.permutation(np.array(calls)))

        children: dict[str, Mutation] = {}
        while left and len(children) < n:
            name = list(left)[rng.integers(len(left))]
            child = self._member(left[name].pop())
            if not left[name]:
                del left[name]

            if child is not None and child.functional_key not in taken:
                children.setdefault(child.functional_key, Mutation(child, (name,)))

        return list(children.values())

    def _member(self, call: morphism.Choice) -> Architecture | None:
        try:
            child = call()
        except InvalidArchitectureError:
            return None

        return child if self.space.contains(child) else None


@final
class NeighbourMoves(Moves):
    """The space's own mutations, which also shrink networks; the only moves of cells.

    Args:
        space: Any space.
    """

    def __init__(self, space: Space) -> None:
        self._neighbourhood = Neighbourhood(space)

    def of(
        self, architecture: Architecture, n: int, taken: Collection[str], rng: np.random.Generator
    ) -> list[Mutation]:
        """See `Moves.of`."""
        children = []
        for neighbour in self._neighbourhood.fresh(architecture, n, taken, rng):
            children.append(Mutation(neighbour.architecture, neighbour.operations))

        return children


@final
class MorphismTree(CandidateGenerator):
    """Algorithm 1: a candidate is an evaluated network with a sequence of operations applied.

    Args:
        space: The space; evaluated networks outside it are not expanded.
        moves: The operations.
        children: Operations tried at each expansion.
        decay: r, in (0, 1).
        lowest: T_low, in (0, 1).

    Raises:
        UsageError: A number is out of range.
    """

    name = "tree"

    def __init__(
        self,
        space: Space,
        moves: Moves,
        children: int = 8,
        decay: float = 0.9,
        lowest: float = 1e-4,
    ) -> None:
        require_at_least(1, children=children)
        for name, value in (("decay", decay), ("lowest", lowest)):
            if not 0.0 < value < 1.0:
                raise UsageError(f"{name} must be in (0, 1), got {value}")

        self.space = space
        self.moves = moves
        self.children = children
        self.decay = decay
        self.lowest = lowest

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
        del logarithmic  # Only differences of values matter.
        evaluated = by_key(architectures_of(history.usable))
        roots = list(filter(self.space.contains, evaluated.values()))
        if not roots:
            return []

        values = rank(roots)
        unit = _unit(values)
        best = float(values.max())
        temperature = 1.0
        queue = list(zip(-values, range(len(roots)), map(Candidate, roots), strict=True))
        heapq.heapify(queue)
        expanded: list[Ranked] = []
        taken = set(history.known)
        while queue and temperature > self.lowest:
            temperature *= self.decay
            for child in self._expand(heapq.heappop(queue)[2], rank, taken, rng):
                expanded.append(child)
                if accepts(child.rank, best, temperature * unit, rng):
                    heapq.heappush(
                        queue, (-child.rank, len(roots) + len(expanded), child.candidate)
                    )

                best = max(best, child.rank)

        return best_first(expanded)[:count]

    def _expand(
        self, parent: Candidate, rank: Rank, taken: set[str], rng: np.random.Generator
    ) -> list[Ranked]:
        moves = self.moves.of(parent.architecture, self.children, taken, rng)
        children = list(map(parent.after, moves))
        if not children:
            return []

        taken |= keys_of(children)
        return with_ranks(children, rank(architectures_of(children)))


def accepts(value: float, best: float, temperature: float, rng: np.random.Generator) -> bool:
    """Return whether simulated annealing accepts a value.

    The best value is always accepted, others with probability exp((value - best) / T).
    """
    draw = rng.random()
    return value >= best or bool(math.exp((value - best) / temperature) > draw)


def moves_of(name: str, space: Space) -> Moves:
    """Return the moves of a name: `morphisms`, `neighbours`, or `auto`.

    `auto` means morphisms where the space has them.

    Raises:
        UsageError: There are no moves of that name, or no morphisms in the space.
    """
    if name not in ("auto", "morphisms", "neighbours"):
        raise UsageError(f"moves must be auto, morphisms or neighbours, got {name!r}")

    if name == "auto":
        name = "morphisms" if vocabulary(space.name).decisions else "neighbours"

    return MorphismMoves(space) if name == "morphisms" else NeighbourMoves(space)


def _unit(values: Sequence[float] | Array) -> float:
    finite = np.asarray(values)[np.isfinite(values)]
    spread = float(finite.std()) if finite.size else 0.0
    return spread if spread > 0.0 else 1.0
