"""Priors of the observation noise.

The noise variance of an evaluation is eta2, the same for all, plus its known variance, where one is
given. Scores are standardised, so that eta2 is a fraction of their variance unless said otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

from archive.errors import UsageError


@dataclass(frozen=True)
class LearnedNoise:
    """Noise that is fitted with the other hyperparameters.

    The default: another training seed moves a score by 3 % to 100 % of the spread between
    architectures.

    Attributes:
        lower: Lower bound of eta2, as a fraction of the scores' variance.
        upper: Upper bound.
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
    """Noise of a given variance.

    It must be positive: replicates that disagree, and networks at distance 0, would make the
    covariance singular. For a table without noise use 1e-6.

    Attributes:
        variance: eta2.
        relative: Whether `variance` is a fraction of the scores' variance; otherwise in squared
            score units.
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
