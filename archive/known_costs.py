"""Known costs: quantities of a network that need no training, such as parameters, or a latency from
a table.

The caller of a search passes them, since tables are read and networks are built in a layer beside
the agents: the command line those of the study's task (`archive.trainer.tasks.known_costs`), a user
of ask and tell any functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from archive.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KnownCost = Callable[[Sequence[Any]], "NDArray[np.float64]"]
"""Function of m >= 1 networks that returns their costs, (m,) float64 or a list, NaN where a network
has none."""

KnownCosts = Mapping[str, KnownCost]
"""Known costs of the networks of a study, by the name that the results have."""

NO_COSTS: KnownCosts = MappingProxyType({})
"""No known cost: every quantity is learnt from results."""


def computed(costs: KnownCosts, name: str, networks: Sequence[Any]) -> NDArray[np.float64]:
    """Return a known cost of m networks: (m,) float64, NaN where a network has none.

    Args:
        costs: The known costs.
        name: Name of one of them.
        networks: The networks; without any, the function is not called.

    Raises:
        UsageError: The function returned something else than one number for each network.
    """
    # Imported here because the command line loads this module, and most commands compute no costs.
    import numpy as np

    values: Any = costs[name](networks) if len(networks) else []
    try:
        numbers: NDArray[np.float64] = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(())

    if numbers.shape != (len(networks),):
        raise UsageError(
            f"the known cost {name} is a function of several networks, and must return one "
            "number for each: "
            f"for {len(networks)} it returned {values!r:.80}"
        )

    return numbers
