"""In which numbers a network computes: chosen by the device, and on record with the result.

| precision | convolutions, products | all else | `auto` chooses it                                     |
|-----------|------------------------|----------|-------------------------------------------------------|
| `float32` | float32                | float32  | on a CPU, and on a GPU without units for bfloat16     |
| `bf16`    | bfloat16               | float32  | on a GPU that has such units (compute capability 8.0) |

A CPU stays with float32 even where it has instructions for bfloat16: a seed's result is the same on all of them. Wide
convolutions are faster in `bf16` there, small networks slower (`archive bench trainer` prints both). No network is
compiled: that takes a minute of a processor, longer than most trials, for steps that are a third faster at best.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch

from archive.errors import UsageError

PRECISIONS = ("auto", "float32", "bf16")


def choose(wanted: str, device: torch.device) -> str:
    """Return `float32` or `bf16`.

    Raises:
        UsageError: There is no such precision.
    """
    if wanted not in PRECISIONS:
        raise UsageError(f"precision must be one of {', '.join(PRECISIONS)}, got {wanted!r}")
    if wanted != "auto":
        return wanted
    able = device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0)
    return "bf16" if able else "float32"


def computing(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Return what a forward pass and its loss are computed within; it can be entered again and again."""
    if precision == "float32":
        # Not an autocast that is switched off: entering one takes longer than a layer of a small network.
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16)
