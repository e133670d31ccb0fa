"""Genotypes as architectures, and back: the conventions of the spaces `darts` and `nasnet`.

A normal and a reduction cell are one architecture: two graphs side by side between `ip` and `op`.
Labels begin with the name of the cell, `normal.` or `reduce.`:

| layer            | published form                     | fed by                           |
|------------------|------------------------------------|----------------------------------|
| `c_k-2`, `c_k-1` | states 0 and 1: the last 2 outputs | `ip`                             |
| an operation     | a pair of operation and state      | an entry, or a node's operations |
| `sum`            | a node in the cell's output        | both operations of the node      |
| `op`             | the outputs of both cells          | every `sum`                      |

For example, with node 2 the sum of a on state 0 and b on state 1, and node 3 the sum of c on state
0 and d on node 2:

    c_k-2 ─> a, c       a ─> d, sum of node 2       c ─> sum of node 3       both sums ─> op
    c_k-1 ─> b          b ─> d, sum of node 2       d ─> sum of node 3

- An operation of the normal cell and one of the reduction cell are different choices, hence the
  names of the cells.
- Operations feed operations directly, as in `nasbench201`: paths, n-grams and Cypher patterns of
  consecutive operations have no layers between them. The two operations of a node feed the same
  layers, and are known by that.
- Entries and sums compute nothing and have no mass. Strides are not stored: in the reduction cell,
  an operation on an entry has stride 2.
- `none` is a layer, so that a genotype round-trips exactly. Its output is zero, so no path passes
  it: `Architecture.functional` lacks it, and everything that depends on it alone, whose outputs are
  constant. That form is read as a genotype too, with `none` for absent operations.
- `from_genotype` lists the layers cell by cell and node by node, in the order of the genotype, and
  `to_genotype` reads them in the order of the architecture: `to_genotype(from_genotype(genotype))
  == genotype`. Isomorphic genotypes, with the pairs of a node exchanged or nodes renumbered, have
  one `key`; `to_genotype(architecture.canonical)` is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

from archive.architecture.codec_checks import built
from archive.architecture.genotypes.genotype import (
    INPUTS,
    RULES,
    Choice,
    Genotype,
    GenotypeRules,
    parse,
    rules_of,
)
from archive.architecture.genotypes.operations import CELLS, ENTRIES, EXIT, NONE, label, name_of
from archive.architecture.graph import Architecture, Edge, Layer
from archive.architecture.operations import INPUT, OUTPUT, vocabulary
from archive.errors import CodecError, InvalidArchitectureError

Node = tuple[int, ...]
"""Positions of the operations of a node, ascending."""


def from_genotype(described: Any, space: str | None = None) -> Architecture:
    """Return the architecture of a genotype.

    Args:
        described: Whatever `archive.architecture.genotypes.genotype.parse` reads: a genotype, its
            text or its JSON.
        space: `darts` or `nasnet`; None for the first of them that has the genotype.

    Raises:
        CodecError: It describes no genotype of the space.
        UnknownNameError: The architectures of the space are no genotypes.
    """
    genotype = parse(described)
    candidates = list(RULES.values()) if space is None else [rules_of(space)]
    faults = []
    for rules in candidates:
        fault = rules.fault(genotype)
        if fault is None:
            return assemble(genotype, rules.space)

        faults.append(f"no genotype of {rules.space}: {fault}")

    raise CodecError("; ".join(faults))


def assemble(genotype: Genotype, space: str) -> Architecture:
    """Return the architecture of a genotype that a space has, without further checks."""
    return built(space, *_graph(genotype))


def to_genotype(architecture: Architecture) -> Genotype:
    """Return the genotype of an architecture of `darts` or `nasnet`, in the order of its layers.

    Operations that are absent, as in `Architecture.functional`, are `none`.

    Raises:
        CodecError: The architecture is of another space.
        InvalidArchitectureError: It is no pair of cells; the message gives the reason. Whether the
            space has the genotype is not checked: see `archive.architecture.genotypes.genotype`.
    """
    if architecture.space not in RULES:
        raise CodecError(
            f"the architecture must be of space {' or '.join(RULES)}, got {architecture.space}"
        )

    _check_ends(architecture)
    rules = RULES[architecture.space]
    normal = _CellReader(architecture, "normal").read(rules)
    reduce = _CellReader(architecture, "reduce").read(rules)
    return Genotype(*normal, *reduce)


def _graph(genotype: Genotype) -> tuple[list[Layer], list[Edge]]:
    """Return layers in topological order, so that the constructor of `Architecture` keeps it."""
    layers = [Layer(INPUT)]
    edges = list[Edge]()
    exits = []

    def add(op: str, feeders: Iterable[int]) -> None:
        edges.extend(product(feeders, [len(layers)]))
        layers.append(Layer(op))

    for cell, choices, concat in zip(CELLS, genotype[::2], genotype[1::2], strict=True):
        states: list[Node] = []
        for entry in ENTRIES:
            states.append((len(layers),))
            add(label(cell, entry), [0])

        for first in range(0, len(choices), 2):
            node = (len(layers), len(layers) + 1)
            for operation, state in choices[first : first + 2]:
                add(label(cell, operation), states[state])

            if len(states) in concat:
                exits.append(len(layers))
                add(label(cell, EXIT), node)

            states.append(node)

    add(OUTPUT, exits)
    return layers, edges


def _check_ends(architecture: Architecture) -> None:
    """Check that the input feeds entries only, and that the output is fed by exits only."""
    layers = architecture.layers
    groups = architecture.groups
    for tail, head in architecture.edges:
        if (tail == 0) != (groups[head] == "entry"):
            raise InvalidArchitectureError(
                f"the input, and only it, feeds entries, got {layers[tail].op}→{layers[head].op}",
                head,
            )

        if (groups[tail] == "exit") != (groups[head] == "output"):
            raise InvalidArchitectureError(
                f"sums, and only they, feed the output, got {layers[tail].op}→{layers[head].op}",
                tail,
            )


class _CellReader:
    """Reads one cell of an architecture.

    Args:
        architecture: An architecture whose input feeds entries only, and whose output is fed by
            exits only.
        cell: Name of the cell.
    """

    def __init__(self, architecture: Architecture, cell: str) -> None:
        self.architecture = architecture
        self.cell = cell
        words = vocabulary(architecture.space)
        members: dict[str, list[int]] = {"entry": [], "cell": [], "exit": []}
        for u, layer in enumerate(architecture.layers):
            if words[layer.op].part == cell:
                members[words[layer.op].group].append(u)

        self.entries, self.operations, self.exits = members.values()

    def read(self, rules: GenotypeRules) -> tuple[tuple[Choice, ...], tuple[int, ...]]:
        """Return the choices of the cell, and the states that its output concatenates.

        Raises:
            InvalidArchitectureError: The layers are no cell of the space's number of nodes.
        """
        states: dict[Node, int] = self._entry_states()
        nodes = sorted(self._nodes(), key=max)
        if len(nodes) > rules.nodes:
            raise InvalidArchitectureError(
                f"a cell has {rules.nodes} nodes, got {len(nodes)} ({self.cell})"
            )

        choices: list[Choice] = []
        for state, node in enumerate(nodes, start=INPUTS):
            read = [self._choice(u, states) for u in node]
            choices += _complete(read, rules.sources(state))
            states[node] = state

        concat = [states[self.architecture.parents[u]] for u in self.exits]
        if len(set(concat)) < len(concat):
            raise InvalidArchitectureError(
                "a node has one sum, got two of the same operations", self.exits[-1]
            )

        for state in range(INPUTS + len(nodes), INPUTS + rules.nodes):
            choices += _complete([], rules.sources(state))
            concat.append(state)

        return tuple(choices), tuple(sorted(concat))

    def _entry_states(self) -> dict[Node, int]:
        states: dict[Node, int] = {}
        for u in self.entries:
            state = ENTRIES.index(name_of(self.architecture.layers[u].op))
            if state in states.values():
                raise InvalidArchitectureError(
                    f"a cell has one {ENTRIES[state]}, got two ({self.cell})", u
                )

            states[u,] = state

        return states

    def _nodes(self) -> Iterator[Node]:
        """Yield the nodes: the sets of operations that feed one layer, each once.

        Of two operations of a node, everything that one feeds is fed by the other; every operation
        is in a node.
        """
        node_of: dict[int, Node] = {}
        for u in (*self.operations, *self.exits):
            node = self.architecture.parents[u]
            if len(node) == 1 and node[0] in self.entries and u not in self.exits:
                continue

            for operation in node:
                if operation not in self.operations or node_of.setdefault(operation, node) != node:
                    raise InvalidArchitectureError(
                        (
                            f"{self._op(u)} is fed by neither one entry "
                            "nor all operations of one node of its cell"
                        ),
                        u,
                    )

            if not 1 <= len(node) <= 2:
                raise InvalidArchitectureError(
                    f"a node is the sum of two operations, got {len(node)} that feed {self._op(u)}",
                    u,
                )

        for u in self.operations:
            if u not in node_of:
                raise InvalidArchitectureError(f"{self._op(u)} is in no node: it feeds nothing", u)

        yield from dict.fromkeys(node_of.values())

    def _choice(self, u: int, states: dict[Node, int]) -> Choice:
        return name_of(self._op(u)), states[self.architecture.parents[u]]

    def _op(self, u: int) -> str:
        return self.architecture.layers[u].op


def _complete(read: list[Choice], sources: tuple[tuple[int, int], ...]) -> list[Choice]:
    """Return the two choices of a node; absent ones are `none` on the first states it may read."""
    if len(read) == 2:
        return read

    state = read[0][1] if read else sources[0][0]
    first = read or [(NONE, state)]
    pair = next(pair for pair in sources if state in pair)
    return [*first, (NONE, pair[1] if pair[0] == state else pair[0])]
