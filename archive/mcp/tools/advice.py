"""Tools about the optimiser of a study: what it would do next, and what it knows. Nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from archive.agents.advice import knowledge, overriding, suggesting
from archive.agents.advice.documents import (
    CandidateReport,
    OverrideReport,
    PredictedCandidate,
    StudyKnowledge,
    SuggestReport,
)
from archive.agents.ask_tell import enqueueing
from archive.api import Archive
from archive.architecture.graph import Architecture
from archive.constraints import NO_COSTS
from archive.errors import UsageError
from archive.mcp.arguments import StudyName
from archive.mcp.candidates import CallerCandidate, member_of
from archive.mcp.limits import largest

MOST_CANDIDATES = 50

AgentName = Annotated[
    str | None,
    Field(description="Another agent than the study's: its name, KIND or KIND:NAME=VALUE."),
]


@dataclass(frozen=True)
class Suggestions:
    """Proposals of an agent; the first of them where not all fit."""

    report: SuggestReport
    truncated: bool = False


@dataclass(frozen=True)
class Predictions:
    """Predictions of candidates; some without the JSON of their network where not all fit."""

    report: CandidateReport
    truncated: bool = False


@dataclass(frozen=True)
class Knowledge:
    """What is known about a study; the first networks of the front where not all fit."""

    report: StudyKnowledge
    truncated: bool = False


def suggest(
    archive: Archive,
    study: StudyName,
    k: Annotated[int, Field(ge=1, le=MOST_CANDIDATES, description="Number of proposals.")] = 3,
    agent: AgentName = None,
) -> Suggestions:
    """Return what the agent of a study would propose next, each with the predicted mean and standard
    deviation of its value.

    Nothing is written: accept a suggestion with `propose`, or train it yourself and use `record_run`;
    or choose a network of your own.
    """
    report = suggesting.suggest(archive, study, agent, k)

    total = len(report.suggestions)

    def first(count: int) -> Suggestions:
        shown = replace(report, suggestions=report.suggestions[:count])
        return Suggestions(shown, truncated=count < total)

    return largest(first, total, least=1)


def predict_candidates(
    archive: Archive,
    study: StudyName,
    candidates: Annotated[
        list[CallerCandidate],
        Field(
            min_length=1,
            max_length=MOST_CANDIDATES,
            description="Networks, or values by name, as `propose` takes them.",
        ),
    ],
) -> Predictions:
    """Predict the values of your own candidates in a study, with the model that `suggest` uses: mean
    and standard deviation, and the values that the study has of them.

    A candidate outside of the study's space is answered with the reason.
    """
    members, reasons = _members(archive, study, candidates)
    report = suggesting.predict_candidates(archive, study, members)
    predicted = iter(report.candidates)
    answers = []
    for reason in reasons:
        if reason is None:
            answers.append(next(predicted))
        else:
            answers.append(PredictedCandidate(False, reason, None))

    whole = replace(report, candidates=answers)

    def shortened(count: int) -> Predictions:
        return Predictions(_shorten(whole, count), truncated=count < len(answers))

    return largest(shortened, len(answers))


def consider(
    archive: Archive, study: StudyName, candidate: CallerCandidate, agent: AgentName = None
) -> OverrideReport:
    """Judge whether a candidate of yours should be evaluated in place of the agent's next
    suggestion, from the predictions of both, and from what your earlier candidates brought beyond
    theirs.

    The verdict is advice: `propose` takes any candidate of the space.
    """
    space = enqueueing.space_of(archive, archive.studies.get(study), NO_COSTS)
    member = member_of(archive, space, candidate.network, candidate.parameters)
    return overriding.consider(archive, study, member, agent)


def state(archive: Archive, study: StudyName) -> Knowledge:
    """Return what the optimiser of a study knows: the best result or the front, what searching on
    would gain, how well its model predicts, what each value of a decision brings, and where it is
    uncertain.
    """
    report = knowledge.state(archive, study)

    def first(count: int) -> Knowledge:
        shown = replace(report, front=report.front[:count])
        return Knowledge(shown, truncated=count < len(report.front))

    return largest(first, len(report.front))


def _members(
    archive: Archive, study: str, candidates: Sequence[CallerCandidate]
) -> tuple[list[Architecture], list[str | None]]:
    """Return the candidates that are networks, and for each the reason why it is none."""
    space = enqueueing.space_of(archive, archive.studies.get(study), NO_COSTS)
    members = []
    reasons: list[str | None] = []
    for candidate in candidates:
        try:
            members.append(member_of(archive, space, candidate.network, candidate.parameters))
            reasons.append(None)
        except UsageError as error:
            reasons.append(str(error))

    return members, reasons


def _shorten(report: CandidateReport, count: int) -> CandidateReport:
    """Return a report with the graphs of the first candidates alone: the caller has all of them."""
    shortened = list(report.candidates[:count])
    for candidate in report.candidates[count:]:
        network = candidate.network
        if network is not None:
            network = replace(network, network=None)

        shortened.append(replace(candidate, network=network))

    return replace(report, candidates=shortened)
