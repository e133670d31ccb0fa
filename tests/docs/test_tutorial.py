"""The tutorial runs, cell by cell, in a new archive, and its variables are what its text says."""

import re
from pathlib import Path

import numpy as np
import pytest

from archive.settings import environment

TUTORIAL = (Path(__file__).resolve().parents[2] / "docs" / "tutorial.md").read_text(
    encoding="utf-8"
)
CELLS = re.findall(r"```python\n(.*?)```", TUTORIAL, re.DOTALL)


def test_the_tutorial(archive, store_settings, monkeypatch):
    for name, value in environment(store_settings).items():
        monkeypatch.setenv(name, value)

    names: dict = {}
    shown = []
    for cell in CELLS[:-1]:
        *body, last = cell.rstrip().splitlines()
        exec("\n".join(body), names)
        # As a notebook does: what a cell ends with is shown, if it is a value.
        shown.append(
            exec(last, names) if re.match(r"\w+ = |from |import |    ", last) else eval(last, names)
        )

    assert [len(frame) for frame in shown if frame is not None] == [3, 1]
    assert len(names["table"]) == len(names["networks"]) == 8
    assert shown[2]["value"].tolist() == sorted(names["table"]["value"], reverse=True)[:3]
    assert names["best"].value == names["table"]["value"].max()
    assert names["distances"].shape == names["gram"].shape == (8, 8)
    assert np.linalg.eigvalsh(names["gram"]).min() > -1e-9
    closest = np.sort(
        names["distances"][
            [each.id for each in names["study"].evaluations()].index(names["best"].id)
        ]
    )
    assert [each.distance for each in names["near"]] == pytest.approx(closest[1:4])
    assert all(step.child for step in names["steps"])
    assert shown[4]["evaluations"].tolist() == [8]
    exec(CELLS[-1], names)
