"""Rank correlations of each surrogate with each kernel on unseen architectures.

For every seed, a permutation splits a fixed sample of a table: the first networks are training
data, the last are ranked. Distances within the sample are computed once a kernel, in `Block`, and
timed separately, so that the times of a fit and of a prediction are those of the surrogate alone.

    rho   Spearman's rank correlation of the predicted means with the table's values
    tau   Kendall's rank correlation of the same
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

from archive import kernels as kernel_registry
from archive.agents.surrogates import registry as surrogate_registry
from archive.agents.surrogates.base import Array, Surrogate
from archive.architecture.graph import Architecture
from archive.errors import UnknownNameError, UsageError
from archive.kernels.base import Components, Distance
from archive.spaces.tables.reader import Table

SIZES = (20, 50, 100, 200, 500)
"""Numbers of networks learnt from."""

TASKS = {
    "nb201-cifar10": ("nb201", "cifar10_valid_12ep"),
    "nb201-cifar100": ("nb201", "cifar100_valid_12ep"),
    "nb101": ("nb101", "val_acc_108ep"),
}
"""Name to table and column."""


@dataclass(frozen=True)
class RankedSurrogate:
    """One surrogate with one kernel.

    Attributes:
        kernel: Name in the registry of kernels.
        surrogate: Name in the registry of surrogates.
        settings: Settings of the kernel that differ from its defaults.
    """

    kernel: str
    surrogate: str
    settings: tuple[tuple[str, Any], ...] = ()

    @property
    def kernel_name(self) -> str:
        """Name of the kernel, with the settings that differ from its defaults."""
        return " ".join([self.kernel, *(f"{name}={value}" for name, value in self.settings)])


VARIANTS = (
    RankedSurrogate("tree-wasserstein", "gp", (("n", (1, 2, 3)), ("functional", True))),
    RankedSurrogate("path", "gp", (("counts", True),)),
    RankedSurrogate("edit", "gp", (("layers", "attributes"),)),
)
"""Kernels with other settings than their defaults that may rank better."""


Job = list[tuple[str, RankedSurrogate]]


class RankingResult(NamedTuple):
    """Result of one surrogate on one task, fitted to n networks.

    Attributes:
        task: Name of the task.
        surrogate: Name of the surrogate.
        kernel: Name of the kernel, with the settings that differ from its defaults.
        n: Number of training networks.
        seeds: Repetitions.
        spearman: Mean over the seeds.
        spearman_error: Its standard error.
        kendall: Mean over the seeds.
        fit_seconds: Median over the seeds, given the distances.
        predict_seconds: Median over the seeds, for the networks ranked.
        pair_microseconds: Time of the distances of a pair, the preparation of networks included.
    """

    task: str
    surrogate: str
    kernel: str
    n: int
    seeds: int
    spearman: float
    spearman_error: float
    kendall: float
    fit_seconds: float
    predict_seconds: float
    pair_microseconds: float


class Block:
    """The distances within one sample, computed once.

    Args:
        distance: The kernel.
        architectures: The sample, distinct by key.
    """

    def __init__(self, distance: Distance[Any], architectures: Sequence[Architecture]) -> None:
        """Compute all pairs."""
        self.distance = distance
        self.place = {architecture.key: at for at, architecture in enumerate(architectures)}
        begin = time.perf_counter()
        with warnings.catch_warnings():
            # Fits that did not converge are part of the measurement.
            warnings.simplefilter("ignore")
            self.components = self.distance.distances(architectures)

        pairs = len(architectures) * (len(architectures) - 1) / 2
        self.pair_microseconds = 1e6 * (time.perf_counter() - begin) / max(pairs, 1.0)

    def distances(
        self, first: Sequence[Architecture], second: Sequence[Architecture] | None = None
    ) -> Components:
        """Look the distances up."""
        rows = [self.place[architecture.key] for architecture in first]
        columns = (
            rows if second is None else [self.place[architecture.key] for architecture in second]
        )
        chosen = np.ix_(range(len(self.components.stack)), rows, columns)
        return Components.of_stack(self.components.stack[chosen], self.distance.unnormalised)


def contestants(
    kernels: Sequence[str] = (), surrogates: Sequence[str] = ()
) -> tuple[RankedSurrogate, ...]:
    """Return every compatible pair of a surrogate and a kernel, then `VARIANTS`.

    Args:
        kernels: Names to keep; empty for all.
        surrogates: Names to keep; empty for all.

    Raises:
        UnknownNameError: No kernel, or no surrogate, has one of the names.
    """
    for kind, names, known in (
        ("kernel", kernels, kernel_registry.names()),
        ("surrogate", surrogates, surrogate_registry.names()),
    ):
        for name in names:
            if name not in known:
                raise UnknownNameError(kind, name, known)

    pairs = [
        RankedSurrogate(kernel, surrogate)
        for surrogate in surrogate_registry.names()
        for kernel in kernel_registry.names()
        if surrogate_registry.takes(surrogate, kernel)
    ]
    return tuple(
        one
        for one in (*pairs, *VARIANTS)
        if (not kernels or one.kernel in kernels)
        and (not surrogates or one.surrogate in surrogates)
    )


def measure(
    tasks: Sequence[str] = tuple(TASKS),
    chosen: Sequence[RankedSurrogate] | None = None,
    *,
    sizes: Sequence[int] = SIZES,
    seeds: int = 20,
    ranked: int = 500,
    processes: int = 1,
) -> Iterator[RankingResult]:
    """Yield rank correlations lazily, one task, contestant and size at a time.

    Args:
        tasks: Names in `TASKS`.
        chosen: Surrogates with their kernels; None means `contestants()`.
        sizes: Numbers of training networks.
        seeds: Repetitions, each with another split.
        ranked: Number of networks to rank; the sample has this number plus the largest size.
        processes: Number of kernels measured concurrently. Times include the load of all processes.

    Raises:
        UsageError: A task is unknown, or a number is out of range; raised by the call, before any
            measurement.
    """
    for task in tasks:
        if task not in TASKS:
            raise UsageError(f"the task must be one of {', '.join(TASKS)}, got {task!r}")

    if not sizes or min(sizes) < 2 or seeds < 1 or ranked < 2:
        raise UsageError(
            f"sizes and ranked must be >= 2 and seeds >= 1, got {list(sizes)}, {ranked} and {seeds}"
        )

    jobs = _jobs(tasks, contestants() if chosen is None else chosen)
    return _measured(jobs, tuple(sizes), seeds, ranked, processes)


def _measured(
    jobs: Sequence[Job], sizes: tuple[int, ...], seeds: int, ranked: int, processes: int
) -> Iterator[RankingResult]:
    arguments = jobs, repeat(sizes), repeat(seeds), repeat(ranked)
    if processes == 1:
        for standings in map(_standings, *arguments):
            yield from standings

        return

    # Spawned, since a fork would inherit the threads of earlier code.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for standings in pool.map(_standings, *arguments):
            yield from standings


def _jobs(tasks: Sequence[str], chosen: Sequence[RankedSurrogate]) -> list[Job]:
    """Group the measurements that share one block of distances: tasks of one table, contestants of
    one kernel.
    """
    jobs: dict[tuple[str, str], Job] = {}
    for task in tasks:
        for contestant in chosen:
            jobs.setdefault((TASKS[task][0], contestant.kernel_name), []).append((task, contestant))

    return list(jobs.values())


def _standings(job: Job, sizes: tuple[int, ...], seeds: int, ranked: int) -> list[RankingResult]:
    first_task, first = job[0]
    architectures, _ = sample(first_task, max(sizes) + ranked)
    block = Block(kernel_registry.get(first.kernel, **dict(first.settings)), architectures)
    results = []
    for task, contestant in job:
        surrogate = surrogate_registry.get(contestant.surrogate, block.distance, block)
        scores = sample(task, max(sizes) + ranked)[1]
        for n in sizes:
            trials = [
                _trial(surrogate, architectures, scores, n, ranked, seed) for seed in range(seeds)
            ]
            results.append(_standing(task, contestant, n, trials, block.pair_microseconds))

    return results


Trial = tuple[float, float, float, float]
"""rho, tau, seconds of the fit, seconds of the prediction."""


def _standing(
    task: str, contestant: RankedSurrogate, n: int, trials: Sequence[Trial], microseconds: float
) -> RankingResult:
    rho, tau, fit, predict = (list(column) for column in zip(*trials, strict=True))
    seeds = len(trials)
    return RankingResult(
        task,
        contestant.surrogate,
        contestant.kernel_name,
        n,
        seeds,
        spearman=statistics.fmean(rho),
        spearman_error=statistics.stdev(rho) / seeds**0.5 if seeds > 1 else float("nan"),
        kendall=statistics.fmean(tau),
        fit_seconds=statistics.median(fit),
        predict_seconds=statistics.median(predict),
        pair_microseconds=microseconds,
    )


def sample(task: str, size: int) -> tuple[list[Architecture], Array]:
    """Return a fixed sample of `size` networks of a task's table with their values, or the whole
    table.
    """
    name, column = TASKS[task]
    table = Table.named(name)
    chosen = np.sort(np.random.default_rng(0).permutation(len(table.architectures))[:size])
    return [table.architectures[at] for at in chosen], table.column(column)[chosen]


def _trial(
    surrogate: Surrogate,
    architectures: Sequence[Architecture],
    scores: Array,
    n: int,
    ranked: int,
    seed: int,
) -> Trial:
    from scipy.stats import kendalltau, spearmanr

    rng = np.random.default_rng(seed)
    order = rng.permutation(len(architectures))
    known = order[:n]
    unknown = order[-ranked:]
    fitted, fit_seconds = _timed(
        lambda: surrogate.fit([architectures[at] for at in known], scores[known], rng)
    )
    posterior, predict_seconds = _timed(
        lambda: fitted.posterior([architectures[at] for at in unknown])
    )
    rho, tau = (
        float(rank(posterior.mean, scores[unknown]).statistic) for rank in (spearmanr, kendalltau)
    )
    # A surrogate with one prediction for all networks has no rank correlation: it counts as chance.
    return np.nan_to_num(rho), np.nan_to_num(tau), fit_seconds, predict_seconds


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = work()

    return result, time.perf_counter() - begin
