"""Layers with their attributes, and edges: the parts of an architecture.

Attributes are immutable settings of an operation, with a text that identifies them:

    Attributes({"padding": 1, "dim": [-1, -2]})["dim"] == (-1, -2)

Two sets of attributes are equal if their texts are: 1, 1.0 and true are three values.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from archive.errors import InvalidArchitectureError
from archive.values import brief

Edge = tuple[int, int]
Arguments = tuple[int, ...]
"""Positions among the inputs of an operation at which a layer uses the output of another."""


Scalar = bool | int | float | str
Value = Scalar | tuple[Scalar, ...]
"""Value of an attribute.

A list holds values of one kind, since a database stores no other lists.
"""

_LARGEST = 2**63
_SURROGATE = re.compile("[\ud800-\udfff]")
_MOST_NAME = 100


@final
class Attributes(Mapping[str, Value]):
    """Settings of one layer by name; immutable and hashable.

    Args:
        values: Name to value. Lists become tuples.

    Attributes:
        text: JSON object with sorted names; empty if there are no attributes.

    Raises:
        InvalidArchitectureError: A name is not an identifier, or a value is of a kind that an
            archive cannot store.
    """

    __slots__ = ("_values", "text")

    text: str

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        """Check and sort the values."""
        raw = values or {}
        checked = {_name(name): _value(name, raw[name]) for name in sorted(raw, key=str)}
        object.__setattr__(self, "_values", checked)
        object.__setattr__(
            self, "text", json.dumps(checked, separators=(",", ":")) if checked else ""
        )

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: attributes are immutable."""
        raise AttributeError(f"attributes are immutable, cannot set {name!r}")

    def __getitem__(self, name: str) -> Value:
        """Return a value."""
        return self._values[name]  # type: ignore[attr-defined,no-any-return]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, sorted."""
        return iter(self._values)  # type: ignore[attr-defined]

    def __len__(self) -> int:
        """Return the number of attributes."""
        return len(self._values)  # type: ignore[attr-defined]

    def __eq__(self, other: object) -> bool:
        """Compare the texts."""
        if not isinstance(other, Attributes):
            return NotImplemented

        return self.text == other.text

    def __hash__(self) -> int:
        """Hash the text."""
        return hash(self.text)

    def __repr__(self) -> str:
        """Return the text."""
        return f"Attributes({self.text or '{}'})"

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the values."""
        return (Attributes, (dict(self),))


NONE = Attributes()
"""No attributes."""

CONFIGURATION = "configuration"
"""Attribute of the input: the parameters beside a network, as JSON text
(`archive.architecture.parameter_operations.join`)."""

ROLE = "role"
"""Attribute of a layer that stands for an input or an output of a graph, and computes nothing
(`archive.architecture.open_graphs.operation_graphs`)."""

BESIDE = "beside"
"""Setting of a space that holds the parameters beside its networks (`archive.spaces.joint`)."""


def _name(name: Any) -> str:
    if (
        not isinstance(name, str)
        or not name.isidentifier()
        or not name.isascii()
        or len(name) > _MOST_NAME
    ):
        raise InvalidArchitectureError(
            f"the name of an attribute must be an identifier, got {brief(name)}"
        )

    return name


def _value(name: str, value: Any) -> Value:
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        items = tuple(_scalar(name, item) for item in value)
        if len(set(map(type, items))) > 1:
            raise InvalidArchitectureError(
                f"the list {name} must have values of one kind, got {brief(value)}"
            )

        return items

    return _scalar(name, value)


def _scalar(name: str, value: Any) -> Scalar:
    if isinstance(value, bool):
        return value

    if isinstance(value, int) and -_LARGEST <= value < _LARGEST:
        return value

    if isinstance(value, float) and math.isfinite(value):
        return value

    if isinstance(value, str) and (value.isascii() or not _SURROGATE.search(value)):
        return value

    raise InvalidArchitectureError(
        f"the attribute {name} must be a truth value, a 64-bit or finite number, a text, or a "
        f"list of one kind, got {brief(value)}"
    )


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer.

    Attributes:
        op: Label, from the vocabulary of the architecture's space.
        units: Channels or neurons; None for an operation without units.
        stride: Step of the window; a stride of 2 halves the image.
        attributes: Further settings, in spaces whose layers have any.
        name: Name of the module in the source that the layer comes from, at most 100 characters; no
            part of its identity.
    """

    op: str
    units: int | None = None
    stride: int = 1
    attributes: Attributes = NONE
    name: str = field(default="", compare=False)
