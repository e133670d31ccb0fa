"""Adjacency encodings: matrix and operations of the vertices in a fixed order; Hamming.

White, Neiswanger, Savani: BANANAS, section 4 and ablations (1) and (2) of section 5.1; the
continuous one is from Ying et al., NAS-Bench-101 (2019).

| symbol  | meaning                                                           | NB101   | NB201  |
|---------|-------------------------------------------------------------------|---------|--------|
| A_uv    | 1 if vertex u feeds vertex v; feature `u→v`                       | 21      | 0      |
| O_uo    | 1 if vertex u has operation o; feature `u=o`                      | 5 x 3   | 6 x 5  |
| k       | number of edges; feature `edges`, in the continuous encoding only | 1       | 1      |

Vertices are in canonical order (`Architecture.canonical`), which the paper calls arbitrary: all
relabellings of a network share it, but one more edge may change the place of every vertex. The
input is `ip`, the output `op`, the others `1`, `2`, ...; the output has its own name so that edges
into it are the same features in networks of any size.

A space may have slots (`Space.slots`): a cell of `nasbench201` is a complete graph with operations
on its six edges, `none` among them. Its features are the operations of the slots, `0-1=none`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import ClassVar, Literal, NamedTuple, final

from archive import spaces
from archive.architecture.graph import Architecture
from archive.architecture.operations import INPUT, OUTPUT
from archive.kernels.features.embedding import EmbeddedDistance
from archive.kernels.features.paths import label
from archive.spaces.base import NONE, Space
from archive.values import check_flag


class AdjacencyTable(NamedTuple):
    """Vertices and edges of a network in the order of its encoding.

    Attributes:
        edges: Names of the adjacency entries that are 1.
        operations: Place to operation, input and output left out.
        edge_count: Number of edges.
    """

    edges: tuple[str, ...]
    operations: Mapping[str, str]
    edge_count: int


class CellEncoding(EmbeddedDistance):
    """A distance of adjacency matrices and operations, in one component.

    Args:
        attributes: Put binned units and strides into the operations
            (`archive.kernels.features.paths.label`).

    Raises:
        UsageError: A setting is out of range.
    """

    def __init__(self, attributes: bool = False) -> None:
        self.attributes = check_flag("attributes", attributes)

    @property
    def components(self) -> tuple[str, ...]:
        """Return the name."""
        return (self.name,)


@final
class AdjacencyEncoding(CellEncoding):
    """The Euclidean distance of adjacency matrices with one-hot operations.

    d = sqrt(sum_uv (A_uv - A'_uv)^2 + sum_uo (O_uo - O'_uo)^2): the square root of the number of
    entries that differ, where another operation counts 2. A metric of cells, as the encoding
    describes them exactly; a pseudo-metric where layers have units, as units do not count, or only
    as bins. exp(-beta d) and exp(-beta d^2) are positive semi-definite.

    Preparing costs the canonical order, usually O(edges * log(layers)). Choose it as the baseline
    of BANANAS, or for a fixed vertex order as in NAS-Bench-201; elsewhere similar networks may have
    very different matrices. BANANAS, section 4 and ablation (1) of section 5.1.

    Args:
        attributes: Put binned units and strides into the operations
            (`archive.kernels.features.paths.label`).

    Raises:
        UsageError: A setting is out of range.
    """

    name: ClassVar[str] = "adjacency"
    norm: ClassVar[Literal["l1", "l2"]] = "l2"

    def features(self, architecture: Architecture) -> tuple[Mapping[str, float], ...]:
        """Return the entries that are 1.

        Raises:
            InvalidArchitectureError: The space has slots, and the network is not a member of it.
        """
        return (_entries(table(architecture, self.attributes)),)


@final
class ContinuousAdjacencyEncoding(CellEncoding):
    """The Euclidean distance of NAS-Bench-101's continuous adjacency encodings.

    In that encoding a point consists of a number in [0, 1] for each pair of vertices, the
    operations, and the number k of edges; it encodes the cell with the k largest entries as
    edges. Many points encode one cell; as in BANANAS' code, this encoding uses 1 for an edge, 0
    for none, and k. So d^2 is the squared adjacency distance plus (k - k')^2.

    A metric where the adjacency distance is one, positive semi-definite under the same conditions,
    and of the same cost. Choose it over the plain encoding where the number of edges matters by
    itself. BANANAS, ablation (2) of section 5.1.

    Args:
        attributes: Put binned units and strides into the operations
            (`archive.kernels.features.paths.label`).

    Raises:
        UsageError: A setting is out of range.
    """

    name: ClassVar[str] = "adjacency-continuous"
    norm: ClassVar[Literal["l1", "l2"]] = "l2"

    def features(self, architecture: Architecture) -> tuple[Mapping[str, float], ...]:
        """Return the entries that are not 0.

        Raises:
            InvalidArchitectureError: The space has slots, and the network is not a member of it.
        """
        encoded = table(architecture, self.attributes)
        return ({**_entries(encoded), "edges": float(encoded.edge_count)},)


def table(architecture: Architecture, attributes: bool = False) -> AdjacencyTable:
    """Return the vertices and edges of a network in the order of its encoding.

    Raises:
        InvalidArchitectureError: The space has slots, and the network is not a member of it.
    """
    slots = slots_of(architecture.space)(architecture)
    if slots is not None:
        return AdjacencyTable((), slots, len(slots) - list(slots.values()).count(NONE))

    canonical = architecture.canonical
    last = len(canonical.layers) - 1
    places = [INPUT, *map(str, range(1, last)), OUTPUT]
    edges = tuple(f"{places[u]}→{places[v]}" for u, v in canonical.edges)
    operations = {}
    for position, layer in zip(places[1:last], canonical.layers[1:last], strict=True):
        operations[position] = label(layer, attributes)

    return AdjacencyTable(edges, operations, len(edges))


def _entries(encoded: AdjacencyTable) -> dict[str, float]:
    return dict.fromkeys([*encoded.edges, *map("=".join, encoded.operations.items())], 1.0)


@cache
def has_slots(space: str) -> bool:
    """Return whether the networks of a space are operations in the same places."""
    return slots_of(space) is not Space.slots


def slots_of(space: str) -> Callable[[Architecture], Mapping[str, str] | None]:
    """Return `Space.slots` of the space of this name."""
    # A vocabulary may exist without a space of the same name.
    kind = spaces.registry.load(space) if space in spaces.names() else Space
    slots: Callable[[Architecture], Mapping[str, str] | None] = kind.slots
    return slots


@final
class Hamming(CellEncoding):
    """Number of differing entries of the adjacency matrix and of the list of operations.

    A metric of cells, and a pseudo-metric where layers have units, as units do not count, or only
    as bins; always a whole number. exp(-beta d) is positive semi-definite for every beta > 0, as d
    is an L1 distance of features.

    Preparing costs the canonical order, usually O(edges * log(layers)). Choose it as a baseline,
    and for `nasbench201`, where it is the number of the cell's six edges with different operations;
    elsewhere one more edge can move every vertex to another place of the canonical order. BANANAS,
    section 5.1.

    Args:
        attributes: Put binned units and strides into the operations
            (`archive.kernels.features.paths.label`).

    Raises:
        UsageError: A setting is out of range.
    """

    name: ClassVar[str] = "hamming"
    norm: ClassVar[Literal["l1", "l2"]] = "l1"

    def features(self, architecture: Architecture) -> tuple[Mapping[str, float], ...]:
        """Return the entries, and each operation as two halves.

        One half encodes the operation, the other the existence of the vertex, so that another
        operation and a missing vertex are both at L1 distance 1.

        Raises:
            InvalidArchitectureError: The space has slots, and the network is not a member of it.
        """
        encoded = table(architecture, self.attributes)
        features = dict.fromkeys(encoded.edges, 1.0)
        for vertex, operation in encoded.operations.items():
            features[f"{vertex}={operation}"] = 0.5
            features[vertex] = 0.5

        return (features,)
