"""Files for TensorBoard and Weights & Biases that appear while a program runs.

They are read after its end, where they are newer than its start. Programs that run at the same time
in one folder write side by side: the name of an event file and the log beside a `.wandb` file have
the process that wrote it, which must be one of the program's. Files of another machine (a container)
and those without a process are taken.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from archive.errors import ArchiveError, SettingsError, first_line
from archive.runs.history import tensorboard_runs, wandb_runs
from archive.runs.life_cycle import say
from archive.runs.measurements import Measurements

MOST_ENTRIES = 20_000
"""Entries of folders that are looked at."""

MOST_FILES = 100
MOST_BYTES = 256 << 20
"""Size of all files of one run that are read."""

_SKIPPED_FOLDERS = frozenset(["__pycache__", "node_modules", "site-packages", "mlruns"])
_EVENT_FILE = re.compile(r"\.tfevents\.\d+\.(?P<host>.+?)\.(?P<pid>\d+)\.\d+(\.v2)?")
_LOG_LINE = re.compile(r":(\d+) \[")


def read_tracker_files(
    folder: Path, started: int, processes: Collection[int] | None, measurements: Measurements
) -> None:
    """Take the metrics of the files that a program has written; a line names what is left out.

    Args:
        folder: Folder in which the program ran.
        started: Its start, in milliseconds since 1970.
        processes: Ids of its processes; None where they are unknown.
        measurements: Takes the metrics.
    """
    size = 0
    missing: set[str] = set()
    for number, path in enumerate(_own_files(folder, started, processes)):
        try:
            size += path.stat().st_size
            if number >= MOST_FILES or size > MOST_BYTES:
                say(f"{path} and later files of metrics are not read: a run has at most 256 MiB")
                return

            if tensorboard_runs.is_event_file(path.name):
                tensorboard_runs.read_metrics(path, measurements)
            else:
                wandb_runs.read_metrics(path, measurements)
        except SettingsError as error:
            # The package of a tool is missing for all of its files.
            if str(error) not in missing:
                say(f"{path} is not read: {error}")
                missing.add(str(error))
        except (ArchiveError, OSError) as error:
            say(f"{path} is not read: {first_line(error, 200)}")


def _own_files(folder: Path, started: int, processes: Collection[int] | None) -> Iterator[Path]:
    """Yield the files that a program has written."""
    for path in _tracker_files(folder):
        try:
            is_new = path.stat().st_mtime_ns // 1_000_000 >= started
        except OSError:
            continue

        writer = _writer_of(path) if is_new else None
        if is_new and (writer is None or processes is None or writer in processes):
            yield path


def _tracker_files(folder: Path) -> list[Path]:
    """Return the files of both tools in a folder, without folders of packages and hidden ones."""
    paths: list[Path] = []
    seen = 0
    for root, folders, names in os.walk(folder):
        kept = []
        for name in folders:
            is_environment = os.path.exists(os.path.join(root, name, "pyvenv.cfg"))
            if not name.startswith(".") and name not in _SKIPPED_FOLDERS and not is_environment:
                kept.append(name)

        folders[:] = kept
        for name in names:
            if tensorboard_runs.is_event_file(name) or wandb_runs.is_log(name):
                paths.append(Path(root, name))

        seen += len(names) + len(kept)
        if seen > MOST_ENTRIES:
            break

    return sorted(paths)


def _writer_of(path: Path) -> int | None:
    """Return the process of this machine that wrote a file; None where that is unknown."""
    match = _EVENT_FILE.search(path.name)
    if match is not None:
        return int(match["pid"]) if match["host"] == platform.node() else None

    with suppress(OSError), (path.parent / "logs" / "debug.log").open(errors="replace") as log:
        line = _LOG_LINE.search(log.readline(1000))
        return None if line is None else int(line[1])

    return None
