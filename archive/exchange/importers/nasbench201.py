"""Importer of NAS-Bench-201's `NAS-Bench-201-v1_1-096897.pth`: a pickle, read without executing its code.

    {"meta_archs": [cell, …], "arch2infos": {index: {"less": trainings of 12 epochs, "full": of 200}}, …}
    trainings     {"arch_str": cell, "all_results": {(data set, seed): result}, …}
    result        {"train_acc1es": {epoch: percent}, "train_losses", "train_times",
                   "eval_acc1es": {"x-valid@199": percent}, "flops", "params": millions, "latency": seconds, …}

Source: Dong & Yang, "NAS-Bench-201" (2020), `nas_201_api/api_201.py` of https://github.com/D-X-Y/NAS-Bench-201. A
pickle can name any function; this one may name numpy's numbers and ordered dictionaries, and is refused when it names
anything else. Each training (a seed on a data set) is one evaluation; accuracies become fractions. The whole file is
read into memory, a few times its size on disk.
"""

from __future__ import annotations

import collections
import pickle
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from archive.architecture import codec
from archive.errors import ArchiveError, UsageError
from archive.exchange.importers.external import ExternalResult
from archive.store.records import Result

OBJECTIVE = "valid_accuracy"
HYPERPARAMETERS = {12: "less", 200: "full"}


class Split(NamedTuple):
    """Names of a data set's parts in the file: training, validation and test."""

    dataset: str
    valid: str
    test: str


TASKS = {
    "nb201-cifar10": Split("cifar10-valid", "x-valid", "ori-test"),
    "nb201-cifar100": Split("cifar100", "x-valid", "x-test"),
    "nb201-imagenet16": Split("ImageNet16-120", "x-valid", "x-test"),
}
"""Task to the data set in the file with the benchmark's values for searches."""


def read(path: Path) -> Mapping[str, Any]:
    """Return the content of the file.

    Raises:
        UsageError: The file has another format, or names objects that could run code.
    """
    import torch

    if not path.is_file():
        raise UsageError(f"cannot read {path}: there is no such file")
    try:
        with warnings.catch_warnings(), torch.serialization.safe_globals(_harmless()):
            # torch warns of pickles by other programs; the restricted unpickler makes them safe.
            warnings.simplefilter("ignore")
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        what = str(error).partition("GLOBAL ")[2].partition(" ")[0]
        why = f"it names {what}, which could run code" if what else "it is no pickle that can be read safely"
        raise UsageError(f"{path} is refused: {why}") from None
    except Exception as error:
        # Unpickling untrusted bytes may raise any error.
        raise UsageError(f"{path} is no file of NAS-Bench-201: torch cannot read it ({type(error).__name__})") from None
    if not isinstance(content, dict) or not isinstance(content.get("arch2infos"), dict):
        raise UsageError(f"{path} is no file of NAS-Bench-201: it has no arch2infos")
    return content


def external_results(path: Path, content: Mapping[str, Any], task: str, epochs: int) -> Iterator[ExternalResult]:
    """Yield the trainings of one length on one data set.

    Args:
        path: Path of the file, for messages.
        content: Return value of `read`.
        task: One of `TASKS`.
        epochs: 12 or 200.

    Raises:
        UsageError: An entry has another form than the benchmark's; the message names it.
    """
    split = TASKS[task]
    for index, info in sorted(content["arch2infos"].items()):
        try:
            trainings = info[HYPERPARAMETERS[epochs]]
            network = codec.from_nasbench201(trainings["arch_str"])
            for (dataset, seed), result in sorted(trainings["all_results"].items()):
                if dataset == split.dataset:
                    yield ExternalResult(
                        f"{task}/{epochs}/{int(index)}/{int(seed)}",
                        network,
                        _result(result, split, epochs, int(seed)),
                        round(1e6 * float(result["params"])),
                        round(1e6 * float(result["flops"])),
                    )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, ArchiveError) as error:
            raise UsageError(
                f"cell {index!r:.20} of {path} has another form than NAS-Bench-201's: {error!r:.200}"
            ) from None


def _result(result: Mapping[str, Any], split: Split, epochs: int, seed: int) -> Result:
    if int(result["epochs"]) != epochs:
        raise UsageError(f"it was trained for {int(result['epochs'])} epochs, not {epochs}")
    last = epochs - 1
    evaluated = result["eval_acc1es"]
    metrics = {
        OBJECTIVE: float(evaluated[f"{split.valid}@{last}"]) / 100,
        "train_accuracy": float(result["train_acc1es"][last]) / 100,
        "train_loss": float(result["train_losses"][last]),
    }
    # Some trainings have no test result at their end.
    if f"{split.test}@{last}" in evaluated:
        metrics["test_accuracy"] = float(evaluated[f"{split.test}@{last}"]) / 100
    if latencies := result.get("latency"):
        metrics["latency_ms"] = 1000 * sum(map(float, latencies)) / len(latencies)
    times = result.get("train_times")
    return Result(
        value=metrics[OBJECTIVE],
        metrics=metrics,
        curve=_curve(result, split, epochs),
        epochs=epochs,
        seconds=sum(map(float, times.values())) if times else None,
        seed=seed,
        environment={"benchmark": "NAS-Bench-201"},
    )


def _curve(result: Mapping[str, Any], split: Split, epochs: int) -> dict[str, list[float]]:
    steps = [step for step in range(epochs) if step in result["train_acc1es"] and step in result["train_losses"]]
    curve = {
        "epoch": [float(step + 1) for step in steps],
        "train_accuracy": [float(result["train_acc1es"][step]) / 100 for step in steps],
        "train_loss": [float(result["train_losses"][step]) for step in steps],
    }
    valid = [result["eval_acc1es"].get(f"{split.valid}@{step}") for step in steps]
    if None not in valid:
        curve[OBJECTIVE] = [float(value) / 100 for value in valid]
    return curve


def _harmless() -> list[Any]:
    """Return the objects that the file may name: numbers of numpy, as pickled by its releases 1 and 2."""
    import _codecs

    import numpy as np
    from numpy._core import multiarray

    scalar = multiarray.scalar
    return [
        *((scalar, f"numpy.{core}.multiarray.scalar") for core in ("core", "_core")),
        *(np.dtype, np.dtypes.Float64DType, np.dtypes.Float32DType, np.dtypes.Int64DType),
        (_codecs.encode, "_codecs.encode"),
        *(collections.OrderedDict, collections.defaultdict, dict, list),
    ]
