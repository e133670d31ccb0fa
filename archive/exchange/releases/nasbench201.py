"""NAS-Bench-201, or the topology part of NATS-Bench, in one file or in a folder.

    one file      {"arch2infos": {index: cell, …}, …}
    folder        `000000.pickle.pbz2`, …: a file for each cell; `meta.pickle.pbz2`
    cell          {"less" or "12": trainings of 12 epochs, "full" or "200": trainings of 200 epochs}
    trainings     {"arch_str": cell, "all_results": {(data set, seed): result}, …}
    result        {"train_acc1es": {epoch: percent}, "train_losses", "train_times",
                   "eval_acc1es": {"x-valid@199": percent}, "flop", "params": millions,
                   "latency": seconds, …}

Sources: Dong & Yang, "NAS-Bench-201" (2020), `nas_201_api/api_201.py` of
https://github.com/D-X-Y/NAS-Bench-201; Dong et al., "NATS-Bench" (2021),
https://github.com/D-X-Y/NATS-Bench, `nats_bench/api_topology.py`. The data set `cifar10-valid` is
CIFAR-10 with a validation part; the networks of `cifar10` are trained on both parts, and tested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from archive.errors import ArchiveError, UsageError
from archive.exchange.releases.pickles import content_of

BENCHMARK = "NAS-Bench-201"
UNREADABLE = (
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    ArchiveError,
)
"""Errors that an entry of another form may raise."""

_LENGTHS = {"less": 12, "12": 12, "full": 200, "200": 200}
_TRUSTED_SEED = 888
_SUFFIX = ".pickle.pbz2"


class CellTrainings(NamedTuple):
    """The trainings of a cell.

    Attributes:
        number: Its number in the release.
        by_epochs: Length to the trainings of that length, in the form of the file.
    """

    number: int
    by_epochs: Mapping[int, Mapping[str, Any]]


def read(path: Path) -> Iterable[CellTrainings]:
    """Return the cells of a release by number; files of a folder are read one at a time.

    Raises:
        UsageError: It has another format, or names objects that could run code.
    """
    if path.is_dir():
        files = sorted(file for file in path.glob(f"*{_SUFFIX}") if file.name != f"meta{_SUFFIX}")
        if not files:
            raise UsageError(f"{path} is no folder of {BENCHMARK}: it has no 000000{_SUFFIX}")

        return (
            _cell(file, file.name.removesuffix(_SUFFIX), content_of(file, BENCHMARK))
            for file in files
        )

    cells = content_of(path, BENCHMARK).get("arch2infos")
    if not isinstance(cells, dict):
        raise UsageError(f"{path} is no file of {BENCHMARK}: it has no arch2infos")

    return sorted(_cell(path, index, cell) for index, cell in cells.items())


def results(trainings: Mapping[str, Any], dataset: str) -> Mapping[int, Mapping[str, Any]]:
    """Return the results on one data set by their seeds, in ascending order."""
    by_seed = {}
    for (of, seed), result in sorted(trainings["all_results"].items()):
        if of == dataset:
            by_seed[seed] = result

    return by_seed


def sizes(by_seed: Mapping[int, Mapping[str, Any]]) -> tuple[float, float]:
    """Return parameters and FLOPs of a network, both in millions.

    Some trainings have wrong ones in the release: where they differ, its authors use seed 888.
    """
    accuracies = {}
    for seed, result in by_seed.items():
        accuracies[seed] = (float(result["params"]), float(result["flop"]))

    if len({(f"{params:.5f}", f"{flops:.5f}") for params, flops in accuracies.values()}) > 1:
        return accuracies[_TRUSTED_SEED]

    return next(iter(accuracies.values()))


def misread(path: Path, index: Any, error: Exception) -> UsageError:
    """Return the error of a cell that has another form."""
    return UsageError(
        f"cell {index!r:.20} of {path} has another form than {BENCHMARK}'s: {error!r:.200}"
    )


def _cell(path: Path, index: Any, cell: Any) -> CellTrainings:
    try:
        return CellTrainings(
            int(index), {_LENGTHS[name]: cell[name] for name in _LENGTHS if name in cell}
        )
    except UNREADABLE as error:
        raise misread(path, index, error) from None
