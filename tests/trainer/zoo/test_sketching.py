"""Sketches beside imports: equal features, in a hundredth of the time."""

from __future__ import annotations

import pytest
from torch import nn

from archive.agents.prediction.features import features
from archive.architecture.aten.wiring import Input
from archive.trainer.intake.models import import_model
from archive.trainer.zoo.sketching import sketch_of

SHAPE = (3, 16, 16)


class Mixed(nn.Module):
    """Convolutions, norms, attention by products, a shared rectifier in place."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False)
        self.pool = nn.MaxPool2d(2)
        self.tokens = nn.LayerNorm(8)
        self.keys = nn.Linear(8, 8, bias=False)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = self.relu(self.norm(self.stem(x)))
        x = self.pool(x + self.depthwise(x)).flatten(2).transpose(1, 2)
        keys = self.keys(self.tokens(x))
        x = (x @ keys.transpose(1, 2)).softmax(dim=2) @ x
        return self.head(x.mean(dim=1))


def test_a_sketch_has_the_features_of_the_import():
    imported = features(import_model(Mixed(), [Input(SHAPE)]).architecture)
    sketched = features(*sketch_of(Mixed(), SHAPE))
    # Steps that move data alone may be counted differently.
    for name, value in imported.items():
        if name not in ("size: layers", "wiring: copies"):
            assert sketched[name] == pytest.approx(value, abs=1e-6), name

    assert sketched["size: layers"] == pytest.approx(imported["size: layers"], abs=0.5)
