"""Prospects of a study as records, and the rule that ends a search when they are small."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from archive.errors import UsageError
from archive.objectives import sign
from archive.rungs import LengthGain
from archive.store.records import State

if TYPE_CHECKING:
    from archive.agents.prospects import ExpectedGain
    from archive.api import Archive
    from archive.spaces.base import Space
    from archive.store.records import Study
    from archive.store.snapshots import Snapshot

NOISE = "noise"
_RULE = re.compile(r"\s*gain\s*<\s*(noise|[0-9.eE+-]+)\s*")
_GROWTH = 10
"""A rule is judged again after a tenth more results, one at least."""
_IN_A_ROW = 2
"""Judgements in a row that end a search: one alone may be of a model that fits by chance."""


@dataclass(frozen=True)
class SearchGain:
    """What further evaluations would gain at most, as far as the model is right.

    Attributes:
        mean: Expected gain in the objective, at least 0 in either direction.
        low: Lower end of its 95 % interval.
        high: Upper end.
        noise: Standard deviation of the noise of an evaluation; 0 without noise.
        networks: Number of different networks that the model is fitted to.
    """

    mean: float
    low: float
    high: float
    noise: float
    networks: int


@dataclass(frozen=True)
class RecommendedNetwork:
    """The network that the gain is measured from.

    Attributes:
        architecture: Its key.
        expected: Estimate of its noise-free value.
        configuration: Values of named decisions, by name.
    """

    architecture: str
    expected: float
    configuration: Mapping[str, Any]


@dataclass(frozen=True)
class PausedItem:
    """A training that paused at a rung, projected to full length.

    Attributes:
        proposal: Id of its proposal.
        epochs: Epochs trained.
        value: Value at the rung.
        expected: Expected value of the whole training.
        low: Lower end of its 95 % interval.
        high: Upper end.
    """

    proposal: str
    epochs: int
    value: float
    expected: float
    low: float
    high: float


@dataclass(frozen=True)
class ProspectReport:
    """What a study would gain by searching on, and by training longer.

    Attributes:
        study: Name of the study.
        objective: Name of the metric.
        direction: Whether larger or smaller values are better.
        searching: Gain of searching on; null without an estimate.
        recommended: The network that the gain is measured from; null without an estimate.
        reason: Why there is no estimate; null with one.
        longer: Gains from rung to rung, or over the second half of the trainings; empty without
            curves.
        paused: Paused trainings with the best expected values, at most five.
    """

    study: str
    objective: str
    direction: Literal["maximise", "minimise"]
    searching: SearchGain | None
    recommended: RecommendedNetwork | None
    reason: str | None
    longer: list[LengthGain]
    paused: list[PausedItem]


PAUSED = 5
"""Most paused trainings of a report."""


def prospects(archive: Archive, study: str) -> ProspectReport:
    """Return what a study would gain by searching on, and by training longer.

    Args:
        archive: The archive.
        study: Name of the study.

    Raises:
        UnknownNameError: There is no study of this name, or its space is not known here.
        UsageError: The study has several objectives.
    """
    from archive.agents.prospects import expected_gain, paused_trainings, step_gains
    from archive.spaces import stored_spaces
    from archive.store.studies.configurations import values_of

    stored = archive.studies.get(study)
    check_single(stored)
    home = archive.connection.settings.home
    space = stored_spaces.of_record(stored.space, stored.space_config, home)
    history = archive.studies.history(study)
    gain = expected_gain(space, history, stored)
    better = sign(stored.direction)
    recommended = None
    if gain is not None:
        recommended = RecommendedNetwork(
            gain.recommended.network.key,
            better * gain.expected,
            {**values_of(stored, gain.recommended), **gain.recommended.configuration},
        )

    longer = step_gains(archive.studies.evaluations(study), stored)
    paused = []
    for training in paused_trainings(history, stored)[:PAUSED]:
        ends = sorted(
            better * (training.expected + width * training.std) for width in (-1.96, 1.96)
        )
        paused.append(
            PausedItem(
                training.evaluation,
                training.epochs,
                better * training.score,
                better * training.expected,
                *ends,
            )
        )

    return ProspectReport(
        stored.name,
        stored.objective,
        stored.direction,
        None if gain is None else _search_gain(gain),
        recommended,
        _explain_missing() if gain is None else None,
        longer,
        paused,
    )


def check_single(study: Study) -> None:
    """Refuse a study with several objectives.

    Raises:
        UsageError: It has several.
    """
    if study.further:
        names = ", ".join(objective.name for objective in study.objectives)
        raise UsageError(
            f"the gain of searching on is of one objective, got {names}: see the hypervolume "
            "of the study"
        )


def _search_gain(gain: ExpectedGain) -> SearchGain:
    return SearchGain(gain.mean, gain.low, gain.high, gain.noise, gain.networks)


def _explain_missing() -> str:
    from archive.agents.prospects import LEAST

    return (
        f"an estimate needs whole trainings of {LEAST} different networks with the protocol's "
        "hyperparameters, one of which meets the constraints"
    )


@dataclass(frozen=True)
class StopRule:
    """A rule that ends a search: the gain's mean and the upper end of its interval are below a bound.

    Attributes:
        bound: The bound in the objective's unit; None for the noise of an evaluation.
    """

    bound: float | None

    @classmethod
    def parse(cls, text: str) -> StopRule:
        """Read a rule, `gain<0.001` or `gain<noise`.

        Raises:
            UsageError: The text is no rule.
        """
        match = _RULE.fullmatch(text)
        if match is not None and match[1] == NOISE:
            return cls(None)

        bound = _number(match[1]) if match is not None else None
        if bound is None:
            raise UsageError(
                f"a search stops when gain<NUMBER, as in gain<0.001, or gain<noise, got {text!r}"
            )

        return cls(bound)

    def holds(self, gain: SearchGain) -> bool:
        """Return whether a gain is small; without noise, `gain<noise` never holds."""
        # The mean of a gain that is improbable, but large, is above its interval.
        greatest = max(gain.mean, gain.high)
        return greatest < (gain.noise if self.bound is None else self.bound)

    def __str__(self) -> str:
        """Return the text that `parse` reads."""
        return f"gain<{NOISE if self.bound is None else format(self.bound, 'g')}"


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None

    return number if math.isfinite(number) and number > 0.0 else None


class StopJudge:
    """Judges during a search whether a rule holds.

    Args:
        rule: The rule.
        archive: The archive of the study.
        space: The space that the agent searches.

    Attributes:
        reason: Why the search stops; None while it goes on.
        gain: The last estimate; None before the first one.
    """

    def __init__(self, rule: StopRule, archive: Archive, space: Space) -> None:
        """Begin without an estimate."""
        self.reason: str | None = None
        self.gain: SearchGain | None = None
        self._rule = rule
        self._archive = archive
        self._space = space
        self._due = 0
        self._held = 0

    def __call__(self, snapshot: Snapshot) -> bool:
        """Return whether the search should stop, after a read of the study."""
        from archive.agents.prospects import LEAST, expected_gain

        results = snapshot.counts[State.COMPLETE]
        if self.reason is not None or results < max(LEAST, self._due):
            return self.reason is not None

        self._due = results + max(1, results // _GROWTH)
        study = snapshot.study
        gain = expected_gain(self._space, self._archive.studies.history(study.name), study)
        if gain is None:
            return False

        self.gain = _search_gain(gain)
        self._held = self._held + 1 if self._rule.holds(self.gain) else 0
        if self._held >= _IN_A_ROW:
            self.reason = describe_stop(self._rule, self.gain, results)

        return self.reason is not None


def describe_stop(rule: StopRule, gain: SearchGain, results: int) -> str:
    """Return why a search stops, in one line."""
    return (
        f"stopped by {rule} after {results} evaluations: searching on would gain {gain.mean:.2g} "
        f"(95 %: {gain.low:.2g} to {gain.high:.2g})"
    )
