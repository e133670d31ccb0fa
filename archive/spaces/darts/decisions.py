"""Genotypes as categorical decisions: the states that each node reads, and its two operations.

| decision                  | choices                                                    |
|---------------------------|------------------------------------------------------------|
| `normal node 3 reads`     | `0-1`, `0-2`, `1-2`; no decision where there is one choice |
| `normal node 3 operation 1` | the operation on the first of the two states             |
| `normal node 3 operation 2` | the operation on the second                              |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, final

from archive.architecture.genotypes.codec import to_genotype
from archive.architecture.genotypes.genotype import INPUTS, Choice
from archive.architecture.genotypes.operations import CELLS
from archive.architecture.graph import Architecture
from archive.spaces.decisions import Decision, Decisions, Vector

if TYPE_CHECKING:
    from archive.spaces.darts.base import GenotypeSpace

Pair = tuple[int, int]


@final
class GenotypeDecisions(Decisions):
    """The decisions of a space of genotypes; every vector describes a member.

    Args:
        genotypes: The space.
    """

    def __init__(self, genotypes: GenotypeSpace) -> None:
        """Name the decisions cell by cell and node by node."""
        super().__init__(genotypes)
        self._genotypes = genotypes
        self._primitives = genotypes.primitives
        nodes = range(INPUTS, INPUTS + genotypes.rules.nodes)
        self._sources: dict[int, tuple[Pair, ...]] = {
            node: genotypes.rules.sources(node) for node in nodes
        }
        self.decisions = tuple(self._named())

    def needed(self, prefix: Sequence[int]) -> bool:
        """Every decision exists."""
        return True

    def encode(self, architecture: Architecture) -> Vector | None:
        """Return the decisions of the network, its nodes in canonical order."""
        if not self.space.contains(architecture):
            return None

        genotype = to_genotype(architecture.canonical)
        vector: list[int] = []
        for choices in (genotype.normal, genotype.reduce):
            for at in range(0, len(choices), 2):
                vector += self._encoded(INPUTS + at // 2, choices[at : at + 2])

        return tuple(vector)

    def build(self, vector: Vector) -> Architecture:
        """See `Decisions.build`."""
        choices = iter(vector)
        normal, reduce = (tuple(self._choices(choices)) for _ in CELLS)
        return self._genotypes.built((normal, reduce))

    def _named(self) -> Iterator[Decision]:
        for cell in CELLS:
            for node, pairs in self._sources.items():
                if len(pairs) > 1:
                    yield Decision(
                        f"{cell} node {node} reads",
                        tuple(f"{first}-{second}" for first, second in pairs),
                    )

                yield from (
                    Decision(f"{cell} node {node} operation {at}", self._primitives)
                    for at in (1, 2)
                )

    def _encoded(self, node: int, choices: Sequence[Choice]) -> list[int]:
        (first, low), (second, high) = sorted(choices, key=lambda choice: (choice[1], choice[0]))
        pairs = self._sources[node]
        read = [pairs.index((low, high))] if len(pairs) > 1 else []
        return [*read, self._primitives.index(first), self._primitives.index(second)]

    def _choices(self, positions: Iterator[int]) -> Iterator[Choice]:
        for pairs in self._sources.values():
            low, high = pairs[next(positions)] if len(pairs) > 1 else pairs[0]
            yield self._primitives[next(positions)], low
            yield self._primitives[next(positions)], high
