"""In which numbers a network computes: chosen by the device, and on record with the result.

| precision | convolutions, products | all else | `auto` chooses it                                     |
|-----------|------------------------|----------|-------------------------------------------------------|
| `float32` | float32                | float32  | on a CPU, and on a GPU without units for bfloat16     |
| `bf16`    | bfloat16               | float32  | on a GPU that has such units (compute capability 8.0) |
| `tf32`    | TensorFloat-32         | float32  | never; only a GPU of that capability has such units   |

TensorFloat-32 has the exponent of float32 and 10 bits of mantissa. PyTorch computes convolutions in it by default, and
products of matrices not: both are set here, so that what is on record is what was computed.

A CPU stays with float32 even where it has instructions for bfloat16: a seed's result is the same on all of them. Wide
convolutions are faster in `bf16` there, small networks slower (`archive bench trainer` prints both). No network is
compiled: that takes a minute of a processor, longer than most trials, for steps that are a third faster at best.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

from archive.errors import SettingsError, UsageError

PRECISIONS = ("auto", "float32", "bf16", "tf32")


def choose(requested: str, device: torch.device) -> str:
    """Return `float32`, `bf16` or `tf32`.

    Raises:
        UsageError: There is no such precision.
        SettingsError: The device does not have it.
    """
    if requested not in PRECISIONS:
        raise UsageError(f"precision must be one of {', '.join(PRECISIONS)}, got {requested!r}")
    if requested in ("float32", "bf16"):
        return requested
    able = device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0)
    if requested == "tf32":
        if not able:
            raise SettingsError(
                f"precision tf32 needs a GPU of compute capability 8.0 or more, got the device {device}"
            )
        return requested
    return "bf16" if able else "float32"


@contextmanager
def units(precision: str) -> Iterator[None]:
    """Let a GPU's convolutions and products use the units of a precision, and no others; afterwards as before."""
    convolutions, products = torch.backends.cudnn, torch.backends.cuda.matmul
    before = convolutions.allow_tf32, products.allow_tf32
    convolutions.allow_tf32 = products.allow_tf32 = precision == "tf32"
    try:
        yield
    finally:
        convolutions.allow_tf32, products.allow_tf32 = before


def computing(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Return what a forward pass and its loss are computed within; it can be entered again and again."""
    if precision != "bf16":
        # Not an autocast that is switched off: entering one takes longer than a layer of a small network.
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16)
