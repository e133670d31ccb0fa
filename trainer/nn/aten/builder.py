"""Builder of imported networks, the space `torch` (`archive.trainer.nn.aten.network`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from archive.architecture.graph import Architecture
from archive.trainer.nn.base import Builder
from archive.trainer.protocols.networks import NetworkForm

if TYPE_CHECKING:
    from torch import nn


@final
class TorchBuilder(Builder):
    """Builds imported networks; whether one has a form depends on the network alone."""

    def check(self, form: NetworkForm) -> None:
        """Accept every form."""

    def build(self, architecture: Architecture, form: NetworkForm, seed: int) -> nn.Module:
        """See `Builder.build`. Layers are in canonical order, with blocks written out."""
        from archive.trainer.nn.aten import network

        return network.build(architecture, form, seed)
