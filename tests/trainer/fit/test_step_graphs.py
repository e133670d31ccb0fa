"""Which networks' steps may be recorded on a GPU; `tests/gpu` has the recorded steps themselves."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from archive.spaces.darts.published import PUBLISHED
from archive.trainer.fit import step_graphs
from archive.trainer.nn import builders
from archive.trainer.protocols.networks import NetworkForm


class Scaled(nn.Linear):
    """A layer that keeps the progress as a number of Python, which a recording would repeat."""

    def set_progress(self, share: float) -> None:
        self.share = share

    def forward(self, x):
        return super().forward(x) * self.share


def test_networks_with_their_progress_in_python_are_not_recorded(monkeypatch):
    form = NetworkForm((1, 8, 8), 10, "classification", options={"channels": 2, "cells": 1})
    drop_path = builders.build(PUBLISHED["DARTS_V2"].architecture, form)
    assert [
        step_graphs.suit(network) for network in (nn.Linear(1, 1), drop_path, Scaled(1, 1))
    ] == [True, True, False]
    monkeypatch.setenv(step_graphs.SWITCH, "0")
    assert not step_graphs.suit(drop_path)


@pytest.mark.parametrize("draw", ["torch.rand(1)", "random.random()", "np.random.rand()"])
def test_draws_on_the_cpu_are_noticed(draw):
    before = step_graphs.host_generators()
    torch.zeros(3).sum()
    assert step_graphs.host_generators() == before
    eval(draw, vars(step_graphs))
    assert step_graphs.host_generators() != before
