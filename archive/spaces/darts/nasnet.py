"""The space `nasnet`: a normal and a reduction cell of five nodes, ten operations."""

from __future__ import annotations

from typing import final

from archive.architecture.genotypes.rules import RULES, GenotypeRules
from archive.spaces.darts.base import GenotypeSpace


@final
class NasNet(GenotypeSpace):
    """Cells like those of NASNet and AmoebaNet: five nodes each, with the operations of the DARTS
    repository.
    """

    name = "nasnet"
    # Input, output, and for each cell two entries, ten operations and at most five sums.
    vertices = 36

    @property
    def rules(self) -> GenotypeRules:
        """The rules of NASNet, section 3."""
        return RULES[self.name]
