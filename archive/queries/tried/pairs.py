"""Configurations of runs beside those that they are changes of, for the effects of edits."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from archive.queries.runs import networks_of
from archive.queries.tried.changes import NOT_GIVEN, ValueChange, value_changes
from archive.queries.tried.filters import values_of

if TYPE_CHECKING:
    from archive.database.connection import Connection

# One row: both servers spend more time on a row than on its content.
RUNS = """
MATCH (p:Proposal {study: $study})
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN collect([p.id, p.architecture, p.derived_from, e[$property], e.partial, p.code, p.changed, p.configuration,
                p.hyperparameters]) AS runs
"""

_COUNTS = re.compile(r" (\+\d+ -\d+|\(large\))$")
"""What follows the name of a changed file, as in `train.py +3 -1`."""

SOURCE_FILES = "source files"
"""Name of a change of files that are not listed."""


@dataclass(frozen=True)
class ConfigurationPair:
    """A configuration and one that is a change of it.

    Attributes:
        first: Id of a run of the first one.
        second: Id of a run of the second one.
        first_architecture: Key of the first configuration.
        second_architecture: Key of the second one.
        first_network: Key of the network that it trained; None where it is unknown.
        second_network: Likewise for the second one.
        difference: Mean over the repeats of the second one less the mean of the first one.
        values: Values that differ.
        files: Source files that differ.
    """

    first: str
    second: str
    first_architecture: str
    second_architecture: str
    first_network: str | None
    second_network: str | None
    difference: float
    values: list[ValueChange]
    files: list[str]


@dataclass(frozen=True)
class _PairedRun:
    id: str
    architecture: str
    parent: str | None
    code: str | None
    changed: list[str]
    values: Mapping[str, Any]


def configuration_pairs(
    connection: Connection, study: str, property_name: str = "value"
) -> list[ConfigurationPair]:
    """Return each configuration with results beside those that its runs are changes of, once.

    Args:
        connection: Connection to the archive.
        study: Name of the study.
        property_name: Property of evaluations that is compared.
    """
    asked = {"study": study, "property": property_name}
    rows = connection.read(lambda tx: tx.run(RUNS, asked).single(strict=True))["runs"]
    runs = {}
    numbers = defaultdict(list)
    for id_, architecture, parent, number, partial, code, changed, *texts in rows:
        runs[id_] = _PairedRun(
            id_, architecture, parent, code, list(changed or ()), values_of(*texts)
        )
        if isinstance(number, int | float) and math.isfinite(number) and not partial:
            numbers[architecture].append(float(number))

    means = {architecture: fmean(values) for architecture, values in numbers.items()}
    ends: dict[tuple[str, str], tuple[_PairedRun, _PairedRun]] = {}
    for id_ in sorted(runs):
        run = runs[id_]
        parent = runs.get(run.parent or "")
        if parent is not None and parent.architecture != run.architecture:
            if parent.architecture in means and run.architecture in means:
                ends.setdefault((parent.architecture, run.architecture), (parent, run))

    networks = networks_of(connection, {key for pair in ends for key in pair})
    pairs = []
    for (first, second), (parent, run) in ends.items():
        values = []
        for change in value_changes(parent.values, run.values):
            if change.name not in NOT_GIVEN:
                values.append(change)

        pairs.append(
            ConfigurationPair(
                first=parent.id,
                second=run.id,
                first_architecture=first,
                second_architecture=second,
                first_network=networks.get(first),
                second_network=networks.get(second),
                difference=means[second] - means[first],
                values=values,
                files=_files(parent, run),
            )
        )

    return pairs


def _files(parent: _PairedRun, run: _PairedRun) -> list[str]:
    """Return the source files that differ between two runs."""
    if parent.code is not None and parent.code == run.code:
        # The listed ones differ from the commit.
        return []

    files = [_COUNTS.sub("", line) for line in run.changed]
    is_known = parent.code is not None and run.code is not None
    return files or ([SOURCE_FILES] if is_known else [])
