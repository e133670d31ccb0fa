"""Loaders of other packages that return other arrays than their task says."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from archive.errors import TrainingError
from archive.trainer.datasets.splits import DataPart, Splits
from archive.trainer.tasks import registry

FAULTS = {
    "no splits": (None, "the loader of the task digits must return Splits, got NoneType"),
    "list": (
        lambda x, y: (x.tolist(), y),
        "a part train whose inputs must be an array of numpy, got list",
    ),
    "double inputs": (lambda x, y: (x.astype(float), y), "inputs must be of float32, got float64"),
    "narrow classes": (lambda x, y: (x, y.astype("i4")), "targets must be of int64, got int32"),
    "flat images": (
        lambda x, y: (x[:, 0], y),
        "inputs must have the shape ('n', 1, 8, 8), got (120, 8, 8)",
    ),
    "missing targets": (
        lambda x, y: (x, y[1:]),
        "targets must be one for each of 120 inputs, at least one, got (119,)",
    ),
    "columns": (
        lambda x, y: (x, y[:, None]),
        "targets must be one for each of 120 inputs, at least one, got (120, 1)",
    ),
    "nothing": (
        lambda x, y: (x[:0], y[:0]),
        "targets must be one for each of 0 inputs, at least one, got (0,)",
    ),
    "classes from one": (lambda x, y: (x, y + 1), "targets must be classes from 0 to 9, got 10"),
    "negative": (
        lambda x, y: (x, np.where(y == 3, -1, y)),
        "targets must be classes from 0 to 9, got -1",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_what_is_no_data_of_the_task_is_refused(case):
    change, reason = FAULTS[case]
    whole = registry.DIGITS.load()

    def loader(protocol):
        if change is None:
            return None

        part = DataPart(*change(whole.train.inputs[:120], whole.train.targets[:120]))
        return Splits(part, whole.valid, whole.test)

    with pytest.raises(TrainingError, match=re.escape(reason)):
        dataclasses.replace(registry.DIGITS, loader=loader).load()


def test_targets_of_a_regression_are_values():
    whole = registry.DIABETES.load()
    part = DataPart(whole.train.inputs, whole.train.targets.astype(np.int64))
    task = dataclasses.replace(
        registry.DIABETES, loader=lambda _: Splits(whole.train, part, whole.test)
    )
    with pytest.raises(
        TrainingError,
        match="the task diabetes returns a part valid whose targets must be of float32",
    ):
        task.load()
