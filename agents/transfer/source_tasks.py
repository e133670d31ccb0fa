"""Where what a study started warm from belongs: observations of its own task, or sources of other tasks.

    evaluations of the study and of its sources -> split -> its observations, and one `SourceStudy` for each other study

An evaluation of the same task, protocol and space is an observation, whichever study it was made in. All others are
of sources: their scores have another unit, and their networks are no answer to what the study asks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from archive.agents.base import Observation, SourceStudy

if TYPE_CHECKING:
    from archive.store.records import Evaluation, Study


def split(evaluations: Sequence[Evaluation], study: Study) -> tuple[list[Evaluation], tuple[SourceStudy, ...]]:
    """Return the evaluations that are a study's observations, and its sources, by name.

    Observations from other studies come first: they were there before the study's own, which keep their order.

    Trainings that paused before their end are no evaluations of a source.
    """
    own: list[Evaluation] = []
    others: dict[str, list[Evaluation]] = {}
    for seen in evaluations:
        if same_task(study, seen.task, seen.protocol, seen.architecture.space):
            own.append(seen)
        elif not seen.partial:
            others.setdefault(str(seen.study), []).append(seen)
    own.sort(key=lambda seen: seen.study == study.name)
    return own, tuple(_source(name, others[name]) for name in sorted(others))


def observation(seen: Evaluation, score: float) -> Observation:
    """Return what an agent is told of an evaluation."""
    return Observation(seen.architecture, score, seen.id, seen.agent, seen.hyperparameters)


def same_task(study: Study, task: str, protocol: str, space: str) -> bool:
    """Return whether what is evaluated there is an observation of a study."""
    return (study.task, study.protocol, study.space) == (task, protocol, space)


LEAST = 5
"""Different networks that must have been evaluated: fewer tell nothing of a space."""


def too_little(*sources: SourceStudy) -> str | None:
    """Return why nothing can be learnt from sources of one task; None where something can."""
    seen = [one for source in sources for one in source.observations if math.isfinite(one.score)]
    different = len({one.architecture.functional_key for one in seen})
    if different < LEAST:
        return f"only {different} different networks have a finite value, fewer than {LEAST}"
    scores = [one.score for one in seen]
    return None if max(scores) > min(scores) else "all values are equal"


def _source(study: str, evaluations: Sequence[Evaluation]) -> SourceStudy:
    first, observations = evaluations[0], tuple(observation(seen, seen.score) for seen in evaluations)
    return SourceStudy(study, first.task, first.protocol, first.architecture.space, observations)
