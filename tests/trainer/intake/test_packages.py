"""Networks of packages by name."""

from __future__ import annotations

import pytest
from torch import nn

from archive.architecture.aten.wiring import Input
from archive.errors import ArchiveError
from archive.trainer.intake import packages
from archive.trainer.intake.weightless import without_weights


def build(name):
    if name == "broken":
        raise ValueError("no such width")

    if name == "absent":
        raise ModuleNotFoundError("No module named 'tiny'", name="tiny")

    with without_weights():
        return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten()), (3, 8, 8)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(packages, "_BUILDERS", {"tiny": build})


def test_a_network_has_its_family_and_its_input():
    network = packages.import_network("tiny", "net")
    assert network.family == "container"
    assert network.input == Input((3, 8, 8))
    assert network.imported.params == 112
    assert packages.import_network("tiny", "net", (3, 9, 9)).input == Input((3, 9, 9))


@pytest.mark.parametrize(
    ("package", "name", "message"),
    [
        ("tini", "net", "unknown package 'tini': did you mean tiny"),
        ("tiny", "broken", "tiny cannot build broken: ValueError: no such width"),
        ("tiny", "absent", "networks of tiny need the package: pip install tiny"),
    ],
)
def test_faults_are_one_line(package, name, message):
    with pytest.raises(ArchiveError, match=message) as raised:
        packages.import_network(package, name)

    assert "\n" not in str(raised.value)
