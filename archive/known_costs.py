"""Known costs: quantities of a network that need no training, such as parameters, or a latency from a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KnownCost = Callable[[Sequence[Any]], "NDArray[np.float64]"]
"""Function of m networks that returns their costs, (m,) float64, NaN where a network has none."""


def of_study(study: Any, home: Any) -> Mapping[str, KnownCost]:
    """Return the known costs of the networks of a study, by name; empty for a task that no trainer here knows.

    Args:
        study: The study (`archive.store.records.Study`).
        home: Folder of the archive, whose record of files says which files of users may be read.
    """
    # The trainer, which builds networks and reads tables, is a layer above this one.
    costs: Mapping[str, KnownCost] = import_module("archive.trainer.tasks.known_costs").of_study(study, home)
    return costs
