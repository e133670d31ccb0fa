"""timm: results and speeds that its authors publish, and its models without weights.

| file                                        | task          | protocol                        |
|---------------------------------------------|---------------|---------------------------------|
| `results-imagenet.csv` and further ones     | `imagenet-1k` | `timm/RECIPE@SIZE`              |
| `benchmark-infer-amp-nchw-pt240-cu124-…csv` | `inference`   | `timm/rtx4090/amp/pt2.4/cu124@SIZE` |
| `benchmark-train-…csv`                      | `training`    | likewise                        |

A speed is of an architecture, a result of an architecture and a recipe. Files may be compressed
(`.csv.gz`). They are Apache-2.0 (https://github.com/huggingface/pytorch-image-models).
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path

from archive.errors import UsageError
from archive.files import data_folders
from archive.store.evaluations import TaskProtocol
from archive.store.records import Result
from archive.trainer.datasets.sources import SourceFile, fetch
from archive.trainer.zoo.building import PACKAGES, build_network
from archive.trainer.zoo.published import PublishedNetwork, PublishedResult, pretraining_of

NAME = "timm"
LICENSE = "Apache-2.0"
TAG = "v1.0.31"
"""Tag of the repository whose files are fetched."""
ADDRESS = "https://raw.githubusercontent.com/huggingface/pytorch-image-models"

TASKS: Mapping[str, str] = {
    "results-imagenet": "imagenet-1k",
    "results-imagenet-real": "imagenet-real",
    "results-imagenetv2-matched-frequency": "imagenet-v2",
    "results-sketch": "imagenet-sketch",
    "results-imagenet-r": "imagenet-r",
    "results-imagenet-a": "imagenet-a",
}
"""Files of results, and the tasks that they are of."""
SPEEDS = (
    "benchmark-infer-amp-nchw-pt240-cu124-rtx3090",
    "benchmark-infer-amp-nchw-pt240-cu124-rtx4090",
    "benchmark-infer-amp-nchw-pt291-cu130-5090",
    "benchmark-infer-fp32-nchw-pt240-cpu-i7_12700h-dynamo",
    "benchmark-train-amp-nchw-pt112-cu113-rtx3090",
)
"""Files of speeds that are fetched."""

_SPEED = re.compile(
    r"benchmark-(?P<kind>infer|train)-(?P<precision>[a-z0-9_]+)-(?P<layout>nchw|nhwc)"
    r"-pt(?P<torch>\d{3})-(?P<platform>cu\d+|cpu)-(?P<device>[a-z0-9_]+?)(?P<dynamo>-dynamo)?"
)
_KINDS = {"infer": "inference", "train": "training"}
_ROUNDING = 0.00501
"""Tables have millions of parameters with two decimals."""

build = partial(build_network, NAME)
"""Function that returns a model by its name as an architecture."""


@dataclass(frozen=True)
class ResultFile:
    """A file of results or speeds.

    Attributes:
        name: Its name without suffixes.
        text: Its content.
        commit: Tag that it was fetched from, or the digest of its content.
    """

    name: str
    text: str
    commit: str


def published(folder: Path | None = None) -> list[PublishedNetwork]:
    """Return the networks of timm that have published results, small ones first.

    Args:
        folder: Folder with the files; None looks into `timm` in the data folders, and fetches
            what is missing there.

    Raises:
        UsageError: The folder has no file of results, or a file has another form.
        MissingDataError: A file cannot be fetched.
    """
    files = list(_fetched() if folder is None else _files_in(folder))
    speeds: dict[str, list[PublishedResult]] = {}
    for file in files:
        if file.name not in TASKS:
            for result in _speeds(file):
                speeds.setdefault(result.model, []).append(result)

    results: dict[str, dict[str, PublishedResult]] = {}
    for file in files:
        if file.name in TASKS:
            for result in _results(file):
                name = result.model.partition(".")[0]
                results.setdefault(name, {}).setdefault(result.id, result)

    networks = []
    for name, by_id in results.items():
        of_network = [*by_id.values(), *speeds.get(name, ())]
        reference = min(result.model for result in by_id.values())
        size = max(result.params or 0.0 for result in by_id.values())
        networks.append(PublishedNetwork(name, reference, tuple(of_network), size))

    return sorted(networks, key=lambda network: (network.size, network.name))


def _files_in(folder: Path) -> Iterator[ResultFile]:
    """Yield the files of results and speeds in a folder."""
    paths = {}
    for path in sorted(folder.glob("*.csv*")):
        name, _, suffix = path.name.partition(".")
        if suffix in ("csv", "csv.gz") and (name in TASKS or _SPEED.fullmatch(name)):
            paths[name] = path

    if not paths.keys() & TASKS.keys():
        raise UsageError(f"{folder} has no results of timm: results-imagenet.csv or .csv.gz")

    for name, path in paths.items():
        yield _read(name, path)


def _fetched() -> Iterator[ResultFile]:
    """Yield the files of the data folders, or the official ones."""
    for folder in data_folders():
        if any(folder.glob("timm/results-*.csv*")):
            yield from _files_in(folder / "timm")
            return

    for name in (*TASKS, *SPEEDS):
        file = SourceFile(f"timm/{TAG}/{name}.csv", f"{ADDRESS}/{TAG}/results/{name}.csv")
        yield _read(name, fetch("timm", file, data_folders()[-1]), TAG)


def _read(name: str, path: Path, commit: str = "") -> ResultFile:
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    except (OSError, EOFError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {type(error).__name__}") from None

    return ResultFile(name, text, commit or f"sha256:{sha256(text.encode()).hexdigest()[:16]}")


def _results(file: ResultFile) -> Iterator[PublishedResult]:
    """Yield the accuracies of a file."""
    for row in _rows(file, ("model", "img_size", "top1", "top5", "param_count")):
        model = row.text("model")
        recipe = model.partition(".")[2] or "default"
        task = TaskProtocol(
            TASKS[file.name], f"{NAME}/{recipe}@{row.whole('img_size')}", "maximise"
        )
        metrics = {"top1": row.number("top1"), "top5": row.number("top5")}
        environment = {"file": f"{file.name}.csv"}
        for name in ("crop_pct", "interpolation"):
            if row.cells.get(name):
                environment[name] = row.cells[name]

        result = Result(
            metrics["top1"],
            metrics,
            environment=environment,
            provenance=_provenance(file) | pretraining_of(recipe),
        )
        yield PublishedResult(task, model, result, row.number("param_count"), _ROUNDING)


def _speeds(file: ResultFile) -> Iterator[PublishedResult]:
    """Yield the speeds of a file: throughput, and the time of one input."""
    match = _SPEED.fullmatch(file.name)
    assert match is not None, file.name
    kind = match["kind"]
    device = re.sub(r"^(?=\d{4}$)", "rtx", match["device"])
    parts = [NAME, device, match["precision"]]
    if match["layout"] != "nchw":
        parts.append(match["layout"])

    release = match["torch"]
    parts.append(f"pt1.{release[1:]}" if release < "200" else f"pt{release[0]}.{release[1]}")
    parts += [match["platform"]] if match["platform"] != "cpu" else []
    parts += ["dynamo"] if match["dynamo"] else []
    columns = [f"{kind}_{name}" for name in ("img_size", "samples_per_sec", "batch_size")]
    for row in _rows(file, ("model", "param_count", *columns)):
        speed = row.number(f"{kind}_samples_per_sec")
        if speed <= 0.0:
            raise UsageError(f"{row.where} has the speed {speed:g}")

        metrics = {
            "samples_per_second": speed,
            "latency_ms": 1000.0 / speed,
            "latency_batch": row.number(f"{kind}_batch_size"),
        }
        for metric, column in (("flops", "gmacs"), ("activations", "macts")):
            if row.cells.get(f"{kind}_{column}"):
                unit = 1e9 if metric == "flops" else 1e6
                metrics[metric] = float(round(unit * row.number(f"{kind}_{column}")))

        size = row.whole(f"{kind}_img_size")
        result = Result(
            speed,
            metrics,
            device="cpu" if match["platform"] == "cpu" else "cuda",
            hardware=re.sub("^rtx", "RTX ", device).replace("_", "-"),
            environment={"file": f"{file.name}.csv"},
            provenance=_provenance(file),
        )
        task = TaskProtocol(_KINDS[kind], f"{'/'.join(parts)}@{size}", "maximise")
        yield PublishedResult(task, row.text("model"), result, row.number("param_count"), _ROUNDING)


def _provenance(file: ResultFile) -> dict[str, str]:
    version = file.commit.removeprefix("v") if file.commit == TAG else ""
    return {
        "source": f"{NAME} {version or PACKAGES[NAME]()}",
        "license": LICENSE,
        "commit": file.commit,
    }


@dataclass(frozen=True)
class _Row:
    """A row of a file; `where` names it in errors."""

    cells: Mapping[str, str]
    where: str

    def text(self, name: str) -> str:
        if not self.cells[name]:
            raise UsageError(f"{self.where} has no {name}")

        return self.cells[name]

    def number(self, name: str) -> float:
        try:
            value = float(self.text(name).replace(",", ""))
        except ValueError:
            value = math.nan

        if not math.isfinite(value):
            raise UsageError(f"{self.where} has the {name} {self.cells[name]!r:.60}")

        return value

    def whole(self, name: str) -> int:
        return round(self.number(name))


def _rows(file: ResultFile, columns: Iterable[str]) -> Iterator[_Row]:
    reader = csv.DictReader(io.StringIO(file.text), restval="")
    missing = sorted(set(columns) - set(reader.fieldnames or ()))
    if missing:
        raise UsageError(f"{file.name}.csv has no column {missing[0]}: is it a file of timm?")

    for cells in reader:
        yield _Row(cells, f"line {reader.line_num} of {file.name}.csv")
