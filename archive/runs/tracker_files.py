"""Files with metrics that appear while a program runs: JSON, and those of TensorBoard and W&B.

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
from archive.runs.measurements import FILES, Measurements
from archive.runs.run_folder import RunRecord

MOST_ENTRIES = 20_000
"""Entries of folders that are looked at."""

MOST_FILES = 100
MOST_BYTES = 256 << 20
"""Size of all files of one run that are read."""

_SKIPPED_FOLDERS = frozenset(["__pycache__", "node_modules", "site-packages", "mlruns"])
_EVENT_FILE = re.compile(r"\.tfevents\.\d+\.(?P<host>.+?)\.(?P<pid>\d+)\.\d+(\.v2)?")
_LOG_LINE = re.compile(r":(\d+) \[")


def read_program_files(
    record: RunRecord,
    processes: Collection[int] | None,
    measurements: Measurements,
    until: int | None = None,
) -> None:
    """Take the metrics of the files that a recorded program has written in its folder.

    Args:
        record: The run.
        processes: Ids of its processes; None where they are unknown.
        measurements: Takes the metrics.
        until: Time in milliseconds since 1970 after which a file without a known writer is of a later
            program; None for no limit.
    """
    folder = Path(record.folder)
    for name in FILES:
        if _is_of_run(folder / name, record.started, until):
            with suppress(OSError):
                measurements.read_file(folder / name)

    read_tracker_files(folder, record.started, processes, measurements, until)


def read_tracker_files(
    folder: Path,
    started: int,
    processes: Collection[int] | None,
    measurements: Measurements,
    until: int | None = None,
) -> None:
    """Take the metrics of the files for trackers that a program has written.

    A line names what is left out.

    Args:
        folder: Folder in which the program ran.
        started: Its start, in milliseconds since 1970.
        processes: Ids of its processes; None where they are unknown.
        measurements: Takes the metrics.
        until: As for `read_program_files`.
    """
    size = 0
    missing: set[str] = set()
    for number, path in enumerate(_own_files(folder, started, processes, until)):
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


def _own_files(
    folder: Path, started: int, processes: Collection[int] | None, until: int | None
) -> Iterator[Path]:
    """Yield the files that a program has written."""
    for path in _tracker_files(folder):
        if not _is_of_run(path, started, None):
            continue

        writer = _writer_of(path)
        if writer is None or processes is None:
            is_own = _is_of_run(path, started, until)
        else:
            is_own = writer in processes

        if is_own:
            yield path


def _is_of_run(path: Path, started: int, until: int | None) -> bool:
    """Return whether a file was written last during a run."""
    try:
        moment = path.stat().st_mtime_ns // 1_000_000
    except OSError:
        return False

    return moment >= started and (until is None or moment <= until)


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
