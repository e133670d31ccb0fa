"""Hamming distance of architectures: the number of differing adjacency entries and operations.

White, Neiswanger, Savani: BANANAS, section 5.1 ("Bayesian optimization with a GP model") and
ablation (4); the matrix representation among the baselines of the tree-Wasserstein paper (table 2).

| symbol | meaning                                        | from                          |
|--------|------------------------------------------------|-------------------------------|
| A      | adjacency matrix, smaller ones padded with 0   | `kernels.features.adjacency`  |
| o      | operation of each vertex, or that it is absent | `kernels.features.adjacency`  |

    d(x, y) = #{(u, v): A_uv != A'_uv} + #{u: o_u != o'_u}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, final

from archive.architecture.graph import Architecture
from archive.argument_checks import check_flag
from archive.kernels.features.adjacency import table
from archive.kernels.features.embedding import EmbeddedDistance


@final
class Hamming(EmbeddedDistance):
    """Number of differing entries of the adjacency matrix and of the list of operations.

    A metric of cells, and a pseudo-metric where layers have units, as units do not count, or only
    as bins; always a whole number. exp(-beta d) is positive semi-definite for every beta > 0, as d
    is an L1 distance of features.

    Preparing costs the canonical order, usually O(edges * log(layers)). Choose it as a baseline,
    and for `nasbench201`, where it is the number of the cell's six edges whose operations differ;
    elsewhere one more edge can move every vertex to another place of the canonical order. BANANAS,
    section 5.1.

    Args:
        attributes: Put binned units and strides into the operations
            (`archive.kernels.features.path_graph.label`).

    Raises:
        UsageError: A setting is out of range.
    """

    name: ClassVar[str] = "hamming"
    norm: ClassVar[Literal["l1", "l2"]] = "l1"

    def __init__(self, attributes: bool = False) -> None:
        """Check the arguments."""
        self.attributes = check_flag("attributes", attributes)

    @property
    def components(self) -> tuple[str, ...]:
        """Return `hamming`."""
        return (self.name,)

    def features(self, architecture: Architecture) -> tuple[Mapping[str, float], ...]:
        """Return the entries, and each operation as two halves.

        One half encodes the operation, the other the existence of the vertex, so that another
        operation and a missing vertex are both at L1 distance 1.

        Raises:
            InvalidArchitectureError: The space has slots, and the network is not a member of it.
        """
        encoded = table(architecture, self.attributes)
        halves = [
            name for place, op in encoded.operations.items() for name in (f"{place}={op}", place)
        ]
        return ({**dict.fromkeys(encoded.edges, 1.0), **dict.fromkeys(halves, 0.5)},)
