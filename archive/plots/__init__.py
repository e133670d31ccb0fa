"""Plots of studies as matplotlib figures, and their data as arrays (extra `plots`).

    from archive import plots

    plots.best_so_far(store, ["one", "two"], against="seconds").savefig("progress.png")
    plots.network_map(store, ["one", "two"])

| function               | figure                                                                            |
|------------------------|-----------------------------------------------------------------------------------|
| `best_so_far`          | best value against evaluations, seconds or epochs, of one study or several        |
| `value_and_cost`       | value against a cost, with the Pareto front                                       |
| `learning_curves`      | curves of the best trainings, of others, and of running ones                      |
| `parallel_coordinates` | hyperparameters, decisions or sizes of the networks, beside the value             |
| `predictions`          | predicted against observed values, and the coverage of the predictions' intervals |
| `operation_gains`      | children compared with their parents and with the best before, by operation       |
| `worker_timeline`      | which worker held which proposal, when, and how the attempt ended                 |
| `network_map`          | all networks on a plane, searches as paths                                        |
| `importance`           | importance of parameters, decisions and hyperparameters, with intervals           |
| `slices`               | value against single parameters, with the mean prediction over all others         |
| `contour`, `rank`      | mean prediction, or rank of the results, over two parameters                      |
| `edf`                  | empirical distribution of the values                                              |

`data` has the same as arrays, without matplotlib; `figures` draws them; `anova` analyses variances. matplotlib is loaded by the
first figure. No function changes matplotlib's settings or uses pyplot. Imports the store, the
queries and kernels.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archive.plots.figures.curves import learning_curves as learning_curves
    from archive.plots.figures.distribution import edf as edf
    from archive.plots.figures.gains import operation_gains as operation_gains
    from archive.plots.figures.hyperparameters import parallel_coordinates as parallel_coordinates
    from archive.plots.figures.importance import importance as importance
    from archive.plots.figures.network_map import network_map as network_map
    from archive.plots.figures.predictions import predictions as predictions
    from archive.plots.figures.progress import best_so_far as best_so_far
    from archive.plots.figures.slices import contour as contour
    from archive.plots.figures.slices import rank as rank
    from archive.plots.figures.slices import slice as slice
    from archive.plots.figures.timeline import worker_timeline as worker_timeline
    from archive.plots.figures.tradeoff import value_and_cost as value_and_cost

_MODULES = {
    "best_so_far": "progress",
    "contour": "slices",
    "edf": "distribution",
    "importance": "importance",
    "learning_curves": "curves",
    "network_map": "network_map",
    "operation_gains": "gains",
    "parallel_coordinates": "hyperparameters",
    "predictions": "predictions",
    "rank": "slices",
    "slice": "slices",
    "value_and_cost": "tradeoff",
    "worker_timeline": "timeline",
}
"""Module of each function in `archive.plots.figures`."""

__all__ = [
    "best_so_far",
    "contour",
    "edf",
    "importance",
    "learning_curves",
    "network_map",
    "operation_gains",
    "parallel_coordinates",
    "predictions",
    "rank",
    "slice",
    "value_and_cost",
    "worker_timeline",
]


def __getattr__(name: str) -> Any:
    """Load a function when it is first used: `archive.plots.data` needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module 'archive.plots' has no attribute {name!r}")

    value = getattr(import_module(f"archive.plots.figures.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the functions, loaded or not."""
    return sorted({*globals(), *__all__})
