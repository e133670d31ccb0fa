"""Garbage collection of weights: first their records in the store are deleted, then their files.

`archive.store.weights.retention` decides which weights are kept, and why. Only files below the
given root are deleted, so weights on the disk of another machine stay for a collection there. A
collection that is killed leaves orphans, files without a record; those are deleted on request
(`orphans`), once they are too old to belong to an undelivered result.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from archive.store.weights.retention import Policy
from archive.trainer.storage import weights_store

if TYPE_CHECKING:
    from archive.api import Archive

BATCH = 50


@dataclass
class CollectedWeights:
    """The outcome of a collection, or, of a dry run, of the collection that would follow.

    Attributes:
        removed: Addresses of the removed weights, with their bytes.
        orphans: Addresses of the removed files without a record, with their bytes.
        kept: Number of weights kept for each reason; `elsewhere` are those whose file is not below
            the root.
    """

    removed: dict[str, int] = field(default_factory=dict)
    orphans: dict[str, int] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)

    @property
    def freed(self) -> int:
        """Bytes of all removed files."""
        return sum(self.removed.values()) + sum(self.orphans.values())


def collect(
    archive: Archive,
    root: Path | str,
    policy: Policy | None = None,
    *,
    dry_run: bool = False,
    orphans: bool = False,
) -> CollectedWeights:
    """Remove the weights below a root that no rule keeps.

    Args:
        archive: The store with the records of the weights.
        root: A folder or an fsspec URL.
        policy: Rules of what is kept.
        dry_run: Remove nothing.
        orphans: Whether to remove files without a record in this archive, too, if they are older
            than the policy's grace: only where no other archive keeps its weights at the same
            location.

    Raises:
        SettingsError: The root is no location for weights.
        WeightsError: A file cannot be removed; files of deleted records are orphans then.
        StoreError: The store cannot be used.
    """
    policy = policy or Policy()
    under = weights_store.root_uri(root)
    collected = CollectedWeights()
    free: dict[str, int] = {}
    for holding in archive.retention.holdings(policy, under):
        uri = holding.weights.uri
        sha256 = holding.weights.sha256
        # An address may come from an imported dump: only a file with the address that this root
        # gives it is removed.
        at_hand = uri == weights_store.address(under, sha256) and weights_store.exists(uri)
        reason = holding.reason or ("" if at_hand else "elsewhere")
        if reason:
            collected.kept[reason] = collected.kept.get(reason, 0) + 1
        else:
            free[uri] = holding.weights.bytes

    for part in _parts(sorted(free)):
        gone = part if dry_run else archive.retention.forget(policy, part)
        for uri in gone:
            if not dry_run:
                weights_store.remove(uri)

            collected.removed[uri] = free[uri]

        # Some came into use between the two transactions.
        if len(gone) < len(part):
            collected.kept["in use"] = collected.kept.get("in use", 0) + len(part) - len(gone)

    if orphans:
        _collect_orphans(archive, root, policy, collected, dry_run=dry_run)

    return collected


def _collect_orphans(
    archive: Archive,
    root: Path | str,
    policy: Policy,
    collected: CollectedWeights,
    *,
    dry_run: bool,
) -> None:
    # The files are listed before the records are read, so that a result that arrives in between is
    # no orphan.
    files = list(weights_store.listed(root))
    # By content: the folder may have had another name when the weights were saved (a link, a
    # container).
    known = archive.retention.digests()
    before = time.time() - policy.grace_seconds
    for file in files:
        unknown = file.sha256 not in known and file.uri not in collected.removed
        if unknown and file.modified is not None and file.modified <= before:
            if not dry_run:
                weights_store.remove(file.uri)

            collected.orphans[file.uri] = file.bytes


def _parts(uris: list[str]) -> Iterator[list[str]]:
    yield from (uris[at : at + BATCH] for at in range(0, len(uris), BATCH))
