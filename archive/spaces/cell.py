"""What the spaces of tabulated cells share: nothing to set, and a pool of random cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from archive.graph import Architecture
from archive.spaces.base import Space, refuse_settings

_POOL_SIZE = 10


class CellSpace(Space):
    """A space of the cells of one table."""

    def __init__(self, **config: Any) -> None:
        refuse_settings(self.name, config)

    @property
    def config(self) -> dict[str, Any]:
        """There is nothing to set."""
        return {}

    def initial_pool(self) -> list[Architecture]:
        """Return ten random cells, always the same."""
        rng = np.random.default_rng(0)
        pool: dict[str, Architecture] = {}
        while len(pool) < _POOL_SIZE:
            cell = self.sample(rng)
            pool.setdefault(cell.key, cell)
        return list(pool.values())
