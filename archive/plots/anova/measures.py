"""Uniform distributions of the codes of one column, as probabilities of intervals and options."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from archive.plots.data.results import Floats

MOST_LEVELS = 10_000
"""Most evenly spaced numbers that are counted; more of them are taken for an interval."""


@dataclass(frozen=True)
class CodeMeasure:
    """The uniform distribution of the codes of one column.

    Attributes:
        options: Number of options without an order, whose codes are their positions; 0 for numbers
            and ordered options, whose codes are in [0, 1].
        levels: Number of evenly spaced codes 0, 1 / (levels - 1), …, 1; 0 for an interval.
        low: Least code of a number.
        high: Greatest code of a number.
        allowed: Positions of the options with a positive probability; None for all.
    """

    options: int = 0
    levels: int = 0
    low: float = 0.0
    high: float = 1.0
    allowed: tuple[int, ...] | None = None

    def restrict(self, codes: Floats) -> CodeMeasure:
        """Return the distribution on the range, or on the options, of (n,) codes without NaN."""
        if self.options:
            return replace(self, allowed=tuple(np.unique(codes).astype(int).tolist()))

        return replace(self, low=float(codes.min()), high=float(codes.max()))

    def probabilities(self, cuts: Floats) -> Floats:
        """Return the probability of each option, or of each interval between cuts.

        Args:
            cuts: (k,) ascending codes; not used for options.

        Returns:
            (options,) float64, or (k + 1,) of the intervals up to and including each cut, and above
            the last.
        """
        if self.options:
            chances = np.zeros(self.options)
            positions = range(self.options) if self.allowed is None else self.allowed
            chances[list(positions)] = 1.0 / len(positions)
            return chances

        return np.diff(np.concatenate([[0.0], self._distribution(cuts), [1.0]]))

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw codes: (count,) float64."""
        if self.options:
            positions = np.arange(self.options) if self.allowed is None else np.array(self.allowed)
            return positions[rng.integers(len(positions), size=count)].astype(np.float64)

        grid = self._grid()
        if grid is not None:
            return grid[rng.integers(len(grid), size=count)]

        return rng.uniform(self.low, self.high, count)

    def grid(self, count: int) -> Floats:
        """Return at most so many codes in even steps, of options all of them."""
        if self.options:
            return np.arange(float(self.options))

        levels = self._grid()
        if levels is not None and len(levels) <= count:
            return levels

        return np.linspace(self.low, self.high, count)

    def _distribution(self, cuts: Floats) -> Floats:
        """Return the probability of a code of at most each cut."""
        grid = self._grid()
        if grid is not None:
            return np.searchsorted(grid, cuts, side="right") / len(grid)

        extent = self.high - self.low
        if extent <= 0.0:
            return np.asarray(cuts >= self.low, np.float64)

        return np.clip((cuts - self.low) / extent, 0.0, 1.0)

    def _grid(self) -> Floats | None:
        """Return the codes of a number in steps; None for an interval."""
        if not 0 < self.levels <= MOST_LEVELS:
            return None

        codes = np.linspace(0.0, 1.0, self.levels)
        near = 0.5 / max(1, self.levels - 1)
        return codes[(codes > self.low - near) & (codes < self.high + near)]
