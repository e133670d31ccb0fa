"""Values of a configuration of a published model, with their checks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from archive.errors import UsageError
from archive.values import brief

MOST = 2**31 - 1
"""Largest whole number, as of settings of layers (`archive.architecture.codec`)."""

USUAL: Mapping[str, Any] = {
    "head_dim": None,
    "hidden_act": "silu",
    "layer_types": None,
    "num_key_value_heads": None,
    "partial_rotary_factor": 1.0,
    "positions": None,
    "rms_norm_eps": 1e-6,
    "rope_parameters": None,
    "rope_scaling": None,
    "rope_theta": None,
    "sliding_window": None,
    "tie_word_embeddings": False,
}
"""Values that a configuration of any family may leave out."""


class Config:
    """Values of a configuration by name; a value that it leaves out is its family's.

    Args:
        values: The values.
        defaults: Values of names that it leaves out.
        source: The file or the name, for messages.
    """

    def __init__(self, values: Mapping[str, Any], defaults: Mapping[str, Any], source: str) -> None:
        self.source = source
        self.values = {**USUAL, **defaults, **values}

    def replaced(self, values: Mapping[str, Any]) -> Config:
        """Return the configuration with other values, as for one layer."""
        return Config({**self.values, **values}, {}, self.source)

    def get(self, name: str) -> Any:
        """Return a value as it is; None without one."""
        return self.values.get(name)

    def whole(self, name: str) -> int:
        """Return a whole number >= 1.

        Raises:
            UsageError: It is missing, or none.
        """
        value = self._present(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.fault(name, "a whole number >= 1")

        if value > MOST:
            raise self.fault(name, f"at most {MOST}")

        return value

    def count(self, name: str) -> int:
        """Return a whole number >= 0; 0 if it is null or missing.

        Raises:
            UsageError: It is none.
        """
        value = self.get(name)
        if value is None:
            return 0

        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.fault(name, "a whole number >= 0")

        return value

    def whole_or(self, name: str, default: int) -> int:
        """Return a whole number >= 1, or another one if it is null or missing."""
        return default if self.get(name) is None else self.whole(name)

    def real(self, name: str) -> float:
        """Return a number > 0.

        Raises:
            UsageError: It is missing, or none.
        """
        value = self._present(name)
        is_real = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_real or not math.isfinite(value) or value <= 0:
            raise self.fault(name, "a number > 0")

        return float(value)

    def flag(self, name: bool | str) -> bool:
        """Return a truth value; false if it is null or missing.

        Args:
            name: Name of the value, or the value itself where a family fixes it.

        Raises:
            UsageError: It is none.
        """
        if isinstance(name, bool):
            return name

        value = self.get(name)
        if value is None:
            return False

        if not isinstance(value, bool):
            raise self.fault(name, "true or false")

        return value

    def texts(self, name: str, count: int) -> list[str]:
        """Return a list of texts, one for each layer.

        Raises:
            UsageError: It is none, or has another length.
        """
        value = self._present(name)
        if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
            raise self.fault(name, "a list of texts")

        if len(value) != count:
            raise self.fault(name, f"one text for each of the {count} layers")

        return list(value)

    def numbers(self, name: str) -> list[int]:
        """Return a list of whole numbers; empty if it is null or missing.

        Raises:
            UsageError: It is none.
        """
        value = self.get(name)
        if value is None:
            return []

        if not isinstance(value, list | tuple) or not all(type(v) is int for v in value):
            raise self.fault(name, "a list of whole numbers")

        return list(value)

    def mapping(self, name: str) -> Mapping[str, Any]:
        """Return values by name; empty if they are null or missing.

        Raises:
            UsageError: They are none.
        """
        value = self.get(name)
        if value is None:
            return {}

        if not isinstance(value, Mapping):
            raise self.fault(name, "values by name")

        return value

    def fault(self, name: str, need: str) -> UsageError:
        """Return the error of a value."""
        return UsageError(f"{self.source}: {name} must be {need}, got {brief(self.get(name))}")

    def refuse(self, reason: str) -> UsageError:
        """Return the error of a model that has no form here."""
        return UsageError(f"{self.source}: {reason}")

    def _present(self, name: str) -> Any:
        value = self.get(name)
        if value is None:
            raise UsageError(
                f"{self.source} has no {name}: give the whole config.json of the model"
            )

        return value
