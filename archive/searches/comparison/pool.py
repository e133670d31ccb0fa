"""All studies of a comparison, several processes at a time.

Each process has its own connection and one thread for linear algebra. Processes end with their
parent, however it ends. After an interruption every process finishes its current call.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from archive import spaces
from archive.api import connect
from archive.errors import ArchiveError, SearchError, StoreError
from archive.searches.comparison.plan import StudyJob
from archive.searches.comparison.regret import Trace
from archive.searches.comparison.run import search
from archive.settings import Settings
from archive.spaces.base import Space
from archive.trainer.trial import process_tree

if TYPE_CHECKING:
    from archive.api import Archive

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

LOOK = 0.5
"""Seconds between two checks for an interruption."""


class Progress(NamedTuple):
    """Progress of the processes: proposals added, and studies ended."""

    proposals: int
    studies: int


def search_all(
    settings: Settings,
    jobs: Sequence[StudyJob],
    processes: int,
    *,
    check: Callable[[], None] = lambda: None,
    progress: Callable[[Progress], None] = lambda progress: None,
) -> dict[int, str]:
    """Search in every study, and return the reasons of those that failed, by position in `jobs`.

    Args:
        settings: Settings of the archive.
        jobs: The studies.
        processes: Number of concurrent processes.
        check: Called periodically; its exceptions stop the searches cleanly and propagate.
        progress: Called periodically with the progress.

    Raises:
        StoreError: The archive cannot be reached.
        SearchError: A process was killed.
    """
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    added = context.Value("q", 0)
    with (
        _one_thread(),
        ProcessPoolExecutor(
            processes, context, initializer=_begin, initargs=(settings, stop, added)
        ) as pool,
    ):
        futures = {pool.submit(_work, job): row for row, job in enumerate(jobs)}
        try:
            return _collect(futures, lambda ended: progress(Progress(added.value, ended)), check)
        except BrokenProcessPool:
            raise SearchError(
                "a process of the comparison was killed: run the same command again to continue"
            ) from None
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


def search_unfinished(
    settings: Settings,
    jobs: Sequence[StudyJob],
    traces: Sequence[Trace],
    processes: int,
    *,
    check: Callable[[], None] = lambda: None,
    progress: Callable[[Progress], None] = lambda progress: None,
) -> dict[str, str]:
    """Search in the unfinished studies, and return the reasons of failures by study.

    Args:
        settings: Settings of the archive.
        jobs: The studies.
        traces: The stored trace of each study.
        processes: Most concurrent processes.
        check: As of `search_all`.
        progress: Called with the evaluations and the finished studies of all jobs.

    Raises:
        StoreError: The archive cannot be reached.
        SearchError: A process was killed.
    """
    unfinished = find_unfinished(jobs, traces)
    if not unfinished:
        return {}

    stored = sum(len(trace.values) for trace in traces)
    finished = len(jobs) - len(unfinished)
    failed = search_all(
        settings,
        unfinished,
        min(processes, len(unfinished)),
        check=check,
        progress=lambda added: progress(
            Progress(stored + added.proposals, finished + added.studies)
        ),
    )
    return {unfinished[row].study.name: reason for row, reason in failed.items()}


def find_unfinished(jobs: Sequence[StudyJob], traces: Sequence[Trace]) -> list[StudyJob]:
    """Return the studies that have not all their evaluations."""
    unfinished = []
    for job, trace in zip(jobs, traces, strict=True):
        if not job.is_finished(trace.values):
            unfinished.append(job)

    return unfinished


def _collect(
    futures: dict[Future[str | None], int],
    progress: Callable[[int], None],
    check: Callable[[], None],
) -> dict[int, str]:
    failed: dict[int, str] = {}
    waiting = set(futures)
    while waiting:
        ended, waiting = wait(waiting, timeout=LOOK, return_when=FIRST_COMPLETED)
        for future in ended:
            reason = future.result()
            if reason is not None:
                failed[futures[future]] = reason

        progress(len(futures) - len(waiting))
        check()

    return failed


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit processes started in this context to one thread each.

    Numerical libraries read the limit at import.
    """
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class _Worker(NamedTuple):
    archive: Archive
    stop: Any
    added: Any


_worker: _Worker | None = None


def _begin(settings: Settings, stop: Any, added: Any) -> None:
    """Prepare a process."""
    global _worker
    # The parent process handles Ctrl-C and sets the event that stops this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    process_tree.end_with_parent()
    _worker = _Worker(connect(settings), stop, added)


def _work(job: StudyJob) -> str | None:
    """Search in one study, and return the reason of a failure, so that other studies continue."""
    assert _worker is not None, "the process was not prepared"
    archive, stop, added = _worker

    def progress(count: int) -> None:
        with added.get_lock():
            added.value += count

    try:
        search(archive, job, _space(job), stop=stop.is_set, progress=progress)
    except StoreError:
        raise
    except ArchiveError as error:
        return str(error)
    except Exception as error:
        # An error in an agent: its author needs the traceback.
        print(f"{job.study.name}:\n{traceback.format_exc()}", file=sys.stderr)
        return f"{type(error).__name__}: {error}"

    return None


def _space(job: StudyJob) -> Space:
    return _make_space(
        job.problem.space, json.dumps(dict(job.problem.space_config), sort_keys=True)
    )


@cache
def _make_space(name: str, config: str) -> Space:
    # Listed spaces, and those read from a table, take seconds to construct.
    return spaces.get(name, **json.loads(config))
