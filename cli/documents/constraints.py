"""Parts of documents on constraints."""

from __future__ import annotations

from typing import Literal

from archive.cli.documents.base import JsonObject


class ConstraintItem(JsonObject):
    """One constraint of a study.

    Attributes:
        name: Name of the metric or cost.
        operator: How the value must compare with the bound.
        bound: The bound, in the quantity's unit.
    """

    name: str
    operator: Literal["<=", "<", ">=", ">"]
    bound: float


class NearestItem(JsonObject):
    """The result of the smallest violation of the constraints.

    Attributes:
        architecture: Key of the architecture.
        proposal: Id of the proposal.
        value: The objective.
        metrics: Value of each constrained quantity, by name.
    """

    architecture: str
    proposal: str
    value: float | None
    metrics: dict[str, float]
