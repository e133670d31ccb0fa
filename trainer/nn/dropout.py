"""Dropout of the inputs of chosen layers of any network, in training (Srivastava et al. 2014)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn


class InputDropout:
    """Dropout of the inputs of some layers: zeros a share of the values and scales the others up.

    Each layer has a separate generator, so that a trial does not depend on other draws in its
    process.

    Args:
        layers: Layers of a network, with one list for each rate
            (`archive.trainer.nn.base.applied_layers`). The first argument of their forward pass is
            dropped out; indices stay as they are.
        rates: One rate for each list, in [0, 1).
        seed: Seed of the generators.
    """

    def __init__(
        self, layers: Sequence[Sequence[nn.Module]], rates: Sequence[float], seed: int
    ) -> None:
        """Register a hook for each layer with a rate above zero."""
        self._drops: dict[str, _Dropout] = {}
        for number, (applied, rate) in enumerate(zip(layers, rates, strict=True), start=1):
            if rate > 0.0:
                drop = _Dropout(rate, seed + number)
                self._drops[str(number)] = drop
                for layer in applied:
                    layer.register_forward_pre_hook(drop)

    def __len__(self) -> int:
        """Return the number of rates above zero."""
        return len(self._drops)

    def states(self) -> dict[str, Tensor]:
        """Return the states of the used generators, by the number of the rate from 1."""
        states = {}
        for name, drop in self._drops.items():
            state = drop.state()
            if state is not None:
                states[name] = state

        return states

    def restore(self, states: Mapping[str, Tensor], device: torch.device) -> None:
        """Restore the generators saved by `states` on a device."""
        for name, state in states.items():
            self._drops[name].resume(state, device)


class _Dropout:
    def __init__(self, rate: float, seed: int) -> None:
        self.rate = rate
        self.seed = seed
        self._generator: torch.Generator | None = None

    def __call__(self, layer: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        x, *others = inputs
        # Indices, as of an embedding, are no values to be dropped.
        if not layer.training or not x.is_floating_point():
            return None

        if self._generator is None:
            self._generator = torch.Generator(x.device).manual_seed(self.seed)

        kept = torch.empty_like(x).bernoulli_(1.0 - self.rate, generator=self._generator)
        return (x * kept / (1.0 - self.rate), *others)

    def state(self) -> Tensor | None:
        return None if self._generator is None else self._generator.get_state()

    def resume(self, state: Tensor, device: torch.device) -> None:
        self._generator = torch.Generator(device)
        self._generator.set_state(state)
