"""Importer of NAS-Bench-201: each training, a seed on a data set, becomes one evaluation.

Accuracies become fractions, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from archive.architecture import codec
from archive.errors import UsageError
from archive.exchange.importers.external import ExternalResult
from archive.exchange.releases.nasbench201 import UNREADABLE, CellTrainings, misread, results, sizes
from archive.spaces.tables.reader import NAMED
from archive.store.records import Result

OBJECTIVE = "valid_accuracy"


class Split(NamedTuple):
    """Names of a data set's parts in the file: training, validation and test."""

    dataset: str
    valid: str
    test: str


TASKS = {
    "nb201-cifar10": Split("cifar10-valid", "x-valid", "ori-test"),
    "nb201-cifar100": Split("cifar100", "x-valid", "x-test"),
    "nb201-imagenet16": Split("ImageNet16-120", "x-valid", "x-test"),
}
"""Task to the data set in the file with the benchmark's values for searches."""


def external_results(
    path: Path, cells: Iterable[CellTrainings], task: str, epochs: int
) -> Iterator[ExternalResult]:
    """Yield the trainings of one length on one data set.

    Args:
        path: Path of the release, for messages.
        cells: Return value of `archive.exchange.releases.nasbench201.read`.
        task: One of `TASKS`.
        epochs: 12 or 200.

    Raises:
        UsageError: An entry has another form than the benchmark's; the message names it.
    """
    split = TASKS[task]
    for cell in cells:
        try:
            trainings = cell.by_epochs[epochs]
            network = codec.from_nasbench201(trainings["arch_str"])
            by_seed = results(trainings, split.dataset)
            for seed, result in by_seed.items():
                yield ExternalResult(
                    f"{task}/{epochs}/{cell.number}/{int(seed)}",
                    network,
                    _result(result, split, epochs, int(seed)),
                    *(round(1e6 * size) for size in sizes(by_seed)),
                )
        except UNREADABLE as error:
            raise misread(path, cell.number, error) from None


def _result(result: Mapping[str, Any], split: Split, epochs: int, seed: int) -> Result:
    if int(result["epochs"]) != epochs:
        raise UsageError(f"it was trained for {int(result['epochs'])} epochs, not {epochs}")

    last = epochs - 1
    evaluated = result["eval_acc1es"]
    metrics = {
        OBJECTIVE: float(evaluated[f"{split.valid}@{last}"]) / 100,
        "train_accuracy": float(result["train_acc1es"][last]) / 100,
        "train_loss": float(result["train_losses"][last]),
    }
    # Some trainings have no test result at their end.
    if f"{split.test}@{last}" in evaluated:
        metrics["test_accuracy"] = float(evaluated[f"{split.test}@{last}"]) / 100

    if latencies := result.get("latency"):
        metrics["latency_ms"] = 1000 * sum(map(float, latencies)) / len(latencies)

    times = result.get("train_times")
    return Result(
        value=metrics[OBJECTIVE],
        metrics=metrics,
        curve=_curve(result, split, epochs),
        epochs=epochs,
        seconds=sum(map(float, times.values())) if times else None,
        seed=seed,
        environment={"benchmark": "NAS-Bench-201"},
        provenance={"source": NAMED["nb201"].source, "license": "MIT"},
    )


def _curve(result: Mapping[str, Any], split: Split, epochs: int) -> dict[str, list[float]]:
    steps = []
    for step in range(epochs):
        if step in result["train_acc1es"] and step in result["train_losses"]:
            steps.append(step)

    curve = {
        "epoch": [float(step + 1) for step in steps],
        "train_accuracy": [float(result["train_acc1es"][step]) / 100 for step in steps],
        "train_loss": [float(result["train_losses"][step]) for step in steps],
    }
    valid = [result["eval_acc1es"].get(f"{split.valid}@{step}") for step in steps]
    if None not in valid:
        curve[OBJECTIVE] = [float(value) / 100 for value in valid]

    return curve
