"""Cache of distances to blocks of networks that every proposal requests again.

The trees of a prefix predict the same values at every step, so that the promising networks of a
block of candidates stay the same until the next prefix. A step replaces only a few of the relevant
networks, from which the distances are.

| symbol | meaning                                              | shape     |
|--------|------------------------------------------------------|-----------|
| A      | relevant networks                                    | scalar    |
| k      | promising networks of a block of candidates          | scalar    |
| rows   | distances of one relevant network from these         | (c, k)    |

A block takes 8 A c k bytes: 2.5 MB with 400 relevant networks, three components and 256 promising
networks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import final

import numpy as np

from archive.agents.surrogates.base import Array
from archive.agents.surrogates.gp.fitted import Pairwise
from archive.architecture.graph import Architecture
from archive.kernels.base import Components

SHORTEST = 128
"""Columns of the smallest block that is cached: neighbourhoods in a local search are smaller, and
do not recur."""
MOST_BLOCKS = 32


@final
class RecurringBlocks:
    """A source of distances that caches blocks of many columns by row. The cache changes no result.

    Threads may share one.

    Args:
        pairwise: Computes the distances.
    """

    def __init__(self, pairwise: Pairwise) -> None:
        """Start with an empty cache."""
        self._pairwise = pairwise
        self._unnormalised = 0
        self._blocks: OrderedDict[tuple[str, ...], dict[str, Array]] = OrderedDict()
        self._lock = Lock()

    def distances(
        self, first: Sequence[Architecture], second: Sequence[Architecture] | None = None
    ) -> Components:
        """See `Distance.distances`; rows that the previous call for the same columns had are not
        computed again.
        """
        if second is None or len(second) < SHORTEST or not first:
            return self._pairwise.distances(first, second)

        with self._lock:
            columns = tuple(one.key for one in second)
            rows = self._blocks.get(columns, {})
            new = {one.key: one for one in first if one.key not in rows}
            if new:
                computed = self._pairwise.distances(list(new.values()), second)
                self._unnormalised = len(computed.unnormalised)
                # Copies: a view of one row would keep the whole block.
                rows |= {key: computed.stack[:, at].copy() for at, key in enumerate(new)}

            self._blocks[columns] = {one.key: rows[one.key] for one in first}
            self._blocks.move_to_end(columns)
            while len(self._blocks) > MOST_BLOCKS:
                self._blocks.popitem(last=False)

            stack = np.stack([rows[one.key] for one in first], axis=1)

        return Components.of_stack(stack, self._unnormalised)
