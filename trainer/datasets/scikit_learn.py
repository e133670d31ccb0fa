"""Data sets that are part of scikit-learn: handwritten digits and diabetes, split and standardised.

Inputs and, in a regression, targets are standardised with the mean and the deviation of the
training part alone.
"""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive.errors import TrainingError
from archive.trainer.datasets import layout
from archive.trainer.datasets.splits import DataPart, Scaling, Splits, Targets
from archive.trainer.protocols.base import TrainingProtocol


def load(name: str, protocol: TrainingProtocol) -> Splits:
    """Return a data set's parts under a protocol.

    Args:
        name: `digits`, images (n, 1, 8, 8) in classes 0 to 9; or `diabetes`, ten measurements and
            the progress after a year.
        protocol: Protocol with the sizes, the kind and the seed of the split.
    """
    inputs, targets = _rows(name)
    return split(inputs, targets, protocol, per_feature=name == "diabetes")


def scaling_of(name: str, protocol: TrainingProtocol) -> Scaling:
    """Return the scaling of the parts that `load` returns."""
    inputs, targets = _rows(name)
    return scaling(inputs, targets, protocol, per_feature=name == "diabetes")


def split(
    inputs: NDArray[np.float64],
    targets: NDArray[np.generic],
    protocol: TrainingProtocol,
    *,
    per_feature: bool,
) -> Splits:
    """Cut a data set into a protocol's parts, and standardise them.

    Args:
        inputs: (n, …) float64.
        targets: (n,) int64 classes, or float64 values.
        protocol: Protocol with the sizes, the kind and the seed of the split.
        per_feature: Whether each feature has its own mean and deviation, or all (an image's pixels)
            share one.

    Raises:
        ValueError: The protocol's sizes do not add up to n.
    """
    train, valid, test = _parts(targets, protocol)
    standardised = _standardise(inputs, train, axis=0 if per_feature else None)
    if np.issubdtype(targets.dtype, np.integer):
        y: Targets = targets.astype(np.int64)
    else:
        y = _standardise(targets.astype(np.float64), train, axis=0).astype(np.float32)

    x = standardised.astype(np.float32)
    return Splits(
        train=DataPart(x[train], y[train]),
        valid=DataPart(x[valid], y[valid]),
        test=DataPart(x[test], y[test]),
        target=scaling(inputs, targets, protocol, per_feature=per_feature).target,
    )


def scaling(
    inputs: NDArray[np.float64],
    targets: NDArray[np.generic],
    protocol: TrainingProtocol,
    *,
    per_feature: bool,
) -> Scaling:
    """Return the scaling by which `split` standardises a data set; arguments as for `split`."""
    train, _, _ = _parts(targets, protocol)
    mean, deviation = _moments(inputs, train, axis=0 if per_feature else None)
    target = None
    if not np.issubdtype(targets.dtype, np.integer):
        centre, spread = _moments(targets.astype(np.float64), train, axis=0)
        target = float(centre), float(spread)

    return Scaling(
        tuple(np.atleast_1d(mean).tolist()), tuple(np.atleast_1d(deviation).tolist()), target
    )


def _rows(name: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    if name == "diabetes":
        return _table("diabetes_data_raw.csv.gz"), _table("diabetes_target.csv.gz")

    table = _table("digits.csv.gz", delimiter=",")
    return table[:, :-1].reshape(-1, 1, 8, 8), table[:, -1].astype(np.int64)


def _parts(targets: NDArray[np.generic], protocol: TrainingProtocol) -> list[NDArray[np.intp]]:
    sizes = (protocol.train, protocol.valid, protocol.test)
    if sum(sizes) != len(targets):
        raise ValueError(
            f"the parts of {protocol.name} must add up to {len(targets)} inputs, got {sizes}"
        )

    order = layout.order(targets, protocol.split_seed, protocol.split == "stratified")
    return np.split(order, np.cumsum(sizes)[:-1])


def _table(name: str, delimiter: str | None = None) -> NDArray[np.float64]:
    """Read a table from scikit-learn's folder: its import would take a trial long."""
    package = importlib.util.find_spec("sklearn")
    if package is None or package.origin is None:
        raise TrainingError("the package scikit-learn, which holds the data, is not installed")

    path = Path(package.origin).parent / "datasets" / "data" / name
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return np.loadtxt(file, delimiter=delimiter)


def _standardise(
    values: NDArray[np.float64], train: NDArray[np.intp], axis: int | None
) -> NDArray[np.float64]:
    mean, deviation = _moments(values, train, axis)
    scaled: NDArray[np.float64] = (values - mean) / deviation
    return scaled


def _moments(
    values: NDArray[np.float64], train: NDArray[np.intp], axis: int | None
) -> tuple[Any, Any]:
    mean = values[train].mean(axis=axis)
    deviation = values[train].std(axis=axis)
    return mean, np.where(deviation > 0, deviation, 1.0)
