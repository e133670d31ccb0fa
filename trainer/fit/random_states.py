"""Torch's default generators, from which modules such as `nn.Dropout` draw: seeded, read and
restored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the generators of the CPU and of a device, and restore them afterwards."""
    before = read(device)
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)

    try:
        yield
    finally:
        write(before, device)


def read(device: torch.device) -> dict[str, Tensor]:
    """Return the states of the generators of the CPU and of a device, by name."""
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)

    return states


def write(states: Mapping[str, Tensor], device: torch.device) -> None:
    """Restore the states that `read` returned; a missing one is left as it is."""
    if "cpu" in states:
        torch.set_rng_state(states["cpu"].cpu())

    if "cuda" in states and device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"].cpu(), device)
