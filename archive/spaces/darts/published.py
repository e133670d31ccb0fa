"""Published genotypes, with their sources.

    PUBLISHED["DARTS_V2"].genotype              the genotype
    PUBLISHED["DARTS_V2"].architecture          its architecture, of `darts` or `nasnet`

NASNet and AmoebaNet are as DARTS' repository writes them, with the operations that it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from archive.architecture.genotypes.codec import from_genotype
from archive.architecture.genotypes.genotype import Genotype, parse
from archive.architecture.graph import Architecture

_DARTS = "quark0/darts, cnn/genotypes.py"
_BANANAS = "naszilla/darts, cnn/genotypes.py (BANANAS' fork of quark0/darts)"


@dataclass(frozen=True)
class PublishedGenotype:
    """A genotype that a paper or its repository has published.

    Attributes:
        name: Its name in the source.
        text: The genotype, in the published form.
        paper: The paper that found it.
        source: The file that it is taken from.
    """

    name: str
    text: str
    paper: str
    source: str

    @cached_property
    def genotype(self) -> Genotype:
        """The genotype."""
        return parse(self.text)

    @cached_property
    def architecture(self) -> Architecture:
        """The architecture, of the space `darts` if that has the genotype, else of `nasnet`."""
        return from_genotype(self.genotype)


_LISTED = (
    PublishedGenotype(
        "DARTS_V1",
        "Genotype(normal=[('sep_conv_3x3', 1), ('sep_conv_3x3', 0), ('skip_connect', 0), ('sep_conv_3x3', 1), "
        "('skip_connect', 0), ('sep_conv_3x3', 1), ('sep_conv_3x3', 0), ('skip_connect', 2)], "
        "normal_concat=range(2, 6), "
        "reduce=[('max_pool_3x3', 0), ('max_pool_3x3', 1), ('skip_connect', 2), ('max_pool_3x3', 0), "
        "('max_pool_3x3', 0), ('skip_connect', 2), ('skip_connect', 2), ('avg_pool_3x3', 0)], "
        "reduce_concat=range(2, 6))",
        "Liu, Simonyan, Yang: DARTS (2019), first order",
        _DARTS,
    ),
    PublishedGenotype(
        "DARTS_V2",
        "Genotype(normal=[('sep_conv_3x3', 0), ('sep_conv_3x3', 1), ('sep_conv_3x3', 0), ('sep_conv_3x3', 1), "
        "('sep_conv_3x3', 1), ('skip_connect', 0), ('skip_connect', 0), ('dil_conv_3x3', 2)], "
        "normal_concat=range(2, 6), "
        "reduce=[('max_pool_3x3', 0), ('max_pool_3x3', 1), ('skip_connect', 2), ('max_pool_3x3', 1), "
        "('max_pool_3x3', 0), ('skip_connect', 2), ('skip_connect', 2), ('max_pool_3x3', 1)], "
        "reduce_concat=range(2, 6))",
        "Liu, Simonyan, Yang: DARTS (2019), second order",
        _DARTS,
    ),
    PublishedGenotype(
        "NASNet",
        "Genotype(normal=[('sep_conv_5x5', 1), ('sep_conv_3x3', 0), ('sep_conv_5x5', 0), ('sep_conv_3x3', 0), "
        "('avg_pool_3x3', 1), ('skip_connect', 0), ('avg_pool_3x3', 0), ('avg_pool_3x3', 0), "
        "('sep_conv_3x3', 1), ('skip_connect', 1)], normal_concat=range(2, 7), "
        "reduce=[('sep_conv_5x5', 1), ('sep_conv_7x7', 0), ('max_pool_3x3', 1), ('sep_conv_7x7', 0), "
        "('avg_pool_3x3', 1), ('sep_conv_5x5', 0), ('skip_connect', 3), ('avg_pool_3x3', 2), "
        "('sep_conv_3x3', 2), ('max_pool_3x3', 1)], reduce_concat=range(4, 7))",
        "Zoph, Vasudevan, Shlens, Le: Learning Transferable Architectures (2018), NASNet-A",
        _DARTS,
    ),
    PublishedGenotype(
        "AmoebaNet",
        "Genotype(normal=[('avg_pool_3x3', 0), ('max_pool_3x3', 1), ('sep_conv_3x3', 0), ('sep_conv_5x5', 2), "
        "('sep_conv_3x3', 0), ('avg_pool_3x3', 3), ('sep_conv_3x3', 1), ('skip_connect', 1), "
        "('skip_connect', 0), ('avg_pool_3x3', 1)], normal_concat=range(4, 7), "
        "reduce=[('avg_pool_3x3', 0), ('sep_conv_3x3', 1), ('max_pool_3x3', 0), ('sep_conv_7x7', 2), "
        "('sep_conv_7x7', 0), ('avg_pool_3x3', 1), ('max_pool_3x3', 0), ('max_pool_3x3', 1), "
        "('conv_7x1_1x7', 0), ('sep_conv_3x3', 5)], reduce_concat=[3, 4, 6])",
        "Real, Aggarwal, Huang, Le: Regularized Evolution (2019), AmoebaNet-A",
        _DARTS,
    ),
    PublishedGenotype(
        "ASHA200",
        "Genotype(normal=[('skip_connect', 1), ('dil_conv_3x3', 0), ('sep_conv_3x3', 1), ('skip_connect', 0), "
        "('none', 1), ('max_pool_3x3', 0), ('skip_connect', 1), ('dil_conv_3x3', 0)], normal_concat=range(2, 6), "
        "reduce=[('max_pool_3x3', 1), ('avg_pool_3x3', 0), ('sep_conv_5x5', 1), ('skip_connect', 2), "
        "('max_pool_3x3', 3), ('none', 1), ('skip_connect', 0), ('sep_conv_5x5', 4)], reduce_concat=range(2, 6))",
        "White, Neiswanger, Savani: BANANAS (2021), the comparison with ASHA",
        _BANANAS,
    ),
    PublishedGenotype(
        "BANANAS_1",
        "Genotype(normal=[('sep_conv_5x5', 1), ('skip_connect', 0), ('sep_conv_3x3', 2), ('max_pool_3x3', 0), "
        "('skip_connect', 0), ('sep_conv_5x5', 1), ('sep_conv_3x3', 4), ('max_pool_3x3', 0)], "
        "normal_concat=range(2, 6), "
        "reduce=[('avg_pool_3x3', 0), ('sep_conv_3x3', 1), ('sep_conv_3x3', 1), ('dil_conv_5x5', 2), "
        "('avg_pool_3x3', 0), ('skip_connect', 2), ('dil_conv_5x5', 2), ('sep_conv_3x3', 1)], "
        "reduce_concat=range(2, 6))",
        "White, Neiswanger, Savani: BANANAS (2021), one of four trials; the default of cnn/train.py there",
        _BANANAS,
    ),
    PublishedGenotype(
        "BANANAS_2",
        "Genotype(normal=[('skip_connect', 0), ('skip_connect', 1), ('sep_conv_3x3', 0), ('none', 1), "
        "('sep_conv_5x5', 0), ('skip_connect', 3), ('sep_conv_3x3', 2), ('sep_conv_5x5', 4)], "
        "normal_concat=range(2, 6), "
        "reduce=[('skip_connect', 1), ('max_pool_3x3', 0), ('max_pool_3x3', 0), ('dil_conv_3x3', 2), "
        "('skip_connect', 3), ('dil_conv_3x3', 2), ('dil_conv_3x3', 2), ('skip_connect', 3)], "
        "reduce_concat=range(2, 6))",
        "White, Neiswanger, Savani: BANANAS (2021), one of four trials",
        _BANANAS,
    ),
    PublishedGenotype(
        "BANANAS_3",
        "Genotype(normal=[('sep_conv_5x5', 0), ('max_pool_3x3', 1), ('skip_connect', 0), ('sep_conv_5x5', 1), "
        "('skip_connect', 0), ('sep_conv_5x5', 1), ('none', 3), ('sep_conv_5x5', 1)], normal_concat=range(2, 6), "
        "reduce=[('max_pool_3x3', 1), ('dil_conv_5x5', 0), ('dil_conv_5x5', 0), ('sep_conv_3x3', 2), "
        "('avg_pool_3x3', 1), ('skip_connect', 3), ('skip_connect', 0), ('avg_pool_3x3', 4)], "
        "reduce_concat=range(2, 6))",
        "White, Neiswanger, Savani: BANANAS (2021), one of four trials",
        _BANANAS,
    ),
    PublishedGenotype(
        "BANANAS_4",
        "Genotype(normal=[('dil_conv_3x3', 1), ('skip_connect', 0), ('sep_conv_5x5', 2), ('skip_connect', 0), "
        "('skip_connect', 0), ('max_pool_3x3', 2), ('skip_connect', 0), ('sep_conv_3x3', 3)], "
        "normal_concat=range(2, 6), "
        "reduce=[('none', 1), ('max_pool_3x3', 0), ('none', 1), ('max_pool_3x3', 0), ('avg_pool_3x3', 0), "
        "('dil_conv_3x3', 1), ('dil_conv_5x5', 3), ('dil_conv_3x3', 0)], reduce_concat=range(2, 6))",
        "White, Neiswanger, Savani: BANANAS (2021), one of four trials",
        _BANANAS,
    ),
)

PUBLISHED: Mapping[str, PublishedGenotype] = MappingProxyType(
    {genotype.name: genotype for genotype in _LISTED}
)
"""The genotypes by name."""
