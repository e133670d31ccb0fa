"""This process: its processor cores, pauses of its garbage collector, and limits of time.

    affinity    cores that the process is bound to: `taskset`, Slurm
    quota       processor time a period that its control group may use, or any group above it: containers, systemd

Control groups of both versions are read at the mount points of this process, because a container
sees its own group as the root.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path, PurePosixPath

ROOT = Path("/")


def count_cores(root: Path = ROOT) -> int:
    """Return the number of usable cores: the affinity, limited by the quota, and at least 1.

    Threads beyond the quota gain nothing: once it is used up, all threads of the group stop for the
    rest of the period.

    Args:
        root: Root of the file system; another folder in tests.
    """
    # macOS has no such call.
    bound = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    quota = _quota(root)
    return bound if quota is None else max(1, min(bound, int(quota)))


@contextmanager
def pause_gc() -> Iterator[None]:
    """Pause the garbage collector in a block or a function that creates many lasting objects.

    The collector scans all objects whenever their number has grown by a quarter. While a hundred
    thousand results are read, all of which stay, these scans take two fifths of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _TimeIsUpError(BaseException):
    """End of a limited block, which no `except Exception` of a user's code catches."""


@contextmanager
def limit_time(seconds: float, error: Exception) -> Iterator[None]:
    """Raise an error once a block has taken some seconds.

    The interpreter ends the block between two of its instructions, or in a sleep. There is no limit
    on Windows, or in a thread other than the main one, where no signal arrives.
    """
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return

    def end(*_: object) -> None:
        raise _TimeIsUpError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except _TimeIsUpError:
        raise error from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@lru_cache(maxsize=8)
def _quota(root: Path) -> float | None:
    """Return the smallest quota in cores, read once a process; None without a quota."""
    return min(_quotas(root), default=None)


def _quotas(root: Path) -> Iterator[float]:
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
        mounts = (root / "proc/self/mountinfo").read_text().splitlines()
    except (OSError, ValueError):
        return

    for group in groups:
        number, _, rest = group.partition(":")
        controllers, _, path = rest.partition(":")
        unified = number == "0" and not controllers
        if not unified and "cpu" not in controllers.split(","):
            continue

        for mount in mounts:
            for folder in _folders(root, mount, path, unified=unified):
                quota = _read_unified(folder) if unified else _legacy(folder)
                if quota is not None:
                    yield quota


def _folders(root: Path, mount: str, path: str, *, unified: bool) -> Iterator[Path]:
    """Yield the folders of a group and of all groups above it below a mount.

    None if the mount is of another kind.

    A line has the fields: id, parent, device, root of the mount, mount point, options, … - type,
    source, options.
    """
    fields, _, kind = mount.partition(" - ")
    mounted = fields.split()
    about = kind.split()
    if len(mounted) < 5 or len(about) < 3 or about[0] != ("cgroup2" if unified else "cgroup"):
        return

    if not unified and "cpu" not in about[2].split(","):
        return

    group = PurePosixPath(path)
    top = PurePosixPath(mounted[3])
    # A container may see the host's path of its group while only its own part is mounted.
    inner = (
        group.relative_to(top)
        if group.is_relative_to(top) and ".." not in group.parts
        else PurePosixPath()
    )
    point = root / mounted[4].lstrip("/")
    for part in (inner, *inner.parents):
        yield point / part


def _read_unified(folder: Path) -> float | None:
    limit, _, period = _read(folder / "cpu.max").partition(" ")
    return _ratio(limit, period or "100000")


def _legacy(folder: Path) -> float | None:
    return _ratio(_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us"))


def _ratio(limit: str, period: str) -> float | None:
    try:
        time = int(limit)
        length = int(period)  # "max" and -1 are no limits
    except ValueError:
        return None

    return time / length if time > 0 and length > 0 else None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, ValueError):
        return ""
