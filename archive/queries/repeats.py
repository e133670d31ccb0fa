"""Means over repeats of a configuration, and the difference of two of them, with intervals.

Runs that differ in their seeds alone are repeats of one configuration. The interval of a mean is
Student's. The interval of a difference is Welch's, which does not assume that both configurations are
equally noisy. Welch, "The generalization of 'Student's' problem when several different population
variances are involved", Biometrika 34 (1947).

Each interval is of one mean or of one difference: it makes no allowance for the choice of the best of
many, and none for the number of differences.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from archive.database.connection import Connection

# No label on `p`: with one, Neo4j may start from the index of the study's proposals.
REPEATS = """
UNWIND $configurations AS configuration
MATCH (a:Architecture {key: configuration.key})
USING INDEX SEEK a:Architecture(key)
MATCH (a)<-[:OF]-(p)
WHERE p.study = configuration.study
MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
WHERE e.partial IS NULL
RETURN configuration.study AS study, configuration.key AS key, p.number AS number, e.value AS value
"""

LEVEL = 0.95
"""Level of the intervals."""

LEAST_RUNS = 2
"""Repeats of a configuration without which there is no interval."""

Verdict = Literal["better", "worse", "noise", "unknown"]


@dataclass(frozen=True)
class MeanDifference:
    """Difference of the means of two configurations, larger is better for the second.

    Attributes:
        gain: The difference; null where either has no result.
        low: Lower end of its interval of 95 %; null with fewer than two repeats of either.
        high: Upper end.
        verdict: `better` or `worse` where that is more than noise, `noise` where it is not, `unknown`
            without an interval.
    """

    gain: float | None
    low: float | None
    high: float | None
    verdict: Verdict


def difference_of_means(
    first: Sequence[float], second: Sequence[float], sign: float
) -> MeanDifference:
    """Return the difference of the means of two configurations.

    Args:
        first: Values of the repeats of the first one.
        second: Values of the repeats of the second one.
        sign: 1 where larger values are better, else -1.
    """
    if not first or not second:
        return MeanDifference(None, None, None, "unknown")

    # A difference of nothing has no sign.
    gain = sign * (fmean(second) - fmean(first)) or 0.0
    if min(len(first), len(second)) < LEAST_RUNS:
        return MeanDifference(gain, None, None, "unknown")

    parts = [variance(values) / len(values) for values in (first, second)]
    error = math.sqrt(sum(parts))
    reach = 0.0
    if error:
        freedom = sum(parts) ** 2 / (
            parts[0] ** 2 / (len(first) - 1) + parts[1] ** 2 / (len(second) - 1)
        )
        reach = _quantile(freedom) * error

    low = gain - reach
    high = gain + reach
    verdict: Verdict = "better" if low > 0 else "worse" if high < 0 else "noise"
    return MeanDifference(gain, low, high, verdict)


def interval_of_mean(values: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the ends of the interval of a mean; None with fewer than two repeats."""
    if len(values) < LEAST_RUNS:
        return None, None

    mean = fmean(values)
    error = math.sqrt(variance(values) / len(values))
    reach = _quantile(len(values) - 1) * error if error else 0.0
    return mean - reach, mean + reach


def _quantile(freedom: float) -> float:
    """Return Student's quantile of a two-sided interval."""
    # scipy.stats takes seconds to import.
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + LEVEL) / 2))


def repeats_by_configuration(
    connection: Connection, configurations: Collection[tuple[str, str]]
) -> dict[tuple[str, str], list[float]]:
    """Return the finite values of all whole runs of configurations, oldest first.

    Args:
        connection: Connection to the archive.
        configurations: Name of a study and key of a configuration each.
    """
    values: dict[tuple[str, str], list[float]] = {pair: [] for pair in configurations}
    asked = [{"study": study, "key": key} for study, key in values]
    rows = connection.read(lambda tx: tx.run(REPEATS, configurations=asked).data()) if asked else []
    rows.sort(key=lambda row: row["number"])
    for row in rows:
        if math.isfinite(row["value"]):
            values[row["study"], row["key"]].append(row["value"])

    return values
