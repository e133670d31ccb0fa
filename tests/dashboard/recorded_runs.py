"""Recorded runs, stored as their delivery stores them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from archive.api import Archive
from archive.architecture.graph import Architecture
from archive.architecture.parameter_operations import PROGRAM_NAME, graph_of_values
from archive.store.properties import proposal_id
from archive.store.records import Result, Study
from archive.store.studies.studies import UNBOUNDED


@dataclass(frozen=True)
class RunSuggestion:
    """A run as a suggestion (`archive.queue.admission.SuggestionLike`)."""

    architecture: Architecture
    motivation: str | None = None
    repeat: bool = False
    parent: Architecture | None = None
    operations: tuple[str, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredRun:
    """A run to store.

    Attributes:
        values: What it was given.
        value: Its result; a text is the reason why it failed.
        parent: Number of the run that it is a change of.
        why: Its motivation.
        seed: Its seed.
        curve: Its curve.
        properties: Further properties of its proposal, such as `diff` and `log_end`.
    """

    values: Mapping[str, Any]
    value: float | str
    parent: int | None = None
    why: str | None = None
    seed: int | None = None
    curve: Mapping[str, list[float]] = field(default_factory=dict)
    properties: Mapping[str, Any] = field(default_factory=dict)


def store_runs(
    archive: Archive, runs: Sequence[StoredRun], name: str = "study", objective: str = "loss"
) -> list[Architecture]:
    """Store runs of a study, which is made unless it exists, and return their configurations."""
    if name not in archive.studies.names():
        archive.studies.create(
            Study(name, name, f"{name}/recorded", PROGRAM_NAME, objective, "minimise", UNBOUNDED)
        )

    agent = archive.proposals.register_agent("record", {}, "1")
    suggestions = []
    outcomes: list[Result | str | None] = []
    for run in runs:
        properties = {"program": "train.py", **run.properties}
        if run.parent is not None:
            properties["derived_from"] = proposal_id(name, run.parent)

        graph = graph_of_values({"program": "train.py", **run.values}, name=PROGRAM_NAME)
        suggestions.append(RunSuggestion(graph, run.why, properties=properties))
        if isinstance(run.value, str):
            outcomes.append(run.value)
            continue

        metrics = {objective: run.value, "doubled": 2 * run.value}
        outcomes.append(Result(run.value, metrics, curve=run.curve, seed=run.seed, seconds=1.5))

    archive.proposals.create(name, agent, suggestions, outcomes=outcomes, unique=False)
    return [suggestion.architecture for suggestion in suggestions]
