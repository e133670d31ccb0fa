"""Two runs side by side: what differs in what they were given, and whether their values differ.

Runs that differ in their seeds alone are repeats of one configuration. The difference of two
configurations is the difference of the means over their repeats (`archive.queries.repeats`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archive.errors import UsageError
from archive.objectives import sign
from archive.queries.repeats import MeanDifference, difference_of_means, repeats_by_configuration
from archive.queries.runs import runs_by_id
from archive.queries.tried.changes import ValueChange, value_changes
from archive.runs.identity.graphs import NETWORK
from archive.values import counted

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.queries.runs import TriedRun


@dataclass(frozen=True)
class RunComparison:
    """Two runs, and the difference of their configurations.

    Attributes:
        first: The first run.
        second: The second run.
        first_values: The objective of each repeat of the first run's configuration.
        second_values: Likewise for the second.
        first_network: Key of the network that the first run trained; null where it is unknown.
        second_network: Likewise for the second.
        changes: Values that differ.
        changed: Source files that differ between a run and the one that it is a change of, where
            that is the other one; else empty.
        gain: Difference of the means, larger is better for the second; null without results.
        low: Lower end of its interval of 95 %; null with fewer than two repeats of either.
        high: Upper end.
        words: The outcome in words.
    """

    first: TriedRun
    second: TriedRun
    first_values: list[float]
    second_values: list[float]
    first_network: str | None
    second_network: str | None
    changes: list[ValueChange]
    changed: list[str]
    gain: float | None
    low: float | None
    high: float | None
    words: str


def compare_runs(archive: Archive, first: str, second: str) -> RunComparison:
    """Compare two runs of one study.

    Args:
        archive: The archive.
        first: Id of the first run's proposal.
        second: Id of the second one's.

    Raises:
        UnknownNameError: There is no such proposal.
        UsageError: They are of different studies, or one run.
    """
    keys = [archive.proposals.get(name).architecture_key for name in (first, second)]
    if first == second:
        raise UsageError(f"a comparison needs two runs, got {first} twice")

    runs = {run.run: run for run in runs_by_id(archive.connection, [first, second])}
    first_run = runs[first]
    other = runs[second]
    if first_run.study != other.study:
        raise UsageError(
            f"{first} and {second} are of different studies: their values are not comparable"
        )

    configurations = [(first_run.study, key) for key in keys]
    repeats = repeats_by_configuration(archive.connection, configurations)
    first_values, second_values = (repeats[pair] for pair in configurations)
    difference = None
    if keys[0] != keys[1]:
        difference = difference_of_means(first_values, second_values, sign(first_run.direction))

    return RunComparison(
        first=first_run,
        second=other,
        first_values=first_values,
        second_values=second_values,
        first_network=first_run.network,
        second_network=other.network,
        changes=_value_changes(first_run, other),
        changed=_changed(first_run, other),
        gain=None if difference is None else difference.gain,
        low=None if difference is None else difference.low,
        high=None if difference is None else difference.high,
        words=_words(first_run, first_values, second_values, difference),
    )


def _value_changes(first: TriedRun, second: TriedRun) -> list[ValueChange]:
    """Return the values that differ, without the key of the network, which is compared as such."""
    changes = value_changes(first.values, second.values)
    return [change for change in changes if change.name != NETWORK]


def _changed(first: TriedRun, second: TriedRun) -> list[str]:
    """Return the source files that one run changes of the other, its parent."""
    if second.parent == first.run:
        return second.changed

    return first.changed if first.parent == second.run else []


def _words(
    run: TriedRun,
    first: Sequence[float],
    second: Sequence[float],
    difference: MeanDifference | None,
) -> str:
    """Return the outcome of a comparison in one sentence."""
    if difference is None:
        spread = f", from {min(first):.4g} to {max(first):.4g}" if len(first) > 1 else ""
        return f"both are one configuration with {counted(len(first), 'result')}{spread}"

    gain = difference.gain
    if gain is None:
        return "one of them has no result, so that nothing can be said of the difference"

    amount = f"{abs(gain):.3g} in {run.objective}"
    side = "better" if gain > 0 else "worse" if gain < 0 else "neither better nor worse"
    if difference.verdict == "unknown":
        return (
            f"the second is {side} by {amount}; whether that is more than noise is unknown: "
            "run each with two seeds or more"
        )

    interval = f"[{difference.low:+.3g}, {difference.high:+.3g}]"
    evidence = f"{gain:+.3g} {interval}, {len(first)} and {len(second)} runs"
    if difference.verdict == "noise":
        return f"no more than noise: {evidence}"

    return f"the second is {side} by {amount}, more than noise explains: {evidence}"
