"""Costs of a user's models, from a process that is bounded in time and memory."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from archive import space, spaces
from archive.constraints import parse
from archive.spaces.constrained import constrain
from archive.trainer.recipes import model_process
from archive.trainer.recipes.model_process import ModelProcess, process_of

MODELS = """
import time

import torch

print("the file's own output")


def build(width, sleeps=False):
    if sleeps:
        time.sleep(60)
    if width == 3:
        raise ValueError("no such width")
    return torch.nn.Sequential(torch.nn.Linear(10, width), torch.nn.Linear(width, 2))


def inputs():
    return torch.zeros(1, 10)
"""


@pytest.fixture
def declared(tmp_path: Path):
    """Returns a space whose model is in a file, by the text of its example."""
    (tmp_path / "nets_with_costs.py").write_text(MODELS)

    def declared(example="[10]", more=""):
        (tmp_path / "space.toml").write_text(
            f'model = "nets_with_costs.py:build"\nexample = {example}\n'
            f"[parameters]\nwidth = [2, 3, 40]\n{more}\n"
        )
        return spaces.of(tmp_path / "space.toml")

    return declared


@pytest.mark.parametrize("example", ["[10]", "'nets_with_costs.py:inputs'"])
def test_costs_are_known_before_any_training(declared, caplog, example):
    found = declared(example)
    costs = process_of(found.parameters, None).known_costs()
    networks = [found.of_names({"width": width}) for width in (2, 3, 40)]
    params = [2 * 11 + 2 * 3, np.nan, 40 * 11 + 2 * 41]
    with caplog.at_level(logging.WARNING, "archive.trainer"):
        assert np.array_equal(costs["params"](networks), params, equal_nan=True)
        assert np.array_equal(costs["flops"](networks), params, equal_nan=True)

    assert [record.getMessage() for record in caplog.records] == [
        f"costs of the model unknown model={found.parameters.model.target('nets_with_costs.py:build')} "
        "reason='ValueError: no such width'"
    ]
    members = constrain(found, [parse("params<=100")], costs).members()
    assert [found.named(network) for network in members] == [{"width": 2}]


def test_a_model_that_hangs_costs_its_limit_and_no_more(declared, monkeypatch, caplog):
    found = declared(more="sleeps = [true, false]")
    target = found.parameters.model.target("nets_with_costs.py:build")
    process = ModelProcess(target, ["10"], seconds=0.5)
    monkeypatch.setattr(model_process, "MOST_KILLED", 1)
    with caplog.at_level(logging.WARNING, "archive.trainer"):
        for sleeps in (True, False):
            network = found.of_names({"width": 2, "sleeps": sleeps})
            assert np.isnan(process.costs(network)).all()

    assert "it took longer than 0.5 s" in caplog.text


def test_a_model_that_only_a_database_names_is_not_imported(tmp_path):
    stored = space.Space(width=[2], model="nets_with_costs.py:build", example=[10]).json()
    assert process_of(space.Space.from_json(stored), tmp_path) is None
