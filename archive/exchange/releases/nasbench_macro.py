"""NAS-Bench-Macro: all networks of eight choices, with three trainings each.

    {"02012100": {"test_acc": [percent, …], "mean_acc": percent, "std": percent, "params": count,
    "flops": count}, …}

Source: Su et al., "Prioritized Architecture Sampling with Monto-Carlo Tree Search" (2021),
https://github.com/xiusu/NAS-Bench-Macro.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from archive.errors import UsageError

BENCHMARK = "NAS-Bench-Macro"
LAYERS = 8


def networks(path: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield networks by their digits: values of the trainings, mean, deviation, and costs.

    Raises:
        UsageError: The file cannot be read, or has another format.
    """
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path} is no file of {BENCHMARK}: it is no JSON") from None

    if not isinstance(content, dict):
        raise UsageError(f"{path} is no file of {BENCHMARK}: it holds no object")

    for digits, network in content.items():
        try:
            yield digits, _row(digits, network)
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"network {digits!r:.20} of {path} has another form than {BENCHMARK}'s: "
                f"{error!r:.200}"
            ) from None


def _row(digits: str, network: Any) -> dict[str, float]:
    if len(digits) != LAYERS or set(digits) - set("012"):
        raise ValueError(f"a network has {LAYERS} digits 0, 1 or 2")

    trainings = {
        f"acc{number}": float(value) for number, value in enumerate(network["test_acc"], 1)
    }
    return {
        "mean_acc": float(network["mean_acc"]),
        "std": float(network["std"]),
        **trainings,
        "params": int(network["params"]),
        "flops": int(network["flops"]),
    }
