"""Releases as tables of `archive.spaces.tables`: one row per network, means over the trainings.

| table            | columns of numbers                                                                           |
|------------------|----------------------------------------------------------------------------------------------|
| `nb101`          | `val_acc_108ep`, `test_acc_108ep`, likewise of other lengths; `train_time_108ep_s`, `params` |
| `nb201`          | `cifar10_valid_12ep`, `cifar10_test_12ep`, likewise of 200 epochs, `cifar100` and            |
|                  | `imagenet16`; `train_seconds_200ep`, `params_millions`, `flops_millions`, `latency_ms`       |
| `nbmacro`        | `mean_acc`, `std`, `acc1` to `acc3`, `params`, `flops`                                       |
| `transnas-micro` | the tasks: `class_scene`, `class_object`, `autoencoder`, …                                   |

Numbers keep the unit of the release. For `cifar10`, networks of the validation accuracy were
trained without the validation part, and networks of the test accuracy with it, as the authors of
NAS-Bench-201 report them. A column without a number in the release is left out.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from archive.architecture import codec
from archive.architecture.nasbench_codec import nasbench201_text
from archive.errors import UsageError
from archive.exchange.releases import nasbench101, nasbench201
from archive.exchange.releases.pickles import content_of

Row = Mapping[str, Any]

NB_MACRO = "NAS-Bench-Macro"
MACRO_LAYERS = 8
TRANSNAS = "TransNAS-Bench-101"
TRANSNAS_METRICS = ("valid_top1", "valid_ssim", "valid_mIoU", "valid_neg_loss")
"""Metrics that the tasks are compared by; larger is better. Each task has one of them."""
_TRANSNAS_OPERATIONS = ("none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3")
_TRANSNAS_CELL = re.compile(r"\d+-\d+-([0-3])_([0-3]{2})_([0-3]{3})", re.ASCII)
_TRANSNAS_UNREADABLE = (
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
)


class Measure(NamedTuple):
    """A column of accuracies of NAS-Bench-201: data set of the trainings, and evaluated part."""

    column: str
    dataset: str
    part: str


NB201_MEASURES = (
    Measure("cifar10_valid", "cifar10-valid", "x-valid"),
    Measure("cifar10_test", "cifar10", "ori-test"),
    Measure("cifar100_valid", "cifar100", "x-valid"),
    Measure("cifar100_test", "cifar100", "x-test"),
    Measure("imagenet16_valid", "ImageNet16-120", "x-valid"),
    Measure("imagenet16_test", "ImageNet16-120", "x-test"),
)


def encode(rows: Iterable[Row], *, compress: bool = True) -> tuple[bytes, int]:
    """Return rows as a CSV table, and their number; equal rows give equal bytes.

    Args:
        rows: Entries by the name of their column.
        compress: Whether to compress the table by gzip.
    """
    table = list(rows)
    columns = list(dict.fromkeys(chain.from_iterable(table)))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    content = text.getvalue().encode()
    return gzip.compress(content, mtime=0) if compress else content, len(table)


def nb101(path: Path) -> Iterator[Row]:
    """Yield the rows of a release of NAS-Bench-101.

    Raises:
        UsageError: It cannot be read; the message says where.
    """
    numbers: dict[str, int] = {}
    cells: list[dict[str, Any]] = []
    means = _Means()
    for training in nasbench101.trainings(path):
        index = numbers.setdefault(training.module, len(cells))
        if index == len(cells):
            cells.append(_nb101_cell(training))

        last = training.stages[-1]
        means.add(f"val_acc_{training.epochs}ep", index, last["valid_accuracy"])
        means.add(f"test_acc_{training.epochs}ep", index, last["test_accuracy"])
        if training.epochs == max(nasbench101.LENGTHS):
            means.add(f"train_time_{training.epochs}ep_s", index, last["seconds"])

    for index, cell in enumerate(cells):
        yield {**cell, **means.row(index)}


def nb201(path: Path) -> Iterator[Row]:
    """Yield the rows of a release of NAS-Bench-201.

    Raises:
        UsageError: It cannot be read; the message says where.
    """
    for cell in nasbench201.read(path):
        try:
            yield _nb201_row(cell.by_epochs)
        except nasbench201.UNREADABLE as error:
            raise nasbench201.misread(path, cell.number, error) from None


def nbmacro(path: Path) -> Iterator[Row]:
    """Yield the rows of a release of NAS-Bench-Macro.

    They are all networks of eight choices, with three trainings each.

        {"02012100": {"test_acc": [percent, …], "mean_acc": percent, "std": percent,
                      "params": count, "flops": count}, …}

    Source: Su et al., "Prioritized Architecture Sampling with Monto-Carlo Tree Search" (2021),
    https://github.com/xiusu/NAS-Bench-Macro.

    Raises:
        UsageError: It cannot be read; the message says where.
    """
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path} is no file of {NB_MACRO}: it is no JSON") from None

    if not isinstance(content, dict):
        raise UsageError(f"{path} is no file of {NB_MACRO}: it holds no object")

    for digits, network in content.items():
        try:
            yield _nbmacro_row(digits, network)
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"network {digits!r:.20} of {path} has another form than {NB_MACRO}'s: "
                f"{error!r:.200}"
            ) from None


def transnas_micro(path: Path) -> Iterator[Row]:
    """Yield the rows of a release of TransNAS-Bench-101: the cells of its micro space on seven tasks.

        file      {"data": {"micro": {cell: {task: training}}, "macro": …}, …}
        training  {"metrics": {"valid_top1": [value of each epoch], …}, …}
        cell      `64-41414-1_02_333`: the operations on the edges into the nodes 1, 2 and 3

    A cell is one of NAS-Bench-201 without pooling; a task has the last value of its metric. Source:
    Duan et al., "TransNAS-Bench-101" (2021), https://github.com/yawen-d/TransNASBench.

    Raises:
        UsageError: The file has another format, or names objects that could run code.
    """
    data = content_of(path, TRANSNAS).get("data")
    micro = data.get("micro") if isinstance(data, dict) else None
    if not isinstance(micro, dict):
        raise UsageError(f"{path} is no file of {TRANSNAS}: it has no data of the micro space")

    for name, tasks in micro.items():
        try:
            row: dict[str, Any] = {"arch_str": _transnas_text(name)}
            for task, training in tasks.items():
                row[task] = _transnas_last(training)
        except _TRANSNAS_UNREADABLE as error:
            raise UsageError(
                f"cell {name!r:.30} of {path} has another form than {TRANSNAS}'s: {error!r:.200}"
            ) from None

        yield row


class OfficialRelease(NamedTuple):
    """The release that a table is made of: usual names of its file, and the reader of its rows."""

    files: tuple[str, ...]
    rows: Callable[[Path], Iterator[Row]]


RELEASES: Mapping[str, OfficialRelease] = MappingProxyType(
    {
        "nb101": OfficialRelease(("nasbench_only108.tfrecord", "nasbench_full.tfrecord"), nb101),
        "nb201": OfficialRelease(
            (
                "NAS-Bench-201-v1_1-096897.pth",
                "NATS-tss-v1_0-3ffb9.pickle.pbz2",
                "NATS-tss-v1_0-3ffb9-simple",
            ),
            nb201,
        ),
        "nbmacro": OfficialRelease(("nas-bench-macro_cifar10.json",), nbmacro),
        "transnas-micro": OfficialRelease(("transnas-bench_v10141024.pth",), transnas_micro),
    }
)
"""Table to its release."""


class _Means:
    """Means of columns over the trainings of many cells, in little memory.

    NAS-Bench-101 has five million trainings.
    """

    def __init__(self) -> None:
        """Begin without columns."""
        self._sums: dict[str, array[float]] = {}
        self._counts: dict[str, array[int]] = {}

    def add(self, column: str, index: int, value: float) -> None:
        """Count a value in a column for the cell with a number."""
        sums = self._sums.setdefault(column, array("d"))
        counts = self._counts.setdefault(column, array("L"))
        if index >= len(sums):
            missing = index + 1 - len(sums)
            sums.extend([0.0] * missing)
            counts.extend([0] * missing)

        sums[index] += value
        counts[index] += 1

    def row(self, index: int) -> Row:
        """Return the means of a cell by the name of the column."""
        names = []
        for name, counts in self._counts.items():
            if index < len(counts) and counts[index]:
                names.append(name)

        return {name: self._sums[name][index] / self._counts[name][index] for name in names}


def _nb101_cell(training: nasbench101.CellTraining) -> dict[str, Any]:
    training.architecture()  # raises for a record that describes no cell
    return {
        "module_hash": training.module,
        "n_vertices": len(training.labels),
        "adjacency_rowmajor": training.adjacency,
        "ops": "|".join(training.labels),
        "params": "" if training.params is None else training.params,
    }


def _nb201_row(by_epochs: Mapping[int, Mapping[str, Any]]) -> Row:
    text = next(iter(by_epochs.values()))["arch_str"]
    codec.from_nasbench201(text)  # raises for a text that describes no cell
    row: dict[str, Any] = {"arch_str": text}
    for epochs, trainings in sorted(by_epochs.items()):
        for column, dataset, part in NB201_MEASURES:
            name = f"{part}@{epochs - 1}"
            accuracies = []
            for result in nasbench201.results(trainings, dataset).values():
                accuracies.append(result["eval_acc1es"])

            values = [accuracy[name] for accuracy in accuracies if name in accuracy]
            if values:
                row[f"{column}_{epochs}ep"] = _mean(values)

    return {**row, **_nb201_costs(by_epochs)}


def _nb201_costs(by_epochs: Mapping[int, Mapping[str, Any]]) -> Row:
    """Return costs on CIFAR-10: of the longest trainings, and of the network."""
    epochs, trainings = max(by_epochs.items())
    by_seed = nasbench201.results(trainings, "cifar10-valid")
    costs: dict[str, Any] = {}
    if by_seed:
        costs["params_millions"], costs["flops_millions"] = nasbench201.sizes(by_seed)

    seconds = []
    latencies = []
    for training in by_seed.values():
        if training["train_times"]:
            seconds.append(sum(map(float, training["train_times"].values())))

        latencies += [value for value in training["latency"] or () if value > 0]

    if seconds:
        costs[f"train_seconds_{epochs}ep"] = _mean(seconds)

    if latencies:
        costs["latency_ms"] = 1000 * _mean(latencies)

    return costs


def _nbmacro_row(digits: str, network: Any) -> Row:
    if len(digits) != MACRO_LAYERS or set(digits) - set("012"):
        raise ValueError(f"a network has {MACRO_LAYERS} digits 0, 1 or 2")

    row: dict[str, Any] = {"arch": digits}
    for name in ("mean_acc", "std"):
        row[name] = float(network[name])

    for number, value in enumerate(network["test_acc"], 1):
        row[f"acc{number}"] = float(value)

    for name in ("params", "flops"):
        row[name] = int(network[name])

    return row


def _transnas_text(name: str) -> str:
    match = _TRANSNAS_CELL.fullmatch(name)
    if match is None:
        raise ValueError("a cell of the micro space looks like 64-41414-1_02_333")

    numbers = map(int, "".join(match.groups()))
    return nasbench201_text(list(map(_TRANSNAS_OPERATIONS.__getitem__, numbers)))


def _transnas_last(training: Mapping[str, Any]) -> float:
    metrics = training["metrics"]
    return float(next(metrics[name] for name in TRANSNAS_METRICS if name in metrics)[-1])


def _mean(values: Sequence[float]) -> float:
    return sum(map(float, values)) / len(values)
