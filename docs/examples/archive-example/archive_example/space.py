"""A space: chains of five cells, each of one of three operations."""

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

import numpy as np

from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import INPUT, OUTPUT, Operation, define
from archive.errors import InvalidArchitectureError
from archive.spaces.base import Mutation, check_space
from archive.spaces.cell import CellSpace
from archive.spaces.decisions import Decision, Decisions, Vector

OPERATIONS = ("conv", "pool", "skip")
LENGTH = 5

define(
    "chains",
    [
        Operation("conv", "cell", kernel=3),
        Operation("pool", "cell", kernel=3, pools=True),
        Operation("skip", "cell"),
    ],
    longest_path=LENGTH,
)


class Chains(CellSpace):
    """All 243 chains of five operations."""

    name = "chains"
    vertices = LENGTH + 2

    def validate(self, architecture: Architecture) -> None:
        """Refuse networks that are no chain of five operations."""
        check_space(self.name, architecture)
        operations = [layer.op for layer in architecture.layers[1:-1]]
        if len(operations) != LENGTH or architecture.key != chain(operations).key:
            raise InvalidArchitectureError(
                f"{self.name} holds chains of {LENGTH} operations, got {architecture!r}"
            )

    def members(self) -> Sequence[Architecture]:
        """Return all chains."""
        return [chain(operations) for operations in product(OPERATIONS, repeat=LENGTH)]

    def decisions(self) -> Decisions:
        """Return one decision for each cell."""
        return ChainDecisions(self)

    def sample(self, rng: np.random.Generator) -> Architecture:
        """Draw the operations uniformly."""
        return chain(rng.choice(OPERATIONS, LENGTH).tolist())

    def mutate(self, architecture: Architecture, rng: np.random.Generator) -> Mutation:
        """Draw one of the neighbours."""
        mutations = list(self.neighbours(architecture))
        return mutations[rng.integers(len(mutations))]

    def neighbours(self, architecture: Architecture) -> Iterator[Mutation]:
        """Yield the chains that differ in one operation."""
        own = [layer.op for layer in architecture.layers[1:-1]]
        for at, operation in product(range(LENGTH), OPERATIONS):
            if operation != own[at]:
                yield Mutation(chain([*own[:at], operation, *own[at + 1 :]]), ("swap_label",))


class ChainDecisions(Decisions):
    """The operation of each cell: what TPE, REINFORCE and TreeBO search over."""

    decisions = tuple(Decision(f"cell {at}", OPERATIONS) for at in range(LENGTH))

    def needed(self, prefix: Sequence[int]) -> bool:
        """Every cell has an operation."""
        return True

    def encode(self, architecture: Architecture) -> Vector | None:
        """Return the operations by number."""
        if not self.space.contains(architecture):
            return None

        return tuple(OPERATIONS.index(layer.op) for layer in architecture.layers[1:-1])

    def build(self, vector: Vector) -> Architecture:
        """Return the chain."""
        return chain([OPERATIONS[at] for at in vector])


def chain(operations: Sequence[str]) -> Architecture:
    """Return the chain of some operations."""
    layers = [Layer(INPUT), *map(Layer, operations), Layer(OUTPUT)]
    return Architecture("chains", layers, pairwise(range(len(layers))))
