"""What spaces of cells share: nothing to set, a pool of random cells, and decisions on edges and labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from archive.architecture.graph import Architecture
from archive.spaces.base import Space, refuse_settings
from archive.spaces.decisions import Decisions, MatrixDecisions

_POOL_SIZE = 10
_MISSES = 200


class CellSpace(Space):
    """A space of cells up to a number of vertices, those of a table for instance.

    Attributes:
        vertices: Most vertices of a cell, input and output included.
    """

    vertices: int

    def __init__(self, **config: Any) -> None:
        refuse_settings(self.name, config)

    @property
    def config(self) -> dict[str, Any]:
        """There is nothing to set."""
        return {}

    def decisions(self) -> Decisions:
        """Return the decisions on the edges of a cell, and on the labels of its vertices."""
        return MatrixDecisions(self, self.vertices)

    def initial_pool(self, rng: np.random.Generator | None = None) -> list[Architecture]:
        """Return ten random cells; fewer where that many draws in a row were known that the space has hardly more."""
        rng = np.random.default_rng(0) if rng is None else rng
        pool: dict[str, Architecture] = {}
        misses = 0
        while len(pool) < _POOL_SIZE and misses < _MISSES:
            cell = self.sample(rng)
            misses = misses + 1 if cell.functional_key in pool else 0
            pool.setdefault(cell.functional_key, cell)
        return list(pool.values())
