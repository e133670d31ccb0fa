"""Suggestions of a study's agent, and predictions for a caller's candidates, with one model.

    suggest ───────────> agent.propose(history, k) ──┐
                                                      ├──> surrogate of the study ──> mean, std
    predict_candidates ──> the caller's networks ────┘

Nothing is written: the same suggestions come again until the study has another result or proposal.
An agent may have another model, or none, as random search and evolution. Predictions are
therefore made by the surrogate of the study (`study_surrogate`), whichever agent suggests: a caller
can compare its candidates with the suggestions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from archive.agents import registry, searcher, study_setup
from archive.agents.advice.documents import (
    AdvisedProposal,
    CandidateReport,
    PredictedCandidate,
    SuggestReport,
)
from archive.agents.advice.reading import StudyReading, read
from archive.agents.base import Agent, check_count
from archive.architecture.graph import Architecture
from archive.errors import UsageError
from archive.spaces.joint import joint_space_of

if TYPE_CHECKING:
    from archive.api import Archive

Candidate = Architecture | Mapping[str, Any]
"""A network, or values of named decisions or parameters."""


def suggest(
    archive: Archive, study: str, agent: str | Agent | None = None, count: int = 5
) -> SuggestReport:
    """Return the proposals that an agent would make in a study now, with predictions.

    Args:
        archive: The archive.
        study: Name of the study.
        agent: An agent of the study's space, or its name, `KIND:NAME=VALUE`; None for the agent
            that the study was created for.
        count: Number of proposals, at least 1.

    Raises:
        UnknownNameError: There is no such study or agent, or its space is not known here.
        UsageError: `count` is less than 1, or the agent cannot search the study.
    """
    check_count(count)
    reading = read(archive, study)
    name, proposals = suggestions_of(reading, agent, count)
    return SuggestReport(
        study=reading.study.name,
        agent=name,
        objective=reading.study.objective,
        direction=reading.study.direction,
        model=reading.fit.model,
        reason=reading.fit.reason,
        suggestions=proposals,
    )


def suggestions_of(
    reading: StudyReading, agent: str | Agent | None, count: int
) -> tuple[str, list[AdvisedProposal]]:
    """Return the name of an agent and its suggestions for a study; see `suggest`."""
    name, made = _agent_of(reading, agent)
    study_setup.check_agent(made, reading.study)
    suggestions = searcher.ask_agent(made, reading.study, reading.history, count)[:count]
    advised = reading.advise([suggestion.architecture for suggestion in suggestions])
    proposals = []
    for suggestion, network in zip(suggestions, advised, strict=True):
        parent = suggestion.parent
        proposals.append(
            AdvisedProposal(
                network=network,
                parent=None if parent is None else parent.network.key,
                operations=list(suggestion.operations),
                hyperparameters=dict(suggestion.hyperparameters),
                repeat=suggestion.repeat,
                acquisition=suggestion.acquisition,
            )
        )

    return name, proposals


def predict_candidates(
    archive: Archive, study: str, candidates: Sequence[Candidate]
) -> CandidateReport:
    """Predict the results of a caller's candidates in a study.

    Args:
        archive: The archive.
        study: Name of the study.
        candidates: Networks; or values by name, where those that are left out have their default or
            the middle of their range.

    Raises:
        UnknownNameError: There is no such study, or its space is not known here.
    """
    reading = read(archive, study)
    answers = advise_candidates(reading, candidates)
    return CandidateReport(
        study=reading.study.name,
        objective=reading.study.objective,
        direction=reading.study.direction,
        model=reading.fit.model,
        reason=reading.fit.reason,
        candidates=answers,
    )


def advise_candidates(
    reading: StudyReading, candidates: Sequence[Candidate]
) -> list[PredictedCandidate]:
    """Return candidates with their predictions; see `predict_candidates`."""
    networks: list[Architecture] = []
    members: list[int] = []
    answers: list[PredictedCandidate] = []
    for position, candidate in enumerate(candidates):
        reason = None
        try:
            network = _network_of(reading, candidate)
            reading.space.validate(network)
            networks.append(network)
            members.append(position)
        except UsageError as error:
            reason = str(error)

        answers.append(PredictedCandidate(reason is None, reason, None))

    for position, advised in zip(members, reading.advise(networks), strict=True):
        answers[position] = PredictedCandidate(True, None, advised)

    return answers


def _agent_of(reading: StudyReading, agent: str | Agent | None) -> tuple[str, Agent]:
    """Return the name of an agent, and the agent."""
    if isinstance(agent, Agent):
        return agent.kind, agent

    configured = registry.configured(agent or study_setup.agent_of(reading.study))
    return configured.name, configured.make(reading.space)


def _network_of(reading: StudyReading, candidate: Candidate) -> Architecture:
    space = reading.space
    joint = joint_space_of(space)
    if isinstance(candidate, Architecture):
        if joint is not None and not candidate.configuration:
            return joint.complete(candidate, {})

        return candidate

    return space.of_names(space.fill(candidate))
