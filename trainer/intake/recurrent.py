"""Recurrent layers of an exported program: their attributes and their states at the beginning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import fx

from archive.architecture.aten import recurrent


def attributes(op: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the operation and the attributes of a recurrent layer.

    Args:
        op: PyTorch's operation: `lstm`, `gru`, `rnn_tanh` or `rnn_relu`.
        arguments: Its arguments by name.
    """
    name = op.partition("_")[0]
    first, second = (tuple(node.meta["val"].shape) for node in arguments["params"][:2])
    settings: dict[str, Any] = {
        "input_size": int(first[1]),
        "hidden_size": int(first[0]) // recurrent.GATES[name],
        "num_layers": arguments["num_layers"],
        "bias": arguments["has_biases"],
        "batch_first": arguments["batch_first"],
        # Between layers: there is none behind the last.
        "dropout": float(arguments["dropout"]) if arguments["num_layers"] > 1 else 0.0,
        "bidirectional": arguments["bidirectional"],
    }
    if name == "lstm" and int(second[1]) != settings["hidden_size"]:
        settings["proj_size"] = int(second[1])

    if name == "rnn":
        settings["nonlinearity"] = op.partition("_")[2]

    return name, settings


def states(arguments: Mapping[str, Any]) -> list[fx.Node]:
    """Return the states at the beginning."""
    state = arguments["hx"]
    return list(state) if isinstance(state, (list, tuple)) else [state]


def weight_names(op: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the names of a layer's tensors, in the order of the operation's argument."""
    return list(recurrent.shapes(op, settings))
