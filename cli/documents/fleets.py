"""Documents of `archive launch`."""

from __future__ import annotations

from typing import Literal

from archive.cli.documents.base import Document, JsonObject


class LaunchedItem(JsonObject):
    """A trainer, as its engine knows it.

    Attributes:
        id: The engine's id of it.
        state: Whether its process has started.
        host: Machine; null while it is pending.
        reason: Why it is pending, in the engine's words.
    """

    id: str
    state: Literal["pending", "running"]
    host: str | None
    reason: str | None


class FleetItem(JsonObject):
    """A fleet and its trainers.

    Attributes:
        fleet: Name of the fleet.
        engine: Name of the launcher.
        study: The one study that it serves; null means any.
        lower: Smallest number of trainers.
        upper: Largest number of trainers.
        created: Time of its creation, in seconds since 1970.
        ended: Whether all trainers have left, and none will be started.
        problem: Why the engine did not answer; null where it did.
        trainers: Those that are pending or running.
    """

    fleet: str
    engine: str
    study: str | None
    lower: int
    upper: int
    created: float
    ended: bool
    problem: str | None
    trainers: list[LaunchedItem]


class FleetDocument(FleetItem, Document):
    """A fleet that was started."""


class FleetList(Document):
    """The fleets of an archive.

    Attributes:
        fleets: The oldest first.
    """

    fleets: list[FleetItem]


class StoppedFleets(Document):
    """Fleets that were stopped.

    Attributes:
        fleets: Their names.
        trainers: Number of their trainers that were stopped.
    """

    fleets: list[str]
    trainers: int
