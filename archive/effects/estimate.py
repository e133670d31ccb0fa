"""Mean effect over pairs that are not independent: a mixed model with a dyadic interval.

| symbol | meaning                                                                    | shape  |
|--------|----------------------------------------------------------------------------|--------|
| d      | difference of each pair                                                    | (n,)   |
| a, b   | clusters of its two networks: families, or the networks themselves         | (n,)   |
| g      | group of a pair: its two clusters                                          | (n,)   |
| s2, t2 | variances of d within and between groups, by the moments of one-way ANOVA  | scalar |
| w      | weights 1 / (s2 + n_g t2), the inverse variances of a random mean a group  | (n,)   |
| u      | w (d - m) / sum(w), with the weighted mean m                               | (n,)   |

The mean m gives each family one voice where families differ (t2 large), and each pair one where they
agree. Its variance does not rely on the model: it is the sum of u_i u_j over all pairs i, j that share
a cluster (Aronow, Samii and Assenova: Cluster-robust variance estimation for dyadic data, Political
Analysis 23, 2015). The interval is Student's, with the effective number of clusters or groups, whichever
is smaller, minus 1 degrees of freedom (Carter, Schnepel and Steigerwald: Asymptotic behavior of a t-test
robust to cluster heterogeneity, Review of Economics and Statistics 99, 2017).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LEVEL = 0.95
"""Probability of an interval."""

LEAST_PAIRS = 8
"""Fewest pairs of networks with an estimate."""

LEAST_FAMILIES = 3
"""Fewest families over which an interval is; below, it holds within these families."""


@dataclass(frozen=True)
class MeanEffect:
    """Mean of differences with an interval.

    Attributes:
        mean: The mean.
        low: Lower end of the interval of 95 %.
        high: Upper end.
        clusters: Number of clusters.
    """

    mean: float
    low: float
    high: float
    clusters: int


def estimate(differences: Floats, first: Integers, second: Integers) -> MeanEffect:
    """Return the mean of the differences of pairs, with an interval.

    Args:
        differences: (n,) float64, finite; n >= 1.
        first: (n,) cluster of one network of each pair.
        second: (n,) cluster of the other one.
    """
    clusters, ends = np.unique(np.stack([first, second]), return_inverse=True)
    ends = np.sort(ends.reshape(2, -1), axis=0)
    _, group = np.unique(ends[0] * len(clusters) + ends[1], return_inverse=True)
    weights = _weights(differences, group)
    weights = weights / weights.sum()
    mean = float(weights @ differences)

    parts = weights * (differences - mean)
    apart = ends[0] != ends[1]
    shares = _sum_by_cluster(weights, ends, apart)
    of_groups = np.bincount(group, weights).astype(np.float64)
    degrees = min(_effective(shares), _effective(of_groups)) - 1.0
    if degrees <= 0.0:
        return MeanEffect(mean, -np.inf, np.inf, len(clusters))

    of_clusters = _sum_by_cluster(parts, ends, apart)
    sums = np.bincount(group, parts)
    twice = np.bincount(group, parts * apart)
    variance = float(of_clusters @ of_clusters - twice @ twice)
    # Negative correlations of pairs that share one network can make the sum too small.
    variance = max(variance, float(sums @ sums)) * (degrees + 1.0) / degrees
    # Imported here, because few of the edits of a study have so many pairs.
    from scipy.special import stdtrit

    margin = float(stdtrit(degrees, 0.5 + LEVEL / 2) * np.sqrt(variance))
    return MeanEffect(mean, mean - margin, mean + margin, len(clusters))


def _weights(differences: Floats, group: Integers) -> Floats:
    """Return w, up to a factor."""
    sizes = np.bincount(group)
    count = len(differences)
    groups = len(sizes)
    if groups in (1, count):
        return np.ones(count)

    means = np.bincount(group, differences) / sizes
    within = float(((differences - means[group]) ** 2).sum()) / (count - groups)
    between = float((sizes * (means - differences.mean()) ** 2).sum()) / (groups - 1)
    mean_size = (count - float((sizes**2).sum()) / count) / (groups - 1)
    spread = max(0.0, (between - within) / mean_size)
    variances = within + sizes[group] * spread
    weights = 1.0 / variances if variances.all() else np.ones(count)
    return weights.astype(np.float64)


def _sum_by_cluster(parts: Floats, ends: Integers, apart: NDArray[np.bool_]) -> Floats:
    """Return the sum of the parts of each cluster's pairs; a pair within it counts once."""
    sums = np.bincount(ends[0], parts, minlength=int(ends.max()) + 1).astype(np.float64)
    sums += np.bincount(ends[1], parts * apart, minlength=len(sums))
    return sums


def _effective(shares: Floats) -> float:
    """Return the number of equal shares that are as concentrated as these."""
    return float(shares.sum() ** 2 / (shares @ shares))
