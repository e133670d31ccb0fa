"""Documents of `archive trainer`."""

from __future__ import annotations

from typing import Literal

from archive.cli.documents.base import Document, JsonObject


class TallyDocument(Document):
    """Tally of a trainer at its end.

    Attributes:
        complete: Trials with a result.
        failed: Trials without one; with no others, the exit code is 3.
        returned: Trials that were handed back, or taken away.
        unsaved: Trials that have a result, but no weights, because these could not be saved.
    """

    complete: int
    failed: int
    returned: int
    unsaved: int


class TrialItem(JsonObject):
    """A trial that a trainer runs.

    Attributes:
        proposal: Id of the proposal.
        study: Name of the study.
        architecture_key: Key of the architecture.
        attempt: 1 for the first.
        epochs: Epochs reported so far.
        seconds: Since it was claimed.
        lease_seconds: Until its lease ends; negative when it has.
    """

    proposal: str
    study: str
    architecture_key: str
    attempt: int
    epochs: int
    seconds: float
    lease_seconds: float


class TrainerItem(JsonObject):
    """A trainer, as the archive knows it.

    Attributes:
        id: Its id.
        state: Whether it works, waits, rests after failures of its machine, is silent for too long,
            or has left.
        host: Machine.
        pid: Process on that machine.
        device: Device that it trains on.
        slots: Trials it runs at a time.
        study: The one study that it serves; null means any.
        seconds: From its arrival to its end in order, or until now.
        silent_seconds: Since its last heartbeat.
        trials: Running trials, the oldest first.
        rest_reason: Reason of the failure after which it rests; null in other states.
        devices: Its devices, each with the name of the hardware.
        fleet: Fleet that it belongs to (`archive launch list`); null where it was started by hand.
        tasks: Tasks that it knows; one that ends with a colon stands for files of users. Null means
            any.
        spaces: Spaces that it knows; null means any.
        recipes: Recipes that it may run; null means any.
        memory_bytes: Memory of its largest device.
    """

    id: str
    state: Literal["working", "idle", "resting", "stale", "left"]
    host: str | None
    pid: int | None
    device: str | None
    slots: int | None
    study: str | None
    seconds: float | None
    silent_seconds: float
    trials: list[TrialItem]
    rest_reason: str | None
    devices: list[str]
    fleet: str | None
    tasks: list[str] | None
    spaces: list[str] | None
    recipes: list[str] | None
    memory_bytes: int | None


class UnreachableItem(JsonObject):
    """Waiting proposals of a study that no living trainer can run.

    Attributes:
        study: Name of the study.
        proposals: Their number.
        first: Id of the first one.
        reasons: What each living trainer lacks, by its id.
    """

    study: str
    proposals: int
    first: str
    reasons: dict[str, str]


class TrainerList(Document):
    """The trainers.

    Attributes:
        workers: In the order of their arrival.
        unreachable: Waiting proposals that no living trainer can run.
    """

    workers: list[TrainerItem]
    unreachable: list[UnreachableItem]
