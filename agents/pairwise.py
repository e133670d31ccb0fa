"""Pairwise distances of what a study has evaluated: computed once, by whoever needs them first, kept for all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from archive import kernels
from archive.graph import Architecture

if TYPE_CHECKING:
    from archive.archive import Archive

SPACES = ("cnn", "mlp")
"""Spaces whose networks have layer masses and label penalties, hence OTMANN distances."""

ALL_PAIRS = 2000
"""Largest number of architectures whose pairs are all stored: two million relationships."""


def keep_distances(archive: Archive, architectures: Mapping[str, Architecture]) -> int:
    """Compute and store the OTMANN distances that the archive lacks between these architectures.

    Safe to interrupt and to run in several processes at a time: what is stored is whole pairs, and a pair that two
    processes compute has one value.

    Args:
        archive: Where they are kept.
        architectures: Key to architecture, all of one space.

    Returns:
        How many pairs were stored.
    """
    if not 2 <= len(architectures) <= ALL_PAIRS or next(iter(architectures.values())).space not in SPACES:
        return 0
    missing = archive.distances.missing(architectures, "otmann")
    if not missing:
        return 0
    otmann = kernels.OTMANN()
    keys = sorted({key for pair in missing for key in pair})
    place = {key: at for at, key in enumerate(keys)}
    networks = [otmann.prepare(architectures[key]) for key in keys]
    stack = otmann.pairs(networks, np.array([[place[a], place[b]] for a, b in missing], np.int64))
    k = otmann.unnormalised
    archive.distances.store(missing, {"otmann": stack[:k].T, "otmann_normalised": stack[k:].T})
    return len(missing)
