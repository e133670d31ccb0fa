"""The open space `graph`: graphs of any operations, as tables of runs have them."""

from __future__ import annotations

from typing import final

from archive.architecture.graph import Architecture
from archive.architecture.open_graphs.operation_graphs import NAME
from archive.spaces.base import OpenSpace, check_space


@final
class OperationGraphs(OpenSpace):
    """Graphs of operations by name, such as recurrent cells; they are imported, not drawn.

    Any name is an operation. Operations have no meaning here: they are equal or different.
    """

    name = NAME
    origin = "its graphs are imported (archive import runs --graph)"

    def validate(self, architecture: Architecture) -> None:
        """Check that an architecture is such a graph.

        Raises:
            InvalidArchitectureError: It belongs to another space.
        """
        check_space(self.name, architecture)
