"""Recorded runs of a study: the table with the user's columns, and the search for runs.

Answers are bounded, whatever the number of runs: the server sorts and pages.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from archive.dashboard.endpoints.inputs import archive_of, choice, integer, named_study, news_of
from archive.dashboard.endpoints.paging import sorted_numbers
from archive.dashboard.endpoints.run_lines import (
    brief_text,
    chosen_cells,
    describe_runs,
    is_cell,
)
from archive.dashboard.endpoints.studies import LARGEST_PAGE, PAGE, STATES
from archive.dashboard.feeds.run_columns import RunColumns
from archive.dashboard.feeds.study import ABOUT, FIELDS, STATE, StudyFeed
from archive.dashboard.wire import json_response, select_attributes
from archive.errors import UsageError
from archive.objectives import Objective
from archive.plots.data.curves import evenly
from archive.plots.data.results import pick
from archive.queries.leaderboard import leaderboard
from archive.queries.runs import find_runs
from archive.queries.tried.changes import NOT_GIVEN
from archive.queries.tried.filters import values_of
from archive.store.properties import METRIC, proposal_id
from archive.store.studies.rows import PARAMETER, SOME, read_rows
from archive.values import settings_text, whole_number

if TYPE_CHECKING:
    from archive.database.connection import Connection

OF_FEED = ("number", "state", "value", "seconds", "finished", "reason")
"""Columns that the feed of the study has."""

OF_RUNS = ("parent", "program", "seed", "started", "gain")
"""Columns that are computed of what the runs came from, and were given."""

MOST_CELLS = 40
"""Columns beside the usual ones."""

MOST_WORDS = 12

SAMPLE = 2000
"""Runs whose values and metrics are named."""

MOST_NAMES = 500

RANKED = 10
"""Configurations of the leaderboard."""


def _runs(request: Request) -> Response:
    """Return a page of the table of runs, sorted and chosen by the server."""
    archive = archive_of(request)
    descending = choice(request, "order", ("asc", "desc"), "asc") == "desc"
    offset = integer(request, "offset", 0)
    end = offset + integer(request, "limit", PAGE, least=1, most=LARGEST_PAGE)
    state = choice(request, "state", ("", *STATES), "")
    words = tuple(request.query_params.get("find", "").split()[:MOST_WORDS])
    by = _sort_of(request)
    cells = list(dict.fromkeys(request.query_params.getlist("column")))[:MOST_CELLS]
    for name in cells:
        if not is_cell(name):
            raise UsageError(f"column must be a value or a metric of the runs, got {name!r:.80}")

    name = named_study(request)
    with news_of(request).study(name) as feed:
        columns = RunColumns.of(archive.connection, feed)
        matches = feed.remembered(
            ("runs found", state, words), lambda: _matches(feed, columns, state, words)
        )
        numbers = feed.remembered(
            ("runs", by, descending, offset, end, state, words),
            lambda: sorted_numbers(matches, _keys(feed, columns, by), descending, offset, end),
        )
        best = feed.entry(ABOUT)["best"]

    lines = describe_runs(archive, name, numbers)
    further = chosen_cells(archive, name, numbers, cells)
    rows = []
    for number in numbers:
        if number in lines:
            rows.append({**lines[number], "cells": further.get(number, {})})

    return json_response(
        {"runs": rows, "total": len(matches), "best": None if best is None else best["number"]}
    )


def _sort_of(request: Request) -> str:
    by = request.query_params.get("sort", "number")
    if by in OF_FEED or by in OF_RUNS or by.startswith((PARAMETER, METRIC)):
        return by

    raise UsageError(
        f"sort must be one of {', '.join((*OF_FEED, *OF_RUNS))}, {PARAMETER}NAME or {METRIC}NAME, "
        f"got {by!r:.80}"
    )


def _matches(feed: StudyFeed, columns: RunColumns, state: str, words: tuple[str, ...]) -> list[int]:
    numbers: Iterable[int] = feed.rows
    if state:
        numbers = [number for number in numbers if feed.rows[number][STATE] == state]

    if not words:
        return list(numbers)

    # The name of a run finds that run.
    named = {whole_number(word[1:]) for word in words if re.fullmatch(r"#\d+", word)}
    if named:
        return [number for number in numbers if number in named]

    matching = columns.matching(words)
    return [number for number in numbers if number in matching]


def _keys(feed: StudyFeed, columns: RunColumns, by: str) -> Mapping[int, Any]:
    """Return what runs are sorted by, by number."""
    if by in OF_FEED:
        position = FIELDS.index(by)
        return {number: row[position] for number, row in feed.rows.items()}

    if by == "gain":
        return columns.gains()

    if by == "parent":
        return columns.parents()

    if by in OF_RUNS:
        return columns.column({"started": "proposed"}.get(by, by))

    return columns.values(by)


@dataclass(frozen=True)
class _Names:
    """Names of the columns of a study, as of a version of its feed with so many runs."""

    version: int
    runs: int
    document: dict[str, Any]


def _columns(request: Request) -> Response:
    """Return the names of the values and metrics of a study's runs, and what differs among them.

    Of a study with more than 2,000 runs, so many in even steps.
    """
    connection = archive_of(request).connection
    with news_of(request).study(named_study(request)) as feed:
        names = feed.kept.get("run columns")
        if names is None or _is_outdated(names, feed):
            names = _Names(feed.version, len(feed.rows), _name_columns(connection, feed))
            feed.kept["run columns"] = names

    return json_response(names.document)


def _is_outdated(names: _Names, feed: StudyFeed) -> bool:
    """Return whether names must be read again: in a large study they seldom change."""
    if len(feed.rows) <= SAMPLE:
        return names.version != feed.version

    return names.runs < 0.9 * len(feed.rows)


def _name_columns(connection: Connection, feed: StudyFeed) -> dict[str, Any]:
    sample = pick(list(feed.rows), evenly(len(feed.rows), SAMPLE))
    ids = [proposal_id(feed.name, number) for number in sample]
    return {
        "values": _value_names(_values_of_runs(connection, ids)),
        "metrics": _metric_names(connection, ids),
        "parents": bool(feed.derived_from),
        "runs": len(feed.rows),
    }


def _values_of_runs(connection: Connection, ids: list[str]) -> list[dict[str, Any]]:
    """Return what runs were given, by name, in the order of their numbers."""
    names = ("number", "configuration", "hyperparameters")
    rows = connection.read(lambda tx: read_rows(tx, names, SOME, ids=ids))
    rows.sort(key=itemgetter(0))
    return [values_of(*texts) for _, *texts in rows]


def _value_names(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the names of values in the order of their first use; those that differ are marked."""
    texts: dict[str, set[str]] = {}
    counts: Counter[str] = Counter()
    for named in values:
        for name, value in named.items():
            if name in NOT_GIVEN:
                continue

            texts.setdefault(name, set()).add(repr(value)[:200])
            counts[name] += 1

    names = []
    for name, different in list(texts.items())[:MOST_NAMES]:
        differs = len(different) > 1 or counts[name] < len(values)
        names.append({"name": name, "differs": differs})

    return names


def _metric_names(connection: Connection, ids: list[str]) -> list[str]:
    rows = connection.read(lambda tx: read_rows(tx, ("metrics",), SOME, evaluated=True, ids=ids))
    names: dict[str, None] = {}
    for (metrics,) in rows:
        for metric, _ in metrics:
            names[metric.removeprefix(METRIC)] = None

    return sorted(names)[:MOST_NAMES]


def _find(request: Request) -> Response:
    """Return the newest runs of any study that hold some words."""
    words = request.query_params.get("find", "").split()[:MOST_WORDS]
    most = integer(request, "most", 8, least=1, most=100)
    if not words:
        return json_response({"runs": [], "total": 0})

    matching, total = find_runs(archive_of(request).connection, words, most=most)
    runs = []
    for run in matching:
        runs.append(
            {
                "run": run.run,
                "study": run.study,
                "number": whole_number(run.run.rpartition("#")[2]),
                "state": run.state,
                "objective": run.objective,
                "value": run.value,
                "gain": run.gain,
                "motivation": brief_text(run.motivation),
                "program": brief_text(run.program),
                "started": run.started,
            }
        )

    return json_response({"runs": runs, "total": total})


MOST_RANKED = 50_000
"""Runs of a study up to which its page has a leaderboard: to rank more takes seconds."""


def _leaderboard(request: Request) -> Response:
    """Return the best configurations of a study's task by their means; none without repeats."""
    archive = archive_of(request)
    with news_of(request).study(named_study(request)) as feed:
        study = feed.study
        runs = len(feed.rows)

    if runs > MOST_RANKED:
        return json_response({"rows": []})

    objective = Objective(study.objective, study.direction)
    try:
        ranked = leaderboard(
            archive.connection,
            study.task,
            protocol=study.protocol,
            metric=objective,
            most=RANKED,
        )
    except UsageError:
        # Nothing has a result yet.
        return json_response({"rows": []})

    if all(len(row.repeats) == 1 for row in ranked.rows):
        return json_response({"rows": []})

    rows = []
    for row in ranked.rows:
        number = whole_number(row.run.rpartition("#")[2])
        rows.append(
            {
                "rank": row.rank,
                "group": row.group,
                "mean": row.mean,
                "low": row.low,
                "high": row.high,
                "results": len(row.repeats),
                "beats": row.beats,
                "study": row.study,
                "number": number if row.study is not None else None,
                "network": row.architecture,
                "what": brief_text(row.motivation) or brief_text(settings_text(row.values)),
            }
        )

    about = select_attributes(ranked, "task", "objective", "configurations", "results")
    return json_response({**about, "rows": rows})


ROUTES = [
    Route("/api/study/runs", _runs),
    Route("/api/study/run_columns", _columns),
    Route("/api/study/leaderboard", _leaderboard),
    Route("/api/runs", _find),
]
