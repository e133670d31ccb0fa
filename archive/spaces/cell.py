"""What the spaces of tabulated cells share: nothing to set, and a pool of random cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from archive.graph import Architecture
from archive.spaces.base import Space, refuse_settings

_POOL_SIZE = 10
_MISSES = 200


class CellSpace(Space):
    """A space of the cells of one table."""

    def __init__(self, **config: Any) -> None:
        refuse_settings(self.name, config)

    @property
    def config(self) -> dict[str, Any]:
        """There is nothing to set."""
        return {}

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
