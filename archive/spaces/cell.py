"""Base class of the spaces of cells: random initial pool, decisions on edges and labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from archive.architecture.graph import Architecture
from archive.spaces.base import Space, distinct_sample, refuse_settings
from archive.spaces.decisions import Decisions, MatrixDecisions

_POOL_SIZE = 10


class CellSpace(Space):
    """A space of cells with a maximum number of vertices.

    Attributes:
        vertices: Maximum number of vertices of a cell, input and output included.
    """

    vertices: int

    def __init__(self, **config: Any) -> None:
        refuse_settings(self.name, config)

    @property
    def config(self) -> dict[str, Any]:
        """Empty: there are no settings."""
        return {}

    def decisions(self) -> Decisions:
        """Return the decisions on the edges of a cell and the labels of its vertices."""
        return MatrixDecisions(self, self.vertices)

    def initial_pool(self, rng: np.random.Generator | None = None) -> list[Architecture]:
        """Return ten random cells.

        Fewer if many draws in a row repeat a cell, as in a tiny space.
        """
        return distinct_sample(self, _POOL_SIZE, np.random.default_rng(0) if rng is None else rng)
