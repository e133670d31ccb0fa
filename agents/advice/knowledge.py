"""State of a study for a proposer: results, recommendation, front, and what the model has learnt.

    history ──> recommended network or front              `agents.recommendation`, `store.ranking`
            ──> surrogate ──> quality (leave-one-out), effects, uncertain regions
            ──> gain of searching on                       `agents.prospects`

Scores, in which larger is better, become values of the task here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from archive.agents.advice import learnt_effects
from archive.agents.advice.documents import (
    DecisionEffect,
    ObjectiveKnowledge,
    PossibleGain,
    RecommendedResult,
    StudyKnowledge,
    SurrogateQuality,
    UncertainRegion,
)
from archive.agents.advice.learnt_effects import LevelEffect
from archive.agents.advice.reading import StudyReading, read
from archive.agents.advice.study_surrogate import LeftOutScores
from archive.agents.prospects import gain_of
from archive.agents.recommendation import WIDTH, EstimatesFile, recommend
from archive.agents.study_setup import agent_of
from archive.architecture import texts
from archive.architecture.graph import Architecture
from archive.architecture.parameter_operations import PROGRAM_NAME
from archive.objectives import sign
from archive.objectives.pareto import front_of
from archive.store.studies.studies import UNBOUNDED

if TYPE_CHECKING:
    from archive.api import Archive

MOST_EFFECTS = 12
MOST_REGIONS = 6
"""Most effects and uncertain regions of one objective."""

MOST_OF_FRONT = 50
"""Most networks of a front."""


def state(archive: Archive, study: str) -> StudyKnowledge:
    """Return what is known about a study.

    Args:
        archive: The archive.
        study: Name of the study.

    Raises:
        UnknownNameError: There is no such study, or its space is not known here.
        SettingsError: The table of its space may not be opened here.
    """
    reading = read(archive, study)
    record = reading.study
    counts = archive.studies.counts(study)
    waiting = len(reading.history.pending)
    spent = sum(count for of_state, count in counts.items() if of_state.evaluated)
    best = None
    gain = None
    if not record.further:
        best = _best(archive, reading)
        gain = _gain(reading)

    return StudyKnowledge(
        study=record.name,
        agent=agent_of(record),
        results=len(reading.observations(0)),
        failed=len(reading.history.failed),
        waiting=waiting,
        left=None if record.budget >= UNBOUNDED else max(record.budget - spent - waiting, 0),
        best=best,
        gain=gain,
        front=_front(reading) if record.further else [],
        objectives=[_knowledge(reading, position) for position in reading.goals.learnt],
    )


def _best(archive: Archive, reading: StudyReading) -> RecommendedResult | None:
    keys = _keys(reading)
    if not keys:
        return None

    study = reading.study
    file = EstimatesFile(archive.connection.settings.home, study.name, study.objective)
    estimates = recommend(reading.space, reading.observations(0), keys, file)
    if not estimates.ranked:
        return None

    best = estimates.ranked[0]
    better = sign(study.direction)
    # A program may be random without a seed: a single run of it is no exact value.
    is_interval = study.space != PROGRAM_NAME or estimates.noise != 0.0
    low = None
    high = None
    if is_interval and best.low is not None and best.high is not None:
        low, high = sorted((better * best.low, better * best.high))

    return _result(
        reading, best.architecture, len(best.evaluations), better * best.score, low, high
    )


def _keys(reading: StudyReading) -> set[str]:
    """Return the functional keys of the networks that meet the constraints of a study."""
    return {seen.architecture.functional_key for seen in reading.feasible}


def _result(
    reading: StudyReading,
    network: Architecture,
    evaluations: int,
    value: float,
    low: float | None = None,
    high: float | None = None,
    further: Mapping[str, float] | None = None,
) -> RecommendedResult:
    """Return a network with the estimate of its value; see `RecommendedResult`."""
    return RecommendedResult(
        architecture=network.network.key,
        text=texts.to_text(network.network),
        configuration=reading.configuration(network),
        value=value,
        low=low,
        high=high,
        evaluations=evaluations,
        further=further or {},
    )


def _gain(reading: StudyReading) -> PossibleGain | None:
    if not reading.space.searchable:
        return None

    expected = gain_of(reading.space, reading.observations(0), _keys(reading))
    return None if expected is None else PossibleGain(expected.mean, expected.low, expected.high)


def _front(reading: StudyReading) -> list[RecommendedResult]:
    """Return the Pareto set of the means over the evaluations of each network."""
    observations = reading.feasible
    groups: dict[str, list[int]] = {}
    for row, seen in enumerate(observations):
        groups.setdefault(seen.architecture.functional_key, []).append(row)

    scores = reading.goals.scores(observations)
    means = []
    rows = []
    for of_network in groups.values():
        mean = scores[of_network].mean(axis=0)
        if np.isfinite(mean).all():
            means.append(mean)
            rows.append(of_network)

    if not means:
        return []

    names = [objective.name for objective in reading.study.further]
    signs = np.array([sign(objective.direction) for objective in reading.study.objectives])
    front = []
    for position in front_of(np.array(means))[:MOST_OF_FRONT].tolist():
        of_network = rows[position]
        network = observations[of_network[0]].architecture
        value, *others = (signs * means[position]).tolist()
        further = dict(zip(names, others, strict=True))
        front.append(_result(reading, network, len(of_network), value, further=further))

    return front


def _knowledge(reading: StudyReading, position: int) -> ObjectiveKnowledge:
    objective = reading.study.objectives[position]
    fit = reading.fits[position]
    surrogate = fit.surrogate
    if surrogate is None:
        return ObjectiveKnowledge(
            objective=objective.name,
            direction=objective.direction,
            model=None,
            reason=fit.reason,
            noise=None,
            quality=None,
            effects=[],
            uncertain=[],
            candidates=0,
        )

    learnt = learnt_effects.learn(reading.space, surrogate, reading.observations(position))
    better = sign(objective.direction)
    effects = [_effect(effect, better) for effect in learnt.effects[:MOST_EFFECTS]]
    regions = []
    for region in learnt.regions[:MOST_REGIONS]:
        level = region.level
        regions.append(
            UncertainRegion(level.decision, level.text, region.std, region.usual, region.results)
        )

    return ObjectiveKnowledge(
        objective=objective.name,
        direction=objective.direction,
        model=surrogate.model,
        reason=None,
        noise=surrogate.noise,
        quality=_quality(surrogate.left_out()),
        effects=effects,
        uncertain=regions,
        candidates=learnt.candidates,
    )


def _effect(effect: LevelEffect, better: float) -> DecisionEffect:
    low, high = sorted((better * effect.low, better * effect.high))
    return DecisionEffect(
        decision=effect.level.decision,
        value=effect.level.text,
        effect=better * effect.mean,
        low=low,
        high=high,
        better=effect.mean > 0.0,
        certain=not effect.low <= 0.0 <= effect.high,
        results=effect.results,
    )


def _quality(left_out: LeftOutScores) -> SurrogateQuality:
    from scipy.stats import spearmanr

    errors = np.abs(left_out.observed - left_out.means)
    rank = None
    if np.ptp(left_out.observed) > 0.0 and np.ptp(left_out.means) > 0.0:
        rank = float(spearmanr(left_out.observed, left_out.means).statistic)

    return SurrogateQuality(
        networks=len(left_out.observed),
        rank_correlation=rank,
        median_error=float(np.median(errors)),
        coverage=float((errors <= WIDTH * left_out.stds).mean()),
    )
