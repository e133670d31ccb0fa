"""Ask and tell: a study for a training loop of the caller.

    study = agents.study(archive, "mine", "cnn")
    for trial in study.ask("nasbot", 2):
        for epoch in range(10):
            study.report(trial, epoch, {"accuracy": …})
        study.tell(trial, 0.93)

`ask` leases proposals, as a trainer does, so that any number of callers, searches and trainers
share one study: each proposal is leased to one of them, and all agents see the pending and finished
proposals of the others.

Rungs (`archive.queue.successive_halving`) apply to trainers only: a told value is of a whole
training, and leads to no promotion.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from archive.agents.ask_tell import enqueueing
from archive.agents.ask_tell.asker import Asker
from archive.agents.ask_tell.run import check_result
from archive.agents.ask_tell.types import (
    Batch,
    EnqueuedArchitecture,
    LeasedProposal,
    Told,
    extend,
    lists,
    network,
)
from archive.agents.base import Agent
from archive.architecture.graph import Architecture
from archive.architecture.parameter_operations import PARAMETERS
from archive.constraints import NO_COSTS, KnownCosts
from archive.errors import ProposalStateError, UsageError
from archive.queries import pareto
from archive.queries.proposals import VALUES_OF_RESULT
from archive.queue.admission import checked_priority
from archive.spaces.joint import joint_space_of
from archive.store.records import Proposal, Result, State
from archive.values import checked_seconds

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.queries.pareto import ParetoSet
    from archive.spaces.base import Space
    from archive.store.records import Evaluation
    from archive.store.records import Study as Record

LEASE_SECONDS = 3600.0
"""Lease of a proposal in seconds, renewed by `report`; long enough for an epoch."""


class AskTellStudy:
    """One study of an archive, to ask, tell and enqueue; open it with `archive.agents.study`.

    Thread-safe; several processes may open the same study.

    Args:
        archive: The archive of the study.
        name: Name of an existing study.
        space: Its space.
        costs: Known costs of its networks.

    Attributes:
        archive: The archive of the study.
        name: Its name.
        space: Its space; of a study with constraints on known costs, the networks that meet them.
        costs: Known costs of its networks.
    """

    def __init__(
        self, archive: Archive, name: str, space: Space, costs: KnownCosts = NO_COSTS
    ) -> None:
        """Register as a worker."""
        self.archive = archive
        self.name = name
        self.space = space
        self.costs = costs
        self._builder = enqueueing.builder_of(archive, self.record, space)
        self._asker = Asker(archive, name, space, costs, self._builder)
        self._curves: dict[str, dict[int, dict[str, float]]] = {}

    @property
    def record(self) -> Record:
        """The study as it is stored: task, objective, direction, budget, seed."""
        return self.archive.studies.get(self.name)

    def ask(
        self,
        agent: str | Agent,
        n: int = 1,
        *,
        lease_seconds: float = LEASE_SECONDS,
        retrain: bool = False,
    ) -> Batch:
        """Return proposals to evaluate next, leased to this process.

        Waiting proposals of the study come first (enqueued, or released by another worker), then
        new ones of the agent, based on the current history. The same seed and history give the same
        proposals, unless another search proposes in the study at the same time; each proposal
        records its basis.

        Args:
            agent: Name of an agent, with its defaults, or the agent. An agent by name is cached by
                this object, so that it prepares a space once.
            n: Number of proposals.
            lease_seconds: Lease without a report. Afterwards other workers may claim the proposal;
                a result told later still counts, unless another came first.
            retrain: Also return networks for which the archive has a result of the study's protocol
                from another study. By default such results are reused: they become evaluations of
                this study, within its budget.

        Returns:
            At most `n` proposals, by number; fewer where the budget is spent or the space
            exhausted. The attribute `answered` holds the evaluations that the call reused from
            other studies.

        Raises:
            UnknownNameError: There is no such agent.
            UsageError: `n` is less than 1, or the agent searches another space.
        """
        return self._asker.ask(agent, n, lease_seconds, retrain)

    def report(self, asked: LeasedProposal, step: int, metrics: Mapping[str, float]) -> None:
        """Store metrics of a step and renew the lease for an hour; repeats are replaced.

        Args:
            asked: A proposal that `ask` returned.
            step: Epoch or step, at least 0 and less than 2^53.
            metrics: Name to value; a step may lack metrics of other steps.

        Raises:
            LeaseLostError: Another worker holds the proposal, or it is finished.
            UsageError: A step or a metric is invalid.
        """
        curve = extend(self._curves.get(asked.id, {}), step, metrics)
        self.archive.proposals.report(asked.id, asked.token, lists(curve), LEASE_SECONDS)
        self._curves[asked.id] = curve

    def tell(
        self,
        told: LeasedProposal | Proposal | Architecture | Mapping[str, Any] | str,
        value: Told,
        *,
        metrics: Mapping[str, float] | None = None,
        seconds: float | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> bool:
        """Store the result of an evaluation; idempotent.

        Args:
            told: The evaluated proposal: as `ask` returned it, a proposal or its id, or any network
                of the space, which becomes a proposal if it is none yet. It counts even where the
                budget is spent. A mapping has the values of a network by name, or as the tree that
                a training takes.
            value: The study's objective, in its own unit; of several objectives, a value for each
                in their order, or a mapping by name, in which constrained metrics may be. Those
                with a known cost may be left out. NaN or an infinity is no result: the proposal
                fails with that reason, and further values may be left out.
            metrics: Other metrics; objectives beside the first and constrained metrics may be among
                them.
            seconds: Duration of the evaluation, finite and not negative.
            parameters: Parameters beside a told network, in a space that has such: values by name,
                or the tree that a training takes.

        Returns:
            Whether the values of the objectives are those on record; the first result told is kept.

        Raises:
            UsageError: A value is missing, not a number or not equal to a known cost, a metric has
                no name, the seconds are no duration, the proposal is of another study, or a network
                is not of the space.
        """
        if isinstance(told, Mapping):
            told = self.space.of_names(told)
        elif isinstance(told, Architecture):
            told = self._member(told, parameters)
        elif parameters is not None:
            raise UsageError("parameters are told with a network: a proposal has its own")

        seconds = checked_seconds(seconds)
        record = self.record
        reported = {} if metrics is None else metrics
        values, others = check_result(
            record, value, reported, lambda: self._network(told), self.costs
        )
        for name, number in values.items():
            if not math.isfinite(number):
                of = "value" if len(record.objectives) == 1 else name
                if not isinstance(told, LeasedProposal):
                    raise UsageError(f"{of} must be a finite number, got {number}")

                self.fail(
                    told,
                    f"the {of} is {number}" if of == "value" else f"the value of {of} is {number}",
                )
                return False

        proposal = self._proposal(told)
        if not proposal.state.evaluated:
            token = told.token if isinstance(told, LeasedProposal) else uuid.uuid4().hex
            result = Result(
                value=values[record.objective],
                metrics=others,
                curve=lists(self._curves.get(proposal.id, {})),
                seconds=seconds,
            )
            self.archive.proposals.complete(proposal.id, token, result)

        self._curves.pop(proposal.id, None)
        return self._values(proposal.id, [objective.name for objective in record.further]) == [
            *values.values()
        ]

    def fail(self, asked: LeasedProposal, reason: str) -> None:
        """Record a failure: agents neither propose nor learn from the network again.

        Raises:
            LeaseLostError: Another worker holds the proposal, or it is finished.
        """
        self._curves.pop(asked.id, None)
        self.archive.proposals.fail(asked.id, asked.token, reason)

    def enqueue(
        self,
        architecture: Architecture | Mapping[str, Any] | str | None = None,
        priority: float = 1.0,
        *,
        motivation: str | None = None,
        **parameters: Any,
    ) -> Proposal:
        """Enqueue a network for any worker; a waiting proposal of it gets the priority.

            study.enqueue(depth=4, lr=3e-4)

        Args:
            architecture: A member of the space, or its NAS-Bench-201 string, genotype, JSON text or
                key in the archive; or its values by name, or as the tree that a training takes.
            priority: Larger comes first; proposals of agents have 0.
            motivation: Reason for the proposal, stored with it if it is new.
            **parameters: Values by name, in place of the network, or beside it in a space with
                parameters beside its networks. Parameters that are left out have their default, the
                value of their prior, or the middle of their range.

        Returns:
            Its proposal, in any state where the study already has one.

        Raises:
            InvalidArchitectureError: The network is not a member of the space, or does not meet a
                constraint on a known cost.
            UsageError: It is not a network, the budget is spent, or the priority is not a finite
                number.
        """
        number = checked_priority(priority)
        added = self._named_network(architecture, parameters)
        proposal = self._add(added, number, motivation, space=self.space)
        if proposal is None:
            raise enqueueing.budget_spent(self.record)

        if proposal.state is State.WAITING and proposal.priority != number:
            with suppress(ProposalStateError):  # a trainer may have completed it meanwhile
                self.archive.proposals.prioritise(proposal.id, number)

            return self.archive.proposals.get(proposal.id)

        return proposal

    def run(
        self,
        objective: Callable[[Architecture], Told],
        budget: int | None = None,
        agent: str | Agent | None = None,
    ) -> Evaluation | None:
        """Search until the budget is spent; the same call continues after an interruption.

        Args:
            objective: Evaluates a network, and returns what `tell` takes. An exception or a value
                that is not finite fails that proposal only.
            budget: Total number of evaluations, earlier runs included; None keeps the study's.
            agent: The agent, or its name for its defaults; None for the default agent of the space.

        Returns:
            The best evaluation of the study, in the first of several objectives; None without
            evaluations.

        Raises:
            SearchError: Proposals keep failing; the message gives the last reason.
            UsageError: The budget is less than 1, or missing in a study without one.
        """
        from archive.agents.ask_tell.run import run
        from archive.agents.registry import default_agent

        if agent is None:
            agent = default_agent(self.space.name)

        run(self, objective, budget, agent)
        return self.best()

    def evaluations(self) -> list[Evaluation]:
        """Return the evaluations of the study, by number."""
        return self.archive.studies.evaluations(self.name)

    def best(self) -> Evaluation | None:
        """Return the best feasible evaluation in the first objective; None before the first.

        Of equal values, the first one. Evaluations without a value of each objective count only
        without others.
        """
        incumbent = self.archive.studies.snapshot(self.name).incumbent
        return None if incumbent is None else self.archive.studies.evaluation(incumbent.id)

    def pareto_set(self, reference: Sequence[float] | None = None) -> ParetoSet | None:
        """Return the Pareto set of the results with its hypervolume; None before the first.

        Args:
            reference: Reference point of the hypervolume, a value for each objective; None for the
                worst ones.

        Raises:
            UsageError: The reference point is not one finite number for each objective.
        """
        return pareto.pareto_set(self.archive.studies.snapshot(self.name), reference)

    def _named_network(
        self, architecture: Architecture | Mapping[str, Any] | str | None, named: Mapping[str, Any]
    ) -> Architecture:
        """Return the network that a user names in one of the forms that `enqueue` takes."""
        if architecture is None and (named or self.space.name == PARAMETERS.name):
            architecture = named

        joint = joint_space_of(self.space)
        if joint is not None and architecture is not None and not isinstance(architecture, Mapping):
            stored = network(architecture, self.archive.architectures)
            return joint.complete(stored, named or stored.configuration)

        if architecture is not named and named:
            raise UsageError(
                f"a network is given, or its values by name: got both, {', '.join(named)}"
            )

        if isinstance(architecture, Mapping):
            return self.space.of_names(self.space.fill(architecture))

        return network(architecture, self.archive.architectures)

    def _member(self, network: Architecture, parameters: Mapping[str, Any] | None) -> Architecture:
        """Return a told network with its parameters."""
        joint = joint_space_of(self.space)
        if joint is not None:
            return joint.member(
                network, network.configuration if parameters is None else parameters
            )

        if parameters is not None:
            raise UsageError(f"the space {self.space.name} has no parameters beside its networks")

        return network

    def _network(self, evaluated: LeasedProposal | Proposal | Architecture | str) -> Architecture:
        if isinstance(evaluated, Architecture | LeasedProposal):
            return evaluated if isinstance(evaluated, Architecture) else evaluated.architecture

        proposal = (
            self.archive.proposals.get(evaluated) if isinstance(evaluated, str) else evaluated
        )
        return self.archive.architectures.get(proposal.architecture_key)

    def _proposal(self, evaluated: LeasedProposal | Proposal | Architecture | str) -> Proposal:
        """Return the current proposal, created for a network without one."""
        if isinstance(evaluated, Architecture):
            # A result is knowledge even of a network that does not meet the constraints.
            whole = self.space.whole
            proposal = self._add(evaluated, 0.0, space=whole)
            while proposal is None:
                # A told result is never refused: the budget is raised for it.
                counts = self.archive.studies.counts(self.name)
                self.archive.studies.set_budget(
                    self.name, sum(counts.values()) - counts[State.FAILED] + 1
                )
                proposal = self._add(evaluated, 0.0, space=whole)

            return proposal

        proposal = self.archive.proposals.get(
            evaluated if isinstance(evaluated, str) else evaluated.id
        )
        if proposal.study != self.name:
            raise UsageError(f"the proposal must be of the study {self.name!r}, got {proposal.id}")

        asked = evaluated.proposal if isinstance(evaluated, LeasedProposal) else evaluated
        if isinstance(asked, Proposal) and asked.architecture_key != proposal.architecture_key:
            raise UsageError(
                f"{proposal.id} is of another network by now: its study was deleted "
                "and created again"
            )

        return proposal

    def _add(
        self,
        architecture: Architecture,
        priority: float,
        motivation: str | None = None,
        *,
        space: Space,
    ) -> Proposal | None:
        """Return the study's proposal of a network, created if there is none.

        None where the budget is spent.
        """
        enqueued = EnqueuedArchitecture(architecture, priority, motivation)
        added = enqueueing.add(self.archive, self.name, space, enqueued, builder=self._builder)
        return added[0]

    def _values(self, id_: str, further: Sequence[str]) -> list[float | None]:
        """Return the recorded values of the objectives of a proposal; empty without a result."""
        rows = self.archive.query(VALUES_OF_RESULT, {"id": id_, "further": list(further)}).rows
        return [rows[0][0], *rows[0][1]] if rows else []
