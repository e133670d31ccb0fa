"""Decomposition of an exported model: the short way gives what PyTorch's own gives."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from archive.architecture.aten.wiring import Input
from archive.trainer.intake import decomposition
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
    monkeypatch.setattr(decomposition, "_overrides", missing)
    assert (
        import_model(Composite(), [Input((8, 8))]).architecture.canonical
        == short.architecture.canonical
    )


class Equal(nn.Module):
    """Equal calls of several tensors, views, changes in place, and outputs that are lists."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Conv2d(4, 12, 1, bias=False)
        self.project = nn.ModuleList([nn.Conv2d(4, 4, 3, padding=1) for _ in range(2)])

    def forward(self, x):
        for project in self.project:
            batch, channels, height, width = x.shape
            query, key, value = self.qkv(x).view(batch, 3 * channels, -1).mT.chunk(3, dim=2)
            mixed = F.scaled_dot_product_attention(
                query.contiguous(), key.contiguous(), value.contiguous()
            )
            hidden = project(mixed.mT.reshape(batch, channels, height, width)).relu_()
            x = torch.cat([hidden, hidden * 2], dim=1)[:, :channels] + F.adaptive_avg_pool2d(x, 1)

        return x


@pytest.mark.parametrize("make", [Equal, whole(Composite)])
def test_calls_are_decomposed_alone_as_they_are_together(monkeypatch, make):
    model, shape = make(), (4, 6, 6) if make is Equal else (8, 8)
    short = import_model(model, [Input(shape)])
    alone = []
    ask = decomposition._functional_targets
    monkeypatch.setattr(
        decomposition, "_functional_targets", lambda program: alone.append(ask(program))
    )
    assert import_model(model, [Input(shape)]).architecture.key == short.architecture.key
    assert alone[0] is not None


@pytest.mark.parametrize("seen", [False, True])
def test_a_change_in_place_that_is_seen_needs_the_whole_program(monkeypatch, seen):
    class Changed(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            hidden = self.linear(x)
            before = hidden.view(-1, 4) if seen else x
            return hidden.relu_() + before

    answers = []
    ask = decomposition._functional_targets

    def noted(program):
        answers.append(ask(program))
        return answers[-1]

    monkeypatch.setattr(decomposition, "_functional_targets", noted)
    imported = import_model(Changed(), [Input((4,))])
    assert (answers[0] is None) == seen
    assert [layer.op for layer in imported.architecture.layers].count("relu") == 1


def test_a_call_with_tensors_of_its_own_needs_the_whole_program(monkeypatch):
    short = import_model(Equal(), [Input((4, 6, 6))])
    trace = decomposition._trace_call

    def with_a_constant(call, table):
        graph = trace(call, table)
        with graph.inserting_before(graph.output_node()):
            graph.get_attr("_tensor_constant0")

        return graph

    monkeypatch.setattr(decomposition, "_trace_call", with_a_constant)
    assert import_model(Equal(), [Input((4, 6, 6))]).architecture.key == short.architecture.key
