"""Known costs: quantities of a network that need no training, such as parameters, or a latency from a table.

The caller of a search passes them, since tables are read and networks are built in a layer beside the agents: the
command line those of the study's task (`archive.trainer.tasks.known_costs`), a user of ask and tell any functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KnownCost = Callable[[Sequence[Any]], "NDArray[np.float64]"]
"""Function of m networks that returns their costs, (m,) float64 or a list, NaN where a network has none."""

KnownCosts = Mapping[str, KnownCost]
"""Known costs of the networks of a study, by the name that the results have."""

NO_COSTS: KnownCosts = MappingProxyType({})
"""No known cost: every quantity is learnt from results."""
