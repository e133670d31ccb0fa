"""Known costs of a study's networks: columns of its table, or counts of the built networks.

| task                       | known costs                                                       |
|----------------------------|-------------------------------------------------------------------|
| a table                    | its columns `params`, `flops` and `latency…`, under their names   |
|                            | in results                                                        |
| a training, default recipe | `params`, `flops` (`archive.trainer.nn.costs`), and what the      |
|                            | builder adds: of decoders `flops_per_token`, `kv_cache_bytes`     |
| another recipe             | none: it may train other networks than the builder's              |

A latency that a trainer measures depends on its device, and is known after the training only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from archive.architecture.graph import Architecture
from archive.constraints import KnownCosts
from archive.errors import InvalidArchitectureError, UnknownNameError
from archive.spaces.tables.costs import OF_NETWORK
from archive.store.protocol_names import DEFAULT_RECIPE, ProtocolName
from archive.trainer.nn import builders
from archive.trainer.protocols.networks import NetworkForm
from archive.trainer.tasks import registry
from archive.trainer.tasks.file_access import FileAccess
from archive.trainer.tasks.tabular import TabularTask

if TYPE_CHECKING:
    from archive.store.records import Study
    from archive.trainer.tasks.base import Task

Array = NDArray[np.float64]

BUILT = ("params", "flops")
"""Known costs of networks that a trainer builds."""

_MOST = 2**17
"""Networks of which costs are cached, some 30 MB."""


def of_study(study: Study, home: Path) -> KnownCosts:
    """Return the known costs of a study's networks; empty for a task that is unknown here.

    Args:
        study: The study.
        home: Folder of the archive, with the record of users' files that may be read.

    Raises:
        SettingsError: The study's task is a file that may not be opened here.
    """
    try:
        task = registry.of_study(study, FileAccess.of(home))
        return of_task(task, study.protocol)
    except UnknownNameError:
        # A study of ask and tell, or of a package that is not installed.
        return {}


def of_task(task: Task | TabularTask, protocol: str) -> KnownCosts:
    """Return the known costs of networks of a task, by the name that results have.

    Raises:
        UnknownNameError: The task has no such protocol.
        UsageError: The table cannot be read.
    """
    if isinstance(task, TabularTask):
        return _TableCosts.of(task, protocol)

    if ProtocolName.parse(protocol).recipe != DEFAULT_RECIPE:
        return {}

    form = task.form(task.protocol(protocol))
    return {name: _BuiltCost(form, name) for name in of_built(task)}


def of_built(task: Task) -> tuple[str, ...]:
    """Return the names of the known costs of networks that the default recipe trains on a task."""
    names = dict.fromkeys(BUILT)
    form = task.form()
    for space in task.spaces:
        names |= dict.fromkeys(builders.names_of_further_costs(space, form))

    return tuple(names)


class _TableCosts:
    """A column of a table as a cost."""

    def __init__(self, task: TabularTask, column: str) -> None:
        self._task = task
        self._column = column
        match = OF_NETWORK.fullmatch(column)
        assert match is not None
        self.name = match["counted"] or column
        self._millions = bool(match["millions"])

    @classmethod
    def of(cls, task: TabularTask, protocol: str) -> KnownCosts:
        """Return the cost of each such column, without the value: only a query tells that."""
        value = task.protocol(protocol).column
        costs: dict[str, _TableCosts] = {}
        for column in task.table.columns:
            if column != value and OF_NETWORK.fullmatch(column):
                cost = cls(task, column)
                costs[cost.name] = cost

        return costs

    def __call__(self, architectures: Sequence[Architecture]) -> Array:
        """Return the costs of networks, in the unit of results."""
        table = self._task.table
        column = table.costs(self._column)
        if not architectures:
            return np.empty(0)

        keys = [architecture.functional_key for architecture in architectures]
        rows = np.array([table.index.get(key, -1) for key in keys], np.int64)
        costs = np.where(rows >= 0, column[rows], math.nan)
        return np.round(1e6 * costs) if self._millions else costs


class _BuiltCost:
    """A cost of the network that a trainer would build."""

    def __init__(self, form: NetworkForm, name: str) -> None:
        self._form = form
        self._name = name

    def __call__(self, architectures: Sequence[Architecture]) -> Array:
        """Return the costs of networks; NaN for one that the builder refuses."""
        costs = [_built(architecture, self._form) for architecture in architectures]
        return np.array([cost.get(self._name, math.nan) for cost in costs], np.float64)


@lru_cache(maxsize=_MOST)
def _built(architecture: Architecture, form: NetworkForm) -> dict[str, float]:
    try:
        costs = builders.costs(architecture, form)
        further = builders.further_costs(architecture, form)
    except InvalidArchitectureError:
        return {}

    return {"params": float(costs.params), "flops": float(costs.flops), **further}
