"""Map of networks: similar networks are close, and each search is a path over the map.

The places come from landmark multidimensional scaling (`archive.plots.data.plane`). The landmarks
are the networks with the smallest keys: keys are digests, so that this is a random sample which is
the same in every process and changes little while a study grows. Groups of networks on the map are
named by what they share (`archive.plots.data.regions`).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archive import kernels
from archive.architecture import compact
from archive.errors import UnknownNameError, UsageError
from archive.plots.data.plane import Plane, orient, place_all
from archive.plots.data.progress import BestSoFar, progress
from archive.plots.data.regions import Traits, find_clusters, traits_of
from archive.plots.data.results import Floats, Integers, RecordedResults, pick, read, study_names
from archive.queries.networks import CODES_BY_KEY, PUBLISHED_ACCURACY, SPACES

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from archive.api import Archive
    from archive.kernels.base import Distance
    from archive.store.records import Direction


ALL_SPACES = "all spaces"
"""Name of the map of the networks of all spaces, which only profiles can place."""

PROFILE = "profile"
"""Name of the distance of profiles, beside the names of kernels."""
LANDMARKS = 200
BLOCK = 64
"""Networks between two reports of the progress."""
PREPARATION = 0.1
"""Share of the work that is the preparation of the networks."""

Report = Callable[[float], None]


def _ignore(share: float) -> None:
    """Report nothing."""


@dataclass(frozen=True, eq=False)
class SearchPath:
    """Results of one study on a map.

    Attributes:
        study: Name of the study.
        number: (r,) numbers of the proposals, in the order of their results.
        at: (r,) positions of their networks on the map.
        value: (r,) float64, in the task's own unit; NaN where it is not comparable.
        incumbents: (s,) positions on the map of the best network so far, one for each improvement:
            the path.
        left_out: Number of values that cannot be drawn (`archive.plots.data.results`), and count
            as not comparable.
    """

    study: str
    number: Integers
    at: Integers
    value: Floats
    incumbents: Integers
    left_out: int


@dataclass(frozen=True, eq=False)
class NetworkMap:
    """Places of n networks of one space.

    Attributes:
        space: Name of the space.
        distance: Name of the kernel, or `profile`.
        architecture: n keys, ascending.
        places: (n, 2) float64, in units of the distance. Larger networks tend to the right and to
            the top.
        kept: Share of the variance of the landmarks that the two axes have, in [0, 1].
        objective: Name of the metric of the paths; empty without a study.
        direction: Whether larger or smaller values are better.
        paths: One a study.
        traits: What the networks have, by the order of the keys.
        clusters: (n,) number of the group of each network on the plane; -1 for none.
    """

    space: str
    distance: str
    architecture: tuple[str, ...]
    places: Floats
    kept: float
    objective: str
    direction: Direction
    paths: tuple[SearchPath, ...]
    traits: Traits
    clusters: Integers


def network_map(
    archive: Archive,
    studies: str | Sequence[str] = (),
    *,
    space: str | None = None,
    distance: str = PROFILE,
    whole: bool = True,
    landmarks: int = LANDMARKS,
    report: Report = _ignore,
    **settings: Any,
) -> NetworkMap:
    """Return a map of the networks of an archive, with the paths of studies.

    Args:
        archive: The archive.
        studies: Studies to draw as paths.
        space: Name of the space, or `ALL_SPACES`; None for the studies' space, or the only one of
            the archive.
        distance: `profile`, or the name of a kernel, which costs a distance for each network and
            landmark.
        whole: Whether the map has all networks of the space in the archive, or only the studies'.
        landmarks: Most landmarks.
        report: Called with the share that is done, in [0, 1], many times a second; it may raise to
            end the work.
        **settings: Settings of the kernel.

    Raises:
        UnknownNameError: There is no such study, space or kernel.
        UsageError: The studies are of different spaces or not comparable, or there is no network.
        InvalidArchitectureError: The kernel is not defined on a network.
    """
    if distance != PROFILE and distance not in kernels.names():
        raise UnknownNameError("distance", distance, [PROFILE, *kernels.names()])

    results = (
        read(archive, studies, ["architecture", *([] if whole else ["code"])]) if studies else []
    )
    name = _space(archive, results, space)
    if whole:
        codes = _stored_codes(archive, name, distance)
    else:
        codes = {}
        for result in results:
            columns = result.columns
            for key, code in zip(columns["architecture"], columns["code"], strict=True):
                if code is not None:
                    codes[key] = code

    if not codes:
        none = f"the archive has no network of the space {name!r} yet"
        if not whole:
            none = f"no result of {', '.join(study_names(results))} is on record yet"

        raise UsageError(none)

    return of_codes(
        name, codes, results, distance=distance, landmarks=landmarks, report=report, **settings
    )


def _stored_codes(archive: Archive, space: str, distance: str) -> dict[str, str]:
    """Return the texts of all networks of a space, by key."""
    spaces = [space]
    if space == ALL_SPACES:
        if distance != PROFILE:
            raise UsageError(f"networks of different spaces have a distance by {PROFILE} only")

        spaces = archive.connection.read(lambda tx: [row["space"] for row in tx.run(SPACES)])

    def read_all(tx: Any) -> list[Any]:
        return [row["rows"] for name in spaces for row in tx.run(CODES_BY_KEY, space=name)]

    codes: dict[str, str] = {}
    for rows in archive.connection.read(read_all):
        codes.update(rows)

    return codes


class Published(NamedTuple):
    """The best published result of a network.

    Attributes:
        accuracy: Top-1 accuracy in per cent.
        model: Name of the model at its source.
        family: Its family there; empty where none is named.
    """

    accuracy: float
    model: str
    family: str


def published_results(archive: Archive, space: str) -> tuple[str, dict[str, Published]]:
    """Return the task with the most published results, and each network's best one on it.

    Args:
        archive: The archive.
        space: Name of the networks' space, or `ALL_SPACES`.

    Returns:
        Name of the task, and the best result by key; empty where none is published.
    """
    only = None if space == ALL_SPACES else space
    rows = archive.connection.read(lambda tx: tx.run(PUBLISHED_ACCURACY, space=only).data())
    if not rows:
        return "", {}

    most = max(rows, key=lambda row: (len(row["results"]), row["task"]))
    best: dict[str, Published] = {}
    for key, accuracy, model, family in most["results"]:
        if math.isfinite(accuracy):
            result = Published(accuracy, model or "", family or "")
            best[key] = max(result, best.get(key, result))

    return most["task"], best


def with_paths(archive: Archive, places: NetworkMap, studies: Sequence[str]) -> NetworkMap:
    """Return a map with the paths of these studies, which replace its own.

    Raises:
        UnknownNameError: There is no such study.
        UsageError: The studies are of another space, or not comparable.
    """
    results = read(archive, studies, ["architecture"]) if studies else []
    if results and places.space != ALL_SPACES:
        _space(archive, results, places.space)

    return _with_paths(places, results)


def of_codes(
    space: str,
    codes: Mapping[str, str],
    results: Sequence[RecordedResults] = (),
    *,
    distance: str = PROFILE,
    landmarks: int = LANDMARKS,
    report: Report = _ignore,
    **settings: Any,
) -> NetworkMap:
    """Return the map of networks by their stored texts; for arguments, see `network_map`.

    Args:
        space: Name of the space.
        codes: Key to text of each network (`archive.architecture.compact`).
        results: Results of studies with the column `architecture`.
        distance: `profile`, or the name of a kernel.
        landmarks: Most landmarks.
        report: Called with the share that is done.
        **settings: Settings of the kernel.
    """
    keys = sorted(codes)
    texts = list(map(codes.__getitem__, keys))
    profiles, features = profiles_of(texts)
    if distance == PROFILE:
        places, kept = _of_profiles(profiles, landmarks)
    else:
        places, kept = _of_kernel(
            kernels.get(distance, **settings), space, keys, texts, landmarks, report
        )

    sizes = np.array([text.count("[") for text in texts], np.float64)
    bare = NetworkMap(
        space,
        distance,
        tuple(keys),
        orient(places, sizes),
        kept,
        "",
        "maximise",
        (),
        traits_of(profiles, features),
        find_clusters(places),
    )
    return _with_paths(bare, results)


def _with_paths(places: NetworkMap, results: Sequence[RecordedResults]) -> NetworkMap:
    if not results:
        return replace(places, objective="", direction="maximise", paths=())

    row_of = {key: index for index, key in enumerate(places.architecture)}
    first = results[0].study
    paths = tuple(_path(result, row_of) for result in results)
    return replace(places, objective=first.objective, direction=first.direction, paths=paths)


def _of_profiles(profiles: csr_array, landmarks: int) -> tuple[Floats, float]:
    squares = np.asarray(profiles.multiply(profiles).sum(axis=1), np.float64).ravel()
    count = profiles.shape[0]
    marks = profiles[: min(landmarks, count)]

    def distances(rows: slice) -> Floats:
        products = (profiles[rows] @ marks.T).toarray()
        # Rounding makes a difference of equal profiles slightly negative.
        between: Floats = np.sqrt(
            np.maximum(squares[rows][:, None] + squares[: marks.shape[0]] - 2 * products, 0.0)
        )
        return between

    plane = Plane.fit(distances(slice(0, marks.shape[0])))
    return place_all(plane, count, distances), plane.kept


def _of_kernel(
    kernel: Distance[Any],
    space: str,
    keys: Sequence[str],
    texts: Sequence[str],
    landmarks: int,
    report: Report,
) -> tuple[Floats, float]:
    networks: list[Any] = []
    for index, (key, text) in enumerate(zip(keys, texts, strict=True)):
        report(PREPARATION * index / len(keys))
        networks.append(kernel.prepare(compact.decode(key, space, "", text)))

    marks = networks[:landmarks]

    def distances(rows: slice) -> Floats:
        parts = []
        for begin in range(rows.start, rows.stop, BLOCK):
            report(PREPARATION + (1 - PREPARATION) * begin / len(networks))
            block = kernel.distances(networks[begin : min(begin + BLOCK, rows.stop)], marks)
            parts.append(
                (block.unnormalised if len(block.unnormalised) else block.normalised).mean(axis=0)
            )

        return np.concatenate(parts)

    plane = Plane.fit(distances(slice(0, len(marks))))
    return place_all(plane, len(networks), distances), plane.kept


def _space(archive: Archive, results: Sequence[RecordedResults], requested: str | None) -> str:
    names = sorted({result.study.space for result in results})
    if len(names) > 1 and requested != ALL_SPACES:
        raise UsageError(
            f"a map has networks of one space, got studies of {' and '.join(names)}: plot them apart"
        )

    if requested == ALL_SPACES:
        return requested

    if names and requested not in (None, names[0]):
        raise UsageError(
            f"the study {results[0].study.name!r} is of the space {names[0]!r}, got {requested!r}"
        )

    if names:
        return names[0]

    stored = archive.connection.read(lambda tx: [str(row["space"]) for row in tx.run(SPACES)])
    if requested is not None and requested not in stored:
        raise UnknownNameError(
            "space with networks", requested, stored, "the archive has no network yet"
        )

    if requested is None and len(stored) != 1:
        named = ", ".join(stored) or "none"
        raise UsageError(
            f"a map has networks of one space, the archive has {named}: name a space or a study"
        )

    return requested or stored[0]


def _path(results: RecordedResults, row_of: Mapping[str, int]) -> SearchPath:
    best: BestSoFar = progress(results)
    # A user may have deleted a network by Cypher: its result is left out.
    of_row: dict[int, int] = {}
    for row, key in enumerate(results.columns["architecture"]):
        if key in row_of:
            of_row[row] = row_of[key]

    placed = list(of_row)
    places = np.array(list(of_row.values()), np.int64)
    steps = [of_row[row] for row in best.improvements.tolist() if row in of_row]
    incumbents = np.array(steps, np.int64)
    return SearchPath(
        best.study, results.number[placed], places, best.value[placed], incumbents, best.left_out
    )


def profiles_of(codes: Sequence[str]) -> tuple[csr_array, list[str]]:
    """Return the profiles of n networks and the names of their features.

    Args:
        codes: Stored texts of the networks.

    Returns:
        (n, p) float64, square roots of numbers, and p features by first occurrence.
    """
    from scipy.sparse import csr_array

    column: dict[str, int] = {}
    starts = [0]
    places = []
    counts = []
    for code in codes:
        for name, count in profile(code).items():
            places.append(column.setdefault(name, len(column)))
            counts.append(count)

        starts.append(len(places))

    shape = (len(codes), max(1, len(column)))
    matrix = csr_array(
        (np.sqrt(np.array(counts, np.float64)), np.array(places), np.array(starts)), shape=shape
    )
    return matrix, list(column)


def profile(code: str) -> Counter[str]:
    """Return the profile of one network: numbers of `op@b` and `op>op`."""
    layers, *numbers, edges = json.loads(code)
    plain = list(map(_parts, layers))
    if numbers:
        plain = pick(plain, numbers[0])

    counted = Counter(f"{op}@{width}" for op, width in plain)
    for edge in edges:
        counted[f"{plain[edge[0]][0]}>{plain[edge[1]][0]}"] += 1

    return counted


def _parts(layer: Any) -> tuple[str, int | str]:
    """Return the operation of a layer and its binned units; without units, an empty text."""
    if isinstance(layer, str):
        return layer, ""

    units = layer[1]
    return layer[0], round(math.log2(units)) if units else ""
