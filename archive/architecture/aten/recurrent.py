"""Recurrent layers of the space `torch`: tensors of `lstm`, `gru` and `rnn` from their attributes.

They are layers of `torch.nn`, with several layers and directions in one. The tensors have the names
that `torch.nn` gives them, such as `weight_ih_l0` and `bias_hh_l1_reverse`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from archive.errors import InvalidArchitectureError

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
"""Operation to the number of parts of its state's change."""

MOST_LAYERS = 1000


def shapes(op: str, attributes: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor of a recurrent layer, in PyTorch's order."""
    gates = GATES[op]
    hidden = int(attributes["hidden_size"])
    kept = int(attributes.get("proj_size", 0)) or hidden
    directions = ("", "_reverse") if attributes.get("bidirectional", False) else ("",)
    by_name: dict[str, tuple[int, ...]] = {}
    width = int(attributes["input_size"])
    for layer in range(int(attributes.get("num_layers", 1))):
        for direction in directions:
            end = f"l{layer}{direction}"
            by_name[f"weight_ih_{end}"] = (gates * hidden, width)
            by_name[f"weight_hh_{end}"] = (gates * hidden, kept)
            if attributes.get("bias", True):
                by_name[f"bias_ih_{end}"] = (gates * hidden,)
                by_name[f"bias_hh_{end}"] = (gates * hidden,)

            if kept != hidden:
                by_name[f"weight_hr_{end}"] = (kept, hidden)

        width = kept * len(directions)

    return by_name


def features(attributes: Mapping[str, Any]) -> int:
    """Return the number of features of a recurrent layer's output."""
    kept = int(attributes.get("proj_size", 0)) or int(attributes["hidden_size"])
    return kept * (2 if attributes.get("bidirectional", False) else 1)


def check(op: str, attributes: Mapping[str, Any]) -> None:
    """Check the attributes of a layer.

    Raises:
        InvalidArchitectureError: A size is out of range.
    """
    bounds = {"input_size": (1, 2**31), "hidden_size": (1, 2**31), "num_layers": (1, MOST_LAYERS)}
    if op == "lstm":
        bounds["proj_size"] = (
            0,
            int(attributes["hidden_size"]) - 1 if _is_whole(attributes["hidden_size"]) else 0,
        )

    for name, (least, most) in bounds.items():
        value = attributes.get(name, least)
        if not _is_whole(value) or not least <= value <= most:
            raise InvalidArchitectureError(
                f"{name} of {op} must be in [{least}, {most}], got {value!s:.60}"
            )

    dropout = attributes.get("dropout", 0.0)
    if isinstance(dropout, str) or not 0 <= dropout <= 1:
        raise InvalidArchitectureError(f"dropout of {op} must be in [0, 1], got {dropout!s:.60}")

    if attributes.get("nonlinearity", "tanh") not in ("tanh", "relu"):
        raise InvalidArchitectureError(
            f"nonlinearity of {op} must be tanh or relu, got {attributes['nonlinearity']:.60}"
        )


def _is_whole(value: object) -> bool:
    return type(value) is int
