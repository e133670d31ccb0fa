"""Runs of MLflow: its file store (`mlruns`), a SQLite database, or a server.

| store                      | how it is read                                                        |
|----------------------------|-----------------------------------------------------------------------|
| SQLite (`mlflow.db`)       | as a database that is open for reading alone: MLflow's own client      |
|                            | makes missing tables and folders, and refuses those of other releases |
| folder, server, other URIs | with MLflow's client                                                  |
"""

from __future__ import annotations

import logging
import math
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from archive.errors import ArchiveError, UsageError, first_line
from archive.runs.arguments import read_value, split_seed
from archive.runs.history.external_run import (
    ExternalHistory,
    ExternalRun,
    Omissions,
    cause_of,
    check_path,
    code_of,
    describe,
    flat_values,
    missing_package,
    sorted_runs,
)
from archive.runs.measurements import MOST_METRICS, Measurements
from archive.runs.secrets import Secrets
from archive.runs.texts.difference_files import list_changed_files

if TYPE_CHECKING:
    from mlflow import MlflowClient

Point = tuple[int, int, float]
"""Step, time in milliseconds since 1970, and value of a metric."""

_LARGEST = 1.7e308
"""Databases of MLflow hold the largest float in place of infinity."""

_SYSTEM = "system/"
"""Begin of the names of metrics of the machine."""

_RUNS = """
SELECT e.name, r.run_uuid, r.name, r.status, r.start_time, r.end_time
FROM runs r JOIN experiments e ON e.experiment_id = r.experiment_id
WHERE r.lifecycle_stage = 'active' AND e.lifecycle_stage = 'active'
ORDER BY r.start_time, r.run_uuid
"""

_METRICS = "SELECT key, step, timestamp, value, is_nan FROM metrics WHERE run_uuid = ?"


@dataclass(frozen=True)
class _StoredRun:
    """A run as a store has it.

    Attributes:
        experiment: Name of its experiment.
        run_id: Its id.
        name: Its name.
        status: FINISHED, FAILED, KILLED, RUNNING or SCHEDULED.
        started: Its start, in milliseconds since 1970.
        ended: Its end, likewise.
        params: Its parameters.
        tags: Its tags.
    """

    experiment: str
    run_id: str
    name: str | None
    status: str
    started: int | None
    ended: int | None
    params: Mapping[str, str]
    tags: Mapping[str, str]


def read_mlflow(location: str) -> ExternalHistory:
    """Return the runs of a tracking store that are not deleted.

    Args:
        location: A folder, a database file, or a tracking URI.

    Raises:
        SettingsError: MLflow is not installed.
        UsageError: There is no such store, or it cannot be read.
    """
    store = _open_store(location)
    left_out = Omissions()
    runs = []
    try:
        for run in store.runs():
            if run.status in ("RUNNING", "SCHEDULED"):
                left_out.add("runs that still run", run.run_id)
            else:
                runs.append(_external(store, run, left_out))
    except ArchiveError:
        raise
    except Exception as error:
        # The client raises errors of its own, of requests and of databases.
        raise _unreadable(location, error) from error

    return ExternalHistory(sorted_runs(runs), left_out.texts())


class _Database:
    """A SQLite database of MLflow."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def runs(self) -> Iterator[_StoredRun]:
        """Yield the runs."""
        with closing(self._connect()) as database:
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
            if not {"runs", "experiments", "metrics", "params", "tags"} <= tables:
                raise UsageError(f"{self._path} is no database of MLflow")

            for experiment, run_id, name, status, started, ended in database.execute(_RUNS):
                params = self._named(database, "params", run_id)
                tags = self._named(database, "tags", run_id)
                yield _StoredRun(experiment, run_id, name, status, started, ended, params, tags)

    def points(self, run_id: str, left_out: Omissions) -> Iterable[tuple[str, list[Point]]]:
        """Return the points of each metric of a run."""
        points: dict[str, list[Point]] = {}
        with closing(self._connect()) as database:
            for key, step, time, value, is_nan in database.execute(_METRICS, (run_id,)):
                if _is_kept(key, points, left_out):
                    number = math.nan if is_nan else value
                    points.setdefault(key, []).append((step, time, number))

        return points.items()

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(f"{self._path.resolve().as_uri()}?mode=ro", uri=True)

    def _named(self, database: sqlite3.Connection, table: str, run_id: str) -> dict[str, str]:
        query = f"SELECT key, value FROM {table} WHERE run_uuid = ?"
        return dict(database.execute(query, (run_id,)).fetchall())


class _Client:
    """A store that MLflow's client reads."""

    def __init__(self, uri: str) -> None:
        # Later releases refuse the file store without this.
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        try:
            from mlflow import MlflowClient
        except ImportError:
            raise missing_package("runs of MLflow", "mlflow") from None

        logging.getLogger("mlflow").setLevel(logging.ERROR)
        self._client: MlflowClient = MlflowClient(tracking_uri=uri)
        self._names: dict[str, list[str]] = {}

    def runs(self) -> Iterator[_StoredRun]:
        """Yield the runs."""
        for experiment in _pages(self._client.search_experiments):
            for run in _pages(self._client.search_runs, [experiment.experiment_id]):
                info = run.info
                self._names[info.run_id] = sorted(run.data.metrics)
                yield _StoredRun(
                    experiment.name,
                    info.run_id,
                    info.run_name,
                    info.status,
                    info.start_time,
                    info.end_time,
                    run.data.params,
                    run.data.tags,
                )

    def points(self, run_id: str, left_out: Omissions) -> Iterable[tuple[str, list[Point]]]:
        """Yield the points of each metric of a run."""
        kept: dict[str, list[Point]] = {}
        for name in self._names.pop(run_id):
            if _is_kept(name, kept, left_out):
                kept[name] = []
                for point in self._client.get_metric_history(run_id, name):
                    kept[name].append((point.step, point.timestamp, point.value))

        return kept.items()


def _open_store(location: str) -> _Database | _Client:
    """Return the store of a folder, a database file or a URI.

    Raises:
        UsageError: The folder or the file is not there, or holds no runs.
    """
    scheme = urlsplit(location).scheme
    if scheme == "sqlite":
        path = Path(location.partition("///")[2].partition("?")[0])
        check_path(path)
        return _Database(path)

    uri = location
    if scheme in ("", "file"):
        path = Path(urlsplit(location).path if scheme else location)
        check_path(path)
        if path.is_file():
            return _Database(path)

        uri = _file_store(path).resolve().as_uri()

    try:
        return _Client(uri)
    except ArchiveError:
        raise
    except Exception as error:
        raise _unreadable(location, error) from error


def _file_store(path: Path) -> Path:
    """Return the folder of the file store in a folder."""
    for folder in (path, path / "mlruns"):
        if any(folder.glob("*/meta.yaml")):
            return folder

    raise UsageError(f"{path} is no file store of MLflow: it has no */meta.yaml")


def _unreadable(location: str, error: Exception) -> UsageError:
    message = Secrets(()).mask(f"{location} cannot be read: {first_line(error, 300)}")
    return UsageError(message)


def _pages(search: Any, *arguments: Any) -> Iterator[Any]:
    """Yield the items of all pages of a search."""
    token = None
    while True:
        page = search(*arguments, page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def _is_kept(name: str, kept: Mapping[str, Any], left_out: Omissions) -> bool:
    """Return whether a metric is kept, and count it where it is not."""
    if name.startswith(_SYSTEM):
        left_out.add("metrics of the machine", name)
        return False

    if name not in kept and len(kept) >= MOST_METRICS:
        left_out.add(f"metrics beyond {MOST_METRICS} of a run", name)
        return False

    return True


def _external(store: _Database | _Client, run: _StoredRun, left_out: Omissions) -> ExternalRun:
    tags = run.tags
    params = {name: read_value(str(value)) for name, value in run.params.items()}
    values, seed = split_seed(flat_values(params))
    measurements = _measure(store.points(run.run_id, left_out))
    cause = cause_of(run.status)
    source = tags.get("mlflow.source.name")
    parent = tags.get("mlflow.parentRunId")
    diff = tags.get("mlflow.source.git.diff")
    marks = []
    for name, value in tags.items():
        if not name.startswith("mlflow."):
            marks.append(f"{name}={value}" if value else name)

    return ExternalRun(
        identity=f"mlflow/{run.run_id}",
        values=values,
        metrics=measurements.latest,
        curve=measurements.curve(),
        parent=f"mlflow/{parent}" if parent else None,
        project=run.experiment,
        motivation=describe(run.name, tags.get("mlflow.note.content"), marks),
        started=run.started or None,
        finished=run.ended or None,
        seed=seed,
        reason=None if cause is None else f"{run.status.lower()}, as MLflow says",
        cause=None if cause is None else cause.value,
        program=PurePath(source).name if source else None,
        code=code_of(tags.get("mlflow.source.git.commit"), diff),
        commit=tags.get("mlflow.source.git.commit"),
        branch=tags.get("mlflow.source.git.branch"),
        diff=diff,
        changed=list_changed_files(diff),
    )


def _measure(points: Iterable[tuple[str, list[Point]]]) -> Measurements:
    """Return the metrics of a run by step."""
    measurements = Measurements()
    by_step: dict[int, dict[str, float]] = {}
    for name, history in points:
        history.sort(key=itemgetter(0, 1))
        # A metric that was logged without steps has step 0 each time.
        is_counted = len(history) > 1 and history[0][0] == history[-1][0]
        for number, (step, _, value) in enumerate(history):
            if abs(value) > _LARGEST:
                value = math.copysign(math.inf, value)

            by_step.setdefault(number if is_counted else step, {})[name] = value

    for step in sorted(by_step):
        measurements.add(step, by_step[step])

    return measurements
