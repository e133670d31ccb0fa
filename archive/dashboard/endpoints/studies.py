"""Studies: list, points, proposals as a table, curves, lineage of the best network, queue."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from archive.dashboard.endpoints.inputs import archive_of, choice, integer, named_study, news_of
from archive.dashboard.endpoints.paging import sorted_part
from archive.dashboard.feeds.study import (
    ABOUT,
    COSTS,
    FEASIBLE_AT,
    FIELDS,
    NUMBER,
    OF_OBJECTIVES,
    RUNS,
    STATE,
    VALUE,
    StudyFeed,
    kind_of,
)
from archive.dashboard.wire import binary_response, json_response, table
from archive.errors import UsageError
from archive.objectives import sign
from archive.plots.data.curves import evenly
from archive.plots.data.results import pick
from archive.queries.proposals import DETAILS_OF_PROPOSAL, FAILED, VALUES_OF_NETWORKS, WAITING
from archive.queue import backlog, event_log, workers
from archive.store.properties import CURVE, EPOCH, from_json, proposal_id, with_prefix
from archive.store.snapshots import read_view
from archive.store.studies.configurations import configurations_of
from archive.store.studies.rows import SOME, Row, read_rows

STATES = ("WAITING", "RUNNING", "COMPLETE", "PRUNED", "FAILED")
"""States in the order of their numbers in the column `state`."""
NUMBERS = {
    **dict.fromkeys(("value", "finished"), "f8"),
    **dict.fromkeys(
        ("mean", "std", "epochs", "seconds", *COSTS),
        "f4",
    ),
    "feasible": "f4",
}
"""Columns of numbers with their types."""
PAGE = 50
LARGEST_PAGE = 1000
CURVES = 20
MOST_CURVES = 500
GENERATIONS = 40
KEY_AT = FIELDS.index("architecture")
FINISHED_AT = FIELDS.index("finished")


def _studies(request: Request) -> Response:
    feed = news_of(request).fresh("studies")
    present = [study for study in feed.since(0).values() if study is not None]
    return json_response({"studies": present})


def _points(request: Request) -> Response:
    news = news_of(request)
    with news.study(named_study(request)) as feed:
        content = feed.remembered("points", lambda: _table_of(feed, news.version))

    return binary_response(content)


def _table_of(feed: StudyFeed, version: str) -> bytes:
    rows = list(feed.rows.values())

    def column(name: str) -> list[Any]:
        return list(map(itemgetter(FIELDS.index(name)), rows))

    of_agents = column("agent")
    agents = sorted({name for name in of_agents if name is not None})
    numbers = {name: index for index, name in enumerate(agents)} | {None: 0}
    states = {name: index for index, name in enumerate(STATES)}
    kinds = {**NUMBERS, **dict.fromkeys(OF_OBJECTIVES[: len(feed.study.further)], "f8")}
    return table(
        {
            "version": version,
            ABOUT: feed.entry(ABOUT),
            RUNS: feed.entry(RUNS),
            "states": STATES,
            "agents": agents,
        },
        {
            "number": ("u4", column("number")),
            "state": ("u1", [states[name] for name in column("state")]),
            "agent": ("u4", [numbers[name] for name in of_agents]),
            "reused": ("u1", [source is not None for source in column("answered_from")]),
            "cancelled": ("u1", [kind_of(row) == "cancelled" for row in rows]),
            **{
                name: (kind, np.array(column(name), dtype=np.float64))
                for name, kind in kinds.items()
            },
        },
    )


def _proposals(request: Request) -> Response:
    """Return a page of the table of proposals, sorted and chosen by the server."""
    order = choice(request, "order", ("asc", "desc"), "asc")
    by = choice(request, "sort", FIELDS, "number")
    offset = integer(request, "offset", 0)
    limit = integer(request, "limit", PAGE, least=1, most=LARGEST_PAGE)
    state = choice(request, "state", ("", *STATES), "")
    find = request.query_params.get("find", "").strip().lower()
    with news_of(request).study(named_study(request)) as feed:
        rows, total = feed.remembered(
            ("proposals", by, order, offset, limit, state, find),
            lambda: _part(
                _found(feed.rows.values(), state, find), by, order == "desc", offset, offset + limit
            ),
        )

        study = feed.study

    numbers = [int(row[NUMBER]) for row in rows]
    configurations = configurations_of(archive_of(request).connection, study, numbers)
    proposals = []
    for row in rows:
        proposal = dict(zip(FIELDS, row, strict=True))
        proposal["configuration"] = configurations.get(proposal["number"], {})
        proposals.append(proposal)

    return json_response({"proposals": proposals, "total": total})


_SEARCHED = list(map(FIELDS.index, ("number", "architecture", "agent", "worker", "reason")))


def _found(rows: Iterable[Row], state: str, find: str) -> list[Row]:
    matches = [row for row in rows if state in ("", row[STATE])]
    if not find:
        return matches

    matching = []
    for row in matches:
        for column in _SEARCHED:
            if row[column] is not None and find in str(row[column]).lower():
                matching.append(row)
                break

    return matching


def _part(
    rows: Sequence[Row], by: str, descending: bool, begin: int, end: int
) -> tuple[list[Row], int]:
    """Return rows `begin` to `end` of those sorted by a field, and the number of all.

    Rows without a value come last in either order.
    """
    column = FIELDS.index(by)
    return sorted_part(rows, itemgetter(column), descending, begin, end), len(rows)


def _curves(request: Request) -> Response:
    """Return the curves of some proposals, or of the best ones and of others in even steps.

    `best` has the numbers of the best ones, the best first.
    """
    count = integer(request, "top", CURVES, least=1, most=MOST_CURVES)
    others = integer(request, "others", 0, most=MOST_CURVES)
    asked = request.query_params.get("numbers", "")
    with news_of(request).study(named_study(request)) as feed:
        study = feed.study
        ranked = _numbers(asked) if asked else _best(feed, count + len(feed.rows) * bool(others))
        best = ranked[:count]
        rest = [] if asked else ranked[count:]
        numbers = [*best, *pick(rest, evenly(len(rest), others))]

    ids = [proposal_id(study.name, number) for number in numbers[:MOST_CURVES]]
    rows: list[Row] = []
    if ids:
        rows = archive_of(request).connection.read(
            lambda tx: read_rows(tx, ("number", "result_curve"), SOME, evaluated=True, ids=ids)
        )

    curves = []
    for number, lists in sorted(rows, key=itemgetter(0)):
        curve = with_prefix(CURVE, dict(lists))
        epochs = curve.pop(EPOCH, [])
        if epochs:
            curves.append({"number": number, "epochs": epochs, "curve": curve})

    return json_response({"objective": study.objective, "best": best, "curves": curves})


def _numbers(text: str) -> list[int]:
    try:
        return list(map(int, text.split(",")))
    except ValueError:
        raise UsageError(f"numbers must be integers, separated by commas, got {text!r}") from None


def _best(feed: StudyFeed, count: int) -> list[int]:
    better = sign(feed.study.direction)
    partial = []
    whole = []
    for row in feed.rows.values():
        if row[VALUE] is None or not math.isfinite(row[VALUE]) or not row[FEASIBLE_AT]:
            continue

        ranked = (-better * row[VALUE], row[NUMBER])
        partial.append(ranked)
        if row[STATE] == "COMPLETE":
            whole.append(ranked)

    return [number for _, number in heapq.nsmallest(count, whole or partial)]


def _proposal(request: Request) -> Response:
    """Return everything about one proposal, with its events."""
    archive = archive_of(request)
    id_ = proposal_id(named_study(request), integer(request, "number", -1))
    view = read_view(archive.connection, id_, archive.studies.find(named_study(request)))
    details = archive.connection.read(
        lambda tx: tx.run(DETAILS_OF_PROPOSAL, id=id_).single(strict=True).data()
    )
    entries = event_log.read(archive.connection, named_study(request), id_)
    details["hyperparameters"] = from_json(details["hyperparameters"]) or {}
    events: list[dict[str, Any]] = []
    for entry in entries:
        events.append(
            {
                "at": entry.at,
                "event": entry.event,
                "who": entry.who,
                "log": entry.log,
                "reason": entry.details.get("reason"),
                "cause": entry.details.get("cause"),
            }
        )

    return json_response({**vars(view), "state": view.state.value, **details, "events": events})


def _lineage(request: Request) -> Response:
    """Return the steps to a study's best network, or to another one, with values on the way.

    Where the best network of a study has no ancestors on record, `bests` has the networks that were
    the best one after another.
    """
    archive = archive_of(request)
    name = named_study(request)
    key = request.query_params.get("network")
    of_study = key is None
    if key is None:
        with news_of(request).study(name) as feed:
            best = feed.entry(ABOUT)["best"]

        if best is None:
            return json_response(
                {"key": None, "steps": [], "bests": [], "networks": [], "builds": {}}
            )

        key = str(best["architecture"])

    steps = archive.lineage.of(key, GENERATIONS)
    keys = {key}
    for step in steps:
        keys |= {step.parent, step.child}

    bests: list[str] = []
    if of_study and not steps:
        with news_of(request).study(name) as feed:
            bests = _successive_bests(feed)

        keys |= set(bests)

    rows = archive.connection.read(
        lambda tx: tx.run(VALUES_OF_NETWORKS, keys=sorted(keys), study=name).data()
    )
    builds = {name: build.network for name, build in archive.builds.of(keys).items()}
    return json_response(
        {
            "key": key,
            "steps": list(map(vars, steps)),
            "bests": bests,
            "networks": rows,
            "builds": builds,
        }
    )


def _successive_bests(feed: StudyFeed) -> list[str]:
    """Return the networks that were the best whole result so far, the latest ones last."""
    better = sign(feed.study.direction)
    results = []
    for row in feed.rows.values():
        if row[STATE] == "COMPLETE" and row[FEASIBLE_AT] and row[VALUE] is not None:
            results.append((row[FINISHED_AT] or 0, row[NUMBER], better * row[VALUE], row[KEY_AT]))

    bests: list[str] = []
    highest = -math.inf
    for _, _, score, key in sorted(results):
        if score > highest:
            highest = score
            if key not in bests:
                bests.append(key)

    return bests[-GENERATIONS:]


QUEUE_SHOWN = 200


def _queue(request: Request) -> Response:
    connection = archive_of(request).connection
    waiting, failed = connection.read(
        lambda tx: (
            tx.run(WAITING, shown=QUEUE_SHOWN).data(),
            tx.run(FAILED, shown=QUEUE_SHOWN).data(),
        )
    )
    blocked = backlog.unreachable(connection, workers.statuses(connection))
    unreachable = []
    for study in blocked:
        unreachable.append(
            {
                "study": study.study,
                "proposals": study.proposals,
                "first": study.first,
                "why": str(study),
            }
        )

    return json_response(
        {"waiting": waiting, "failed": failed, "unreachable": unreachable, "shown": QUEUE_SHOWN}
    )


ROUTES = [
    Route("/api/studies", _studies),
    Route("/api/study/points", _points),
    Route("/api/study/proposal", _proposal),
    Route("/api/study/proposals", _proposals),
    Route("/api/study/curves", _curves),
    Route("/api/study/lineage", _lineage),
    Route("/api/queue", _queue),
]
