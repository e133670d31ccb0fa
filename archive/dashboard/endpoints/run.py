"""One recorded run: what it changed and brought, its difference, log, curves, command and surroundings.

Differences, logs, commands and names of files come from programs: they are cut to bounded lengths, and
without control sequences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from archive.dashboard.endpoints.inputs import archive_of, integer, named_study, news_of
from archive.dashboard.endpoints.run_lines import brief_text, brief_value, describe_runs
from archive.dashboard.feeds.run_columns import ARCHITECTURE, RunColumns
from archive.dashboard.feeds.study import ABOUT, STATE, VALUE, StudyFeed
from archive.dashboard.wire import json_response
from archive.errors import UnknownNameError, UsageError
from archive.objectives import sign
from archive.plots.data.curves import evenly
from archive.plots.data.results import pick
from archive.queries.repeats import interval_of_mean
from archive.queries.runs import TriedRun, runs_by_id
from archive.queries.tried.changes import NOT_GIVEN, value_changes
from archive.queries.tried.details import RunDetails, details_of_run
from archive.queries.tried.lines import RunLines
from archive.runs.texts.difference_files import files_of_difference
from archive.runs.texts.plain_text import cut_line, plain_text
from archive.store.properties import EPOCH, proposal_id
from archive.store.studies.rows import SOME, read_rows

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.store.records import Study

MOST_REPEATS = 50
MOST_CHILDREN = 20
MOST_ANCESTORS = 12
MOST_VALUES = 200
MOST_POINTS = 1000
MOST_CURVES = 40
MOST_FILES = 200
MOST_PACKAGES = 2000
MOST_ARGUMENTS = 400

MOST_DIFF = 1 << 20
"""Letters of a difference: recorded ones are shorter."""

LOG_LINES = 400
LOG_LETTERS = 2000
"""Letters of a line of a log."""

LONG_TEXT = 2000
"""Letters of a reason, or of an argument, on the page of its run."""


def _run(request: Request) -> Response:
    """Return a run; `number=best` is the best one of the study."""
    archive = archive_of(request)
    name = named_study(request)
    with news_of(request).study(name) as feed:
        study = feed.study
        number = _number_of(request, feed)
        tree = RunColumns.of(archive.connection, feed).tree()
        repeats = _repeats(archive, feed, number)
        rank = _rank(feed, number)

    identifier = proposal_id(name, number)
    if number not in tree:
        raise UnknownNameError("run", identifier, ())

    details = details_of_run(archive.connection, identifier)
    run, parent = _with_parent(archive, identifier)
    children = tree.children(number)
    ancestors, skipped = _ancestors(tree, number)
    related = {number, *ancestors, *children[:MOST_CHILDREN]}
    lines = describe_runs(archive, name, sorted(related))
    return json_response(
        {
            **_about(study),
            **lines[number],
            **_texts_of(run, parent, details),
            "results": run.repeats,
            "parent_results": run.parent_repeats,
            "configuration": details.architecture,
            "network": run.network,
            "parent_network": None if parent is None else parent.network,
            "rank": rank,
            "metrics": {cut_line(key, 80): value for key, value in details.metrics.items()},
            "curve": _curve(details),
            "repeats": repeats[:MOST_REPEATS],
            "spread": _spread(repeats),
            "ancestors": [lines[other] for other in ancestors if other in lines],
            "skipped_ancestors": skipped,
            "children": [lines[other] for other in children[:MOST_CHILDREN] if other in lines],
            "further_children": max(0, len(children) - MOST_CHILDREN),
        }
    )


def _number_of(request: Request, feed: StudyFeed) -> int:
    number = request.query_params.get("number")
    if not number:
        raise UsageError("the address needs a run: number=NUMBER, or number=best")

    if number != "best":
        return integer(request, "number", 0)

    best = feed.entry(ABOUT)["best"]
    if best is None:
        raise UnknownNameError("run", f"the best of {feed.name}", ())

    return int(best["number"])


def _about(study: Study) -> dict[str, Any]:
    return {"study": study.name, "objective": study.objective, "direction": study.direction}


def _rank(feed: StudyFeed, number: int) -> dict[str, int] | None:
    """Return how many runs with a result are better, and how many have one; None without a result."""
    row = feed.rows.get(number)
    if row is None or not _is_finite(row[VALUE]):
        return None

    better = sign(feed.study.direction)
    values = []
    for other in feed.rows.values():
        if other[STATE] == "COMPLETE" and _is_finite(other[VALUE]):
            values.append(better * other[VALUE])

    return {"place": 1 + sum(value > better * row[VALUE] for value in values), "of": len(values)}


def _repeats(archive: Archive, feed: StudyFeed, number: int) -> list[dict[str, Any]]:
    """Return all runs of the configuration of a run, with their seeds, oldest first."""
    run = feed.rows.get(number)
    if run is None:
        return []

    repeats = []
    for other, row in feed.rows.items():
        if row[ARCHITECTURE] == run[ARCHITECTURE]:
            repeats.append({"number": other, "state": row[STATE], "value": row[VALUE]})

    ids = [proposal_id(feed.name, repeat["number"]) for repeat in repeats[:MOST_REPEATS]]
    columns = ("number", "seed")
    rows = archive.connection.read(lambda tx: read_rows(tx, columns, SOME, ids=ids))
    seeds = {row[0]: row[1] for row in rows}
    return [{**repeat, "seed": seeds.get(repeat["number"])} for repeat in repeats]


def _is_finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _spread(repeats: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the mean of whole repeats with its interval; None of a single result."""
    values = []
    for repeat in repeats:
        if repeat["state"] == "COMPLETE" and _is_finite(repeat["value"]):
            values.append(repeat["value"])

    if len(values) < 2:
        return None

    low, high = interval_of_mean(values)
    return {"results": len(values), "mean": fmean(values), "low": low, "high": high}


def _ancestors(tree: RunLines, number: int) -> tuple[list[int], int]:
    """Return the runs that a run came from, the first one first, and how many are left out.

    Those behind the first one are left out.
    """
    ancestors: list[int] = []
    parent = tree.parent(number)
    while parent is not None:
        ancestors.append(parent)
        parent = tree.parent(parent)

    ancestors.reverse()
    skipped = max(0, len(ancestors) - MOST_ANCESTORS)
    return [*ancestors[:1], *ancestors[1 + skipped :]], skipped


def _texts_of(run: TriedRun, parent: TriedRun | None, details: RunDetails) -> dict[str, Any]:
    """Return the texts of a run, each of bounded length."""
    files = []
    for file in files_of_difference((details.diff or "")[:MOST_DIFF]):
        files.append(asdict(file))

    command = _command(details.command)
    return {
        "motivation": brief_text(run.motivation, LONG_TEXT),
        "reason": brief_text(run.reason, LONG_TEXT),
        "cause": details.cause,
        "values": _values(parent, run),
        "files": files[:MOST_FILES],
        "further_files": max(0, len(files) - MOST_FILES),
        "log": _log(details.log_end),
        "command": command,
        "is_whole_command": command == details.command,
        "folder": brief_text(details.folder),
        "exit_status": details.exit_status,
        "kept": [brief_text(path) for path in details.kept[:MOST_FILES]],
        "commit": brief_text(details.commit, 80),
        "branch": brief_text(details.branch, 80),
        "agent": details.agent,
        "finished": details.finished,
        "hardware": brief_text(details.hardware),
        "environment": _environment(details.environment),
    }


def _command(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command, which may have several lines each."""
    return [cut_line(plain_text(argument), LONG_TEXT) for argument in arguments[:MOST_ARGUMENTS]]


def _with_parent(archive: Archive, identifier: str) -> tuple[TriedRun, TriedRun | None]:
    """Return a run, and the run that it is a change of; None without one."""
    runs = runs_by_id(archive.connection, [identifier])
    if not runs:
        # It was deleted since the feed has read it.
        raise UnknownNameError("run", identifier, ())

    run = runs[0]
    if run.parent is None:
        return run, None

    parents = runs_by_id(archive.connection, [run.parent])
    return run, parents[0] if parents else None


def _values(parent: TriedRun | None, run: TriedRun) -> list[dict[str, Any]]:
    """Return the values of a run beside its parent's, those that differ first."""
    differing = set()
    if parent is not None:
        differing = {change.name for change in value_changes(parent.values, run.values)}

    before = {} if parent is None else parent.values
    names = [name for name in dict.fromkeys([*run.values, *before]) if name not in NOT_GIVEN]
    rows = []
    for name in sorted(names, key=lambda name: name not in differing)[:MOST_VALUES]:
        rows.append(
            {
                "name": cut_line(name, 80),
                "parent": brief_value(before.get(name)),
                "value": brief_value(run.values.get(name)),
                "differs": name in differing,
            }
        )

    return rows


def _log(text: str | None) -> list[str]:
    """Return the last lines of a log."""
    if not text:
        return []

    end = text[-LOG_LINES * LOG_LETTERS :]
    lines = plain_text(end).rstrip("\n").split("\n")
    return [cut_line(line, LOG_LETTERS) for line in lines[-LOG_LINES:]]


def _curve(details: RunDetails) -> dict[str, Any] | None:
    """Return the curves of a run at some of its steps; None without any."""
    curve = dict(details.curve)
    steps = curve.pop(EPOCH, [])
    if not steps:
        return None

    positions = evenly(len(steps), MOST_POINTS)
    curves = {}
    for name in list(curve)[:MOST_CURVES]:
        if len(curve[name]) == len(steps):
            curves[name] = pick(curve[name], positions)

    return {"steps": pick(steps, positions), "curves": curves} if curves else None


def _environment(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Return machine, devices and variables in words, and packages with versions."""
    facts = {}
    packages = {}
    for name, value in environment.items():
        if name == "packages" and isinstance(value, Mapping):
            for package, version in list(value.items())[:MOST_PACKAGES]:
                packages[cut_line(str(package), 80)] = brief_value(version)
        elif isinstance(value, Mapping):
            text = " ".join(f"{key}={setting}" for key, setting in value.items())
            facts[cut_line(name, 80)] = brief_text(text)
        elif value is not None:
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            facts[cut_line(name, 80)] = brief_text(text)

    return {"facts": facts, "packages": packages}


ROUTES = [Route("/api/run", _run)]
