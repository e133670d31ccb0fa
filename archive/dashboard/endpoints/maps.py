"""Map of the networks of a space, with searches as paths (`archive.plots.data.network_map`).

The places of all networks of a space are computed once for each distance, and again when the
archive has further networks. A kernel may take minutes for many networks: the answer is then its
progress, with the status 202.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from archive import kernels
from archive.dashboard.endpoints.inputs import archive_of, body, choice, options_of
from archive.dashboard.wire import binary_response, json_response, table
from archive.errors import ArchiveError, UsageError
from archive.plots.data.network_map import (
    ALL_SPACES,
    PROFILE,
    NetworkMap,
    SearchPath,
    network_map,
    published_results,
    with_paths,
)
from archive.plots.data.regions import name_regions, shared_traits
from archive.queries.networks import (
    KEYS_BY_AGENT,
    KEYS_BY_SPACE,
    KEYS_BY_STUDY,
    KEYS_BY_TASK,
    SIZE_OF_SPACE,
    SIZES_OF_SPACES,
)
from archive.queries.studies import SPACES_OF_STUDIES
from archive.store.studies import studies
from archive.store.studies.creation import kind_of

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.plots.data.network_map import Report

KEPT = 4
"""Number of maps that are kept."""

KINDS = {
    "task": KEYS_BY_TASK,
    "agent": KEYS_BY_AGENT,
    "study": KEYS_BY_STUDY,
    "space": KEYS_BY_SPACE,
}
"""Queries of the kinds of networks that have a colour each."""

COLOURS = ("value", "study", "family", *(name for name in KINDS if name != "study"))

MOST_KINDS = 6
"""Kinds with a colour of their own; the others share one."""

OTHERS = "others"

MOST_SELECTED = 20_000
"""Networks whose common properties are asked for at a time."""

PATIENCE_SECONDS = 2.0
"""Time that an answer waits for the places before it is the progress."""
TOO_LONG = (
    "choose the distance profile, which takes seconds, or plot it by archive study plot "
    "--kind network-map --own"
)


@dataclass
class _Made:
    """A map that is being made, or is done.

    Attributes:
        networks: Number of networks of the space when it began.
        job: The work.
        shown: Whether a page has had the result.
    """

    networks: int
    job: Job[NetworkMap]
    shown: bool = False


_made: OrderedDict[tuple[Any, ...], _Made] = OrderedDict()
_making = Lock()


def _choices(request: Request) -> Response:
    """Return the spaces with their numbers of networks, and the studies of each."""
    spaces, studies = archive_of(request).connection.read(
        lambda tx: (tx.run(SIZES_OF_SPACES).data(), tx.run(SPACES_OF_STUDIES).data()),
    )
    if len(spaces) > 1:
        spaces.append({"space": ALL_SPACES, "networks": sum(row["networks"] for row in spaces)})

    return json_response(
        {"spaces": spaces, "studies": studies, "distances": [PROFILE, *kernels.names()]}
    )


def _map(request: Request) -> Response:
    """Return the places of the networks of a space, with the best value of each in some studies.

    `study` is the number of the first study that has evaluated a network, from 1; 0 for none. `kind`
    is the number of its colour in `kinds`, from 1, where `colour` is no value. A key is four numbers
    of 32 bits. Without a study, the values are published accuracies, if any. `region` is the number
    of the named group of a network, from 1.
    """
    archive = archive_of(request)
    names = request.query_params.getlist("study")
    distance = choice(request, "distance", (PROFILE, *kernels.names()), PROFILE)
    space = request.query_params.get("space")
    if space is None and names:
        space = studies.read(archive.connection, names[0]).space

    made = _current(archive, space, distance, options_of(request).map_seconds)
    job = made.job
    places = made.job.outcome(PATIENCE_SECONDS)
    if places is None:
        return json_response({"share": job.share, "seconds": job.seconds, "limit": job.limit}, 202)

    made.shown = True
    # Results are read at each call; the places depend on the networks only.
    drawn = with_paths(archive, places, names)
    colour = choice(request, "colour", COLOURS, "value")
    count = len(drawn.architecture)
    owner = np.zeros(count)
    values = np.full(count, np.nan)
    models = [""] * count
    better = np.fmin if drawn.direction == "minimise" else np.fmax
    for number, path in reversed(list(enumerate(drawn.paths, 1))):
        owner[path.at] = number
        better.at(values, path.at, path.value)

    objective, published = published_results(archive, drawn.space)
    families = [""] * count
    for row, architecture in enumerate(drawn.architecture):
        if architecture in published:
            models[row] = published[architecture].model
            families[row] = published[architecture].family
            if not names:
                values[row] = published[architecture].accuracy

    if names:
        objective = drawn.objective

    regions = name_regions(drawn.places, drawn.clusters, drawn.traits, families)
    region = np.zeros(count)
    for number, group in enumerate(regions, 1):
        region[drawn.clusters == group.cluster] = number

    kinds, kind = _kinds(archive, drawn, colour, families)
    keys = np.array([_words(key) for key in drawn.architecture], np.uint32).reshape(count, 4)
    head = {
        "space": drawn.space,
        "distance": drawn.distance,
        "kept": drawn.kept,
        "objective": objective,
        "direction": drawn.direction,
        "models": models if any(models) else [],
        "paths": list(map(_path_of, drawn.paths)),
        "regions": list(map(vars, regions)),
        "kinds": kinds,
        "families": any(families),
    }
    columns: dict[str, Any] = {"x": ("f4", drawn.places[:, 0]), "y": ("f4", drawn.places[:, 1])}
    columns |= {"study": ("u1", owner), "value": ("f8", values)}
    columns |= {"region": ("u1", region), "kind": ("u1", kind)}
    return binary_response(
        table(head, {**columns, **{f"key{index}": ("u4", keys[:, index]) for index in range(4)}})
    )


def _path_of(path: SearchPath) -> dict[str, Any]:
    """Return a search as its results in order."""
    values = [value if np.isfinite(value) else None for value in path.value.tolist()]
    return {
        "study": path.study,
        "at": path.at.tolist(),
        "values": values,
        "numbers": path.number.tolist(),
    }


def _kinds(
    archive: Archive, drawn: NetworkMap, colour: str, families: list[str]
) -> tuple[list[dict[str, Any]], Any]:
    """Return the kinds with a colour, and the number of each network's kind, from 1; 0 for none.

    A network of several kinds has the largest one.
    """
    kind = np.zeros(len(drawn.architecture), np.uint8)
    members: dict[str, list[int]] = {}
    if colour == "family":
        for row, family in enumerate(families):
            if family:
                members.setdefault(family, []).append(row)

    elif colour in KINDS:
        row_of = {key: row for row, key in enumerate(drawn.architecture)}
        space = None if drawn.space == ALL_SPACES else drawn.space
        groups = archive.connection.read(lambda tx: tx.run(KINDS[colour], space=space).data())
        for group in groups:
            name = kind_of(group["name"]) if colour == "agent" else group["name"]
            present = [row_of[key] for key in group["keys"] if key in row_of]
            members.setdefault(name, []).extend(present)

    ranked = sorted(members.items(), key=lambda item: (-len(item[1]), item[0]))
    for number, (_, rows_of_kind) in reversed(list(enumerate(ranked, 1))):
        kind[rows_of_kind] = min(number, MOST_KINDS + 1)

    names = [name for name, _ in ranked[:MOST_KINDS]]
    if len(ranked) > MOST_KINDS:
        names.append(OTHERS)

    counts = np.bincount(kind, minlength=len(names) + 1)
    kinds = []
    for number, name in enumerate(names, 1):
        kinds.append({"name": name, "count": int(counts[number])})

    return kinds, kind


async def _selection(request: Request) -> Response:
    """Return what chosen networks of a map share, and the other networks do not."""
    document = await body(request)
    keys = document.get("keys")
    if not isinstance(keys, list) or len(keys) > MOST_SELECTED:
        raise UsageError(f"the request needs `keys`, a list of at most {MOST_SELECTED} keys")

    distance = choice(request, "distance", (PROFILE, *kernels.names()), PROFILE)
    space = request.query_params.get("space")
    key = (archive_of(request).connection.address, space, distance)
    with _making:
        made = _made.get(key)

    drawn = None if made is None else made.job.outcome(0)
    if drawn is None:
        raise UsageError("the map of these networks is not drawn any more: load it again")

    row_of = {architecture: row for row, architecture in enumerate(drawn.architecture)}
    rows = np.array([row_of[name] for name in keys if name in row_of], np.int64)
    shared = [trait._asdict() for trait in shared_traits(drawn.traits, rows)]
    return json_response({"shared": shared})


def _current(archive: Archive, space: str | None, distance: str, limit: float) -> _Made:
    """Return the map of a space, which is done or has begun.

    A map that was shown is made again once the space has other networks. One that is being made is
    finished first: the space may grow faster than a map is made.
    """
    count = _size(archive, space)
    key = (archive.connection.address, space, distance)
    with _making:
        made = _made.get(key)
        if made is None or made.job.failed or (made.shown and made.networks != count):
            _made[key] = _Made(
                count, Job(partial(_place_networks, archive, space, distance), limit, TOO_LONG)
            )
            while len(_made) > KEPT:
                _made.popitem(last=False)

        _made.move_to_end(key)
        return _made[key]


def _size(archive: Archive, space: str | None) -> int:
    """Return the number of networks of a space."""
    if space == ALL_SPACES:
        sizes = archive.connection.read(lambda tx: tx.run(SIZES_OF_SPACES).data())
        return sum(row["networks"] for row in sizes)

    count = archive.connection.read(
        lambda tx: tx.run(SIZE_OF_SPACE, space=space).single(strict=True)["networks"]
    )
    return int(count)


def _place_networks(
    archive: Archive, space: str | None, distance: str, report: Report
) -> NetworkMap:
    return network_map(archive, space=space, distance=distance, report=report)


def _words(key: str) -> list[int]:
    """Return the four words of a key, a digest of 128 bits."""
    return [int(key[index : index + 8], 16) for index in range(0, 32, 8)]


ROUTES = [
    Route("/api/map/choices", _choices),
    Route("/api/map/selection", _selection, methods=["POST"]),
    Route("/api/map", _map),
]


log = logging.getLogger("archive.dashboard")

T = TypeVar("T")

LEFT_SECONDS = 15.0
"""Time without a request after which the work ends, since no page waits for its result."""


class Job(Generic[T]):
    """A running or finished piece of work. Threads may share it.

    Args:
        work: Does the work. It calls its argument with the share that is done; that call may raise,
            to end the work.
        limit: Seconds after which the work is ended.
        too_long: Remedy, as part of the error of a job that takes longer.
    """

    def __init__(
        self, work: Callable[[Callable[[float], None]], T], limit: float, too_long: str
    ) -> None:
        """Start a thread."""
        self.limit = limit
        self.share = 0.0
        self._work = work
        self._too_long = too_long
        self._begin = self._asked = time.monotonic()
        self._done = threading.Event()
        self._result: list[T] = []
        self._error: ArchiveError | None = None
        threading.Thread(target=self._run, daemon=True, name="dashboard job").start()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._begin

    @property
    def failed(self) -> bool:
        """Whether it ended without a result; a new job may do better."""
        return self._done.is_set() and self._error is not None

    def outcome(self, patience: float) -> T | None:
        """Return the result; None if the job still runs after a wait of `patience` seconds.

        Raises:
            ArchiveError: The work failed, or took too long.
        """
        self._asked = time.monotonic()
        if not self._done.wait(patience):
            return None

        if self._error is not None:
            raise self._error

        return self._result[0]

    def _run(self) -> None:
        try:
            self._result.append(self._work(self._report))
        except ArchiveError as error:
            self._error = error
        except Exception:
            log.exception("a job of the page failed")
            self._error = ArchiveError("the dashboard failed to answer; its log says why")

        self._done.set()

    def _report(self, share: float) -> None:
        self.share = share
        if self.seconds > self.limit:
            raise UsageError(
                f"this takes longer than {self.limit:g} seconds, {share:.0%} is "
                f"done: {self._too_long}"
            )

        if time.monotonic() - self._asked > LEFT_SECONDS:
            raise UsageError("the work was ended, since no page waited for it: try again")
