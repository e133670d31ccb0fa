"""Decomposition of an exported model: the short way gives what PyTorch's own gives."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from archive.architecture.aten.wiring import Input
from archive.trainer.intake import exporting
from archive.trainer.intake.models import import_model
from tests.support import whole

pytestmark = pytest.mark.lasts(1)


class Composite(nn.Module):
    """Operations that PyTorch composes of others: some are kept, others are not."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.norms = nn.ModuleList(
            [nn.RMSNorm(8), nn.GroupNorm(2, 8), nn.BatchNorm1d(8), nn.PReLU(), nn.Dropout(0.1)]
        )

    def forward(self, x):
        x = F.scaled_dot_product_attention(x, self.linear(x), x)
        x = F.interpolate(
            torch.einsum("bij,bkj->bik", x, x), scale_factor=2, mode="linear"
        ).transpose(1, 2)[:, :8]
        for norm in self.norms:
            x = norm(x)

        return F.normalize(F.pad(x, (1, 1), mode="circular"), dim=2).var(1)


@pytest.mark.parametrize("error", [AttributeError, whole(TypeError)])
def test_the_architecture_is_that_of_pytorchs_own_decomposition(monkeypatch, error):
    def missing():
        raise error("a private function of another release")

    short = import_model(Composite(), [Input((8, 8))])
    monkeypatch.setattr(exporting, "_overrides", missing)
    assert (
        import_model(Composite(), [Input((8, 8))]).architecture.canonical
        == short.architecture.canonical
    )
