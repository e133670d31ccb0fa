"""Features of an archive's networks, computed once and kept in a file (`archive.cache`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from archive import cache
from archive.agents.prediction.features import Features, features
from archive.queries.networks import CREATION

if TYPE_CHECKING:
    from archive.api import Archive

KIND = "prediction-features"
BLOCK = 500
"""Networks that are read at a time."""

WORTH = 50
"""New networks from which the file is written again."""


def features_of(
    archive: Archive,
    space: str,
    keys: Sequence[str],
    notify: Callable[[str], None] | None = None,
) -> dict[str, Features]:
    """Return the features of networks of one space, by key; unknown keys are left out.

    Args:
        archive: The archive of the networks.
        space: Their space.
        keys: Their keys.
        notify: Called with a message before a slow step.
    """
    connection = archive.connection
    created = connection.read(lambda tx: tx.run(CREATION).single(strict=True)["created"])
    subject = f"{space} {connection.settings.uri} {connection.database} {created}"
    home = connection.settings.home
    stored = _unpack(cache.read(KIND, subject, home))
    new = sorted(set(keys) - stored.keys())
    if len(new) > BLOCK and notify is not None:
        notify(f"reading the features of {len(new)} networks, once")

    for begin in range(0, len(new), BLOCK):
        networks = archive.architectures.get_many(new[begin : begin + BLOCK])
        for key, network in networks.items():
            stored[key] = features(network)

    if len(new) >= WORTH:
        cache.write(KIND, subject, _pack(stored), home)

    return {key: stored[key] for key in keys if key in stored}


def _pack(stored: dict[str, Features]) -> cache.Arrays:
    names = sorted(set().union(*stored.values()))
    rows = [[described.get(name, 0.0) for name in names] for described in stored.values()]
    return {"keys": np.array(list(stored)), "names": np.array(names), "rows": np.array(rows)}


def _unpack(arrays: cache.Arrays | None) -> dict[str, Features]:
    if arrays is None:
        return {}

    names = arrays["names"].tolist()
    stored = {}
    for key, row in zip(arrays["keys"].tolist(), arrays["rows"].tolist(), strict=True):
        stored[key] = dict(zip(names, row, strict=True))

    return stored
