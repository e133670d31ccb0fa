"""Costs of a user's models, from a process that is bounded in time and memory."""

from __future__ import annotations

import logging
import sys

import numpy as np
import pytest

from archive import space, spaces
from archive.constraints import parse
from archive.spaces.constrained import constrain
from archive.trainer.recipes import model_process
from archive.trainer.recipes.model_answers import ModelAttempt
from archive.trainer.recipes.model_process import ModelProcess, process_of
from tests.support.networks.model_processes import InProcess

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


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Folder with a module of models, which this process imports once by its name."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "nets_with_costs.py").write_text(MODELS)
    return folder


@pytest.fixture(scope="module")
def declared(folder):
    """Returns a space whose model is in a file, by the text of its example."""

    def declared(example="[10]", more=""):
        (folder / "space.toml").write_text(
            f'model = "nets_with_costs.py:build"\nexample = {example}\n'
            f"[parameters]\nwidth = [2, 3, 40]\n{more}\n"
        )
        return spaces.of(folder / "space.toml")

    return declared


@pytest.fixture(scope="module")
def process(declared):
    """The one process of these tests: each takes seconds to import torch."""
    process = process_of(declared("'nets_with_costs.py:inputs'").parameters, None)
    yield process
    process.close()


@pytest.mark.parametrize("example", ["[10]", "'nets_with_costs.py:inputs'"])
def test_costs_are_known_before_any_training(declared, monkeypatch, process, caplog, example):
    found = declared(example)
    if example == "[10]":
        monkeypatch.setattr(model_process, "ModelProcess", InProcess)
        monkeypatch.setattr(sys, "path", [*sys.path])
        process = process_of(found.parameters, None)

    costs = process.known_costs()
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


def test_a_process_answers_as_this_one(process):
    attempt = process.try_inputs({"width": 2}, [(1, 8, 8), (10,)])
    assert attempt == ModelAttempt(True, outputs=(2,))


def test_a_process_without_the_function_says_so(folder):
    # The file imports no torch, so that the process answers soon.
    (folder / "no_nets.py").touch()
    missing = ModelProcess(f"{folder}/no_nets.py:gone", [])
    refused = missing.try_inputs({"width": 2}, [(64,)])
    assert not refused.built and "gone" in refused.fault


def test_a_model_that_hangs_costs_its_limit_and_no_more(declared, process, monkeypatch, caplog):
    found = declared(more="sleeps = [true, false]")
    # It has started, and imported torch.
    assert not np.isnan(process.costs(found.of_names({"width": 40, "sleeps": False}))).any()
    monkeypatch.setattr(process, "_seconds", 0.5)
    monkeypatch.setattr(model_process, "MOST_KILLED", 1)
    monkeypatch.setattr(process, "_reported", set())
    with caplog.at_level(logging.WARNING, "archive.trainer"):
        for sleeps in (True, False):
            network = found.of_names({"width": 2, "sleeps": sleeps})
            assert np.isnan(process.costs(network)).all()

    assert "it took longer than 0.5 s" in caplog.text


def test_a_model_that_only_a_database_names_is_not_imported(tmp_path):
    stored = space.Space(width=[2], model="nets_with_costs.py:build", example=[10]).json()
    assert process_of(space.Space.from_json(stored), tmp_path) is None
