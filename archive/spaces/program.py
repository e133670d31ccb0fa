"""The open space `program`: runs of any program on record (`archive record`).

A network is the graph of what a run was given: its arguments by name, its program, and the digest
of its source files (`archive.architecture.parameter_operations`). Where the network that the
program trained was captured, the graph `BUILDS` it.
"""

from __future__ import annotations

from typing import Any, final

from archive.architecture.graph import Architecture
from archive.architecture.parameter_operations import CONFIGURATIONS, configuration_of
from archive.architecture.parameter_operations import PROGRAM_NAME as NAME
from archive.errors import InvalidArchitectureError
from archive.spaces.base import OpenSpace


@final
class RecordedPrograms(OpenSpace):
    """Configurations of recorded runs; they are recorded, not drawn.

    The space has no list of names and no ranges: the next edit of a program brings new ones.
    """

    name = NAME
    origin = "its runs are recorded (archive record)"

    def validate(self, architecture: Architecture) -> None:
        """Check that an architecture is the graph of a configuration.

        Raises:
            InvalidArchitectureError: It is none.
        """
        self.named(architecture)

    def named(self, architecture: Architecture) -> dict[str, Any]:
        """Return the values of a run by name.

        Raises:
            InvalidArchitectureError: The architecture is no configuration.
        """
        if architecture.space not in CONFIGURATIONS:
            raise InvalidArchitectureError(
                f"the architecture must be of space {self.name}, got {architecture.space}"
            )

        return configuration_of(architecture)
