"""TransNAS-Bench-101's `transnas-bench_v10141024.pth`: the cells of its micro space on seven tasks.

    file      {"data": {"micro": {cell: {task: training}}, "macro": …}, …}
    training  {"metrics": {"valid_top1": [value of each epoch], …}, …}
    cell      `64-41414-1_02_333`: the operations on the edges into the nodes 1, 2 and 3, by number

Source: Duan et al., "TransNAS-Bench-101" (2021), https://github.com/yawen-d/TransNASBench. A cell
is one of NAS-Bench-201 without pooling.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from archive.architecture.nasbench_codec import nasbench201_text
from archive.errors import UsageError
from archive.exchange.releases.pickles import content_of

BENCHMARK = "TransNAS-Bench-101"
METRICS = ("valid_top1", "valid_ssim", "valid_mIoU", "valid_neg_loss")
"""Metrics that the tasks are compared by; larger is better. Each task has one of them."""

_OPERATIONS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3")
_CELL = re.compile(r"\d+-\d+-([0-3])_([0-3]{2})_([0-3]{3})", re.ASCII)
_UNREADABLE = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError)


def cells(path: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield cells as NAS-Bench-201 strings, each with the last metric of each task.

    Raises:
        UsageError: The file has another format, or names objects that could run code.
    """
    data = content_of(path, BENCHMARK).get("data")
    micro = data.get("micro") if isinstance(data, dict) else None
    if not isinstance(micro, dict):
        raise UsageError(f"{path} is no file of {BENCHMARK}: it has no data of the micro space")

    for name, tasks in micro.items():
        try:
            yield _text(name), {task: _last(training) for task, training in tasks.items()}
        except _UNREADABLE as error:
            raise UsageError(
                f"cell {name!r:.30} of {path} has another form than {BENCHMARK}'s: {error!r:.200}"
            ) from None


def _text(name: str) -> str:
    match = _CELL.fullmatch(name)
    if match is None:
        raise ValueError("a cell of the micro space looks like 64-41414-1_02_333")

    return nasbench201_text([_OPERATIONS[int(number)] for number in "".join(match.groups())])


def _last(training: Mapping[str, Any]) -> float:
    metrics = training["metrics"]
    return float(next(metrics[name] for name in METRICS if name in metrics)[-1])
