"""One automatic dump of an embedded archive, made in the background.

    python -m archive.exchange.automatic_dumps HOME KEPT SHARE

The supervisor of the server starts it (`archive.server.dump_schedule`). The dump is a file of
`archive dump` in `HOME/dumps`, without the stored distances, which can be computed again; the
oldest ones are deleted. Its output is the log of the supervisor.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from pathlib import Path

from archive.database.connection import Connection
from archive.errors import ArchiveError, first_line
from archive.exchange.dump import dump
from archive.server import embedded
from archive.server.copies import data_bytes
from archive.server.dump_schedule import dumps
from archive.server.run_file import Folder
from archive.settings import Settings
from archive.store import schema

PATIENCE_SECONDS = 10.0
_DATA_PER_DUMP = 10
"""Size of the data over that of their dump, at least; dumps are compressed."""


def main(arguments: list[str]) -> int:
    """Make one dump, and return the exit status."""
    home = Path(arguments[0])
    kept = int(arguments[1])
    share = float(arguments[2])
    settings = Settings(home=home, patience=PATIENCE_SECONDS)
    try:
        if embedded.find(settings) is not None:
            _say(make(settings, kept, share))
    except (ArchiveError, OSError) as error:
        _say(f"no automatic dump: {first_line(error)}")
        return 1

    return 0


def make(settings: Settings, kept: int, share: float) -> str:
    """Dump the archive to a new file in `HOME/dumps`, delete the oldest files, and return a line
    for the log.

    Args:
        settings: Settings of an embedded archive whose server runs.
        kept: Number of dumps that are kept.
        share: Share of the free disk that they may take; a dump that would not fit is not made.
    """
    folder = Folder(settings.home)
    folder.dumps.mkdir(mode=0o700, exist_ok=True)
    _remove_parts(folder)
    former = dumps(folder)
    expected = former[0].stat().st_size if former else data_bytes(folder) // _DATA_PER_DUMP
    limit = share * (shutil.disk_usage(folder.dumps).free + _bytes(former))
    if expected * min(kept, len(former) + 1) > limit:
        return (
            f"no automatic dump: the disk is short, {expected / 2**20:.1f} MiB each of "
            f"{limit / 2**20:.1f} MiB "
            f"(dumps_share {share:g})"
        )

    path = folder.dumps / f"automatic-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.jsonl.gz"
    with Connection.open(settings) as connection:
        if schema.version(connection) == 0:
            return "no automatic dump: the archive is empty"

        dump(connection, path, distances=False, force=True)

    for old in dumps(folder)[kept:]:
        old.unlink()

    return f"automatic dump: {path} ({path.stat().st_size / 2**20:.1f} MiB)"


def _bytes(files: list[Path]) -> int:
    return sum(path.stat().st_size for path in files)


def _remove_parts(folder: Folder) -> None:
    """Remove what a dump left that was ended before it was complete."""
    for part in folder.dumps.glob(".*.part"):
        with contextlib.suppress(OSError):
            part.unlink()


def _say(message: str) -> None:
    print(time.strftime("%Y-%m-%d %H:%M:%S"), message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
