"""Distances between architectures, and covariances made of them; a registry of kernels by name.

Pure functions: no input or output, no database. `kernels.get("otmann")` returns a distance,
`kernels.names()` lists them. The compiler (numba) is loaded when the first network is prepared.

A plug-in adds a distance through an entry point of the group `archive.kernels`: a name, and a class
derived from `Distance` (or from `EmbeddedDistance` for a norm of features). Its constructor takes
the distance's settings as keyword arguments. `docs/extending.md` has an example.
"""

from __future__ import annotations

import inspect
from typing import Any

from archive.errors import UnknownNameError, UsageError
from archive.kernels.base import Distance
from archive.registry import Registry

__all__ = ["get", "names"]

registry = Registry(
    "kernel",
    "archive.kernels",
    {
        "adjacency": "archive.kernels.features.adjacency:AdjacencyEncoding",
        "adjacency-continuous": "archive.kernels.features.adjacency:ContinuousAdjacencyEncoding",
        "arc": "archive.kernels.features.arc:ArcFeatures",
        "choices": "archive.kernels.features.choices:ChoiceFeatures",
        "edit": "archive.kernels.distances.edit:EditDistance",
        "gromov-wasserstein": "archive.kernels.distances.gromov_wasserstein:GromovWasserstein",
        "hamming": "archive.kernels.features.adjacency:Hamming",
        "otmann": "archive.kernels.distances.otmann:OTMANN",
        "path": "archive.kernels.features.paths:PathEncoding",
        "topology": "archive.kernels.features.topology:TopologyFeatures",
        "tree-wasserstein": "archive.kernels.distances.tree_wasserstein.distance:TreeWasserstein",
        "wasserstein": "archive.kernels.distances.wasserstein:Wasserstein",
        "weisfeiler-lehman": "archive.kernels.features.weisfeiler_lehman:WeisfeilerLehman",
    },
)


def names() -> tuple[str, ...]:
    """Return the names of all kernels, plug-ins included."""
    return registry.names()


def get(name: str, **config: Any) -> Distance[Any]:
    """Return a distance by its name.

    Args:
        name: Its name.
        **config: Its settings by name; the others have the distance's defaults.

    Raises:
        UnknownNameError: No kernel, or no setting of the kernel, has this name.
        UsageError: A setting has an invalid value.
        SettingsError: The kernel of a plug-in cannot be loaded or made.
    """
    _check_settings(name, registry.maker(name), config)
    try:
        return registry.make(name, Distance, **config)  # type: ignore[type-abstract]
    except (TypeError, ValueError, OverflowError) as error:
        # A value of another type, such as a number in place of a list.
        if not config:
            raise

        shown = ", ".join(f"{setting}={value!r}" for setting, value in config.items())
        raise UsageError(f"the kernel {name} cannot be made with {shown}: {error}") from error


def _check_settings(name: str, maker: Any, config: dict[str, Any]) -> None:
    parameters = inspect.signature(maker).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return

    settings = [parameter.name for parameter in parameters]
    for setting in config:
        if setting not in settings:
            raise UnknownNameError(
                f"setting of the kernel {name}", setting, settings, hint="it has no settings"
            )
