"""Builders of the spaces of cells: the protocol sets the size of the skeleton around the cell.

| option          | meaning                                   | nasbench101 | nasbench201 | darts |
|-----------------|-------------------------------------------|-------------|-------------|-------|
| `channels`      | channels of the first stack               | 128         | 16          | 36    |
| `cells`         | cells in each of three stacks             | 3           | 5           | 6     |
| `norm_momentum` | share of a batch in running statistics    | 0.003       | 0.1         | 0.1   |
| `auxiliary`     | weight of an auxiliary loss; 0: no head   |             |             | 0.4   |
| `drop_path`     | share of dropped operations at the end    |             |             | 0.2   |

The defaults are the published values; `nasnet` has the values of `darts`. Normalisation is part of
the operations, whatever `normalisation` of the protocol says.
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


@final
class DartsBuilder(Builder):
    """Builds networks of DARTS (`archive.trainer.nn.genotype_networks`)."""

    def check(self, form: NetworkForm) -> None:
        """Accept images."""
        _check("darts", form)

    def build(self, architecture: Architecture, form: NetworkForm, seed: int) -> nn.Module:
        """See `Builder.build`."""
        return _genotype_network(architecture, form)

    def costs(self, architecture: Architecture, form: NetworkForm) -> Costs:
        """See `KnowsCosts.costs`."""
        return _genotype_costs(architecture, form)


@final
class NasNetBuilder(Builder):
    """Builds networks of the cells of NASNet and AmoebaNet, in the skeleton of DARTS."""

    def check(self, form: NetworkForm) -> None:
        """Accept images."""
        _check("nasnet", form)

    def build(self, architecture: Architecture, form: NetworkForm, seed: int) -> nn.Module:
        """See `Builder.build`."""
        return _genotype_network(architecture, form)

    def costs(self, architecture: Architecture, form: NetworkForm) -> Costs:
        """See `KnowsCosts.costs`."""
        return _genotype_costs(architecture, form)


def _genotype_network(architecture: Architecture, form: NetworkForm) -> nn.Module:
    from archive.trainer.nn.genotype_networks import GenotypeNetwork

    return GenotypeNetwork(architecture, form)


def _genotype_costs(architecture: Architecture, form: NetworkForm) -> Costs:
    from archive.trainer.nn.genotype_networks import costs

    return costs(architecture, form)


def _check(space: str, form: NetworkForm) -> None:
    check_image(space, form)
    for name in ("channels", "cells"):
        form.count(name, 1)

    for name in ("norm_momentum", "auxiliary", "drop_path"):
        form.share(name, 0.1)
