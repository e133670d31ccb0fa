"""What is known of the noise of an evaluation before any was seen.

The noise variance is eta2, the same for every evaluation, plus what is known of a single one. Scores are standardised,
so eta2 is a share of their variance unless said otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

from archive.errors import UsageError


@dataclass(frozen=True)
class LearnedNoise:
    """eta2 is learnt with the other hyperparameters.

    The default: training twice with other seeds moves a score by 3 % to 100 % of the spread between architectures.

    Attributes:
        lower: Smallest eta2, as a share of the scores' variance.
        upper: Largest.
    """

    lower: float = 1e-3
    upper: float = 1.0

    def __post_init__(self) -> None:
        """Check the bounds."""
        if not 0.0 < self.lower < self.upper < float("inf"):
            raise UsageError(f"noise needs 0 < lower < upper, got {self.lower} and {self.upper}")

    def bounds(self, spread: float) -> tuple[float, float]:
        """Return the bounds of eta2 for scores of this standard deviation."""
        return self.lower, self.upper


@dataclass(frozen=True)
class FixedNoise:
    """eta2 is given.

    It is never 0: repeats that disagree, and distances that are 0 between networks that differ, would have no answer.
    For a table without noise take 1e-6.

    Attributes:
        variance: eta2.
        relative: Whether as a share of the scores' variance; otherwise in squared score units.
    """

    variance: float
    relative: bool = True

    def __post_init__(self) -> None:
        """Check the variance."""
        if not 0.0 < self.variance < float("inf"):
            raise UsageError(f"the variance of a fixed noise must be > 0, got {self.variance}")

    def bounds(self, spread: float) -> tuple[float, float]:
        """Return eta2 twice, for scores of this standard deviation."""
        variance = self.variance if self.relative else self.variance / spread**2
        return variance, variance


Noise = LearnedNoise | FixedNoise
