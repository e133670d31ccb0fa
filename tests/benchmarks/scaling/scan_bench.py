"""ScAn-Bench: language models that were really trained, with curves, as designs of a space.

The table has 1,194 models of 3e16 to 2.9e20 operations (automl/scan_bench, PyPI `scan-bench`); one
has no whole training. The space has the shape of a model and the settings of its training; its ranges
are those that the table was sampled from.
"""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from archive import space, spaces
from archive.agents.scaling.residuals import ScaledRuns
from archive.errors import UsageError
from archive.spaces.parameters import Parameters

FILE = "scan_bench_llm.csv.gz"
WHOLE = ("d_model", "n_layers", "n_heads")


@dataclass(frozen=True, eq=False)
class ScanTable:
    """The models of the table.

    Attributes:
        space: Their space.
        runs: The whole trainings.
        flops: (n,) operations of the whole trainings, as the table counts them.
        curves: Share of the training to the validation loss at it, of each model.
    """

    space: Parameters
    runs: ScaledRuns
    flops: Any
    curves: list[dict[float, float]]


def read_table(folder: Path) -> ScanTable:
    """Return the models with a whole training, by their id.

    Raises:
        UsageError: The folder has no such table.
    """
    path = folder / FILE
    if not path.is_file():
        raise UsageError(f"{path} does not exist: name the folder of {FILE}")

    by_model: dict[int, list[dict[str, str]]] = {}
    with gzip.open(path, "rt") as file:
        for row in csv.DictReader(file):
            by_model.setdefault(int(row["config_id"]), []).append(row)

    searched = _space()
    networks = []
    numbers = []
    curves = []
    for _, checkpoints in sorted(by_model.items()):
        curve = {}
        for row in checkpoints:
            share = float(row["step_fraction"])
            curve[1.0 if share > 0.999 else share] = float(row["valid_loss"])

        if 1.0 not in curve:
            continue

        first = checkpoints[0]
        values = {}
        for parameter in searched.parameters.parameters:
            text = first[parameter.name]
            values[parameter.name] = int(text) if parameter.name in WHOLE else float(text)

        networks.append(searched.of_names(values))
        columns = ("n_params", "n_tokens", "flops")
        numbers.append([*(float(first[column]) for column in columns), curve[1.0]])
        curves.append(curve)

    params, tokens, flops, losses = np.array(numbers).T
    return ScanTable(searched, ScaledRuns(networks, params, tokens, losses), flops, curves)


def _space() -> Parameters:
    declared = space.Space(
        d_model=space.integer(128, 4096, log=True),
        n_layers=space.integer(2, 64, log=True),
        n_heads=space.integer(2, 64, log=True),
        lr=space.real(1e-5, 1e-2, log=True),
        weight_decay=space.real(1e-3, 0.2, log=True),
        beta1=space.real(0.8, 0.99),
        beta2=space.real(0.9, 0.999),
        cooldown_steps=space.real(0.0, 0.3),
    )
    searched = spaces.get("parameters", parameters=declared)
    assert isinstance(searched, Parameters), "the space of this name"
    return searched
