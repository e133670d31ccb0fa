"""Documents of `archive study export`."""

from __future__ import annotations

from typing import Any, Literal

from archive.cli.documents.base import Document, JsonObject
from archive.cli.documents.studies import StateName


class StudyExport(Document):
    """A file that a study was exported to.

    Attributes:
        study: Its name.
        file: The file.
        format: `csv`, `json`, `jsonl` or `parquet`.
        rows: Number of proposals in it.
        bytes: Its size.
    """

    study: str
    file: str
    format: Literal["csv", "json", "jsonl", "parquet"]
    rows: int
    bytes: int


class PlotFile(Document):
    """An image file of a plot.

    Attributes:
        studies: Names of the plotted studies.
        kind: Kind of the plot.
        file: The file.
        format: `png`, `svg` or `pdf`.
        bytes: Its size.
    """

    studies: list[str]
    kind: str
    file: str
    format: Literal["png", "svg", "pdf"]
    bytes: int


class ReportFile(Document):
    """The report of a study.

    Attributes:
        study: Its name.
        file: The HTML file.
        bytes: Its size.
    """

    study: str
    file: str
    bytes: int


class ExportItem(JsonObject):
    """One proposal of an exported study; CSV and parquet have a column for each metric and
    hyperparameter.

    Attributes:
        study: Name of the study.
        proposal: Id of the proposal.
        number: Its number in the study.
        state: Its state.
        cancelled: Whether it was cancelled, rather than failed or pruned.
        architecture: Key of the architecture.
        agent: Id of the agent that made it.
        acquisition: The agent's acquisition value.
        mean: The score that the surrogate expects, larger is better.
        std: The surrogate's standard deviation of it.
        priority: Larger is claimed first.
        fidelity: Fraction of the full training that is asked for.
        attempts: Number of attempts that were lost.
        worker: The worker that holds it, or held it last.
        reason: Why it failed.
        created: When it was proposed.
        started: When it was last claimed.
        finished: When it ended.
        value: The objective, once it is known.
        epochs: Epochs of the result.
        seconds: Wall-clock time of the training.
        seed: Seed that the training used.
        device: Where it ran.
        hardware: Name of the device's hardware.
        answered_from: Id of the evaluation that it repeats without a training.
        partial: Whether the value is that of a part of the training.
        metrics: Final metrics by name.
        hyperparameters: Training settings that differ from the protocol.
    """

    study: str
    proposal: str
    number: int
    state: StateName
    cancelled: bool
    architecture: str
    agent: str | None
    acquisition: float | None
    mean: float | None
    std: float | None
    priority: float
    fidelity: float | None
    attempts: int
    worker: str | None
    reason: str | None
    created: str | None
    started: str | None
    finished: str | None
    value: float | None
    epochs: int | None
    seconds: float | None
    seed: int | None
    device: str | None
    hardware: str | None
    answered_from: str | None
    partial: bool
    metrics: dict[str, float | None]
    hyperparameters: dict[str, Any]


class ExportDocument(Document):
    """A study exported as JSON.

    Attributes:
        proposals: By number.
    """

    proposals: list[ExportItem]


class ExportLine(Document, ExportItem):
    """A line of a study exported as `jsonl`."""
