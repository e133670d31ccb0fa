"""The space `darts`: a normal and a reduction cell of four nodes, eight operations."""

from __future__ import annotations

from typing import final

from archive.architecture.genotypes.rules import RULES, GenotypeRules
from archive.spaces.darts.base import GenotypeSpace


@final
class Darts(GenotypeSpace):
    """Normal and reduction cell of DARTS: four nodes each, the sums of two operations on two
    earlier states.
    """

    name = "darts"
    # Input, output, and for each cell two entries, eight operations and four sums.
    vertices = 30

    @property
    def rules(self) -> GenotypeRules:
        """The rules of DARTS, section 3.1."""
        return RULES[self.name]
