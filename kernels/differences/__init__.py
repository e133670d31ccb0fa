"""Differences of two networks: which layers a distance matches, and what each part of the distance
costs.

`difference(first, second, "edit")` explains the edit distance by its script, `"otmann"` the optimal
transport by its plan. The costs of the parts sum up to the distance.
"""

from archive.kernels.differences.base import Difference, DifferencePart
from archive.kernels.differences.registry import difference, explained

__all__ = ["Difference", "DifferencePart", "difference", "explained"]
