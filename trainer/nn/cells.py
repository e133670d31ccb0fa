"""Builders of the spaces of cells: a cell is repeated in a skeleton, whose size is an option of the protocol.

| option          | meaning                                                   | `nasbench101` | `nasbench201` |
|-----------------|-----------------------------------------------------------|---------------|---------------|
| `channels`      | channels of the first stack                               | 128           | 16            |
| `cells`         | cells in each of three stacks                             | 3             | 5             |
| `norm_momentum` | share of a batch in the running statistics of a step      | 0.003         | 0.1           |

The defaults are the published values. Normalisation is part of the operations, whatever `normalisation` of the protocol
says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from archive.architecture.graph import Architecture
from archive.trainer.nn.base import Builder, check_image
from archive.trainer.protocols.networks import NetworkForm

if TYPE_CHECKING:
    from torch import nn

    from archive.trainer.nn.costs import Costs


@final
class NasBench101Builder(Builder):
    """Builds networks of NAS-Bench-101 (`archive.trainer.nn.nasbench101`)."""

    def check(self, form: NetworkForm) -> None:
        """Accept images."""
        _check("nasbench101", form)

    def build(self, architecture: Architecture, form: NetworkForm, seed: int) -> nn.Module:
        """See `Builder.build`."""
        from archive.trainer.nn.nasbench101 import NasBench101Network

        return NasBench101Network(architecture, form)

    def costs(self, architecture: Architecture, form: NetworkForm) -> Costs:
        """See `KnowsCosts.costs`."""
        from archive.trainer.nn.nasbench101 import costs

        return costs(architecture, form)


@final
class NasBench201Builder(Builder):
    """Builds networks of NAS-Bench-201 (`archive.trainer.nn.nasbench201`)."""

    def check(self, form: NetworkForm) -> None:
        """Accept images."""
        _check("nasbench201", form)

    def build(self, architecture: Architecture, form: NetworkForm, seed: int) -> nn.Module:
        """See `Builder.build`."""
        from archive.trainer.nn.nasbench201 import NasBench201Network

        return NasBench201Network(architecture, form)

    def costs(self, architecture: Architecture, form: NetworkForm) -> Costs:
        """See `KnowsCosts.costs`."""
        from archive.trainer.nn.nasbench201 import costs

        return costs(architecture, form)


def _check(space: str, form: NetworkForm) -> None:
    check_image(space, form)
    for name in ("channels", "cells"):
        form.count(name, 1)
    form.share("norm_momentum", 0.1)
