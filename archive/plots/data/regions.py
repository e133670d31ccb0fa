"""Regions of a map of networks: groups on the plane, each named by what its networks share.

Groups are dense parts of the plane (HDBSCAN, the leaves of its tree); networks between them belong
to none. A name is a family where a group has far more of it than the map, else a trait: an operation
that almost all of its networks have, lack or consist of. A group without such a trait has no name.

Campello, Moulavi, Sander: Density-based clustering based on hierarchical density estimates (PAKDD,
2013).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from archive.plots.data.results import Booleans, Floats, Integers

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SMALLEST = 8
"""Networks of the smallest group."""

SHARE = 60
"""The smallest group is at least this part of the map."""

SAMPLE = 4000
"""Networks among which groups are found; the others belong to the group of the nearest one."""

ENDS = ("ip", "op")
"""Operations that every network has."""

PLUMBING = frozenset(
    "parameter permute transpose view reshape expand cat stack split chunk unbind slice select "
    "squeeze unsqueeze flatten clone contiguous constant arange".split()
)
"""Operations that move numbers: they say little about a network."""

ARITHMETIC = frozenset(["add", "mul", "mean", "sub", "div"])
"""Operations that tell something in a pair only: `add → relu`."""

FAMILY_SHARE = 0.25
FAMILY_LIFT = 3.0
"""Least share of a family in a group that it names, and how many times its share of the map."""

SHARED = 0.8
"""Least share of a group, or of a selection, that has a common trait."""

TELLING = 0.3
"""Least difference to the share of the other networks."""


@dataclass(frozen=True, eq=False)
class Traits:
    """Traits of n networks.

    Attributes:
        names: p traits: `conv3`, `no conv3`, `mostly conv3` and `conv3 → relu`.
        present: (n, p) whether a network has a trait, sparse; traits that are absences are stored as
            the presence.
        absent: (p,) whether a trait is an absence.
    """

    names: tuple[str, ...]
    present: csr_array
    absent: Booleans


class SharedTrait(NamedTuple):
    """A trait that tells some networks from the others.

    Attributes:
        name: The trait.
        inside: Share of these networks that has it, in [0, 1].
        outside: Share of the others.
    """

    name: str
    inside: float
    outside: float


@dataclass(frozen=True)
class Region:
    """A named group of networks on a map.

    Attributes:
        name: What its networks share.
        cluster: Its number in `find_clusters`.
        count: Number of its networks.
        x: Median of their places.
        y: Likewise.
    """

    name: str
    cluster: int
    count: int
    x: float
    y: float


def find_clusters(places: Floats) -> Integers:
    """Return the number of the group of each place, from 0; -1 for a place between groups.

    Args:
        places: (n, 2) places.
    """
    count = len(places)
    sample = places[:: max(1, -(-count // SAMPLE))]
    smallest = max(SMALLEST, len(sample) // SHARE)
    if len(sample) < 2 * smallest:
        return np.full(count, -1)

    from scipy.spatial import cKDTree
    from sklearn.cluster import HDBSCAN

    clustering = HDBSCAN(min_cluster_size=smallest, cluster_selection_method="leaf", copy=True)
    labels = clustering.fit_predict(sample)
    if len(sample) == count:
        return np.asarray(labels, np.int64)

    _, nearest = cKDTree(sample).query(places)
    return np.asarray(labels[nearest], np.int64)


def traits_of(profiles: csr_array, features: Sequence[str]) -> Traits:
    """Return the traits of networks by their profiles.

    Args:
        profiles: (n, p) square roots of numbers of features.
        features: p names, `op@width` and `op>op`.
    """
    from scipy.sparse import csr_array, hstack

    operations: dict[str, int] = {}
    rows = []
    columns = []
    pairs = []
    pair_names = []
    for column, feature in enumerate(features):
        operation, separator, _ = feature.rpartition("@")
        if separator and operation not in ENDS:
            rows.append(column)
            columns.append(operations.setdefault(operation, len(operations)))
        elif not separator and not set(feature.split(">")) & set(ENDS):
            pairs.append(column)
            pair_names.append(_words(feature.replace(">", " → ")))

    shape = (profiles.shape[1], max(1, len(operations)))
    grouping = csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
    numbers = csr_array(profiles.multiply(profiles) @ grouping)
    # The square of a root is not the number: half of the layers are not most of them.
    numbers.data = np.rint(numbers.data)
    has = csr_array(numbers > 0)
    total = np.asarray(numbers.sum(axis=1), np.float64).ravel()
    share = numbers.multiply(1.0 / np.maximum(total, 1.0)[:, None])
    mostly = csr_array(share > 0.5)
    joined = csr_array(profiles[:, pairs] > 0)
    texts = [_words(operation) for operation in operations] or ["nothing"]
    names = [*texts, *(f"no {text}" for text in texts), *(f"mostly {text}" for text in texts)]
    absent = np.zeros(len(names) + len(pair_names), np.bool_)
    absent[len(texts) : 2 * len(texts)] = True
    present = csr_array(hstack([has, has, mostly, joined], format="csr"))
    return Traits((*names, *pair_names), present, absent)


def _words(name: str) -> str:
    """Return a name of an operation as words: `native_layer_norm` is a layer norm."""
    return name.removeprefix("native_").removesuffix("_with_indices").replace("_", " ").strip()


def shared_traits(traits: Traits, rows: Integers, most: int = 6) -> list[SharedTrait]:
    """Return what some networks share and the others do not, the most telling first.

    Args:
        traits: Traits of all networks of a map.
        rows: Positions of the networks.
        most: Most traits that are returned; of traits with equal shares, the first.
    """
    count = traits.present.shape[0]
    if not 0 < len(rows) < count:
        return []

    inside = np.asarray(traits.present[rows].mean(axis=0), np.float64).ravel()
    everywhere = np.asarray(traits.present.mean(axis=0), np.float64).ravel()
    outside = (everywhere * count - inside * len(rows)) / (count - len(rows))
    inside = np.where(traits.absent, 1.0 - inside, inside)
    outside = np.where(traits.absent, 1.0 - outside, outside)
    telling = inside - outside
    # Operations come before pairs that are a little more telling.
    isolated = np.array(["→" not in name for name in traits.names])
    order = np.argsort(-np.round(telling + 0.2 * isolated, 2), kind="stable")
    shared_traits: list[SharedTrait] = []
    taken: set[tuple[float, float]] = set()
    for column in order.tolist():
        if inside[column] < SHARED or telling[column] < TELLING or _is_plain(traits.names[column]):
            continue

        shares = (round(float(inside[column]), 2), round(float(outside[column]), 2))
        if shares not in taken:
            taken.add(shares)
            shared_traits.append(SharedTrait(traits.names[column], *shares))

        if len(shared_traits) == most:
            break

    return shared_traits


def _is_plain(name: str) -> bool:
    """Return whether a trait says little about a network."""
    operations = set(name.split(" → "))
    if len(operations) == 1:
        (operation,) = operations
        return operation.removeprefix("no ").removeprefix("mostly ") in PLUMBING | ARITHMETIC

    return bool(operations & PLUMBING)


def name_regions(
    places: Floats, clusters: Integers, traits: Traits, families: Sequence[str] = ()
) -> list[Region]:
    """Return the groups with a name, the largest first.

    Args:
        places: (n, 2) places of the networks.
        clusters: (n,) groups, as `find_clusters` returns them.
        traits: Traits of the networks.
        families: n names of families, empty where one is not known.
    """
    regions = []
    for cluster in range(int(clusters.max(initial=-1)) + 1):
        rows = np.flatnonzero(clusters == cluster)
        name = _family(families, rows) or _trait(traits, rows)
        if name:
            x, y = np.median(places[rows], axis=0).tolist()
            regions.append(Region(name, cluster, len(rows), x, y))

    regions.sort(key=lambda region: -region.count)
    return regions


def _family(families: Sequence[str], rows: Integers) -> str:
    """Return the families that a group has far more of than the map; empty for none."""
    if not any(families):
        return ""

    everywhere = Counter(families)
    inside = Counter(families[row] for row in rows.tolist())
    names = []
    for family, count in inside.most_common(2):
        share = count / len(rows)
        usual = everywhere[family] / len(families)
        if family and share >= FAMILY_SHARE and share >= FAMILY_LIFT * usual:
            names.append(_words(family))

    return ", ".join(names)


def _trait(traits: Traits, rows: Integers) -> str:
    shared = shared_traits(traits, rows, most=12)
    names = [trait.name for trait in shared if "→" not in trait.name]
    # What is there says more than what is not.
    names.sort(key=lambda name: name.startswith("no "))
    return ", ".join(names[:2])
