"""Floating-point precision of a training: chosen by the device, and recorded with the result.

| precision | convolutions, products | all else | chosen by `auto`                                 |
|-----------|------------------------|----------|--------------------------------------------------|
| `float32` | float32                | float32  | on a CPU, and on a GPU without bfloat16 units    |
| `bf16`    | bfloat16               | float32  | on a GPU with these (compute capability 8.0)     |
| `tf32`    | TensorFloat-32         | float32  | never; it needs a GPU of that capability         |

TensorFloat-32 has the exponent of float32 and 10 bits of mantissa. PyTorch uses it by default for
convolutions, but not for products of matrices: both are set here, so that the recorded precision is
the one that was used.

A CPU uses float32 even if it has instructions for bfloat16, so that a seed's result is the same on
all CPUs. Wide convolutions are faster in `bf16` there, small networks slower (`python -m
tests.benchmarks trainer` prints both). Networks are not compiled: compilation takes a minute of a
processor, longer than most trials, for steps that are a third faster at best.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

from archive.errors import SettingsError, UsageError

PRECISIONS = ("auto", "float32", "bf16", "tf32")


def choose(requested: str, device: torch.device) -> str:
    """Return the precision for a device: `float32`, `bf16` or `tf32`.

    Raises:
        UsageError: There is no such precision.
        SettingsError: The device does not support it.
    """
    if requested not in PRECISIONS:
        raise UsageError(f"precision must be one of {', '.join(PRECISIONS)}, got {requested!r}")

    if requested in ("float32", "bf16"):
        return requested

    capable = device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0)
    if requested == "tf32":
        if not capable:
            raise SettingsError(
                "precision tf32 needs a GPU of compute capability 8.0 or more, "
                f"got the device {device}"
            )

        return requested

    return "bf16" if capable else "float32"


@contextmanager
def tf32_units(precision: str) -> Iterator[None]:
    """Use a GPU's TensorFloat-32 units in this context for `tf32` alone."""
    convolutions = torch.backends.cudnn
    products = torch.backends.cuda.matmul
    before = convolutions.allow_tf32, products.allow_tf32
    convolutions.allow_tf32 = products.allow_tf32 = precision == "tf32"
    try:
        yield
    finally:
        convolutions.allow_tf32, products.allow_tf32 = before


def autocast_context(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Return the re-entrant autocast context for the forward pass and its loss."""
    if precision != "bf16":
        # Not a disabled autocast: to enter one takes longer than a layer of a small network.
        return nullcontext()

    return torch.autocast(device.type, torch.bfloat16)
