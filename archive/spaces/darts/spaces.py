"""Base class of the spaces of genotypes: sampling, mutation and neighbours as in BANANAS' code.

White, Neiswanger, Savani: BANANAS, section 5; its DARTS space is `darts/arch.py` of
naszilla/naszilla, and the neighbours follow `nas_bench_301/cell_301.py` there.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, final

import numpy as np

from archive.architecture.genotypes.codec import assemble, to_genotype
from archive.architecture.genotypes.genotype import INPUTS, RULES, Choice, Genotype, GenotypeRules
from archive.architecture.genotypes.operations import CELLS, NONE
from archive.architecture.graph import Architecture
from archive.errors import CodecError, InvalidArchitectureError, SettingsError
from archive.spaces.base import Mutation, check_space, refuse_settings
from archive.spaces.cell import CellSpace
from archive.spaces.decisions import Decision, Decisions, Vector

Cells = tuple[tuple[Choice, ...], ...]
"""The choices of the normal and of the reduction cell."""


class GenotypeSpace(CellSpace):
    """Pairs of a normal and a reduction cell.

    Args:
        none: Whether operations may be `none`. True in BANANAS; DARTS and NAS-Bench-301 have none
            of them.
        **config: Refused.

    Raises:
        SettingsError: `none` is not a boolean.
        UnknownNameError: There is another setting.
    """

    def __init__(self, none: bool = True, **config: Any) -> None:
        """Check the settings."""
        refuse_settings(self.name, config)
        if not isinstance(none, bool):
            raise SettingsError(f"none must be true or false, got {none!r}")

        self.none = none

    @property
    @abstractmethod
    def rules(self) -> GenotypeRules:
        """The rules of the space."""

    @property
    def config(self) -> dict[str, Any]:
        """Whether operations may be `none`."""
        return {"none": self.none}

    @property
    def primitives(self) -> tuple[str, ...]:
        """Names of the operations that a member may have."""
        return tuple(name for name in self.rules.primitives if self.none or name != NONE)

    @property
    def size(self) -> int:
        """Number of genotypes, the order of a node's two choices left out.

        Isomorphic ones count separately.
        """
        q = len(self.primitives)
        total = 1
        for state in range(INPUTS, INPUTS + self.rules.nodes):
            pairs = self.rules.sources(state)
            same = sum(first == second for first, second in pairs)
            total *= (len(pairs) - same) * q**2 + same * q * (q + 1) // 2

        return total * total

    def decisions(self) -> Decisions:
        """Return the decisions on the states that each node reads, and on its operations."""
        return GenotypeDecisions(self)

    @staticmethod
    def slots(architecture: Architecture) -> dict[str, str]:
        """Return the operation between each state and later node, `normal.0-2` to `reduce.4-5`.

        Nodes are in canonical order, so that all relabellings of a network have the same slots. Two
        operations between one state and one node are joined by a `+`.
        """
        genotype = _genotype_of(architecture.functional.canonical)
        slots: dict[str, str] = {}
        for cell, choices in zip(CELLS, (genotype.normal, genotype.reduce), strict=True):
            between: dict[tuple[int, int], list[str]] = {}
            for number, (operation, state) in enumerate(choices):
                if operation != NONE:
                    between.setdefault((state, INPUTS + number // 2), []).append(operation)

            for node in range(INPUTS, INPUTS + len(choices) // 2):
                for state in range(node):
                    slots[f"{cell}.{state}-{node}"] = "+".join(
                        sorted(between.get((state, node), [NONE]))
                    )

        return slots

    def validate(self, architecture: Architecture) -> None:
        """Check that the architecture is a genotype, or one without its operations `none`.

        Raises:
            InvalidArchitectureError: It is not; the message gives the reason.
        """
        check_space(self.name, architecture)
        genotype = _genotype_of(architecture)
        fault = self.rules.fault(genotype)
        if fault is not None:
            raise InvalidArchitectureError(fault)

        if self.none:
            return

        for operation, _ in (*genotype.normal, *genotype.reduce):
            if operation == NONE:
                raise InvalidArchitectureError(
                    "the space has no operation none (setting none=false), but the network does"
                )

    def sample(self, rng: np.random.Generator) -> Architecture:
        """Draw each operation, and each pair of states that a node reads, uniformly."""
        normal = tuple(self._draw_choices(rng))
        reduce = tuple(self._draw_choices(rng))
        return self.built((normal, reduce))

    def mutate(self, architecture: Architecture, rng: np.random.Generator) -> Mutation:
        """Change one choice, drawn uniformly until a network of another `functional_key` results.

        As in BANANAS' code: one of the two cells, one of its choices, and either another operation
        or another state, in `darts` not the state of the node's other choice.
        """
        cells = _cells(architecture)
        while True:
            cell = int(rng.integers(len(CELLS)))
            position = int(rng.integers(len(cells[0])))
            if rng.integers(2):
                name = "swap_label"
                options = self._relabel(cells[cell], position)
            else:
                name = "swap_input"
                options = self._rewire(cells[cell], position)

            if not options:
                continue

            child = self.built(
                _replace(cells, cell, position, options[int(rng.integers(len(options)))])
            )
            if child.functional_key != architecture.functional_key:
                return Mutation(child, (name,))

    def neighbours(self, architecture: Architecture) -> Iterator[Mutation]:
        """Yield the networks with another operation, or another state, in one choice."""
        cells = _cells(architecture)
        seen = {architecture.key}
        for cell, choices in enumerate(cells):
            for position in range(len(choices)):
                edits = [
                    ("swap_label", self._relabel(choices, position)),
                    ("swap_input", self._rewire(choices, position)),
                ]
                for name, options in edits:
                    for choice in options:
                        child = self.built(_replace(cells, cell, position, choice))
                        if child.key not in seen:
                            seen.add(child.key)
                            yield Mutation(child, (name,))

    def built(self, cells: Cells) -> Architecture:
        """Return the architecture of the choices of both cells."""
        normal, reduce = cells
        genotype = Genotype(normal, self.rules.outputs(normal), reduce, self.rules.outputs(reduce))
        return assemble(genotype, self.name)

    def _draw_choices(self, rng: np.random.Generator) -> Iterator[Choice]:
        for node in range(INPUTS, INPUTS + self.rules.nodes):
            states = rng.choice(node, size=2, replace=self.rules.repeats)
            operations = rng.integers(len(self.primitives), size=2)
            for op, state in zip(operations, states, strict=True):
                yield self.primitives[op], int(state)

    def _relabel(self, choices: Sequence[Choice], position: int) -> list[Choice]:
        """Return the choices with another operation."""
        operation, state = choices[position]
        return [(other, state) for other in self.primitives if other != operation]

    def _rewire(self, choices: Sequence[Choice], position: int) -> list[Choice]:
        """Return the choices with another state that the node may read."""
        operation, state = choices[position]
        # The partner of an even position is the next position, of an odd one the position before.
        taken = {state} if self.rules.repeats else {state, choices[position ^ 1][1]}
        return [(operation, other) for other in range(INPUTS + position // 2) if other not in taken]


def _genotype_of(architecture: Architecture) -> Genotype:
    """Return the genotype of an architecture.

    Raises:
        InvalidArchitectureError: It has none.
    """
    try:
        return to_genotype(architecture)
    except CodecError as error:
        raise InvalidArchitectureError(str(error)) from None


def _cells(architecture: Architecture) -> Cells:
    genotype = to_genotype(architecture)
    return genotype.normal, genotype.reduce


def _replace(cells: Cells, cell: int, position: int, choice: Choice) -> Cells:
    changed = list(map(list, cells))
    changed[cell][position] = choice
    normal, reduce = changed
    return tuple(normal), tuple(reduce)


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
        self._sources: dict[int, tuple[Pair, ...]] = {}
        for node in range(INPUTS, INPUTS + genotypes.rules.nodes):
            self._sources[node] = genotypes.rules.sources(node)

        self.decisions = tuple(self._name_decisions())

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
            for first in range(0, len(choices), 2):
                vector += self._encode_node(INPUTS + first // 2, choices[first : first + 2])

        return tuple(vector)

    def build(self, vector: Vector) -> Architecture:
        """See `Decisions.build`."""
        choices = iter(vector)
        normal = tuple(self._choices(choices))
        reduce = tuple(self._choices(choices))
        return self._genotypes.built((normal, reduce))

    def _name_decisions(self) -> Iterator[Decision]:
        for cell in CELLS:
            for node, pairs in self._sources.items():
                if len(pairs) > 1:
                    states = tuple(f"{first}-{second}" for first, second in pairs)
                    yield Decision(f"{cell} node {node} reads", states)

                yield Decision(f"{cell} node {node} operation 1", self._primitives)
                yield Decision(f"{cell} node {node} operation 2", self._primitives)

    def _encode_node(self, node: int, choices: Sequence[Choice]) -> list[int]:
        (first, low), (second, high) = sorted(choices, key=lambda choice: (choice[1], choice[0]))
        pairs = self._sources[node]
        read = [pairs.index((low, high))] if len(pairs) > 1 else []
        return [*read, self._primitives.index(first), self._primitives.index(second)]

    def _choices(self, positions: Iterator[int]) -> Iterator[Choice]:
        for pairs in self._sources.values():
            low, high = pairs[next(positions)] if len(pairs) > 1 else pairs[0]
            yield self._primitives[next(positions)], low
            yield self._primitives[next(positions)], high


@final
class Darts(GenotypeSpace):
    """Normal and reduction cell of DARTS: four nodes, sums of two operations on earlier states."""

    name = "darts"
    # Input, output, and for each cell two entries, eight operations and four sums.
    vertices = 30

    @property
    def rules(self) -> GenotypeRules:
        """The rules of DARTS, section 3.1."""
        return RULES[self.name]


@final
class NasNet(GenotypeSpace):
    """Cells like NASNet's and AmoebaNet's: five nodes each, operations of the DARTS repository."""

    name = "nasnet"
    # Input, output, and for each cell two entries, ten operations and at most five sums.
    vertices = 36

    @property
    def rules(self) -> GenotypeRules:
        """The rules of NASNet, section 3."""
        return RULES[self.name]
