"""Known costs of the networks of a task."""

from __future__ import annotations

import numpy as np
import pytest

from archive import spaces
from archive.trainer.nn import builders, costs
from archive.trainer.tasks import known_costs, registry
from tests.support.strategies import relabelled


@pytest.mark.parametrize("name", ["nasbench101", "nasbench201", "darts"])
def test_costs_of_cells_are_counted_without_building_their_networks(name, monkeypatch):
    task = registry.get("fashion-mnist")
    space = spaces.get(name)
    form = task.form(task.protocol("fashion-mnist/cells-small"))
    known = known_costs.of_task(task, "fashion-mnist/cells-small")
    cells = [relabelled(space.sample(np.random.default_rng(seed)), seed) for seed in range(2)]
    built = [
        costs.measure(builders.build(cell.canonical, form), form.input_shape) for cell in cells
    ]
    monkeypatch.setattr(builders, "build", None)
    assert known["params"](cells).tolist() == [one.params for one in built]
    assert known["flops"](cells).tolist() == [one.flops for one in built]
