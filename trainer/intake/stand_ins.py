"""Stand-ins: operations that pass through the decomposition unchanged.

Decomposition fixes the behaviour of batch normalisation and dropout to training or evaluation, and
writes a recurrent layer out. A stand-in has no decomposition, and means:

| stand-in                       | operation                                                       |
|--------------------------------|-----------------------------------------------------------------|
| names in `MODES`               | the operation of that name, which follows the network's mode    |
| `scaled_dot_product_attention` | attention with dropout in training alone                        |
| `lstm`, `gru`, `rnn_tanh`, ... | a recurrent layer; dropout between its layers in training alone |
| `detach`                       | the same values, which pass no gradient back                    |
| `by_mode`                      | the first input in training, the second in evaluation           |
| `pad`                          | circular padding; a decomposition would fix the lengths         |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

NAMESPACE = "archive_intake"
"""Namespace of the stand-ins."""

MODES: Mapping[str, str] = {
    "batch_norm": "training",
    "instance_norm": "use_input_stats",
    "rrelu": "training",
    "dropout": "train",
    "feature_dropout": "train",
    "alpha_dropout": "train",
    "feature_alpha_dropout": "train",
}
"""Operation to the argument that is the mode."""

RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
"""Recurrent layers; their argument `train` is the mode."""

_library: Any = None


def get(name: str) -> Any:
    """Return a stand-in, after the registration of all, once in a process."""
    _define()
    return getattr(getattr(torch.ops, NAMESPACE), name).default


def _define() -> None:
    global _library
    if _library is not None:
        return

    make: Any = torch.library.Library
    _library = make(NAMESPACE, "DEF")
    for name in MODES:
        _library.define(_schema(f"{name}.default"))
        _library.impl(name, _like, "CompositeExplicitAutograd")

    for name in RECURRENT:
        _library.define(_schema(f"{name}.input").replace(f"{name}.input", name, 1))
        _library.impl(name, _recurrent_shapes(name), "CompositeExplicitAutograd")

    _library.define(_schema("scaled_dot_product_attention.default"))
    _library.impl("scaled_dot_product_attention", _attention, "CompositeExplicitAutograd")
    _library.define(_schema("pad.default"))
    _library.impl("pad", _pad, "CompositeExplicitAutograd")
    _library.define("detach(Tensor self) -> Tensor")
    _library.impl("detach", _like, "CompositeExplicitAutograd")
    _library.define("by_mode(Tensor training, Tensor evaluation) -> Tensor")
    _library.impl(
        "by_mode",
        lambda training, evaluation: torch.empty_like(evaluation),
        "CompositeExplicitAutograd",
    )


def _schema(name: str) -> str:
    base, _, overload = name.partition(".")
    return str(getattr(getattr(torch.ops.aten, base), overload)._schema).removeprefix("aten::")


def _like(x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return torch.empty_like(x)


def _attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any, **__: Any
) -> torch.Tensor:
    return query.new_empty((*query.shape[:-1], value.shape[-1]))


def _pad(x: torch.Tensor, pad: Sequence[int], *_: Any) -> torch.Tensor:
    sides = list(x.shape)
    for axis, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True), start=1):
        sides[-axis] += before + after

    return x.new_empty(sides)


def _recurrent_shapes(name: str) -> Any:
    def shapes(
        x: torch.Tensor,
        hx: Any,
        params: list[torch.Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[torch.Tensor, ...]:
        states = hx if name == "lstm" else [hx]
        features = states[0].shape[-1] * (2 if bidirectional else 1)
        outputs = [x.new_empty((*x.shape[:-1], features))]
        for state in states:
            outputs.append(torch.empty_like(state))

        return tuple(outputs)

    return shapes
