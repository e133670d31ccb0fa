"""Frozen records of the archive: study, proposal, claim, result, evaluation, weights.

A record holds the properties of one node of the graph and the names of its neighbours;
`archive.store.properties` converts between nodes and records. Times are milliseconds since 1970 by
the server's clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal

from archive.constraints import Constraint as Constraint
from archive.objectives import Direction as Direction
from archive.objectives import Objective as Objective
from archive.objectives import sign
from archive.values import counted, settings_text

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture

Curve = Mapping[str, Sequence[float]]


StateName = Literal["waiting", "running", "complete", "pruned", "failed"]


class State(StrEnum):
    """State of a proposal.

    WAITING -> RUNNING -> COMPLETE | PRUNED | FAILED; at a rung, PRUNED -> WAITING.

    A cancelled proposal is FAILED with the reason `CANCELLED`; a retry makes WAITING of FAILED
    (`archive.queue.cancellation`).
    """

    WAITING = "WAITING"
    RUNNING = "RUNNING"
    COMPLETE = "COMPLETE"
    PRUNED = "PRUNED"
    FAILED = "FAILED"

    @property
    def label(self) -> StateName:
        """The state in lower case, as documents and tables show it."""
        return _LABELS[self]

    @property
    def evaluated(self) -> bool:
        """Whether a result is on record, which no other may replace."""
        return self in (State.COMPLETE, State.PRUNED)

    @property
    def is_open(self) -> bool:
        """Whether the proposal waits or runs."""
        return self in (State.WAITING, State.RUNNING)


_LABELS: dict[State, StateName] = {
    State.WAITING: "waiting",
    State.RUNNING: "running",
    State.COMPLETE: "complete",
    State.PRUNED: "pruned",
    State.FAILED: "failed",
}

CANCELLED = "cancelled"
"""Reason of a cancelled proposal; what a user adds to it comes after a colon."""


def is_cancelled(state: State, reason: str | None) -> bool:
    """Return whether a proposal was cancelled, rather than failed or pruned."""
    ended = state in (State.FAILED, State.PRUNED)
    return (
        ended
        and reason is not None
        and (reason == CANCELLED or reason.startswith(f"{CANCELLED}: "))
    )


@dataclass(frozen=True)
class Study:
    """One search problem: space, task, training protocol, objective and budget.

    Attributes:
        name: Unique in the archive.
        task: Name of the task.
        protocol: Training protocol of the task (`"digits/1"`); values are comparable within one
            protocol.
        space: Name of the space of its architectures.
        objective: Name of the metric in `Evaluation.value`.
        direction: Whether a larger or a smaller value is better.
        budget: Maximum number of proposals, failed ones not counted.
        config: Further settings that the search recorded.
        space_config: Settings of the space.
        seed: Seed of the study.
        created: Time of creation; None before.
        further: Objectives beside the first, which are metrics of the evaluations.
        constraints: Bounds on metrics of the evaluations; results that do not meet them are never
            the best.
    """

    name: str
    task: str
    protocol: str
    space: str
    objective: str = "accuracy"
    direction: Direction = "maximise"
    budget: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    space_config: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    created: int | None = None
    further: tuple[Objective, ...] = ()
    constraints: tuple[Constraint, ...] = ()

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """All objectives; the first is the objective of `Evaluation.value`."""
        return (Objective(self.objective, self.direction), *self.further)


@dataclass(frozen=True)
class Weights:
    """Trained weights of an evaluation: address, digest and size of their file."""

    uri: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Proposal:
    """One architecture that an agent proposed for evaluation in one study.

    Attributes:
        id: `study#number`.
        study: Name of the study.
        number: Number in the study, from 0.
        state: State of the proposal.
        architecture_key: Key of the architecture.
        functional_key: Functional key of the architecture. A study has at most one proposal of each
            functional key, repeats not counted.
        agent: Id of the agent that made it.
        priority: Priority in the queue; larger is claimed first.
        acquisition: Acquisition value, if the agent has one.
        mean: Score that the agent's surrogate predicts, if it has one: in units of the objective,
            larger is better, so with the opposite sign if the study minimises.
        std: The surrogate's standard deviation of the score: half the width of the central 68 % of
            its prediction.
        fidelity: Fraction of the full training; None means all of it.
        hyperparameters: Training settings that belong to this proposal.
        motivation: Reason for the proposal in words, if a person or a language model gave one.
        inspired_by: Keys of the architectures that this reason goes back to.
        attempts: Number of attempts that workers have lost.
        rung: Index of the rung that it has reached, or is training to
            (`archive.queue.successive_halving`).
        worker: Id of the worker that holds it, or held it last.
        lease_until: End of the lease.
        reason: Reason of the failure.
        cause: Kind of that reason, as `archive.queue.causes` lists them.
        refused_by: Ids of the workers that could not begin to train it; they do not get it again.
        memory_bytes: Memory that its training needs at least, known from an attempt that ran out of
            memory.
        alone: Whether it is trained on a device without other trials, after it ran out of memory
            beside them.
        curve: Values per epoch of each metric, while it runs.
        created: Time of the proposal.
        started: Time of the last claim.
        finished: Time of the result or failure.
        based_on: Knowledge of the agent when it made the suggestion; see
            `archive.agents.provenance`. Empty without an agent.
        seconds: Processor time of the agent's call that suggested it, together with all others of
            that call.
        request: Token of the call that added it, together with all others of that call.
        repeat: Whether it is another evaluation, with another seed, of a network that had a result.
    """

    id: str
    study: str
    number: int
    state: State
    architecture_key: str
    functional_key: str
    agent: str | None = None
    priority: float = 0.0
    acquisition: float | None = None
    mean: float | None = None
    std: float | None = None
    fidelity: float | None = None
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    motivation: str | None = None
    inspired_by: tuple[str, ...] = ()
    attempts: int = 0
    rung: int = 0
    worker: str | None = None
    lease_until: int | None = None
    reason: str | None = None
    cause: str | None = None
    refused_by: tuple[str, ...] = ()
    memory_bytes: int | None = None
    alone: bool = False
    curve: Mapping[str, list[float]] = field(default_factory=dict)
    created: int | None = None
    started: int | None = None
    finished: int | None = None
    based_on: Mapping[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    request: str | None = None
    repeat: bool = False

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled, rather than failed or pruned."""
        return is_cancelled(self.state, self.reason)


@dataclass(frozen=True)
class Claim:
    """A proposal that one worker holds, with everything that training needs.

    `token` proves the lease.
    """

    proposal: Proposal
    architecture: Architecture
    study: Study
    token: str

    @property
    def id(self) -> str:
        """The proposal's id."""
        return self.proposal.id

    @property
    def seed(self) -> int:
        """Seed of the training: the study's.

        A repeat has another seed in [0, 2^31), which follows from its id.
        """
        if not self.proposal.repeat:
            return self.study.seed

        digest = blake2b(f"{self.study.seed} {self.id}".encode(), digest_size=4).digest()
        return int.from_bytes(digest, "big") >> 1


PROVENANCE = ("model", "family", "pretraining", "source", "license", "commit")
"""Names of the texts that say where an external result comes from, properties of its evaluation."""


@dataclass(frozen=True)
class Result:
    """Result of a training.

    Attributes:
        value: The objective, in the task's own unit.
        metrics: Final metrics by name.
        curve: One value per epoch of each metric; all lists have one length. `"epoch"` is 1, 2, …
            unless given.
        epochs: Epochs trained; None means the length of the curve.
        seconds: Wall-clock time of the training.
        seed: Seed that the training used.
        device: Device of the training.
        environment: Versions and settings that the value may depend on.
        weights: Stored weights, if any.
        answered_from: Id of the evaluation whose result is reused; None after a training.
        partial: Whether the training can continue: `value` was measured after `epochs` epochs, not
            at the end of the protocol.
        hardware: Name of the device's hardware, `NVIDIA H100 80GB HBM3`.
        provenance: Origin of an external result, by the names of `PROVENANCE`: the model's name
            and family at its source, the data of its pretraining, and the source with its licence
            and commit. Empty for a training of this archive.
    """

    value: float
    metrics: Mapping[str, float] = field(default_factory=dict)
    curve: Curve = field(default_factory=dict)
    epochs: int | None = None
    seconds: float | None = None
    seed: int | None = None
    device: str | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    weights: Weights | None = None
    answered_from: str | None = None
    partial: bool = False
    hardware: str | None = None
    provenance: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Evaluation:
    """A stored result with its architecture.

    Attributes:
        id: Id of its proposal, or of its import.
        study: Name of the study; None for an imported result.
        number: Number of the proposal; None for an imported result.
        task: Name of the task.
        protocol: Name of the training protocol.
        architecture: The network.
        value: The objective, in the task's own unit.
        direction: Whether larger or smaller values are better: direction of the study, or of the
            task of an imported result.
        agent: Id of the agent that proposed it.
        metrics: Final metrics by name.
        curve: One value per epoch of each metric.
        epochs: Epochs trained.
        seconds: Wall-clock time of the training.
        seed: Seed that the training used.
        device: Device of the training.
        created: Time of the record.
        hyperparameters: Training settings of its proposal that differ from the protocol.
        answered_from: Id of the evaluation whose result is reused; None after a training.
        partial: Whether it paused at a rung, or was pruned: `value` was measured after `epochs`
            epochs and is not comparable with full-protocol values.
        hardware: Name of the device's hardware.
        rung_constrained: One value of each constraint of the study, rung after rung;
            `Evaluations.of_studies` reads it.
        provenance: Origin of an external result, as in `Result`.
    """

    id: str
    study: str | None
    number: int | None
    task: str
    protocol: str
    architecture: Architecture
    value: float
    direction: Direction = "maximise"
    agent: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    curve: Mapping[str, list[float]] = field(default_factory=dict)
    epochs: int | None = None
    seconds: float | None = None
    seed: int | None = None
    device: str | None = None
    created: int | None = None
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    answered_from: str | None = None
    partial: bool = False
    hardware: str | None = None
    rung_constrained: tuple[float, ...] = ()
    provenance: Mapping[str, str] = field(default_factory=dict)

    @property
    def score(self) -> float:
        """`value`, or its negative if the study minimises: agents maximise it."""
        return sign(self.direction) * self.value

    def __str__(self) -> str:
        """Return what a reader asks first, on one line; `repr` has all fields."""
        epochs = [] if self.epochs is None else [counted(self.epochs, "epoch")]
        seconds = [] if self.seconds is None else [f"{self.seconds:.3g} s"]
        about = ", ".join([self._network(), *epochs, *seconds])
        return f"{self.id}: value {self.value:.4g}, {about}"

    def _network(self) -> str:
        """Return the network in words: its configuration, or its key and size."""
        # Most users of records read no configurations.
        from archive.architecture.parameter_operations import CONFIGURATIONS, configuration_of

        settings = settings_text(self.hyperparameters)
        if self.architecture.space in CONFIGURATIONS:
            named = settings_text({**configuration_of(self.architecture), **self.hyperparameters})
            return f"{named}, architecture {self.architecture.key}"

        layers = f"{self.architecture.space}, {len(self.architecture.layers)} layers"
        beside = f", {settings}" if settings else ""
        return f"architecture {self.architecture.key} ({layers}){beside}"
