"""One study of a comparison, from its current state to its budget.

The history is read once and then extended in memory, as no other process should add to the study.
The archive detects additions by another process, and the history is then read again. A batch of
proposals with its results is one transaction: a killed process loses at most the agent's current
call, and a continued search makes the same proposals as an uninterrupted one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from archive import __version__, agents
from archive.agents import provenance
from archive.agents.base import Agent, History, Observation, Suggestion
from archive.agents.loop import FAILURES
from archive.agents.proxies.study_scores import basis_of
from archive.architecture.graph import Architecture
from archive.errors import SearchError, TrainingError
from archive.objectives import sign
from archive.searches.comparison.plan import STARTER, StudyJob
from archive.spaces import stored_spaces
from archive.spaces.base import Space
from archive.store.records import Result, Study

if TYPE_CHECKING:
    from archive.api import Archive

Answered = Sequence[tuple[Suggestion, Result | str]]


def search(
    archive: Archive,
    job: StudyJob,
    space: Space,
    *,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[int], None] = lambda count: None,
) -> None:
    """Search until the job is finished, or the agent has no further suggestion.

    Args:
        archive: The archive of the study, which is created there if it does not exist.
        job: The study, its contestant and its budget.
        space: The problem's space.
        stop: Whether to end early; called between two calls of the agent.
        progress: Called with the number of added proposals after each call of the agent.

    Raises:
        SearchError: Too many proposals failed; the message has the last reason.
    """
    study = open_study(archive, job)
    # The proposals can be asked again, on the table that the caller has opened.
    stored_spaces.name_table(space, archive.connection.settings.home)
    team = job.contestant.agents(space)
    starter = agents.get(STARTER, space)
    ids = {member: register(archive, member) for member in (*team, starter)}
    past = _Past(archive, study)
    while not job.is_finished(past.values) and not stop():
        room = job.budget - past.evaluated
        if not past.total and job.starts:
            agent = starter
            count = job.starts
        else:
            agent = team[job.turn(past.total)]
            count = min(job.batch, room)

        began = time.process_time()
        suggestions = agent.propose(
            past.history, count, provenance.generator(study.seed, past.history)
        )
        seconds = time.process_time() - began
        if not suggestions:
            return

        outcomes = []
        for number, suggestion in enumerate(suggestions, past.total):
            outcomes.append((suggestion, _answer(job, suggestion, number)))

        made = archive.proposals.create(
            study.name,
            ids[agent],
            suggestions,
            outcomes=[outcome for _, outcome in outcomes],
            after=past.total,
            # Repeated proposals stay visible and are counted.
            unique=False,
            basis={**past.basis, "wanted": count, **provenance.correlations_of(suggestions)},
            seconds=seconds,
        )
        past.add([proposal.id for proposal in made], outcomes, ids[agent])
        progress(len(made))


def open_study(archive: Archive, job: StudyJob) -> Study:
    """Return the study, created if necessary, with at least the job's budget."""
    study = archive.studies.create(job.study)
    if job.sources:
        archive.studies.warm_start(study.name, job.sources)

    if study.budget < job.budget:
        archive.studies.set_budget(study.name, job.budget)

    return replace(study, budget=max(study.budget, job.budget))


def register(archive: Archive, agent: Agent) -> str:
    """Return the id of an agent, stored if it is new."""
    return archive.proposals.register_agent(agent.kind, agent.config, __version__)


def result_of(job: StudyJob, architecture: Architecture, number: int) -> Result:
    """Return the result of the proposal of a number.

    Searches of one run and seed have the same noise for the same network and number: they differ
    by their proposals alone.

    Raises:
        TrainingError: The network has no value.
    """
    return job.problem.evaluate(architecture, f"{job.run}/seed{job.seed}#{number}")


class _Past:
    """History of a study, extended as it grows.

    Attributes:
        history: The history for the agent.
        basis: Provenance of the next proposal.
        evaluated: Number of evaluations.
        values: Values of the evaluations, in the study's unit.
        total: Number of proposals.
    """

    def __init__(self, archive: Archive, study: Study) -> None:
        """Read it."""
        self._archive = archive
        self._study = study
        self.history = History()
        self.total = 0
        self._observed: list[int] = []
        self._failed: dict[int, str] = {}
        self._others: dict[str, str] = {}
        self._pending = ""
        self._proxies: dict[str, Any] = {}
        self._read()

    def add(self, made: Sequence[str], answered: Answered, agent: str) -> None:
        """Add the suggestions that the archive admitted.

        If it admitted none, read the evaluations added by others.
        """
        if not made:
            self._read()
            return

        for id_, (suggestion, outcome) in zip(made, answered, strict=False):
            # In the order of the archive, so that a resumed search sees the same history.
            architecture = suggestion.architecture.canonical
            if isinstance(outcome, str):
                self._failed[self.total] = outcome
                self.history = replace(self.history, failed=(*self.history.failed, architecture))
                self._check()
            else:
                score = sign(self._study.direction) * outcome.value
                seen = Observation(architecture, score, id_, agent, seed=outcome.seed)
                self._observed.append(self.total)
                self.history = replace(
                    self.history, observations=(*self.history.observations, seen)
                )

            self.total += 1

    @property
    def evaluated(self) -> int:
        return len(self._observed)

    @property
    def values(self) -> list[float]:
        better = sign(self._study.direction)
        return [better * seen.score for seen in self.history.observations]

    @property
    def basis(self) -> dict[str, Any]:
        observed = {self._study.name: provenance.ranges(self._observed)} if self._observed else {}
        return {
            "observations": {**observed, **self._others},
            "pending": self._pending,
            "failed": provenance.ranges(self._failed),
            **self._proxies,
        }

    def _read(self) -> None:
        self.history, basis = provenance.history_of(self._archive, self._study)
        self._others = dict(basis["observations"])
        self._observed = list(provenance.numbers_in(self._others.pop(self._study.name, "")))
        self._failed = dict.fromkeys(provenance.numbers_in(basis["failed"]), "")
        self._pending = basis["pending"]
        self._proxies = basis_of(self.history.proxies)
        self.total = len(self._observed) + len(self._failed) + len(self.history.pending)

    def _check(self) -> None:
        if len(self._failed) >= FAILURES and len(self._failed) > self.evaluated:
            raise SearchError(
                f"{len(self._failed)} proposals of the study {self._study.name!r} "
                f"failed and only {self.evaluated} were evaluated; "
                f"the last reason: {self._failed[max(self._failed)]}"
            )


def _answer(job: StudyJob, suggestion: Suggestion, number: int) -> Result | str:
    try:
        return result_of(job, suggestion.architecture, number)
    except TrainingError as error:
        return error.reason
