"""What the archive keeps, as frozen records: study, proposal, claim, result, evaluation, checkpoint.

A record is what one node of the graph says, with its neighbours' names; `archive.store.properties` turns one into the
other. Times are milliseconds since 1970 by the server's clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from archive.architecture.graph import Architecture

Curve = Mapping[str, Sequence[float]]
Direction = Literal["maximise", "minimise"]


class State(StrEnum):
    """Where a proposal stands: WAITING -> RUNNING -> COMPLETE | PRUNED | FAILED; at a rung, PRUNED -> WAITING.

    A cancelled proposal is FAILED with the reason `CANCELLED`; a retry makes WAITING of FAILED
    (`archive.queue.cancellation`).
    """

    WAITING = "WAITING"
    RUNNING = "RUNNING"
    COMPLETE = "COMPLETE"
    PRUNED = "PRUNED"
    FAILED = "FAILED"

    @property
    def evaluated(self) -> bool:
        """Whether a result is on record: nothing may replace it."""
        return self in (State.COMPLETE, State.PRUNED)


CANCELLED = "cancelled"
"""Reason of a cancelled proposal; what a user adds to it comes after a colon."""


def is_cancelled(state: State, reason: str | None) -> bool:
    """Return whether a proposal was cancelled, rather than failed or pruned."""
    ended = state in (State.FAILED, State.PRUNED)
    return ended and reason is not None and (reason == CANCELLED or reason.startswith(f"{CANCELLED}: "))


@dataclass(frozen=True)
class Study:
    """One search problem: what is evaluated, how it is measured, and how often at most.

    Attributes:
        name: Unique in the archive.
        task: Name of the task.
        protocol: How the task is trained and measured (`"digits/1"`); values are comparable within one protocol.
        space: Name of the space that architectures come from.
        objective: Name of the metric that `Evaluation.value` is.
        direction: Whether a larger or a smaller value is better.
        budget: Most proposals, those that failed not counted.
        config: Whatever else the search recorded about itself.
        space_config: The limits of the space.
        seed: Seed of the study.
        created: When it was made; None before.
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


@dataclass(frozen=True)
class Checkpoint:
    """Trained weights on disk: where, and what they must hash to."""

    uri: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Proposal:
    """One architecture that an agent wants evaluated in one study.

    Attributes:
        id: `study#number`.
        study: Name of the study.
        number: From 0, in the order of the study.
        state: Where it stands.
        architecture_key: Key of the architecture.
        functional_key: Its functional key; at most one proposal of each in a study.
        agent: Id of the agent that made it.
        priority: Larger is claimed first.
        acquisition: The agent's acquisition value, if it has one.
        mean: The score that the agent's surrogate expects, if it has one: in units of the objective, larger is better,
            so of the opposite sign where the study minimises.
        std: The surrogate's standard deviation of the score: half the width of the central 68 % of its prediction.
        fidelity: Fraction of the full training that is asked for; None means all of it.
        hyperparameters: Training settings that belong to this proposal.
        attempts: How often a worker has lost it, or given it back.
        rung: The rung that it has reached, or is on its way to, from 0 (`archive.queue.successive_halving`).
        worker: Who holds it, or held it last.
        lease_until: When the lease ends.
        reason: Why it failed.
        curve: Metric to values per epoch, while it runs.
        created: When it was proposed.
        started: When it was last claimed.
        finished: When it was completed or failed.
        based_on: What the agent knew when it suggested it; see `archive.agents.provenance`. Empty where no agent did.
        seconds: Processor time of the call of the agent that suggested it, and all others of the call.
        request: Token of the call that added it, and all others of the call.
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
    attempts: int = 0
    rung: int = 0
    worker: str | None = None
    lease_until: int | None = None
    reason: str | None = None
    curve: Mapping[str, list[float]] = field(default_factory=dict)
    created: int | None = None
    started: int | None = None
    finished: int | None = None
    based_on: Mapping[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    request: str | None = None

    @property
    def cancelled(self) -> bool:
        """Whether it was cancelled, rather than failed or pruned."""
        return is_cancelled(self.state, self.reason)


@dataclass(frozen=True)
class Claim:
    """A proposal that one worker holds, with all that training needs; `token` proves the lease."""

    proposal: Proposal
    architecture: Architecture
    study: Study
    token: str

    @property
    def id(self) -> str:
        """The proposal's id."""
        return self.proposal.id


@dataclass(frozen=True)
class Result:
    """What training found.

    Attributes:
        value: The objective, in the task's own unit.
        metrics: Final metrics by name.
        curve: Metric to one value per epoch; all lists of one length. `"epoch"` is 1, 2, … unless given.
        epochs: Epochs trained; None means the length of the curve.
        seconds: Wall-clock time of the training.
        seed: Seed that the training used.
        device: Where it ran.
        environment: Versions and settings that the value may depend on.
        checkpoint: The weights that were kept, if any.
        answered_from: Id of the evaluation that this one repeats without a training; None where there was one.
        partial: Whether the training could go on: `value` is that of `epochs` epochs, not of the whole protocol.
    """

    value: float
    metrics: Mapping[str, float] = field(default_factory=dict)
    curve: Curve = field(default_factory=dict)
    epochs: int | None = None
    seconds: float | None = None
    seed: int | None = None
    device: str | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: Checkpoint | None = None
    answered_from: str | None = None
    partial: bool = False


@dataclass(frozen=True)
class Evaluation:
    """A result on record, with its architecture.

    Attributes:
        id: Id of the proposal that it came from, or the one it was imported under.
        study: Name of the study; None where it was imported.
        number: Number of the proposal; None where it was imported.
        task: Name of the task.
        protocol: How it was measured.
        architecture: The network.
        value: The objective, in the task's own unit.
        direction: Whether larger or smaller values are better: of the study, or of the task where it was imported.
        agent: Id of the agent that proposed it.
        metrics: Final metrics by name.
        curve: Metric to one value per epoch.
        epochs: Epochs trained.
        seconds: Wall-clock time of the training.
        seed: Seed that the training used.
        device: Where it ran.
        created: When it was recorded.
        hyperparameters: Training settings of its proposal that differ from the protocol.
        answered_from: Id of the evaluation that it repeats without a training; None where there was one.
        partial: Whether it paused at a rung, or was pruned: `value` is that of `epochs` epochs, not of the whole
            protocol, and no equal of those that are.
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

    @property
    def score(self) -> float:
        """`value` with its sign such that larger is better: what agents maximise."""
        return self.value if self.direction == "maximise" else -self.value
