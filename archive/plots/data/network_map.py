"""Map of networks: similar networks are close, and each search is a path over the map.

The places come from landmark multidimensional scaling. The landmarks are the networks with the
smallest keys: keys are digests, so that this is a random sample which is the same in every process
and changes little while a study grows.

de Silva, Tenenbaum: Sparse multidimensional scaling using landmark points (Stanford, 2004), section
2.

| symbol | meaning                                                                     | shape    |
|--------|-----------------------------------------------------------------------------|----------|
| m, n   | number of landmarks, number of objects                                      |          |
| D      | squared distances of the landmarks                                          | (m, m)   |
| mu     | mean of the columns of D                                                    | (m,)     |
| B      | -H D H / 2, with H the centring matrix; eigenvalues l_i, eigenvectors v_i   | (m, m)   |
| L#     | rows v_i / sqrt(l_i) of the k largest positive eigenvalues                  | (k, m)   |
| d_x    | squared distances of an object to the landmarks                             | (m,)     |
| x      | -L# (d_x - mu) / 2, the place of the object                                 | (k,)     |

Distances that belong to points of a k-dimensional Euclidean space are kept exactly. The cost is m
distances an object, and O(m^3) once.
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
from archive.errors import NumericalError, UnknownNameError, UsageError
from archive.plots.data.progress import BestSoFar, progress
from archive.plots.data.results import Floats, Integers, RecordedResults, pick, read, study_names
from archive.queries.networks import CODES_BY_KEY, PUBLISHED_ACCURACY, SPACES

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from archive.api import Archive
    from archive.kernels.base import Distance
    from archive.store.records import Direction


PROFILE = "profile"
"""Name of the distance of profiles, beside the names of kernels."""
LANDMARKS = 200
ROWS = 4096
"""Objects that are placed at a time, so that their distances stay small in memory."""
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
    """

    space: str
    distance: str
    architecture: tuple[str, ...]
    places: Floats
    kept: float
    objective: str
    direction: Direction
    paths: tuple[SearchPath, ...]


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
        space: Name of the space; None for the studies' space, or the only one of the archive.
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
        parts = archive.connection.read(
            lambda tx: [row["rows"] for row in tx.run(CODES_BY_KEY, space=name)]
        )
        codes = {}
        for rows in parts:
            for key, code in rows:
                codes[key] = code
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


class Published(NamedTuple):
    """The best published result of a network.

    Attributes:
        accuracy: Top-1 accuracy in per cent.
        model: Name of the model at its source.
    """

    accuracy: float
    model: str


def published_results(archive: Archive, space: str) -> tuple[str, dict[str, Published]]:
    """Return the task with the most published results, and each network's best one on it.

    Args:
        archive: The archive.
        space: Name of the networks' space.

    Returns:
        Name of the task, and the best result by key; empty where none is published.
    """
    rows = archive.connection.read(lambda tx: tx.run(PUBLISHED_ACCURACY, space=space).data())
    if not rows:
        return "", {}

    most = max(rows, key=lambda row: (len(row["results"]), row["task"]))
    best: dict[str, Published] = {}
    for key, accuracy, model in most["results"]:
        if math.isfinite(accuracy):
            result = Published(accuracy, model or "")
            best[key] = max(result, best.get(key, result))

    return most["task"], best


def with_paths(archive: Archive, places: NetworkMap, studies: Sequence[str]) -> NetworkMap:
    """Return a map with the paths of these studies, which replace its own.

    Raises:
        UnknownNameError: There is no such study.
        UsageError: The studies are of another space, or not comparable.
    """
    results = read(archive, studies, ["architecture"]) if studies else []
    if results:
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
    if distance == PROFILE:
        places, kept = _of_profiles(texts, landmarks)
    else:
        places, kept = _of_kernel(
            kernels.get(distance, **settings), space, keys, texts, landmarks, report
        )

    sizes = np.array([text.count("[") for text in texts], np.float64)
    bare = NetworkMap(space, distance, tuple(keys), orient(places, sizes), kept, "", "maximise", ())
    return _with_paths(bare, results)


def _with_paths(places: NetworkMap, results: Sequence[RecordedResults]) -> NetworkMap:
    if not results:
        return replace(places, objective="", direction="maximise", paths=())

    row_of = {key: index for index, key in enumerate(places.architecture)}
    first = results[0].study
    paths = tuple(_path(result, row_of) for result in results)
    return replace(places, objective=first.objective, direction=first.direction, paths=paths)


def _of_profiles(texts: Sequence[str], landmarks: int) -> tuple[Floats, float]:
    profiles = profile_matrix(texts)
    squares = np.asarray(profiles.multiply(profiles).sum(axis=1), np.float64).ravel()
    marks = profiles[: min(landmarks, len(texts))]

    def distances(rows: slice) -> Floats:
        products = (profiles[rows] @ marks.T).toarray()
        # Rounding makes a difference of equal profiles slightly negative.
        between: Floats = np.sqrt(
            np.maximum(squares[rows][:, None] + squares[: marks.shape[0]] - 2 * products, 0.0)
        )
        return between

    plane = Plane.fit(distances(slice(0, marks.shape[0])))
    return place_all(plane, len(texts), distances), plane.kept


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
    if len(names) > 1:
        raise UsageError(
            f"a map has networks of one space, got studies of {' and '.join(names)}: plot them apart"
        )

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


def profile_matrix(codes: Sequence[str]) -> csr_array:
    """Return the profiles of n networks, (n, p) float64; features by first occurrence."""
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
    return csr_array(
        (np.sqrt(np.array(counts, np.float64)), np.array(places), np.array(starts)), shape=shape
    )


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


@dataclass(frozen=True, eq=False)
class Plane:
    """An embedding that was fitted to landmarks.

    Attributes:
        basis: (k, m) float64, L#.
        means: (m,) float64, mu.
        kept: Share of the positive part of the spectrum of B that the k axes keep, in [0, 1].
    """

    basis: Floats
    means: Floats
    kept: float

    @classmethod
    def fit(cls, distances: Floats, axes: int = 2) -> Plane:
        """Fit the (m, m) distances of the landmarks; places on an axis without extent are 0.

        Raises:
            NumericalError: A distance is not finite.
        """
        if not np.isfinite(distances).all():
            raise NumericalError(f"distances of {len(distances)} landmarks are not all finite")

        squares = distances**2
        means: Floats = squares.mean(axis=0)
        centred = -0.5 * (squares - means - means[:, None] + means.mean())
        values, vectors = np.linalg.eigh(centred)
        positive = values[values > 0].sum()
        largest = values[::-1][:axes]
        # Rounding leaves tiny eigenvalues; their axes would be noise.
        usable = largest > 1e-9 * max(values[-1], 0.0)
        basis = np.zeros((axes, len(distances)))
        basis[: len(largest)][usable] = (
            vectors[:, ::-1][:, :axes][:, usable] / np.sqrt(largest[usable])
        ).T
        return cls(basis, means, float(largest[usable].sum() / positive) if positive > 0 else 1.0)

    def place(self, distances: Floats) -> Floats:
        """Return the (q, k) places of objects from their (q, m) distances to the landmarks."""
        places: Floats = -0.5 * (distances**2 - self.means) @ self.basis.T
        return places


def place_all(plane: Plane, count: int, distances: Callable[[slice], Floats]) -> Floats:
    """Return the (n, k) places of objects from their distances to the landmarks, by parts."""
    places = np.zeros((count, len(plane.basis)))
    for begin in range(0, count, ROWS):
        part = slice(begin, min(begin + ROWS, count))
        places[part] = plane.place(distances(part))

    return places


def orient(places: Floats, size: Floats) -> Floats:
    """Return places with axes turned so that larger objects lie toward the positive end.

    The sign of an eigenvector is arbitrary. Where size and place are unrelated, the first place
    other than 0 becomes positive.
    """
    turned = places.copy()
    for axis in turned.T:
        if not len(axis):
            continue

        centred = axis - axis.mean()
        sizes = size - size.mean()
        tendency = float(np.dot(centred, sizes))
        scale = float(np.linalg.norm(centred) * np.linalg.norm(sizes))
        if abs(tendency) <= 1e-9 * scale or not scale:
            tendency = float(next(filter(None, axis), 1.0))

        if tendency < 0 or tendency != tendency:
            axis *= -1.0

    return turned
