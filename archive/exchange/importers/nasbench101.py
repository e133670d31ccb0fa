"""Importer of NAS-Bench-101: the three trainings of each length become three evaluations of a cell.

Accuracies are fractions, as everywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from archive.errors import UsageError
from archive.exchange.importers.external import ExternalResult
from archive.exchange.releases.nasbench101 import CellTraining, trainings
from archive.spaces.tables.reader import NAMED
from archive.store.records import Result

TASK = "nb101"
OBJECTIVE = "valid_accuracy"


def external_results(path: Path, epochs: int) -> Iterator[ExternalResult]:
    """Yield the trainings of one length.

    Args:
        path: The file.
        epochs: Length of the trainings: 4, 12, 36 or 108.

    Raises:
        UsageError: The file has another format, or is damaged; the message names the record.
    """
    return map(_result, trainings(path, epochs))


def _result(training: CellTraining) -> ExternalResult:
    last = training.stages[-1]
    curve = {}
    for name in last:
        if name not in ("seconds", "epoch"):
            curve[name] = [stage[name] for stage in training.stages]

    try:
        epochs = [round(stage["epoch"]) for stage in training.stages]
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{training.place} is no record of NAS-Bench-101: {error}") from None

    digest = hashlib.blake2b(training.data, digest_size=6).hexdigest()
    return ExternalResult(
        # The three trainings of a cell have one name, so the id includes their results.
        f"{TASK}/{training.epochs}/{training.module}/{digest}",
        training.architecture(),
        Result(
            value=last[OBJECTIVE],
            metrics={name: values[-1] for name, values in curve.items()},
            curve={"epoch": epochs, **curve},
            epochs=training.epochs,
            seconds=last["seconds"],
            device="tpu-v2",
            environment={"benchmark": "NAS-Bench-101", "module_hash": training.module},
            provenance={"source": NAMED["nb101"].source, "license": "Apache-2.0"},
        ),
        training.params,
    )
