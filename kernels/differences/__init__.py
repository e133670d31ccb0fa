"""Differences of two networks: the layers that a distance matches, and the cost of each part.

`difference(first, second, "edit")` explains the edit distance by its script, `"otmann"` the optimal
transport by its plan. The costs of the parts sum up to the distance.
"""

from __future__ import annotations

from typing import Any

from archive import kernels
from archive.architecture.graph import Architecture
from archive.errors import UsageError
from archive.kernels.base import check_one_space
from archive.kernels.differences.base import Difference, DifferencePart

__all__ = ["Difference", "DifferencePart", "difference", "explainable_kernels"]

_EXPLAINED = ("edit", "otmann")


def explainable_kernels() -> tuple[str, ...]:
    """Return the names of the kernels with distances that can be explained."""
    return _EXPLAINED


def difference(
    first: Architecture,
    second: Architecture,
    kernel: str = "edit",
    component: str | None = None,
    **settings: Any,
) -> Difference:
    """Return the difference of two networks of one space.

    Args:
        first: A network.
        second: The network that it is compared with.
        kernel: `edit` or `otmann`.
        component: Unnormalised component of the kernel; None for its first one.
        **settings: Settings of the kernel.

    Raises:
        UsageError: The kernel cannot be explained, or has no such component or setting.
        InvalidArchitectureError: The networks are of two spaces, or the kernel is not defined on
            one of them.
    """
    from archive.kernels.differences.edit import edit_difference
    from archive.kernels.differences.transport import transport_difference
    from archive.kernels.distances.edit import EditDistance
    from archive.kernels.distances.otmann import OTMANN

    distance = kernels.get(kernel, **settings)
    components = distance.components[: distance.unnormalised]
    if component is not None and component not in components:
        raise UsageError(f"{kernel} has the components {', '.join(components)}, got {component!r}")

    check_one_space([first, second])
    if isinstance(distance, EditDistance):
        return edit_difference(first, second, distance)

    if isinstance(distance, OTMANN):
        return transport_difference(first, second, distance, component or components[0])

    raise UsageError(
        f"the parts of a distance are known for {' and '.join(_EXPLAINED)}, got {kernel}"
    )
