"""First connection after an upgrade of the engine: the database is checked, and its indexes are
built again.

Indexes that ArcadeDB made before 26.8.1 can miss entries. The copy from before the upgrade
(`archive.server.engine_change`) is kept: it is the only way back to the older engine besides a
dump.
"""

from __future__ import annotations

import logging
import os
import time

from archive.database.connection import Connection
from archive.errors import DamagedError, StoreError
from archive.files import try_lock
from archive.server import engine_change
from archive.server.run_file import Folder
from archive.store import schema

log = logging.getLogger("archive.store")

WAIT_SECONDS = 600.0
_POLL_SECONDS = 0.1


def finish(connection: Connection) -> None:
    """Check an archive that a newer engine has opened, and build its indexes again; otherwise
    return at once.

    Raises:
        DamagedError: The newer engine finds the database damaged; the message names the copy from
            before.
        StoreError: Another process has been checking for too long.
    """
    if not connection.settings.embedded:
        return

    folder = Folder(connection.settings.home)
    if engine_change.pending(folder) is None:
        return

    deadline = time.monotonic() + WAIT_SECONDS
    while (lock := try_lock(folder.server / "upgrade.lock")) is None:
        if time.monotonic() > deadline:
            raise StoreError(
                f"another process has been checking the archive in {folder.home} for too long"
            )

        time.sleep(_POLL_SECONDS)

    try:
        # Another process may have done it meanwhile.
        upgrade = engine_change.pending(folder)
        if upgrade is not None:
            _check(connection, folder, upgrade)
    finally:
        os.close(lock)


def _check(connection: Connection, folder: Folder, upgrade: engine_change.Upgrade) -> None:
    from archive.server import sql
    from archive.store.upkeep import integrity

    faults = integrity.record_faults(sql.check(connection.settings))
    if faults:
        raise DamagedError(
            f"ArcadeDB {upgrade.present} finds the archive in {folder.home} damaged, which {upgrade.former} wrote "
            f"({'; '.join(faults)}): run archive db repair, or go back: install ArcadeDB {upgrade.former} and replace "
            f"{folder.database} by its copy {upgrade.copy}"
        )

    number = schema.rebuild_indexes(connection)
    engine_change.complete(folder)
    log.warning(
        f"ArcadeDB {upgrade.present} has opened the archive in {folder.home}, which {upgrade.former} wrote: checked, "
        f"{number} indexes built again; the way back is the copy {upgrade.copy}, which may be deleted"
    )
