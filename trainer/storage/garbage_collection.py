"""Garbage collection: weights that no rule keeps, expired workers, logs and checkpoints.

Of weights, the records in the store are deleted first, then their files.
`archive.store.weights` decides which weights are kept, and why. Only files below the
given root are deleted, so weights on the disk of another machine stay for a collection there. A
collection that is killed leaves orphans, files without a record; those are deleted on request
(`orphans`), once they are too old to belong to an undelivered result.

A log or a checkpoint is deleted when its proposal ended long ago, and the file has not been written
since: a folder may hold the logs of several archives, and their studies may have the same names.
"""

from __future__ import annotations

import glob
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from archive.errors import UsageError
from archive.queue import workers
from archive.store.weights import Policy
from archive.trainer.storage import checkpoints, file_names, remote_files, weights_store
from archive.trainer.storage.locations import local_folder, printable

if TYPE_CHECKING:
    from archive.api import Archive

BATCH = 50


@dataclass
class CollectedWeights:
    """The outcome of a collection, or, of a dry run, of the collection that would follow.

    Attributes:
        removed: Addresses of the removed weights, with their bytes.
        orphans: Addresses of the removed files without a record, with their bytes.
        kept: Number of weights kept for each reason; `elsewhere`: the file is not below the root.
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
        policy: Rules of retention.
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

    uris = sorted(free)
    for start in range(0, len(uris), BATCH):
        part = uris[start : start + BATCH]
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
    recorded = archive.retention.digests()
    before = time.time() - policy.grace_seconds
    for file in files:
        unknown = file.sha256 not in recorded and file.uri not in collected.removed
        if unknown and file.modified is not None and file.modified <= before:
            if not dry_run:
                weights_store.remove(file.uri)

            collected.orphans[file.uri] = file.bytes


@dataclass
class ClearedHistory:
    """Expired history.

    Attributes:
        workers: Ids of the workers.
        files: Bytes of each file.
    """

    workers: list[str] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)

    @property
    def freed(self) -> int:
        """Bytes of all files."""
        return sum(self.files.values())


def clear(
    archive: Archive,
    home: Path,
    seconds: float,
    *,
    checkpoints_at: Path | str | None = None,
    dry_run: bool = False,
) -> ClearedHistory:
    """Delete the history that is older than an age.

    Args:
        archive: The store of workers and proposals.
        home: Folder of the trainers on this machine.
        seconds: Age beyond which history expires.
        checkpoints_at: Folder or fsspec URL of the checkpoints; None stands for `checkpoints` in
            the home.
        dry_run: Delete nothing.

    Raises:
        UsageError: The age is negative.
        SettingsError: The location of the checkpoints cannot be read or written.
        StoreError: The store cannot be used.
    """
    if not seconds >= 0:
        raise UsageError(f"the age of expired history must be >= 0, got {seconds:g} s")

    departed = workers.find_departed(archive.connection, seconds)
    cleared = ClearedHistory(
        departed if dry_run else workers.forget_departed(archive.connection, departed, seconds)
    )
    location = home / "checkpoints" if checkpoints_at is None else local_folder(checkpoints_at)
    folders = [home / "logs"]
    remote: dict[str, remote_files.RemoteFile] = {}
    if location is not None:
        folders.append(location)
    else:
        for file in remote_files.listed(str(checkpoints_at)):
            remote[file.name] = file

    before = time.time() - seconds
    # Most archives have more proposals than a machine has files.
    if remote or any(folder.is_dir() and any(folder.iterdir()) for folder in folders):
        for id_ in workers.find_ended(archive.connection, seconds):
            log = file_names.trial_log_path(home, id_)
            _remove(log, before, cleared, dry_run=dry_run)
            for path in log.parent.glob(f"{glob.escape(log.stem)}.node*.log"):
                _remove(path, before, cleared, dry_run=dry_run)

            if location is not None:
                checkpoint = checkpoints.path_of(location, id_)
                _remove(checkpoint, before, cleared, dry_run=dry_run)
            elif (name := checkpoints.path_of(Path(), id_).name) in remote:
                _remove_remotely(remote[name], before, cleared, dry_run=dry_run)

    logs = [*file_names.trainer_logs(home).glob("*.log*")]
    logs += file_names.observer_logs(home).glob("*.log")
    for path in sorted(logs):
        _remove(path, before, cleared, dry_run=dry_run)

    return cleared


def _remove(path: Path, before: float, cleared: ClearedHistory, *, dry_run: bool) -> None:
    try:
        status = path.stat()
        if status.st_mtime > before:
            return

        if not dry_run:
            path.unlink()
    except OSError:
        return  # not on this machine, or deleted by another collection

    cleared.files[str(path)] = status.st_size


def _remove_remotely(
    file: remote_files.RemoteFile, before: float, cleared: ClearedHistory, *, dry_run: bool
) -> None:
    if file.modified is None or file.modified > before:
        return

    if not dry_run:
        remote_files.remove(file.uri)

    cleared.files[printable(file.uri)] = file.bytes
