"""Builders of whole networks, the spaces `mlp` and `cnn` (`archive.trainer.nn.network`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError
from archive.trainer.nn.base import Builder, check_image
from archive.trainer.protocols.networks import NetworkForm

if TYPE_CHECKING:
    from torch import nn


@final
class MlpBuilder(Builder):
    """Builds perceptrons; images enter as vectors."""

    def check(self, form: NetworkForm) -> None:
        """Accept every form."""

    def build(self, architecture: Architecture, form: NetworkForm, seed: int) -> nn.Module:
        """See `Builder.build`."""
        return _network(architecture, form, seed)


@final
class CnnBuilder(Builder):
    """Builds convolutional networks that end in softmax layers."""

    def check(self, form: NetworkForm) -> None:
        """Accept a classification of images."""
        check_image("cnn", form)
        if form.kind == "regression":
            raise InvalidArchitectureError("a cnn decides by softmax, which gives no regression")

    def build(self, architecture: Architecture, form: NetworkForm, seed: int) -> nn.Module:
        """See `Builder.build`."""
        return _network(architecture, form, seed)


def _network(architecture: Architecture, form: NetworkForm, seed: int) -> nn.Module:
    from archive.trainer.nn.network import Network

    return Network(architecture, form, seed=seed)
