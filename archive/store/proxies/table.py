"""Scores of the networks of a task as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from archive.architecture.graph import Architecture


@final
@dataclass(frozen=True, eq=False)
class ProxyTable:
    """Scores of n networks by p proxies, all of one source; networks of one functional key are one.

    Attributes:
        source: Name of the source.
        names: Names of the proxies, sorted.
        networks: The n networks.
        scores: (n, p) float64, NaN where a proxy is not defined.
        until: Time of the latest measurement, in milliseconds since 1970; 0 where unknown.
    """

    source: str
    names: tuple[str, ...]
    networks: tuple[Architecture, ...]
    scores: NDArray[np.float64]
    until: int = 0

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """Row of each network, by functional key."""
        return {network.functional_key: row for row, network in enumerate(self.networks)}

    def __len__(self) -> int:
        """Return n."""
        return len(self.networks)
