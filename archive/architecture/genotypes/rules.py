"""Rules of the spaces of genotypes: which pairs of cells they have.

|                            | `darts` (DARTS, section 3.1) | `nasnet` (NASNet, section 3)          |
|----------------------------|------------------------------|---------------------------------------|
| nodes of a cell            | 4                            | 5                                     |
| operations                 | 8, `none` included           | 10: the same and two more             |
| states that a node reads   | two different ones           | any two                               |
| output of a cell           | all nodes                    | the nodes that no operation reads     |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement

from archive.architecture.genotypes.genotype import INPUTS, Choice, Genotype
from archive.architecture.genotypes.operations import CELLS, DARTS_PRIMITIVES, NASNET_PRIMITIVES
from archive.errors import UnknownNameError


@dataclass(frozen=True, slots=True)
class GenotypeRules:
    """The rules of one space.

    Attributes:
        space: Name of the space and of its vocabulary.
        nodes: Nodes of a cell.
        primitives: Names of the operations.
        repeats: Whether both operations of a node may read one state.
        every_node: Whether the output of a cell concatenates all nodes, or those that no operation
            reads.
    """

    space: str
    nodes: int
    primitives: tuple[str, ...]
    repeats: bool
    every_node: bool

    def sources(self, node: int) -> tuple[tuple[int, int], ...]:
        """Return the pairs of states that a node may read, each in ascending order.

        Args:
            node: Number of its state, the first node has 2.
        """
        pairs = combinations_with_replacement if self.repeats else combinations
        return tuple(pairs(range(node), 2))

    def outputs(self, choices: Sequence[Choice]) -> tuple[int, ...]:
        """Return the states that the output of a cell of these choices concatenates."""
        read = () if self.every_node else {state for _, state in choices}
        return tuple(
            state for state in range(INPUTS, INPUTS + len(choices) // 2) if state not in read
        )

    def fault(self, genotype: Genotype) -> str | None:
        """Return why the space does not have a genotype; None if it has it."""
        cells = (
            (genotype.normal, genotype.normal_concat),
            (genotype.reduce, genotype.reduce_concat),
        )
        for name, (choices, concat) in zip(CELLS, cells, strict=True):
            if len(choices) != 2 * self.nodes:
                return f"a cell has {self.nodes} nodes, got {len(choices) // 2} ({name})"

            for operation, _ in choices:
                if operation not in self.primitives:
                    return (
                        f"an operation is one of {', '.join(self.primitives)}, got "
                        f"{operation!r:.80} ({name})"
                    )

            for at in range(0, len(choices), 2):
                first = choices[at][1]
                second = choices[at + 1][1]
                if first == second and not self.repeats:
                    return (
                        f"a node reads two different states, got {first} twice ({name}, node "
                        f"{INPUTS + at // 2})"
                    )

            if concat != self.outputs(choices):
                which = "all nodes" if self.every_node else "the nodes that no operation reads"
                return (
                    f"the output concatenates {which}, {list(self.outputs(choices))}, got "
                    f"{list(concat)} ({name})"
                )

        return None


RULES = {
    rules.space: rules
    for rules in (
        GenotypeRules("darts", 4, DARTS_PRIMITIVES, repeats=False, every_node=True),
        GenotypeRules("nasnet", 5, NASNET_PRIMITIVES, repeats=True, every_node=False),
    )
}
"""The rules by the name of the space, the narrowest first."""


def rules_of(space: str) -> GenotypeRules:
    """Return the rules of a space.

    Raises:
        UnknownNameError: Its architectures are no genotypes.
    """
    try:
        return RULES[space]
    except KeyError:
        raise UnknownNameError("space of genotypes", space, RULES) from None
