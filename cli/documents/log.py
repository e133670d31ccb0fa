"""Documents of `archive study log` and `archive proposal`."""

from __future__ import annotations

from typing import Any, Literal

from archive.cli.documents.base import Document, JsonObject
from archive.cli.documents.studies import ProposalItem


class LogItem(JsonObject):
    """One thing that happened to a proposal; what an event has nothing to say of is null.

    Attributes:
        time: When, by the server's clock (ISO 8601, UTC).
        proposal: Id of the proposal.
        number: Its number in the study.
        event: Kind of the event.
        who: The agent that proposed, or the worker of all other events.
        attempt: Which attempt was claimed, or ended.
        reason: Why it failed, was lost, was returned or was cancelled.
        cause: Kind of that reason.
        log: The end of the trial's own log, of a failure that left one.
        architecture: Key of the architecture, of a proposal.
        acquisition: The agent's acquisition value, of a proposal.
        mean: The score that the surrogate expects, of a proposal.
        std: The surrogate's standard deviation of it.
        fidelity: Fraction of the full training, of a proposal that asks for less.
        hyperparameters: Training settings that belong to the proposal.
        based_on: Evaluations and proposals that the agent knew.
        value: The objective, of a result.
        epochs: Epochs of the result.
        seconds: Wall-clock time of the training.
        device: Where it ran.
        answered_from: Id of the evaluation that the result repeats without a training.
        rung: The rung that was finished, or that the proposal is promoted to, from 1.
    """

    time: str | None
    proposal: str
    number: int
    event: Literal[
        "proposed",
        "claimed",
        "failed",
        "lost",
        "returned",
        "complete",
        "pruned",
        "promoted",
        "cancelled",
        "retried",
    ]
    who: str | None
    attempt: int | None
    reason: str | None
    cause: str | None
    log: str | None
    architecture: str | None
    acquisition: float | None
    mean: float | None
    std: float | None
    fidelity: float | None
    hyperparameters: dict[str, Any] | None
    based_on: dict[str, Any] | None
    value: float | None
    epochs: int | None
    seconds: float | None
    device: str | None
    answered_from: str | None
    rung: int | None


class StudyLog(Document):
    """Events of a study, or of one of its proposals.

    Attributes:
        study: Name of the study.
        entries: The oldest first.
    """

    study: str
    entries: list[LogItem]


class LogLine(Document, LogItem):
    """A line of `--follow`: one event."""


class TrialLogLine(Document):
    """A line of `--follow` with `--proposal`: one line of the trial's own log.

    Attributes:
        proposal: Id of the proposal.
        event: Always `log`.
        line: The line.
    """

    proposal: str
    event: Literal["log"]
    line: str


class ProposalDocument(Document, ProposalItem):
    """One proposal with all that is on record about it.

    Attributes:
        study: Name of the study.
        priority: Larger is claimed first.
        fidelity: Fraction of the full training that is asked for.
        hyperparameters: Training settings that belong to it.
        motivation: Reason for it in words, where there is one.
        inspired_by: Keys of the architectures that the motivation goes back to.
        based_on: Evaluations and proposals that the agent knew.
        created: When it was proposed.
        weights: Where its trained weights are, if they were kept.
        cause: Kind of the reason why it failed, or waits again.
        refused_by: Ids of the trainers that could not begin to train it, and do not get it again.
        memory_bytes: Memory that its training needs at least, after an attempt that ran out of
            memory.
        alone: Whether it gets a device without other trials.
        unreachable: Why no living trainer can run it; null where one can, or it does not wait.
        entries: Its events, the oldest first.
    """

    study: str
    priority: float
    fidelity: float | None
    hyperparameters: dict[str, Any]
    motivation: str | None
    inspired_by: list[str]
    based_on: dict[str, Any]
    created: str | None
    weights: str | None
    cause: str | None
    refused_by: list[str]
    memory_bytes: int | None
    alone: bool
    unreachable: str | None
    entries: list[LogItem]


class ChangedItem(JsonObject):
    """A proposal that a command was asked to change.

    Attributes:
        proposal: Its id.
        changed: Whether this command changed it; false where it was as asked already.
    """

    proposal: str
    changed: bool


class ChangedList(Document):
    """Proposals that were cancelled or put back into the queue.

    Attributes:
        proposals: In the order of the arguments.
    """

    proposals: list[ChangedItem]
