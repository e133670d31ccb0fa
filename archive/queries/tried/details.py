"""Everything that the archive keeps of one run on record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archive.errors import UnknownNameError
from archive.store.properties import CURVE, METRIC, from_json, with_prefix

if TYPE_CHECKING:
    from archive.database.connection import Connection

DETAILS = """
MATCH (p:Proposal {id: $id})
USING INDEX SEEK p:Proposal(id)
OPTIONAL MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
OPTIONAL MATCH (p)-[:HAS_TEXT]->(t:RunText)
RETURN p.command AS command, p.folder AS folder, p.exit_status AS exit_status, t.log_end AS log_end,
       t.diff AS diff, p.kept AS kept, p.cause AS cause, p.code_commit AS commit,
       p.code_branch AS branch, p.architecture AS architecture, p.agent AS agent, p.finished AS finished,
       e.environment AS environment, coalesce(e.hardware, e.device) AS hardware,
       [name IN keys(e) WHERE name STARTS WITH 'metric_' | [name, e[name]]] AS metrics,
       [name IN keys(p) WHERE name STARTS WITH 'curve_' | [name, p[name]]] AS curve_of_failure,
       [name IN keys(e) WHERE name STARTS WITH 'curve_' | [name, e[name]]] AS curve
"""


@dataclass(frozen=True)
class RunDetails:
    """What the archive keeps of a run beside `archive.queries.runs.TriedRun`.

    Attributes:
        architecture: Key of its configuration.
        agent: Agent that made its proposal.
        command: The program with its arguments; empty where it is unknown.
        folder: Folder that it ran in; None where it is unknown.
        exit_status: Exit status; None where it is unknown.
        log_end: End of its output; None without any.
        diff: Difference of its source files, from its parent's or from the commit; None without one.
        kept: Paths of the files that were kept, on the machine of the run.
        cause: Kind of its failure; None without one.
        commit: Commit that was checked out; None where it is unknown.
        branch: Likewise its branch.
        finished: When it ended, in milliseconds since 1970; None where it is unknown.
        environment: Packages, devices and settings of its machine.
        hardware: Name of the device.
        metrics: Metrics by name.
        curve: Values of each metric, one for each step; `epoch` has the steps.
    """

    architecture: str
    agent: str | None
    command: list[str]
    folder: str | None
    exit_status: int | None
    log_end: str | None
    diff: str | None
    kept: list[str]
    cause: str | None
    commit: str | None
    branch: str | None
    finished: int | None
    environment: Mapping[str, Any]
    hardware: str | None
    metrics: Mapping[str, float]
    curve: Mapping[str, list[float]]


def details_of_run(connection: Connection, run: str) -> RunDetails:
    """Return what the archive keeps of a run.

    Args:
        connection: Connection to the archive.
        run: Id of its proposal.

    Raises:
        UnknownNameError: There is no such proposal.
    """
    record = connection.read(lambda tx: tx.run(DETAILS, id=run).single())
    if record is None:
        raise UnknownNameError("run", run, ())

    row = record.data()
    curve = dict(row.pop("curve") or ())
    # A run without a result keeps its curve in the proposal.
    curve_of_failure = dict(row.pop("curve_of_failure") or ())
    return RunDetails(
        **{
            **row,
            "command": list(row["command"] or ()),
            "kept": list(row["kept"] or ()),
            "environment": from_json(row["environment"]),
            "metrics": with_prefix(METRIC, dict(row["metrics"] or ())),
            "curve": with_prefix(CURVE, curve or curve_of_failure),
        }
    )
