"""Tensors of a child network, computed from the parent's by the plan of
`archive.trainer.morphism.channels`.

    weight of layer v, unit k, input channel c  =  share * sign * weight of layer u, unit g(k), input channel s(c)

g is `units`, s and sign are `columns`; for each unit, the shares of the channels that carry one
value sum to 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from archive.trainer.morphism.channels import ColumnSources, ContinuedLayer, LayerPlan, PassThrough
from archive.trainer.morphism.match import Matching

_NORM = ("weight", "bias", "running_mean", "running_var")
_EPSILON = 1e-5
"""Torch's addend of a variance before the division."""

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class TransferSources:
    """Sources of a child's weights.

    Attributes:
        matching: The layers that it continues.
        parts: Plan of each of its layers.
        weights: The parent's weights.
        drawn: Initial weights of the child, drawn from a seed.
    """

    matching: Matching
    parts: list[LayerPlan]
    weights: Mapping[str, Tensor]
    drawn: Mapping[str, Tensor]


def filled(
    sources: TransferSources, generator: torch.Generator, noise: float
) -> tuple[Tensors, list[str]]:
    """Return the child's weights, and the names of the normalisations that must be the identity.

    Args:
        sources: Sources of the weights.
        generator: Generator of the shares and the noise.
        noise: Standard deviation relative to that of a layer's weights; 0 for none.
    """
    like = next(iter(sources.weights.values()))
    made: Tensors = {}
    identities: list[str] = []
    for v, part in enumerate(sources.parts):
        own = _of_layer(sources.drawn, v, like.dtype)
        if part is not None:
            layer = _LayerTensors(own, sources.matching.child.entering(v), generator, noise)
            if isinstance(part, ContinuedLayer):
                layer.copy_from_parent(part, _of_layer(sources.weights, part.layer, like.dtype))
            else:
                layer.pass_through(part)

            identities += [f"layers.{v}.{name}" for name in layer.identities]

        made.update({f"layers.{v}.{name}": tensor for name, tensor in own.items()})

    return made, identities


def _of_layer(weights: Mapping[str, Tensor], layer: int, dtype: torch.dtype) -> Tensors:
    start = f"layers.{layer}."
    own = {
        name.removeprefix(start): tensor
        for name, tensor in weights.items()
        if name.startswith(start)
    }
    return {
        name: tensor.to(dtype, copy=True) if tensor.is_floating_point() else tensor
        for name, tensor in own.items()
    }


class _LayerTensors:
    """One layer's tensors by their names in the layer, changed in place.

    The names of a layer's only weights begin with `""`, `affine.` or `filter.`; a residual block
    has `first.`, `second.` and perhaps `projection.`.
    """

    def __init__(
        self, own: Tensors, channels: int, generator: torch.Generator, noise: float
    ) -> None:
        self.own = own
        self.channels = channels
        self.generator = generator
        self.noise = noise
        self.identities: list[str] = []

    def copy_from_parent(self, part: ContinuedLayer, old: Tensors) -> None:
        """Copy the weights of the layer that this one continues."""
        if "first.weight" not in self.own:
            start = self._start()
            units: Sequence[int | None] = part.units or range(len(self.own[f"{start}weight"]))
            self._copy(start, old, units, part.columns)
            return

        self._copy("first.", old, part.inner, part.columns)
        inner = ColumnSources(
            [*range(len(part.inner))], part.inner, [1] * len(part.inner), part.inner
        )
        self._copy("second.", old, part.units, inner)
        if part.identity:
            count = len(old["first.weight"][0])
            identity = torch.eye(count, dtype=old["first.weight"].dtype)[..., None, None]
            self._set(
                "projection.weight",
                _mixed(_rows(identity, part.units), part.columns, self.channels, self.generator),
            )
            self._neutralise("projection.")
        elif "projection.weight" in self.own:
            self._copy("projection.", old, part.units, part.columns)

    def pass_through(self, part: PassThrough) -> None:
        """Set the weights to the identity on the plan's channels."""
        if "first.weight" in self.own:
            # Zero weights in front of a normalisation would have unbounded gradients.
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

        self._add_noise(weight, range(len(weight)), 1 / math.sqrt(weight[0].numel()))
        self._neutralise(start)

    def _start(self) -> str:
        return next(start for start in ("", "affine.", "filter.") if f"{start}weight" in self.own)

    def _copy(
        self, start: str, old: Tensors, units: Sequence[int | None], columns: ColumnSources
    ) -> None:
        weight = old[f"{start}weight"]
        # A dense layer on an image has one column for each pixel of each channel.
        entering = 1 + max(
            (*columns.out_of, *(at for positions in columns.merged for at in positions))
        )
        shaped = weight if weight.ndim > 2 else weight.reshape(len(weight), entering, -1)
        channels = self.channels if not start.startswith("second") else len(columns.into)
        mixed = _mixed(_rows(shaped, units), columns, channels, self.generator)
        copies = [k for k, unit in enumerate(units) if unit is not None and unit in units[:k]]
        self._add_noise(mixed, copies, float(weight.std()) if weight.numel() > 1 else 0.0)
        self._set(f"{start}weight", mixed, units)
        for name in (f"{start}bias", *(_normalisation(start) + name for name in _NORM)):
            if name in self.own:
                self._set(name, _rows(old[name], units), units)

    def _set(self, name: str, tensor: Tensor, units: Sequence[int | None] = ()) -> None:
        """Set a tensor, except for the rows of new units."""
        target = self.own[name]
        new = [k for k, unit in enumerate(units) if unit is None]
        tensor = tensor.reshape(target.shape)
        tensor[new] = target[new]
        self.own[name] = tensor.contiguous()

    def _neutralise(self, start: str) -> None:
        """Set bias and normalisation behind these weights to the identity."""
        norm = _normalisation(start)
        if f"{start}bias" in self.own:
            self.own[f"{start}bias"].zero_()

        if f"{norm}weight" in self.own:
            for name, value in zip(_NORM, (math.sqrt(1 + _EPSILON), 0.0, 0.0, 1.0), strict=True):
                self.own[norm + name].fill_(value)

            self.identities.append(norm.removesuffix("."))

    def _add_noise(self, weight: Tensor, rows: Sequence[int], scale: float) -> None:
        if self.noise and len(rows):
            drawn = torch.randn(weight[rows].shape, generator=self.generator, dtype=weight.dtype)
            weight[rows] += self.noise * scale * drawn


def _normalisation(start: str) -> str:
    """Return the prefix of the normalisation that follows these weights."""
    return "norm." if start == "affine." else f"{start}norm."


def _rows(tensor: Tensor, units: Sequence[int | None]) -> Tensor:
    """Return the rows of the parent's units; an arbitrary row for each new unit, which is replaced
    afterwards.
    """
    return tensor[[0 if unit is None else unit for unit in units]]


def _mixed(
    weight: Tensor, columns: ColumnSources, channels: int, generator: torch.Generator
) -> Tensor:
    """Return the weights of a child's layer from the parent's, with the input channels that the
    plan says.

    Args:
        weight: (units, entering, …), the parent's weights in the order of the child's units.
        columns: Source of each input channel.
        channels: Number of the child's input channels.
        generator: Generator of the shares, of which each is between a half and one and a half
            before the division.

    Returns:
        (units, channels, …).
    """
    weight = weight.clone()
    for positions in columns.merged:
        weight[:, positions[0]] = weight[:, positions].sum(dim=1)

    mixed = weight.new_zeros((len(weight), channels, *weight.shape[2:]))
    drawn = 0.5 + torch.rand(
        (len(weight), len(columns.into)), generator=generator, dtype=weight.dtype
    )
    group = torch.tensor(columns.group)
    total = drawn.new_zeros((len(weight), int(group.max()) + 1)).index_add_(1, group, drawn)
    share = drawn / total[:, group] * torch.tensor(columns.sign, dtype=weight.dtype)
    mixed[:, columns.into] = weight[:, columns.out_of] * share.reshape(
        *share.shape, *[1] * (weight.ndim - 2)
    )
    return mixed
