"""The tensors of a grown network, filled as `archive.trainer.morphism.channels` has planned it.

    weight of layer v, unit k, entering channel c  =  share * sign * weight of layer u, unit g(k), entering channel s(c)

g is `units`, s and sign are `columns`; the shares of the channels that carry one value add up to 1 for each unit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from archive.trainer.morphism.channels import Columns, Continued, Handing, Part
from archive.trainer.morphism.match import Matching

_NORM = ("weight", "bias", "running_mean", "running_var")
_EPSILON = 1e-5
"""What torch adds to a variance that it divides by."""

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Sources:
    """All that the weights of a child are made of.

    Attributes:
        matching: Which layers it continues.
        parts: What is planned for each of its layers.
        weights: The parent's.
        drawn: The child's own, as a new network has them.
    """

    matching: Matching
    parts: list[Part]
    weights: Mapping[str, Tensor]
    drawn: Mapping[str, Tensor]


def filled(sources: Sources, generator: torch.Generator, noise: float) -> tuple[Tensors, list[str]]:
    """Return the child's weights, and the names of the normalisations that are to change nothing.

    Args:
        sources: What they are made of.
        generator: Of shares and noise.
        noise: Standard deviation relative to that of a layer's weights; 0 for none.
    """
    like = next(iter(sources.weights.values()))
    made: Tensors = {}
    identities: list[str] = []
    for v, part in enumerate(sources.parts):
        own = _of_layer(sources.drawn, v, like.dtype)
        if part is not None:
            layer = _Layer(own, sources.matching.child.entering(v), generator, noise)
            if isinstance(part, Continued):
                layer.go_on(part, _of_layer(sources.weights, part.layer, like.dtype))
            else:
                layer.hand_on(part)
            identities += [f"layers.{v}.{name}" for name in layer.identities]
        made.update({f"layers.{v}.{name}": tensor for name, tensor in own.items()})
    return made, identities


def _of_layer(weights: Mapping[str, Tensor], layer: int, dtype: torch.dtype) -> Tensors:
    start = f"layers.{layer}."
    own = {name.removeprefix(start): tensor for name, tensor in weights.items() if name.startswith(start)}
    return {name: tensor.to(dtype, copy=True) if tensor.is_floating_point() else tensor for name, tensor in own.items()}


class _Layer:
    """One layer's tensors, named within it, which are changed in place.

    `""`, `affine.` and `filter.` begin the names of a layer's only weights; a residual block has `first.`, `second.`
    and perhaps `projection.`.
    """

    def __init__(self, own: Tensors, channels: int, generator: torch.Generator, noise: float) -> None:
        self.own, self.channels = own, channels
        self.generator, self.noise = generator, noise
        self.identities: list[str] = []

    def go_on(self, part: Continued, old: Tensors) -> None:
        """Take the weights of the layer that this one continues."""
        if "first.weight" not in self.own:
            start = self._start()
            units: Sequence[int | None] = part.units or range(len(self.own[f"{start}weight"]))
            self._copy(start, old, units, part.columns)
            return
        self._copy("first.", old, part.inner, part.columns)
        inner = Columns([*range(len(part.inner))], part.inner, [1] * len(part.inner), part.inner)
        self._copy("second.", old, part.units, inner)
        if part.identity:
            count = len(old["first.weight"][0])
            identity = torch.eye(count, dtype=old["first.weight"].dtype)[..., None, None]
            self._set(
                "projection.weight", _mixed(_rows(identity, part.units), part.columns, self.channels, self.generator)
            )
            self._change_nothing("projection.")
        elif "projection.weight" in self.own:
            self._copy("projection.", old, part.units, part.columns)

    def hand_on(self, part: Handing) -> None:
        """Be the identity on the channels that the plan names."""
        if "first.weight" in self.own:
            # With a normalisation behind them, weights of zero would have gradients without measure.
            silent = "second.norm.weight" if "second.norm.weight" in self.own else "second.weight"
            self.own[silent].zero_()
            if "projection.weight" not in self.own:
                return
        start = "projection." if "first.weight" in self.own else self._start()
        weight = self.own[f"{start}weight"]
        centre = [side // 2 for side in weight.shape[2:]]
        weight.zero_()
        for unit, terms in enumerate(part.sums):
            for channel, sign in terms:
                weight[(unit, channel, *centre)] = sign
        self._blur(weight, range(len(weight)), 1 / math.sqrt(weight[0].numel()))
        self._change_nothing(start)

    def _start(self) -> str:
        return next(start for start in ("", "affine.", "filter.") if f"{start}weight" in self.own)

    def _copy(self, start: str, old: Tensors, units: Sequence[int | None], columns: Columns) -> None:
        weight = old[f"{start}weight"]
        # A dense layer that an image enters has one column for each pixel of each channel.
        entering = 1 + max((*columns.out_of, *(at for fold in columns.folds for at in fold)))
        shaped = weight if weight.ndim > 2 else weight.reshape(len(weight), entering, -1)
        channels = self.channels if not start.startswith("second") else len(columns.into)
        mixed = _mixed(_rows(shaped, units), columns, channels, self.generator)
        copies = [k for k, unit in enumerate(units) if unit is not None and unit in units[:k]]
        self._blur(mixed, copies, float(weight.std()) if weight.numel() > 1 else 0.0)
        self._set(f"{start}weight", mixed, units)
        for name in (f"{start}bias", *(_normalisation(start) + name for name in _NORM)):
            if name in self.own:
                self._set(name, _rows(old[name], units), units)

    def _set(self, name: str, tensor: Tensor, units: Sequence[int | None] = ()) -> None:
        """Set a tensor, but for the rows of units that are new."""
        target = self.own[name]
        kept = [k for k, unit in enumerate(units) if unit is None]
        tensor = tensor.reshape(target.shape)
        tensor[kept] = target[kept]
        self.own[name] = tensor.contiguous()

    def _change_nothing(self, start: str) -> None:
        norm = _normalisation(start)
        if f"{start}bias" in self.own:
            self.own[f"{start}bias"].zero_()
        if f"{norm}weight" in self.own:
            for name, value in zip(_NORM, (math.sqrt(1 + _EPSILON), 0.0, 0.0, 1.0), strict=True):
                self.own[norm + name].fill_(value)
            self.identities.append(norm.removesuffix("."))

    def _blur(self, weight: Tensor, rows: Sequence[int], scale: float) -> None:
        if self.noise and len(rows):
            drawn = torch.randn(weight[rows].shape, generator=self.generator, dtype=weight.dtype)
            weight[rows] += self.noise * scale * drawn


def _normalisation(start: str) -> str:
    """Return how the names of the normalisation behind these weights begin."""
    return "norm." if start == "affine." else f"{start}norm."


def _rows(tensor: Tensor, units: Sequence[int | None]) -> Tensor:
    return tensor[[0 if unit is None else unit for unit in units]]


def _mixed(weight: Tensor, columns: Columns, channels: int, generator: torch.Generator) -> Tensor:
    """Return weights (units, channels, …) from the parent's (units, entering, …)."""
    weight = weight.clone()
    for fold in columns.folds:
        weight[:, fold[0]] = weight[:, fold].sum(dim=1)
    mixed = weight.new_zeros((len(weight), channels, *weight.shape[2:]))
    drawn = 0.5 + torch.rand((len(weight), len(columns.into)), generator=generator, dtype=weight.dtype)
    group = torch.tensor(columns.group)
    total = drawn.new_zeros((len(weight), int(group.max()) + 1)).index_add_(1, group, drawn)
    share = drawn / total[:, group] * torch.tensor(columns.sign, dtype=weight.dtype)
    mixed[:, columns.into] = weight[:, columns.out_of] * share.reshape(*share.shape, *[1] * (weight.ndim - 2))
    return mixed
