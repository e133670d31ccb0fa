"""A kernel: how differently often two networks use each operation."""

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar, Literal

from archive.architecture.graph import Architecture
from archive.kernels.features.embedding import EmbeddedDistance


class OperationCounts(EmbeddedDistance):
    """The L1 distance of counts of operations.

    d(x, y) = sum over operations of |count in x - count in y|: a pseudo-metric, as wiring and units
    do not matter, in O(layers). Choose it as a baseline.
    """

    name: ClassVar[str] = "operation-counts"
    norm: ClassVar[Literal["l1", "l2"]] = "l1"

    @property
    def components(self) -> tuple[str, ...]:
        """Return the one component."""
        return (self.name,)

    def features(self, architecture: Architecture) -> tuple[Mapping[str, float], ...]:
        """Return the counts by operation.

        Layers that no path from input to output passes do not count.
        """
        counts = Counter(architecture.layers[at].op for at in architecture.live)
        return ({operation: float(count) for operation, count in counts.items()},)
