"""TensorBoard: one run a proposal, with curves and an entry of the HPARAMS tab.

    FOLDER/STUDY/NUMBER-RUN/events.out.tfevents…        tensorboard --logdir FOLDER

All studies in one folder compare in one page. The tags are the metrics of the training, and
`cost/…` and `final/…` at its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archive.trainer.observers.base import ObservedTrial, TrialEnd, TrialObserver
from archive.trainer.storage.file_names import file_name

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

FLUSH_SECONDS = 5


class TensorBoardObserver(TrialObserver):
    """TensorBoard event files: curves of each trial, and hyperparameters with the final value.

    Args:
        home: Folder of the trainer's files.
        folder: Folder of the event files; `HOME/tensorboard` if None.
    """

    requires = ("tensorboard",)
    extra = "tensorboard"

    def __init__(self, home: Path, folder: Path | None = None) -> None:
        super().__init__(home)
        self.folder = home / "tensorboard" if folder is None else folder
        self._writers: dict[str, SummaryWriter] = {}

    def open(self) -> str:
        """See `TrialObserver.open`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return str(self.folder)

    def on_start(self, trial: ObservedTrial) -> None:
        """See `TrialObserver.on_start`."""
        # A continued run is opened at its first step, which says what to purge.
        if not trial.continues:
            self._writer(trial)

    def on_metrics(self, trial: ObservedTrial, step: int, metrics: Mapping[str, float]) -> None:
        """See `TrialObserver.on_metrics`."""
        writer = self._writer(trial, step)
        for name, value in metrics.items():
            writer.add_scalar(name, value, step)

    def on_end(self, trial: ObservedTrial, end: TrialEnd) -> None:
        """See `TrialObserver.on_end`."""
        writer = self._writer(trial)
        step = int(end.costs.get("epochs", 0))
        named = {f"final/{name}": value for name, value in end.metrics.items()}
        named |= {f"cost/{name}": value for name, value in end.costs.items()}
        if end.value is not None:
            named[_tag(trial)] = end.value

        for name, value in named.items():
            writer.add_scalar(name, value, step)

        writer.add_text("end", end.state if end.reason is None else f"{end.state}: {end.reason}")
        if end.state in ("COMPLETE", "FAILED"):
            _add(writer, _session_end(succeeded=end.state == "COMPLETE"))

        self._writers.pop(trial.run).close()

    def close(self) -> None:
        """See `TrialObserver.close`."""
        while self._writers:
            self._writers.popitem()[1].close()

    def _writer(self, trial: ObservedTrial, step: int | None = None) -> SummaryWriter:
        if trial.run not in self._writers:
            from torch.utils.tensorboard import SummaryWriter
            from torch.utils.tensorboard.summary import hparams

            folder = self.folder / file_name(trial.study) / f"{trial.number:05d}-{trial.run[:8]}"
            purged = step if trial.continues else None
            writer = SummaryWriter(str(folder), purge_step=purged, flush_secs=FLUSH_SECONDS)
            self._writers[trial.run] = writer
            summaries = hparams(_plain(trial.settings()), {_tag(trial): 0.0})  # type: ignore[no-untyped-call]
            for summary in summaries[:2]:
                _add(writer, summary)

        return self._writers[trial.run]


def _add(writer: SummaryWriter, summary: Any) -> None:
    writer._get_file_writer().add_summary(summary)  # type: ignore[no-untyped-call]


def _tag(trial: ObservedTrial) -> str:
    return f"value/{trial.objective}"


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for name, value in settings.items():
        plain[name] = value if isinstance(value, bool | int | float) else str(value)

    return plain


def _session_end(*, succeeded: bool) -> Any:
    """Return the summary that ends an entry of the HPARAMS tab; torch's claims every success."""
    import time

    from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

    status = api_pb2.STATUS_SUCCESS if succeeded else api_pb2.STATUS_FAILURE
    ended = plugin_data_pb2.SessionEndInfo(status=status, end_time_secs=time.time())
    content = plugin_data_pb2.HParamsPluginData(
        version=metadata.PLUGIN_DATA_VERSION, session_end_info=ended
    )
    plugin = SummaryMetadata.PluginData(
        plugin_name=metadata.PLUGIN_NAME, content=content.SerializeToString()
    )
    return Summary(
        value=[
            Summary.Value(
                tag=metadata.SESSION_END_INFO_TAG, metadata=SummaryMetadata(plugin_data=plugin)
            )
        ]
    )
