"""The division of a history into observations and source studies.

    evaluations of the study and of its sources -> split -> its observations, and one `SourceStudy`
    for each other study

Evaluations of the same task, protocol and space are observations, whichever study they belong to;
on parameters, if the study's space has the configuration, completed by defaults. All others belong to source studies: their scores have another unit, or their networks another
space.

A reused result (`archive.queue.reuse`) is a copy of another evaluation. Beside the original it
carries no information, and as a replicate of equal score it would bias the estimate of the noise.
Each result therefore enters once for a network. Two configurations that build one network are two
points of an agent's space, and one training is the result of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from archive.agents.base import Observation, SourceStudy
from archive.agents.observations import is_score
from archive.architecture.parameter_operations import NAME as PARAMETERS
from archive.spaces.named_values import space_of

if TYPE_CHECKING:
    from archive.store.records import Evaluation, Study


def split(
    evaluations: Sequence[Evaluation], study: Study
) -> tuple[list[Evaluation], tuple[SourceStudy, ...]]:
    """Return the evaluations that are a study's observations, and its source studies by name.

    Observations from other studies come first, as the older ones; the study's own observations keep
    their order. Source studies have whole trainings only. Copies of evaluations that are among the
    arguments are left out, so that a source study may have no observations.
    """
    observed: list[Evaluation] = []
    others: dict[tuple[str, str, str], list[Evaluation]] = {}
    for evaluation in evaluations:
        if _is_observation(study, evaluation):
            observed.append(evaluation)
        elif not evaluation.partial:
            others.setdefault(
                (evaluation.task, evaluation.protocol, evaluation.architecture.space), []
            ).append(evaluation)

    observed.sort(key=lambda evaluation: evaluation.study == study.name)
    sources: list[SourceStudy] = []
    for together in others.values():
        sources += _sources(together)

    return without_copies(observed), tuple(sorted(sources, key=lambda source: source.study))


def without_copies(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Return evaluations, each result of a network once.

    The original is kept, or its first copy without it.
    """
    seen_results = set()
    for evaluation in evaluations:
        if evaluation.answered_from is None:
            seen_results.add((evaluation.id, evaluation.architecture.functional_key))

    kept: list[Evaluation] = []
    for evaluation in evaluations:
        if evaluation.answered_from is not None:
            result = (evaluation.answered_from, evaluation.architecture.functional_key)
            if result in seen_results:
                continue

            seen_results.add(result)

        kept.append(evaluation)

    return kept


def observation(evaluation: Evaluation, score: float, variance: float = 0.0) -> Observation:
    """Return an evaluation as an observation for agents."""
    return Observation(
        evaluation.architecture,
        score,
        evaluation.id,
        evaluation.agent,
        evaluation.hyperparameters,
        evaluation.seed,
        variance=variance,
    )


def same_task(study: Study, task: str, protocol: str, space: str) -> bool:
    """Return whether evaluations of this task, protocol and space are observations of a study."""
    return (study.task, study.protocol, study.space) == (task, protocol, space)


def _is_observation(study: Study, evaluation: Evaluation) -> bool:
    network = evaluation.architecture
    if not same_task(study, evaluation.task, evaluation.protocol, network.space):
        return False

    if study.space != PARAMETERS or evaluation.study == study.name:
        return True

    return space_of(study.space, study.space_config).contains(network)


LEAST = 5
"""Fewest distinct networks of a usable source."""


def of_one_task(source: SourceStudy, sources: Sequence[SourceStudy]) -> list[SourceStudy]:
    """Return the sources of one task, protocol and space, from which agents learn together."""
    where = (source.task, source.protocol, source.space)
    return [other for other in sources if (other.task, other.protocol, other.space) == where]


def too_little(*sources: SourceStudy) -> str | None:
    """Return why sources of one task are unusable; None where they are usable."""
    scores: list[float] = []
    keys: set[str] = set()
    for source in sources:
        for observed in source.observations:
            if is_score(observed.score):
                scores.append(observed.score)
                keys.add(observed.architecture.functional_key)

    different = len(keys)
    if different < LEAST:
        return f"only {different} different networks have a finite value, fewer than {LEAST}"

    return None if max(scores) > min(scores) else "all values are equal"


def _sources(evaluations: Sequence[Evaluation]) -> list[SourceStudy]:
    """Return the source studies of one task, protocol and space."""
    of_study: dict[str, list[Observation]] = {}
    for evaluation in evaluations:
        of_study.setdefault(str(evaluation.study), [])

    for evaluation in without_copies(evaluations):
        of_study[str(evaluation.study)].append(observation(evaluation, evaluation.score))

    first = evaluations[0]
    where = (first.task, first.protocol, first.architecture.space)
    sources = []
    for name, observations in of_study.items():
        sources.append(SourceStudy(name, *where, tuple(observations)))

    return sources
