"""Runs in event files of TensorBoard: a folder with event files is a run.

| folder                                                  | becomes                                  |
|---------------------------------------------------------|------------------------------------------|
| scalars, settings of the plugin `hparams`               | a run                                    |
| `RUN/1795934343.69`, which `add_hparams` makes          | settings of RUN, if it is the only one   |
| `RUN/loss_train`, which `add_scalars` makes for `loss`  | the metric `loss/train` of RUN           |

The files are TFRecords: length, checksum, content, checksum. tensorboard's own loader takes 25 s for
100,000 scalars, since it checks all of them in Python; the messages are of its package.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archive.errors import UnusableFileError, UsageError, first_line
from archive.queue.causes import Cause
from archive.runs.arguments import split_seed
from archive.runs.history.external_run import (
    ExternalHistory,
    ExternalRun,
    Omissions,
    check_path,
    describe,
    find_files,
    flat_values,
    missing_package,
    sorted_runs,
)
from archive.runs.measurements import Measurements
from archive.values import as_float

if TYPE_CHECKING:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary

MARK = ".tfevents."
MOST_EVENT_BYTES = 64 << 20

_LENGTH_BYTES = 8
_CHECKSUM_BYTES = 4
_HPARAMS = "hparams"
_FAILED_STATUS = 2
"""`STATUS_FAILURE` of the plugin's messages."""


def read_tensorboard(path: Path) -> ExternalHistory:
    """Return the runs of a folder with event files, at any depth.

    Args:
        path: The folder.

    Raises:
        SettingsError: tensorboard is not installed.
        UsageError: There is no such folder, or no event file in it.
    """
    check_path(path)
    files = find_files(path, is_event_file)
    if not files:
        raise UsageError(f"{path} has no event files of TensorBoard (*{MARK}*)")

    left_out = Omissions()
    folders: dict[Path, _EventFolder] = {}
    for file in files:
        folder = folders.setdefault(file.parent, _EventFolder(file.parent, file.name))
        try:
            folder.read(file)
        except (UnusableFileError, OSError) as error:
            left_out.add("files that cannot be read", first_line(error, 200))

    _join(folders)
    runs: dict[str, ExternalRun] = {}
    for folder in folders.values():
        name = folder.path.relative_to(path).as_posix() if path.is_dir() else folder.path.name
        for tag in folder.others:
            left_out.add("texts, media and histograms", tag)

        run = folder.run(path.name if name == "." else name)
        if not run.metrics and not run.values:
            left_out.add("folders without a scalar", name)
        elif run.identity in runs:
            left_out.add("copies of other folders", name)
        else:
            runs[run.identity] = run

    return ExternalHistory(sorted_runs(runs.values()), left_out.texts())


def is_event_file(name: str) -> bool:
    """Return whether a file of this name is an event file."""
    return MARK in name


def read_metrics(path: Path, measurements: Measurements) -> None:
    """Take the metrics of one file."""
    _EventFolder(path.parent, path.name, measurements).read(path)


def read_events(path: Path) -> Iterator[Event]:
    """Yield the events of a file, up to its end or to the first damage.

    Raises:
        SettingsError: tensorboard is not installed.
        UnusableFileError: The file has no events.
        OSError: It cannot be read.
    """
    try:
        from google.protobuf.message import DecodeError
        from tensorboard.compat.proto.event_pb2 import Event
    except ImportError:
        raise missing_package("files of TensorBoard", "tensorboard") from None

    is_first = True
    with path.open("rb") as file:
        while head := file.read(_LENGTH_BYTES + _CHECKSUM_BYTES):
            length = int.from_bytes(head[:_LENGTH_BYTES], "little")
            content = b""
            if length <= MOST_EVENT_BYTES:
                content = file.read(length + _CHECKSUM_BYTES)

            if len(content) < length + _CHECKSUM_BYTES:
                break

            try:
                event = Event.FromString(content[:length])
            except DecodeError:
                break

            if is_first and not event.file_version:
                break

            is_first = False
            yield event

    if is_first:
        raise UnusableFileError(f"{path.name} has no events of TensorBoard")


@dataclass
class _EventFolder:
    """What the event files of one folder say.

    Attributes:
        path: The folder.
        identity: Name of its first file: it has the time, the machine and the process.
        measurements: Its scalars.
        values: Its settings.
        others: Tags of what is no scalar.
        began: Time of the first event, in seconds since 1970.
        ended: Time of the last one.
        status: Status of its end; 0 where it is unknown.
    """

    path: Path
    identity: str
    measurements: Measurements = field(default_factory=Measurements)
    values: dict[str, Any] = field(default_factory=dict)
    others: dict[str, None] = field(default_factory=dict)
    began: float | None = None
    ended: float | None = None
    status: int = 0
    _plugins: dict[str, str] = field(default_factory=dict)

    def read(self, path: Path) -> None:
        """Take the events of a file."""
        for event in read_events(path):
            if event.wall_time > 0:
                self.began = min(self.began or event.wall_time, event.wall_time)
                self.ended = max(self.ended or event.wall_time, event.wall_time)

            for value in event.summary.value:
                self._take(event.step, value)

    def join(self, other: _EventFolder, names: dict[str, str]) -> None:
        """Take what another folder says, with other names for its metrics."""
        for name, value in other.measurements.latest.items():
            self.measurements.add(None, {names.get(name, name): value})

        for step, point in other.measurements.points.items():
            metrics = {names.get(name, name): value for name, value in point.items()}
            self.measurements.add(step, metrics)

        self.values |= other.values
        self.others |= other.others
        self.status = self.status or other.status
        for moment in (other.began, other.ended):
            if moment is not None:
                self.began = min(self.began or moment, moment)
                self.ended = max(self.ended or moment, moment)

    def run(self, name: str) -> ExternalRun:
        """Return the run."""
        values, seed = split_seed(flat_values(self.values))
        has_failed = self.status == _FAILED_STATUS
        return ExternalRun(
            identity=f"tensorboard/{self.identity}",
            values=values,
            metrics=self.measurements.latest,
            curve=self.measurements.curve(),
            motivation=describe(name, None),
            started=None if self.began is None else int(self.began * 1000),
            finished=None if self.ended is None else int(self.ended * 1000),
            seed=seed,
            reason="failed, as its settings say" if has_failed else None,
            cause=Cause.TRAINING.value if has_failed else None,
        )

    def _take(self, step: int, value: Summary.Value) -> None:
        # The first event of a tag alone says what it is.
        plugin = value.metadata.plugin_data.plugin_name or self._plugins.get(value.tag, "")
        self._plugins.setdefault(value.tag, plugin)
        if plugin == _HPARAMS:
            self._take_settings(value.metadata.plugin_data.content)
            return

        number = _number(value, plugin)
        if number is None:
            self.others[value.tag] = None
        else:
            self.measurements.add(step, {value.tag: number})

    def _take_settings(self, content: bytes) -> None:
        from google.protobuf.message import DecodeError
        from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

        try:
            data = HParamsPluginData.FromString(content)
        except DecodeError:
            return

        for name, value in data.session_start_info.hparams.items():
            kind = value.WhichOneof("kind")
            if kind in ("number_value", "string_value", "bool_value"):
                self.values[name] = _whole(getattr(value, kind))

        self.status = data.session_end_info.status or self.status


def _number(value: Summary.Value, plugin: str) -> float | None:
    """Return the number of a scalar; None for anything else."""
    kind = value.WhichOneof("value")
    if kind == "simple_value":
        return float(value.simple_value)

    if kind != "tensor" or plugin != "scalars":
        return None

    from tensorboard.util.tensor_util import make_ndarray

    try:
        return as_float(make_ndarray(value.tensor))
    except (TypeError, ValueError):
        return None


def _whole(value: Any) -> Any:
    # The plugin has no whole numbers.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _join(folders: dict[Path, _EventFolder]) -> None:
    """Join folders that one writer has made to its own folder."""
    settings: dict[Path, list[Path]] = {}
    for path, folder in list(folders.items()):
        above = folders.get(path.parent)
        if above is None:
            continue

        if folder.values and re.fullmatch(r"\d+\.\d+", path.name):
            settings.setdefault(path.parent, []).append(path)
            continue

        tags = list(folder.measurements.latest)
        prefix = f"{tags[0].replace('/', '_')}_" if len(tags) == 1 else ""
        if prefix and path.name.startswith(prefix):
            name = f"{tags[0]}/{path.name.removeprefix(prefix)}"
            above.join(folders.pop(path), {tags[0]: name})

    for above_path, paths in settings.items():
        # Several are trials of their own.
        if len(paths) == 1 and not folders[above_path].values:
            folders[above_path].join(folders.pop(paths[0]), {})
