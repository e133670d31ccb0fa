"""Collecting weights that nobody needs: the store forgets them first, then their files are removed.

What is kept, and why, is `archive.store.retention`'s to say; only files that are at hand are touched, so weights on the
disk of another machine stay for a collection there. Killed half-way, a collection leaves files that the store does not
know; those are removed on request (`orphans`), once they are old enough to belong to no result on its way.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from archive.store.retention import Policy
from archive.trainer.storage import weights_store

if TYPE_CHECKING:
    from archive.api import Archive

BATCH = 50


@dataclass
class Collected:
    """What a collection did, or would do.

    Attributes:
        removed: Addresses of the weights that were removed (or would be), with their bytes.
        orphans: The same for files that the store does not know.
        kept: How many weights were kept for each reason; `elsewhere` are those whose file is not at hand.
    """

    removed: dict[str, int] = field(default_factory=dict)
    orphans: dict[str, int] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)

    @property
    def freed(self) -> int:
        """Bytes of all that was removed."""
        return sum(self.removed.values()) + sum(self.orphans.values())


def collect(
    archive: Archive, root: Path | str, policy: Policy | None = None, *, dry_run: bool = False, orphans: bool = False
) -> Collected:
    """Remove the weights below a root that no rule keeps.

    Args:
        archive: Whose weights they are.
        root: A folder or an fsspec URL.
        policy: What is kept.
        dry_run: Say what would be removed, and remove nothing.
        orphans: Whether to remove files that this archive does not know, too, and that are older than the policy's
            grace: only where no other archive keeps its weights in the same place.

    Raises:
        SettingsError: The root is no place that weights can be kept in.
        CheckpointError: A file cannot be removed; what was forgotten before is an orphan.
        StoreError: The archive cannot be asked.
    """
    policy = policy or Policy()
    under, found = weights_store.root_uri(root), Collected()
    free: dict[str, int] = {}
    for holding in archive.retention.holdings(policy, under):
        uri, sha256 = holding.checkpoint.uri, holding.checkpoint.sha256
        # An address may come from a file that somebody sent: whatever else it points to is none of ours to remove.
        at_hand = uri == weights_store.address(under, sha256) and weights_store.exists(uri)
        reason = holding.reason or ("" if at_hand else "elsewhere")
        if reason:
            found.kept[reason] = found.kept.get(reason, 0) + 1
        else:
            free[uri] = holding.checkpoint.bytes
    for part in _parts(sorted(free)):
        gone = part if dry_run else archive.retention.forget(policy, part)
        for uri in gone:
            if not dry_run:
                weights_store.remove(uri)
            found.removed[uri] = free[uri]
        # Somebody began to use them between the two looks.
        if len(gone) < len(part):
            found.kept["in use"] = found.kept.get("in use", 0) + len(part) - len(gone)
    if orphans:
        _collect_orphans(archive, root, policy, found, dry_run=dry_run)
    return found


def _collect_orphans(archive: Archive, root: Path | str, policy: Policy, found: Collected, *, dry_run: bool) -> None:
    # The files are listed before the store is asked: a result that arrives in between is not taken for an orphan.
    files = list(weights_store.listed(root))
    # By content: the folder may have another name here than where the weights were saved (a link, a container).
    known = archive.retention.digests()
    before = time.time() - policy.grace_seconds
    for file in files:
        unknown = file.sha256 not in known and file.uri not in found.removed
        if unknown and file.modified is not None and file.modified <= before:
            if not dry_run:
                weights_store.remove(file.uri)
            found.orphans[file.uri] = file.bytes


def _parts(uris: list[str]) -> Iterator[list[str]]:
    yield from (uris[at : at + BATCH] for at in range(0, len(uris), BATCH))
