"""Network morphism of trained weights: a child starts with the function of its parent.

Jin, Song, Hu: Efficient Neural Architecture Search with Network Morphism (2018). Chen, Goodfellow,
Shlens: Net2Net (2016). Wei, Wang, Rui, Chen: Network Morphism (2016).

    transferred = inherit(parent, weights, child, task.form(protocol))
    network.load_state_dict(transferred.weights)    # outputs are the parent's before any training

| addition in the child | its initial weights                                                     |
|-----------------------|-------------------------------------------------------------------------|
| a layer in between    | the identity; a crelu where values may be negative, to keep both signs  |
| more units in a layer | copies of its units in turn; the next layers divide the weights of each |
| a residual block      | zeros in its second convolution (with normalisation: in its factor)     |
| a further edge        | zeros for the new channels at its end, also after pools                 |
| a new path            | drawn from the seed, with zeros where the path ends                     |
| a copy of a path      | copies of its layers                                                    |

The operations need not be known: layers are matched (`archive.trainer.morphism.match`), then
channels (`archive.trainer.morphism.channels`). Any number of operations is therefore one step, and
networks that an evolutionary mutation enlarged inherit, too.

The shares are random, and differ between the next layer's units, so that copies have different
gradients and diverge from the first step on. Net2Net adds noise for that, which changes the
function; `noise` does the same on request.

`archive.trainer.morphism.feasibility` lists the changes that inherit no weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn

from archive.architecture.decoders.vocabulary import NAME as DECODER
from archive.architecture.graph import Architecture
from archive.trainer.morphism.channels import (
    ColumnSources,
    ContinuedLayer,
    LayerPlan,
    PassThrough,
)
from archive.trainer.morphism.feasibility import plan_transfer
from archive.trainer.morphism.match import Matching
from archive.trainer.nn import builders
from archive.trainer.protocols.networks import NetworkForm


@dataclass(frozen=True)
class TransferredWeights:
    """Initial weights of a child.

    Attributes:
        weights: All of its tensors by the names of the network, in the precision of the parent's.
        operations: Operations from the parent to the child, in words, with positions in the child.
        identities: Names of the normalisations that must be the identity; see `calibrate`.
    """

    weights: dict[str, Tensor]
    operations: tuple[str, ...]
    identities: tuple[str, ...]


def inherit(
    parent: Architecture,
    weights: Mapping[str, Tensor],
    child: Architecture,
    form: NetworkForm,
    *,
    seed: int = 0,
    noise: float = 0.0,
) -> TransferredWeights:
    """Return weights with which a child has its parent's function.

    Args:
        parent: Architecture, in the order of layers that names its weights.
        weights: The parent's weights by the names of the network.
        child: Architecture, in the order of layers that names the result.
        form: Form of both networks.
        seed: Seed of the undetermined weights, and of the shares of copies.
        noise: Standard deviation, relative to the deviation of a layer's weights, of noise on the
            weights of copied units and of new layers. The function is then the parent's up to the
            noise.

    Raises:
        InvalidArchitectureError: The search finds no way for the child to keep the parent's
            function.
    """
    if parent.space == child.space == DECODER:
        from archive.trainer.morphism.decoder_transfer import inherit_decoder

        tensors, operations = inherit_decoder(parent, weights, child, form, seed=seed, noise=noise)
        return TransferredWeights(tensors, operations, ())

    matching, parts = plan_transfer(parent, child, form.input_shape)
    drawn = {}
    for name, tensor in builders.build(child, form, seed).state_dict().items():
        drawn[name] = tensor.detach()

    generator = torch.Generator().manual_seed(seed)
    made, identities = fill(TransferSources(matching, parts, weights, drawn), generator, noise)
    return TransferredWeights(made, matching.operations, tuple(identities))


@torch.no_grad()
def calibrate(network: nn.Module, identities: Sequence[str], inputs: Tensor) -> None:
    """Calibrate identity normalisations to be nearly the identity in training, too.

    In training, a normalisation uses the mean and the deviation of its batch, which would change
    the function. Here its running statistics become the inputs', and its factor and offset
    invert them: in evaluation it stays the identity.

    Args:
        network: Network with the weights of `inherit`; changed in place.
        identities: Names from `TransferredWeights`.
        inputs: (n, *input_shape) training inputs, a few hundred.
    """
    was = network.training
    modules = dict(network.named_modules())
    hooks = [modules[name].register_forward_pre_hook(_recalibrate) for name in identities]
    try:
        network.eval()(inputs)
    finally:
        for hook in hooks:
            hook.remove()

        network.train(was)


def _recalibrate(norm: nn.Module, entering: tuple[Tensor, ...]) -> None:
    assert isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d)
    values = entering[0].transpose(0, 1).flatten(1)
    mean = values.mean(dim=1)
    variance = values.var(dim=1, correction=0)
    for name, tensor in (("running_mean", mean), ("running_var", variance)):
        norm.get_buffer(name).copy_(tensor)

    norm.weight.copy_((variance + norm.eps).sqrt())
    norm.bias.copy_(mean)


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


def fill(
    sources: TransferSources, generator: torch.Generator, noise: float
) -> tuple[Tensors, list[str]]:
    """Return the child's weights, and the names of the normalisations that must be the identity.

    Args:
        sources: Sources of the weights.
        generator: Generator of the shares and the noise.
        noise: Standard deviation relative to the deviation of a layer's weights; 0 for none.
    """
    like = next(iter(sources.weights.values()))
    made: Tensors = {}
    identities: list[str] = []
    for v, part in enumerate(sources.parts):
        drawn = _of_layer(sources.drawn, v, like.dtype)
        if part is not None:
            layer = _LayerTensors(drawn, sources.matching.child.entering(v), generator, noise)
            if isinstance(part, ContinuedLayer):
                layer.copy_from_parent(part, _of_layer(sources.weights, part.layer, like.dtype))
            else:
                layer.pass_through(part)

            for name in layer.identities:
                identities.append(f"layers.{v}.{name}")

        for name, tensor in drawn.items():
            made[f"layers.{v}.{name}"] = tensor

    return made, identities


def _of_layer(weights: Mapping[str, Tensor], layer: int, dtype: torch.dtype) -> Tensors:
    start = f"layers.{layer}."
    fresh: Tensors = {}
    for name, tensor in weights.items():
        if name.startswith(start):
            copied = tensor.to(dtype, copy=True) if tensor.is_floating_point() else tensor
            fresh[name.removeprefix(start)] = copied

    return fresh


class _LayerTensors:
    """One layer's tensors by their names in the layer, changed in place.

    The names of a layer's only weights begin with `""`, `affine.` or `filter.`; a residual block
    has `first.`, `second.` and perhaps `projection.`.
    """

    def __init__(
        self, drawn: Tensors, channels: int, generator: torch.Generator, noise: float
    ) -> None:
        self.own = drawn
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
                _mix(_rows(identity, part.units), part.columns, self.channels, self.generator),
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
        entering = 1 + max(chain(columns.out_of, *columns.merged))
        shaped = weight if weight.ndim > 2 else weight.reshape(len(weight), entering, -1)
        channels = self.channels if not start.startswith("second") else len(columns.into)
        mixed = _mix(_rows(shaped, units), columns, channels, self.generator)
        copies: list[int] = []
        seen: set[int | None] = set()
        for k, unit in enumerate(units):
            if unit is not None and unit in seen:
                copies.append(k)

            seen.add(unit)

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
    """Return the rows of the parent's units; new units get arbitrary ones, replaced later."""
    return tensor[[0 if unit is None else unit for unit in units]]


def _mix(
    weight: Tensor, columns: ColumnSources, channels: int, generator: torch.Generator
) -> Tensor:
    """Return the weights of a child's layer from its parent's, with the planned inputs.

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
