"""Overrides of a study's agent: judged before they are proposed, and predicted for the record.

consider ──> prediction of the candidate, the agent's suggestion ──> verdict   (`override_trust`)
                                ^
earlier candidates of the proposer: prediction on record and result
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from archive.agents.advice.documents import OverrideReport, ValuePrediction
from archive.agents.advice.override_trust import Expectation, OverrideTrust, OverrideVerdict
from archive.agents.advice.reading import StudyReading, read
from archive.agents.advice.suggesting import Candidate, advise_candidates, suggestions_of
from archive.agents.ask_tell.enqueueing import LANGUAGE_MODEL
from archive.agents.base import Agent
from archive.architecture.graph import Architecture
from archive.objectives import sign
from archive.store.studies.creation import kind_of
from archive.store.studies.rows import read_rows
from archive.values import counted

if TYPE_CHECKING:
    from archive.api import Archive

EVIDENCE = ("proposal", "agent", "mean", "std")
"""Columns of proposals that show how well a proposer did."""


def consider(
    archive: Archive,
    study: str,
    candidate: Candidate,
    agent: str | Agent | None = None,
    proposer: str = LANGUAGE_MODEL,
) -> OverrideReport:
    """Return whether a candidate should be evaluated in place of the agent's next suggestion.

    The verdict is advice: nothing refuses a candidate. Only the first objective is judged.

    Args:
        archive: The archive.
        study: Name of the study.
        candidate: A network, or values by name.
        agent: As in `suggest`.
        proposer: Kind of the caller on record, whose earlier candidates are the evidence:
            `language-model`, or `person`.

    Raises:
        UnknownNameError: There is no such study or agent, or its space is not known here.
        UsageError: The agent cannot search the study.
    """
    reading = read(archive, study)
    (predicted,) = advise_candidates(reading, [candidate])
    _, proposals = suggestions_of(reading, agent, 1)
    suggestion = proposals[0] if proposals else None
    trust = trust_in(archive, reading, proposer)
    verdict = None
    if predicted.network is not None and suggestion is not None:
        of_override = _expectation(reading, predicted.network.prediction)
        of_suggestion = _expectation(reading, suggestion.network.prediction)
        if of_override is not None and of_suggestion is not None:
            verdict = trust.judge(of_override, of_suggestion, reading.best_score)

    if predicted.reason is not None:
        advice = f"it is no candidate: {predicted.reason}"
    elif verdict is None:
        reason = reading.fit.reason or "the agent has no suggestion"
        advice = f"the model cannot judge it: {reason}"
    else:
        advice = _words(verdict)

    return OverrideReport(
        study=reading.study.name,
        accepted=None if verdict is None else verdict.accepted,
        advice=advice,
        candidate=predicted,
        suggestion=suggestion,
        advantage=None if verdict is None else verdict.advantage,
        uncertainty=None if verdict is None else verdict.uncertainty,
        results=len(trust.surprises),
    )


def expected_score(archive: Archive, study: str, network: Architecture) -> Expectation | None:
    """Return the predicted score of a network, to be stored with its proposal as evidence.

    Args:
        archive: The archive.
        study: Name of the study.
        network: A member of its space.

    Returns:
        The prediction, larger is better; None without a model.
    """
    reading = read(archive, study)
    (prediction,) = reading.predict(0, [network])
    return _expectation(reading, prediction)


def trust_in(archive: Archive, reading: StudyReading, proposer: str) -> OverrideTrust:
    """Return the evidence about a proposer: its proposals with a prediction and a result.

    Args:
        archive: The archive of the study.
        reading: The study.
        proposer: Kind of its agent on record.
    """
    scores = {seen.id: seen.score for seen in reading.observations(0)}
    noise = 0.0 if reading.fit.surrogate is None else reading.fit.surrogate.noise
    name = reading.study.name
    rows = archive.connection.read(lambda tx: read_rows(tx, EVIDENCE, evaluated=True, study=name))
    trust = OverrideTrust()
    for id_, agent, mean, std in sorted(rows):
        is_predicted = mean is not None and std is not None
        if id_ in scores and is_predicted and agent is not None and kind_of(agent) == proposer:
            expected = Expectation(mean, float(np.hypot(std, noise)))
            trust = trust.with_result(expected, scores[id_])

    return trust


def _expectation(reading: StudyReading, prediction: ValuePrediction | None) -> Expectation | None:
    """Return the prediction of a value as one of a score; None without one."""
    if prediction is None:
        return None

    return Expectation(sign(reading.study.direction) * prediction.mean, prediction.std)


def _words(verdict: OverrideVerdict) -> str:
    record = "no earlier candidate of yours has a prediction and a result"
    if verdict.results:
        record = (
            f"{counted(verdict.results, 'earlier candidate')} of yours: "
            f"{verdict.advantage:+.2f} predicted standard deviations against the predictions"
        )

    if verdict.accepted:
        return f"evaluate it: it promises at least as much as the agent's suggestion ({record})"

    return f"prefer the agent's suggestion: it promises more ({record})"
