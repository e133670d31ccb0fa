"""Documents of `archive arch diff`."""

from __future__ import annotations

from typing import Literal

from archive.cli.documents.base import Document, JsonObject

ChangeName = Literal["matched", "changed", "inserted", "removed"]


class DifferenceTotal(JsonObject):
    """The parts of one kind.

    Attributes:
        subject: `layer`, `skip` or `break` of the edit distance, `mass` of OTMANN.
        change: What happens to them.
        parts: Number of them.
        cost: Sum of their costs.
    """

    subject: str
    change: ChangeName
    parts: int
    cost: float


class DifferencePartItem(JsonObject):
    """A part of a distance.

    Attributes:
        subject: `layer`, `skip` or `break` of the edit distance, `mass` of OTMANN.
        change: What happens to it.
        first: Layers of the first architecture: one, or the two ends of a skip; empty for what is
            inserted.
        second: The same of the second architecture; empty for what is removed.
        cost: Its share of the distance.
        amount: Mass that is moved; 1 for a layer or a skip.
        reason: Where the cost comes from.
    """

    subject: str
    change: ChangeName
    first: list[int]
    second: list[int]
    cost: float
    amount: float
    reason: str


class LayerPair(JsonObject):
    """Layers that belong together.

    Attributes:
        first: Position in the first architecture; null for an inserted layer.
        second: Position in the second one; null for a removed layer.
        change: Whether they are equal.
    """

    first: int | None
    second: int | None
    change: ChangeName


class DifferenceDocument(Document):
    """The difference of two architectures.

    Attributes:
        first: Key of the first architecture.
        second: Key of the second one.
        kernel: Name of the kernel that matches the layers.
        component: Name of the distance.
        distance: The distance, which is the sum of the costs.
        totals: The parts by kind.
        parts: All parts.
        layers: Every layer of both architectures, once.
        file: The picture; null where none was written.
        format: `svg`, `png` or `text`.
        bytes: Size of the file.
    """

    first: str
    second: str
    kernel: str
    component: str
    distance: float
    totals: list[DifferenceTotal]
    parts: list[DifferencePartItem]
    layers: list[LayerPair]
    file: str | None
    format: Literal["svg", "png", "text"]
    bytes: int | None
