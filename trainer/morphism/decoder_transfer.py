"""Weights with which a decoder has the function of its parent (`archive.trainer.morphism.decoder_plan`).

The shares of copies are random and differ between the units that read them, so that copies have
different gradients and diverge from the first step on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from archive.architecture.decoders.design import design_of
from archive.architecture.decoders.parts import (
    Attention,
    DecoderPart,
    Mamba2,
    MixtureOfExperts,
)
from archive.architecture.graph import Architecture
from archive.trainer.morphism.decoder_plan import StepPart, StepPlan, plan_decoder
from archive.trainer.nn import builders
from archive.trainer.protocols.networks import NetworkForm

Named = dict[str, Tensor]

_OUTPUTS = ("output.weight", "down.weight")


def inherit_decoder(
    parent: Architecture,
    weights: Mapping[str, Tensor],
    child: Architecture,
    form: NetworkForm,
    *,
    seed: int = 0,
    noise: float = 0.0,
) -> tuple[Named, tuple[str, ...]]:
    """Return the child's weights, and the changes in words.

    Args:
        parent: The parent.
        weights: Its weights by the names of the network.
        child: The child.
        form: Form of both networks.
        seed: Seed of new weights and of the shares of copies.
        noise: Standard deviation, relative to the deviation of a matrix, of noise on copied units.

    Raises:
        InvalidArchitectureError: The child cannot keep the parent's function.
    """
    old = design_of(parent)
    new = design_of(child)
    (length,) = form.input_shape
    plan = plan_decoder(old, new, length)
    like = weights["embedding.weight"]
    made: Named = {}
    for name, tensor in builders.build(child, form, seed).state_dict().items():
        made[name] = tensor.detach().to(like.dtype)

    generator = torch.Generator().manual_seed(seed)
    filling = _Filling(made, weights, generator, noise)
    for name in ("embedding.weight", "norm.weight"):
        filling.copy(name, name)

    if "head.weight" in made:
        filling.copy("embedding.weight" if old.tied else "head.weight", "head.weight")

    for step in plan.steps:
        filling.fill(step)

    return made, plan.operations


@dataclass
class _Filling:
    """The weights of a child while they are filled.

    Attributes:
        made: The child's weights, at first drawn from a seed; changed in place.
        weights: The parent's weights.
        generator: Generator of shares and noise.
        noise: Standard deviation of noise, relative to a matrix.
    """

    made: Named
    weights: Mapping[str, Tensor]
    generator: torch.Generator
    noise: float

    def copy(self, source: str, target: str) -> None:
        """Copy a tensor of the parent."""
        self.made[target] = self.weights[source].detach().clone()

    def fill(self, step: StepPlan) -> None:
        """Fill the weights of a step."""
        if step.parent is not None:
            self.copy(f"{step.parent.norm}.weight", f"{step.child.norm}.weight")

        for part in step.child.parts:
            source = step.source_of(part)
            if source is None:
                self._silence(part)
                continue

            self._continue(source, part)
            if part.behind:
                self.copy(f"{source.behind}.weight", f"{part.behind}.weight")

    def _silence(self, part: StepPart) -> None:
        """Make a new part add zeros to the stream."""
        if part.behind:
            # Zeros in front of a norm would have gradients without bound.
            self.made[f"{part.behind}.weight"].zero_()
            return

        for name, tensor in self.made.items():
            if name.startswith(f"{part.name}.") and name.endswith(_OUTPUTS):
                tensor.zero_()

    def _continue(self, source: StepPart, target: StepPart) -> None:
        old = source.part
        new = target.part
        if isinstance(new, MixtureOfExperts):
            self._continue_experts(source, target, new)
        elif isinstance(old, Attention) and isinstance(new, Attention):
            self._copy_all(source.name, target.name)
            for matrix in ("key.weight", "value.weight"):
                self._repeat_heads(f"{target.name}.{matrix}", old, new)
        elif isinstance(old, Mamba2) and isinstance(new, Mamba2) and old.state != new.state:
            self._copy_all(source.name, target.name, but=("input", "convolution"))
            self._grow_state(source.name, target.name, old, new)
        elif old.op == new.op and old.units != new.units:
            self._widen(source.name, target.name, old, new)
        else:
            self._copy_all(source.name, target.name)

    def _copy_all(self, source: str, target: str, but: tuple[str, ...] = ()) -> None:
        for name in self.weights:
            inner = name.removeprefix(f"{source}.")
            if inner != name and inner.partition(".")[0] not in but:
                self.copy(name, f"{target}.{inner}")

    def _continue_experts(self, source: StepPart, target: StepPart, new: MixtureOfExperts) -> None:
        old = source.part
        for index in range(new.experts):
            origin = source.name
            if isinstance(old, MixtureOfExperts):
                origin = f"{source.name}.experts.{index}"

            self._widen(origin, f"{target.name}.experts.{index}", old, new)

        if isinstance(old, MixtureOfExperts):
            self.copy(f"{source.name}.router.weight", f"{target.name}.router.weight")

    def _widen(self, source: str, target: str, old: DecoderPart, new: DecoderPart) -> None:
        """Fill a feed-forward part with copies of hidden neurons in turn."""
        units = torch.arange(new.units) % old.units
        for name in ("gate.weight", "up.weight"):
            if f"{source}.{name}" in self.weights:
                matrix = self.weights[f"{source}.{name}"].detach()[units]
                self.made[f"{target}.{name}"] = self._with_noise(matrix, old.units)

        down = self.weights[f"{source}.down.weight"].detach()[:, units]
        self.made[f"{target}.down.weight"] = down * self._shares(down, units)

    def _shares(self, down: Tensor, units: Tensor) -> Tensor:
        """Return the share of each copy in what each output reads of its unit: (outputs, units)."""
        drawn = torch.rand(down.shape, generator=self.generator, dtype=torch.float64)
        drawn = drawn + 0.5
        totals = torch.zeros(len(down), int(units.max()) + 1, dtype=drawn.dtype)
        totals.index_add_(1, units, drawn)
        return (drawn / totals[:, units]).to(down)

    def _with_noise(self, matrix: Tensor, originals: int) -> Tensor:
        if self.noise and len(matrix) > originals:
            copies = matrix[originals:]
            drawn = torch.randn(copies.shape, generator=self.generator, dtype=copies.dtype)
            matrix[originals:] = copies + self.noise * matrix.std() * drawn

        return matrix

    def _repeat_heads(self, name: str, old: Attention, new: Attention) -> None:
        # Queries of a group are neighbours, and so are the copies of the head that they read.
        heads = self.made[name].reshape(old.kv_heads, old.head_size, -1)
        repeated = heads.repeat_interleave(new.kv_heads // old.kv_heads, dim=0)
        self.made[name] = repeated.reshape(new.kv_units, -1)

    def _grow_state(self, source: str, target: str, old: Mamba2, new: Mamba2) -> None:
        """Fill the matrices around a larger state: its new numbers are written, and not yet read."""
        channels = torch.arange(old.units)
        written = old.units + torch.arange(old.state)
        read = written + old.state
        new_written = new.units + torch.arange(old.state)
        new_read = new.units + new.state + torch.arange(old.state)
        olds = torch.cat([channels, written, read])
        news = torch.cat([channels, new_written, new_read])
        silent = new.units + new.state + torch.arange(old.state, new.state)

        for name in ("convolution.filter.weight", "convolution.filter.bias"):
            tensor = self.made[f"{target}.{name}"]
            tensor[news] = self.weights[f"{source}.{name}"].detach()[olds]
            if name.endswith("bias"):
                tensor[silent] = 0.0

        # In front of these channels is the gate, behind them are the steps of the heads.
        matrix = self.made[f"{target}.input.weight"]
        learned = self.weights[f"{source}.input.weight"].detach()
        matrix[: old.units] = learned[: old.units]
        matrix[-new.heads :] = learned[-old.heads :]
        matrix[new.units + news] = learned[old.units + olds]
        matrix[new.units + silent] = 0.0
