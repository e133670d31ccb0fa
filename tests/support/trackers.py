"""What TensorBoard, MLflow and Weights & Biases have recorded, read from their own files."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote


@dataclass
class Recorded:
    """A run: the values of each metric by step, its settings, and its end with the final values by
    name."""

    metrics: dict[str, dict[int, float]] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    state: str = ""
    reason: str = ""
    final: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, values: dict[int, float]) -> None:
        """Keep a metric of steps, or a final value: `value`, `final/…` or `cost/…`."""
        kind, _, rest = name.replace(".", "/", 1).partition("/")
        if kind in ("value", "final", "cost"):
            self.final["value" if kind == "value" else f"{kind}/{rest}"] = list(values.values())[-1]
        else:
            self.metrics.setdefault(name, {}).update(values)


def tensorboard(home: Path) -> dict[str, Recorded]:
    """Return the runs by study and number."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    runs = {}
    for folder in sorted((home / "tensorboard").glob("*/*")):
        events = EventAccumulator(str(folder))
        events.Reload()
        run = runs[f"{unquote(folder.parent.name)}#{folder.name.partition('-')[0]}"] = Recorded()
        for tag in events.Tags()["scalars"]:
            run.add(tag, {event.step: event.value for event in events.Scalars(tag)})

        if "end/text_summary" in events.Tags()["tensors"]:
            end = events.Tensors("end/text_summary")[-1].tensor_proto.string_val[0].decode()
            run.state, _, run.reason = end.partition(": ")

        plugin = events.PluginTagToContent("hparams")
        started = HParamsPluginData.FromString(
            plugin["_hparams_/session_start_info"]
        ).session_start_info
        for name, value in started.hparams.items():
            run.settings[name] = getattr(value, value.WhichOneof("kind"))

        ended = HParamsPluginData.FromString(
            plugin.get("_hparams_/session_end_info", b"")
        ).session_end_info
        # STATUS_SUCCESS is 1, STATUS_FAILURE is 2.
        assert ended.status == {"COMPLETE": 1, "FAILED": 2}.get(run.state, 0)

    return runs


def mlflow(home: Path) -> dict[str, Recorded]:
    """Return the runs of the file store by proposal."""
    runs = {}
    for folder in sorted(path.parent for path in (home / "mlflow").glob("*/*/params")):
        tags = {path.name: path.read_text() for path in (folder / "tags").iterdir()}
        run = runs[tags["archive.proposal"]] = Recorded()
        run.settings = {path.name: path.read_text() for path in (folder / "params").iterdir()}
        run.state = tags.get("archive.state", "")
        run.reason = tags.get("archive.reason", "")
        for path in (folder / "metrics").iterdir():
            lines = [line.split() for line in path.read_text().splitlines()]
            run.add(path.name, {int(step): float(value) for _, value, step, *_ in lines})

        meta = (folder / "meta.yaml").read_text()
        status = int(meta.partition("\nstatus: ")[2].partition("\n")[0])
        # MLflow's RunStatus: RUNNING is 1, SCHEDULED 2, FINISHED 3, FAILED 4, KILLED 5.
        expected = {
            "COMPLETE": {3},
            "FAILED": {4},
            "PAUSED": {2},
            "RETURNED": {2},
            "RUNNING": {1, 5},
        }
        assert status in expected[run.state]

    return runs


def wandb(home: Path) -> dict[str, Recorded]:
    """Return the offline runs by proposal; a run that was continued has several files."""
    from wandb.proto.wandb_internal_pb2 import Record

    runs: dict[str, Recorded] = {}
    for path in sorted((home / "wandb").glob("offline-run-*/*.wandb")):
        run = Recorded()
        for record in map(Record.FromString, _leveldb_log(path.read_bytes())):
            match record.WhichOneof("record_type"):
                case "run":
                    run = runs.setdefault(record.run.display_name, run)
                    assert record.run.display_name.startswith(f"{record.run.run_group}#")
                    run.settings |= {
                        item.key: json.loads(item.value_json) for item in record.run.config.update
                    }
                case "history":
                    items = {
                        item.key or item.nested_key[0]: json.loads(item.value_json)
                        for item in record.history.item
                    }
                    step = int(items.pop("_step"))
                    for name, value in items.items():
                        run.add(name, {step: float(value)})
                case "summary":
                    for item in record.summary.update:
                        name = item.key or item.nested_key[0]
                        value = json.loads(item.value_json)
                        if name in ("state", "reason"):
                            setattr(run, name, value)
                        elif name == "value" or "/" in name:
                            run.add(name, {0: value})
                case "exit":
                    assert record.exit.exit_code == (run.state in ("FAILED", ""))

    return runs


def _leveldb_log(content: bytes, block: int = 32768, header: int = 7) -> list[bytes]:
    """Return the records of a log: blocks of fragments, each with a checksum, a length and its
    place in the record."""
    records = []
    record = b""
    at = header
    while at + header <= len(content):
        if block - at % block < header:
            at += block - at % block

        length = int.from_bytes(content[at + 4 : at + 6], "little")
        place = content[at + 6]
        record += content[at + header : at + header + length]
        at += header + length
        # 1 is a whole record, 4 the last fragment of one.
        if place in (1, 4):
            records.append(record)
            record = b""

    return records
