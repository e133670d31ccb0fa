"""Form of a network: what a builder must know beside the architecture. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from archive.errors import UsageError


@dataclass(frozen=True, slots=True)
class NetworkForm:
    """Input, output, normalisation and options of a network, by task and protocol (`Task.form`).

    Attributes:
        input_shape: (channels, height, width), (features,) or (tokens,) of one input.
        outputs: Number of classes, or of different tokens; 1 in a regression.
        kind: `classification`, `regression` or `language`.
        normalise: Whether there is batch normalisation before each activation, in spaces that leave
            the choice.
        options: Options of the network around the architecture, by name, as JSON values
            (`TrainingProtocol.network`). A builder reads those that it knows, and has a default for
            each. The others are for other spaces.
    """

    input_shape: tuple[int, ...]
    outputs: int
    kind: str
    normalise: bool = True
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def is_image(self) -> bool:
        """Whether an input is an image."""
        return len(self.input_shape) == 3

    def count(self, name: str, default: int) -> int:
        """Return an option that is a number >= 1.

        Raises:
            UsageError: It is none.
        """
        value = self.options.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UsageError(f"the network option {name} must be an integer >= 1, got {value!r}")

        return value

    def share(self, name: str, default: float) -> float:
        """Return an option that is a number in [0, 1).

        Raises:
            UsageError: It is none.
        """
        value = self.options.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
            raise UsageError(f"the network option {name} must be a number in [0, 1), got {value!r}")

        return float(value)
