"""Networks of packages by name."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from archive.architecture.aten.wiring import Input
from archive.errors import ArchiveError
from archive.trainer.intake import packages


def build(name):
    if name == "broken":
        raise ValueError("no such width")

    if name == "absent":
        raise ModuleNotFoundError("No module named 'tiny'", name="tiny")

    convolution = nn.Conv2d(3, 4, 3)
    if name == "measured":
        convolution(torch.zeros(1, 3, 8, 8))

    rest = Masked(convolution.weight.device) if name == "masked" else nn.Flatten()
    return packages._Model(nn.Sequential(convolution, rest), (3, 8, 8))


class Masked(nn.Module):
    """A mask on the device of a parameter."""

    def __init__(self, device):
        super().__init__()
        self.register_buffer("mask", torch.arange(6.0, device=device))

    def forward(self, x):
        return x * self.mask


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(packages, "_BUILDERS", {"tiny": build})


def test_a_network_has_its_family_and_its_input():
    network = packages.import_network("tiny", "net")
    assert network.family == "container"
    assert network.input == Input((3, 8, 8))
    assert network.imported.params == 112
    assert packages.import_network("tiny", "net", (3, 9, 9)).input == Input((3, 9, 9))


@pytest.mark.parametrize("name", ["measured", "masked"])
def test_a_model_whose_code_needs_its_weights_is_built_with_them(name):
    assert packages.import_network("tiny", name).imported.params == 112


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
