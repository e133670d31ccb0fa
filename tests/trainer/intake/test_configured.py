"""Modules of configurations: what the user's function is called with."""

from __future__ import annotations

import pytest
from torch import nn

from archive.errors import UsageError
from archive.trainer.intake.configured import build, taken_names

PARAMETERS = {"width": 3, "lr": 0.1, "stage": [{"op": "skip"}]}


def by_name(width, stage, depth=2):
    return nn.Linear(width, len(stage) + depth)


def everything(parameters):
    return nn.Linear(parameters["width"], 1)


def open_to_all(width, **others):
    return nn.Linear(width, len(others))


def of_one(width):
    return nn.Linear(width, 1)


@pytest.mark.parametrize(
    ("function", "taken", "shape"),
    [
        (by_name, ["width", "stage"], (3, 3)),
        (everything, None, (1, 3)),
        (open_to_all, ["width", "lr", "stage"], (2, 3)),
        (of_one, ["width"], (1, 3)),
    ],
)
def test_a_function_gets_the_parameters_that_it_names(function, taken, shape):
    assert taken_names(function, PARAMETERS) == taken
    assert tuple(build(function, PARAMETERS).weight.shape) == shape


def test_a_missing_parameter_and_another_result_are_named():
    with pytest.raises(UsageError, match="needs width, which is no parameter"):
        build(by_name, {"stage": []})

    with pytest.raises(UsageError, match=r"must return a torch\.nn\.Module, got int"):
        build(lambda parameters: 3, PARAMETERS)
