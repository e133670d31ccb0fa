"""The provenance of a proposal: the inputs of the call, sufficient to replay it.

    history_of(archive, study, costs) -> history, basis            basis stored with the proposal
    StudyReplay(archive, study, costs).history(basis) -> history   the same history, at any later time (`agents.replay`)

A basis names evaluations and proposals by their numbers in each study, with consecutive ones as a
range:

    {"observations": {"study": "0-19,21"}, "pending": "20", "failed": "", "wanted": 1}

In a study with rungs, `"partial": {"study": {"2": "0-3"}}` names the evaluations that had paused
after this number of epochs; their scores then are restored from the curve, and their constrained
quantities from the proposal's record of each rung (`archive.agents.rungs`).

Where zero-cost proxies of the task were known, `"proxies": {"source": "archive/1", "until": 1764e9,
"networks": 500}` names their definitions, the time of the latest measurement and the number of
networks.

Where the agent learnt from studies of other tasks, `"coupling": {"study": 0.8}` has
`Suggestion.task_correlations`, the estimated correlation of its task with the task of each study:
an output of the call, not an input.

A search that shares its study with another one draws from a separate random stream
(`archive.agents.searcher`): `"stream": 1234567`. Without this entry the stream is 0, the one of a
search that is alone.

Together with the study's seed, the recorded configuration of the agent and the evaluations, the
basis determines the proposal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from archive import runtime
from archive.agents.base import Entry, History, Observation, Pending, Suggestion
from archive.agents.constraints.slacks import StudyConstraints
from archive.agents.objectives.goals import Goals
from archive.agents.proxies.study_scores import basis_of, proxies_of
from archive.agents.rungs import project_scores
from archive.agents.transfer.source_tasks import observation, split
from archive.architecture.graph import Architecture
from archive.constraints import NO_COSTS, KnownCosts
from archive.spaces.stored_spaces import member_of
from archive.store.records import Evaluation, Proposal

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.store.records import Study

Basis = Mapping[str, Any]

STREAMS = 2**31
"""Number of random streams, other than 0, among which searches that share a study choose."""


@runtime.pause_gc()
def history_of(
    archive: Archive, study: Study, costs: KnownCosts = NO_COSTS
) -> tuple[History, Basis]:
    """Read an agent's history of a study and its sources.

    Args:
        archive: The archive of the study.
        study: The study.
        costs: Known costs of its networks.
    """
    read = archive.studies.history_of(study)
    evaluations = read.evaluations
    observed, sources = split(evaluations, study)
    history = History(
        observations=observations_of(observed, study, costs),
        sources=sources,
        pending=tuple(
            pending_of(study, proposal.architecture, proposal.hyperparameters)
            for proposal in read.open
        ),
        failed=tuple(
            member_of(study.space_config, evaluation.architecture, evaluation.hyperparameters)
            for evaluation in read.failed
        ),
        goals=goals_of(study, costs),
        constraints=constraints_of(study, costs),
        proxies=proxies_of(archive, study),
    )
    basis = {
        "observations": _by_study(evaluations),
        "pending": ranges(proposal.number for proposal in read.open),
        "failed": ranges(evaluation.number for evaluation in read.failed),
        **basis_of(history.proxies),
    }
    if partial := _partial(evaluations):
        basis["partial"] = partial

    return history, basis


def generator(seed: int, history: History, stream: int = 0) -> np.random.Generator:
    """Return the random generator of a call of an agent.

    Each position of a study has its own random numbers: a restarted search repeats the draws of the
    killed one.

    Args:
        seed: Seed of the study.
        history: The history of the call.
        stream: Random stream of the search; searches on different streams draw independently.
    """
    position = len(history.observations) + len(history.pending) + len(history.failed)
    return np.random.default_rng([seed, position, stream] if stream else [seed, position])


def correlations_of(suggestions: Sequence[Suggestion]) -> dict[str, Any]:
    """Return the estimated correlations with source tasks; empty without estimates."""
    for suggestion in reversed(suggestions):
        if suggestion.task_correlations:
            estimates = suggestion.task_correlations.items()
            return {"coupling": {study: round(value, 4) for study, value in estimates}}

    return {}


def observations_of(
    evaluations: Sequence[Evaluation], study: Study, costs: KnownCosts
) -> tuple[Observation, ...]:
    """Return evaluations as observations; partial trainings are projected to whole ones.

    In a study with parameters beside the networks, an observation is of both.
    """
    if not evaluations:
        return ()

    scores = project_scores(evaluations, study.objective)
    pairs = zip(evaluations, scores, strict=True)
    observations = tuple(
        join_parameters(study, observation(evaluation, *score)) for evaluation, score in pairs
    )
    goals = goals_of(study, costs)
    constraints = constraints_of(study, costs)
    if goals is None and constraints is None:
        return observations

    extended = []
    for seen, evaluation in zip(observations, evaluations, strict=True):
        further: tuple[float, ...] = ()
        measured: tuple[float, ...] = ()
        if goals is not None:
            further = goals.further_scores(evaluation)

        if constraints is not None:
            measured = constraints.told(evaluation, study.objective, seen.score)

        extended.append(replace(seen, further=further, measured=measured))

    return tuple(extended)


def pending_of(study: Study, network: Architecture, hyperparameters: Mapping[str, Any]) -> Pending:
    """Return an open proposal of a study as a part of a history."""
    return join_parameters(study, Pending(network, hyperparameters))


def join_parameters(study: Study, entry: Entry) -> Entry:
    """Return an entry whose network has the parameters beside it, in a study with such."""
    member = member_of(study.space_config, entry.architecture, entry.hyperparameters)
    if member is entry.architecture:
        return entry

    return replace(entry, architecture=member, hyperparameters={})


def goals_of(study: Study, costs: KnownCosts) -> Goals | None:
    """Return the goals of a study; None for a study with one objective."""
    return Goals(study.objectives, costs) if study.further else None


def constraints_of(study: Study, costs: KnownCosts) -> StudyConstraints | None:
    """Return the constraints of a study for agents; None without."""
    return StudyConstraints(study.constraints, costs) if study.constraints else None


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers as text, `"0-19,21"`, in increasing order."""
    texts = []
    ordered = enumerate(sorted(set(numbers)))
    for _, pairs in groupby(ordered, lambda pair: pair[1] - pair[0]):
        run = [number for _, number in pairs]
        texts.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")

    return ",".join(texts)


def numbers_in(text: str) -> Iterable[int]:
    """Return the numbers that `ranges` wrote."""
    return chain.from_iterable(_spans(text))


def count_in(text: str) -> int:
    """Count the numbers that `ranges` wrote; an imported text may name billions."""
    return sum(map(len, _spans(text)))


def _spans(text: str) -> Iterator[range]:
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        yield range(int(first), int(last or first) + 1)


def _partial(evaluations: Sequence[Evaluation]) -> dict[str, dict[str, str]]:
    """Return the partial evaluations by study and epochs: each may have continued."""
    paused = [evaluation for evaluation in evaluations if evaluation.partial]
    partial: dict[str, dict[str, str]] = {}
    for length in sorted({evaluation.epochs or 0 for evaluation in paused}):
        of_length = [evaluation for evaluation in paused if evaluation.epochs == length]
        for name, numbers in _by_study(of_length).items():
            partial.setdefault(name, {})[str(length)] = numbers

    return partial


def _by_study(evaluations: Sequence[Evaluation]) -> dict[str, str]:
    numbers: dict[str, list[int]] = {}
    for evaluation in evaluations:
        # Evaluations read by study always belong to a proposal, hence the defaults are never used.
        numbers.setdefault(str(evaluation.study), []).append(int(evaluation.number or 0))

    return {name: ranges(of_study) for name, of_study in numbers.items()}


def networks_of(archive: Archive, proposals: Sequence[Proposal]) -> tuple[Architecture, ...]:
    """Return the networks of proposals, in the order of the proposals."""
    keys = [proposal.architecture_key for proposal in proposals]
    return tuple(map(archive.architectures.get_many(keys).__getitem__, keys))
