"""Search agents: `get("nasbot", space)`, `names()`, and `study(archive, name, space)`.

A plug-in adds an agent through an entry point of the group `archive.agents`: a name, and a class
derived from `Agent`. Its constructor takes a space, then the agent's settings as keyword arguments:
strings, numbers, booleans, None, or lists and mappings of these. A study records the settings as
passed. `docs/extending.md` has an example.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archive.agents.ask_tell.opening import study
from archive.agents.registry import configured, get, names, settings

if TYPE_CHECKING:
    from archive.agents.nearest import Similar
    from archive.agents.prediction.predicting import PredictionDocument
    from archive.api import Archive
    from archive.architecture.graph import Architecture

__all__ = ["configured", "get", "names", "predict", "settings", "similar", "study"]


def similar(
    archive: Archive,
    architecture: Architecture | str,
    k: int = 10,
    kernel: str = "otmann",
    **how: Any,
) -> Similar:
    """Return the nearest architectures of an archive; see `archive.agents.nearest.similar`."""
    # Imported lazily: it imports the kernels.
    from archive.agents import nearest

    return nearest.similar(archive, architecture, k, kernel, **how)


def predict(
    archive: Archive, network: Architecture | str, task: str, protocol: str, **how: Any
) -> PredictionDocument:
    """Predict the result of a network; see `archive.agents.prediction.predicting.predict`."""
    # Imported lazily: it imports scipy.
    from archive.agents.prediction import predicting

    return predicting.predict(archive, network, task, protocol, **how)
