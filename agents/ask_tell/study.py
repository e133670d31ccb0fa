"""Ask and tell: a study for people who train in a loop of their own.

    study = agents.study(archive, "mine", "cnn")
    for trial in study.ask("nasbot", 2):
        for epoch in range(10):
            study.report(trial, epoch, {"accuracy": …})
        study.tell(trial, 0.93)

What is asked for is held under a lease, as a trainer holds it, so that any number of askers, searches and trainers
share one study: each proposal goes to one of them, and the agents of all see what the others hold and found.

Rungs (`archive.queue.successive_halving`) are for trainers: what is told is the value of a whole training, and decides
on no promotion.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from archive import __version__
from archive.agents.ask_tell.asker import Asker
from archive.agents.ask_tell.types import Batch, EnqueuedArchitecture, LeasedProposal, lists, network, real
from archive.agents.base import Agent
from archive.architecture.graph import Architecture
from archive.errors import UsageError
from archive.store.records import Proposal, Result, State

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.spaces.base import Space
    from archive.store.records import Evaluation
    from archive.store.records import Study as Record

LEASE_SECONDS = 3600.0
"""How long what was asked for is kept for the asker without a report: his training may take long between two words."""

UNBOUNDED = 1_000_000
"""Budget of a study whose asker decides when it ends."""

PERSON = "person"
"""Kind of agent that enqueued and told architectures are on record under."""


class Study:
    """One study of an archive, to ask, tell and enqueue; open it with `archive.agents.study`.

    Safe to use from several threads and, through the archive, from several processes.

    Args:
        archive: Where it is kept.
        name: Its name; the study is there.
        space: Where it searches.

    Attributes:
        archive: As given.
        name: As given.
        space: As given.
    """

    def __init__(self, archive: Archive, name: str, space: Space) -> None:
        """Become known to the archive as a worker."""
        self.archive, self.name, self.space = archive, name, space
        self._asker = Asker(archive, name, space)
        self._curves: dict[str, dict[int, dict[str, float]]] = {}

    @property
    def record(self) -> Record:
        """The study as it is stored: task, objective, direction, budget, seed."""
        return self.archive.studies.get(self.name)

    def ask(
        self, agent: str | Agent, n: int = 1, *, lease_seconds: float = LEASE_SECONDS, retrain: bool = False
    ) -> Batch:
        """Return what to evaluate next, held for this process.

        What waits in the study comes first (enqueued, or given up by another worker), then what the agent proposes
        from all that is known at this moment. The same seed and history give the same proposals, as long as nothing
        else proposes in the study at the same moment; each proposal records what it depended on.

        Args:
            agent: Name of an agent, with its defaults, or the agent. One by name lives as long as this object, so that
                it prepares a space once.
            n: How many.
            lease_seconds: How long they are kept without a report. Then others may have them; a result that is told
                later still counts, unless another came first.
            retrain: Return networks too whose result under the study's protocol the archive has from another study.
                Otherwise those are answered: evaluations of this study, within its budget, that nobody is asked for.

        Returns:
            A list of at most `n`, by number; fewer where the budget or the space is spent. Its attribute `answered`
            holds the evaluations that were answered from other studies meanwhile.

        Raises:
            UnknownNameError: There is no such agent.
            UsageError: `n` is less than 1, or the agent searches another space.
        """
        return self._asker.ask(agent, n, lease_seconds, retrain)

    def report(self, asked: LeasedProposal, step: int, metrics: Mapping[str, float]) -> None:
        """Store how a training stands, and keep it for another hour; a step that is reported again is replaced.

        Args:
            asked: What `ask` returned.
            step: Epoch or step, at least 0.
            metrics: Name to value; the same names at every step.

        Raises:
            LeaseLostError: Another worker has the proposal, or it is done.
            UsageError: A step or a metric cannot be used.
        """
        if step < 0:
            raise UsageError(f"step must be >= 0, got {step}")
        values = {name: real(value, name) for name, value in metrics.items()}
        curve = {**self._curves.get(asked.id, {}), step: values}
        for at, others in curve.items():
            if "epoch" in values or not values or others.keys() != values.keys():
                expected = ", ".join(sorted(others)) if at != step else "any name but epoch"
                raise UsageError(f"metrics must be those of the other steps ({expected}), got {sorted(values)}")
        self.archive.proposals.report(asked.id, asked.token, lists(curve), LEASE_SECONDS)
        self._curves[asked.id] = curve

    def tell(
        self,
        told: LeasedProposal | Proposal | Architecture | str,
        value: float,
        *,
        metrics: Mapping[str, float] | None = None,
        seconds: float | None = None,
    ) -> bool:
        """Store what an evaluation found; the same call again changes nothing.

        Args:
            told: What was evaluated: what `ask` returned, a proposal or its id, or any network of the space, which
                becomes a proposal if it is none yet. It counts even where the budget is spent.
            value: The study's objective, in its own unit. NaN or an infinity is no result: what was asked for fails
                with that reason.
            metrics: What else was measured.
            seconds: How long it took.

        Returns:
            Whether the value on record is this one; the first that is told stays.

        Raises:
            UsageError: The value is no number, the proposal is of another study, or a network is not of the space.
        """
        number = real(value, "value")
        if not math.isfinite(number):
            if not isinstance(told, LeasedProposal):
                raise UsageError(f"value must be a finite number, got {number}")
            self.fail(told, f"the value is {number}")
            return False
        proposal = self._proposal(told)
        if not proposal.state.evaluated:
            token = told.token if isinstance(told, LeasedProposal) else uuid.uuid4().hex
            result = Result(
                value=number,
                metrics={**{k: real(v, k) for k, v in (metrics or {}).items()}, self.record.objective: number},
                curve=lists(self._curves.get(proposal.id, {})),
                seconds=seconds,
            )
            self.archive.proposals.complete(proposal.id, token, result)
        self._curves.pop(proposal.id, None)
        return self._value(proposal.id) == number

    def fail(self, asked: LeasedProposal, reason: str) -> None:
        """Store why there is no result: the network is not proposed again, and nothing is learnt from it.

        Raises:
            LeaseLostError: Another worker has the proposal, or it is done.
        """
        self._curves.pop(asked.id, None)
        self.archive.proposals.fail(asked.id, asked.token, reason)

    def enqueue(self, architecture: Architecture | str, priority: float = 1.0) -> Proposal:
        """Let a network be evaluated next, by whoever asks or trains; one that waits already gets the priority.

        Args:
            architecture: A member of the space, or its NAS-Bench-201 string, JSON text or key in the archive.
            priority: Larger comes first; agents' own proposals have 0.

        Returns:
            Its proposal, whatever became of it where the study had it before.

        Raises:
            InvalidArchitectureError: It is no member of the space.
            UsageError: It is no network, the budget is spent, or the priority is no finite number.
        """
        number = real(priority, "priority")
        if not math.isfinite(number):
            raise UsageError(f"priority must be a finite number, got {number}")
        proposal = self._added(network(architecture, self.archive.architectures), number)
        if proposal is None:
            raise UsageError(f"the study {self.name!r} has its budget of {self.record.budget} evaluations")
        if proposal.state is State.WAITING and proposal.priority != number:
            self.archive.proposals.prioritise(proposal.id, number)
            return self.archive.proposals.get(proposal.id)
        return proposal

    def run(
        self, objective: Callable[[Architecture], float], budget: int | None = None, agent: str | Agent = "nasbot"
    ) -> Evaluation | None:
        """Search in this process until the study has its evaluations; interrupted, the same call goes on.

        Args:
            objective: Evaluates a network. What it raises, and a value that is not finite, fails that proposal alone.
            budget: Evaluations in total, those of earlier runs included; None keeps the study's.
            agent: Who proposes: a name, with its defaults, or an agent.

        Returns:
            The best evaluation of the study; None where there is none.

        Raises:
            SearchError: Proposals keep failing; the message gives the last reason.
            UsageError: The budget is less than 1, or missing in a study without one.
        """
        from archive.agents.ask_tell.run import run

        run(self, objective, budget, agent)
        return self.best()

    def evaluations(self) -> list[Evaluation]:
        """Return what the study has found, by number."""
        return self.archive.studies.evaluations(self.name)

    def best(self) -> Evaluation | None:
        """Return the best evaluation, the first of equal ones; None before the first."""
        found = [each for each in self.evaluations() if math.isfinite(each.score)]
        whole = [each for each in found if not each.partial]
        return max(whole or found, key=lambda each: each.score, default=None)

    def _proposal(self, told: LeasedProposal | Proposal | Architecture | str) -> Proposal:
        """Return the proposal as it stands, made for a network that has none."""
        if isinstance(told, Architecture):
            proposal = self._added(told, 0.0)
            while proposal is None:
                # A result is never turned away: the budget makes room for it.
                counts = self.archive.studies.counts(self.name)
                self.archive.studies.set_budget(self.name, sum(counts.values()) - counts[State.FAILED] + 1)
                proposal = self._added(told, 0.0)
            return proposal
        proposal = self.archive.proposals.get(told if isinstance(told, str) else told.id)
        if proposal.study != self.name:
            raise UsageError(f"the proposal must be of the study {self.name!r}, got {proposal.id}")
        return proposal

    def _added(self, architecture: Architecture, priority: float) -> Proposal | None:
        """Return the study's proposal of a network, made if there is none; None where the budget is spent."""
        self.space.validate(architecture)
        agent = self.archive.proposals.register_agent(PERSON, {}, __version__)
        made = self.archive.proposals.create(self.name, agent, [EnqueuedArchitecture(architecture, priority)])
        if made:
            return made[0]
        key = architecture.functional_key
        return next((each for each in self.archive.proposals.list(self.name) if each.functional_key == key), None)

    def _value(self, id_: str) -> float | None:
        rows = self.archive.query("MATCH (e:Evaluation {id: $id}) RETURN e.value", {"id": id_}).rows
        return rows[0][0] if rows else None
