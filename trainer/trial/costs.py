"""Costs of a trial's network: parameters, operations, latency, and the memory of the training.

| metric              | definition                                                            |
|---------------------|-----------------------------------------------------------------------|
| `params`, `flops`   | counts of `archive.trainer.nn.costs`                                  |
| `latency_ms`        | median time of a forward pass in milliseconds, on the trial's device  |
| `latency_iqr_ms`    | interquartile range of these times                                    |
| `latency_batch`     | number of inputs of a pass                                            |
| `latency_prefill_ms` | median time in which a decoder reads a sequence into its cache       |
| `latency_decode_ms` | median time of each next token after that sequence                    |
| `cache_bytes`       | memory of the cache of one sequence after it was read                 |
| `peak_memory_bytes` | on a GPU, largest memory of its tensors; on a CPU, largest growth of  |
|                     | the process since its start, or the size of a child process that is   |
|                     | larger than the process itself                                        |

Latency is measured once, after the training and outside of its recorded time: on a new network of
the builder, in evaluation mode, with the trial's threads and precision, after `WARMUP` passes. It
is measured for `RUNS` passes, or as many as fit into the time of the options, but for `LEAST` at
least. Other trials on the same device slow it down; the interquartile range shows that, and the
evaluation's environment has the number of the trainer's slots. Latencies are comparable on equal
devices alone: the evaluation's property `hardware` names the device.

A decoder of language is measured with its cache as well, on sequences of the task's length. Tokens
are decoded one after the other, so that the cache grows as in use.

A recipe that trained other networks than the builder's has only the costs that it reports itself.
"""

from __future__ import annotations

import logging
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archive.trainer.recipes.context import TrialContext
from archive.trainer.recipes.curve import Metrics
from archive.trainer.recipes.run import Outcome

if TYPE_CHECKING:
    import torch
    from torch import nn

    from archive.trainer.nn.base import HasCache

log = logging.getLogger("archive.trainer")

WARMUP = 5
RUNS = 50
LEAST = 3
_UNIT = 1 if sys.platform == "darwin" else 1024
"""Unit of `ru_maxrss` in bytes."""


@dataclass(frozen=True, slots=True)
class LatencyOptions:
    """How latency is measured.

    Attributes:
        seconds: Longest time of the measurement, up to a few passes; 0 measures none.
        batch: Number of inputs of a pass.
    """

    seconds: float = 0.5
    batch: int = 1


@dataclass(frozen=True, slots=True)
class Latency:
    """Measured latency: median and interquartile range of so many runs, in milliseconds."""

    median: float
    iqr: float
    runs: int


def of_network(
    trial: TrialContext, outcome: Outcome, options: LatencyOptions
) -> tuple[Metrics, dict[str, Any]]:
    """Return the costs of a trial's network by metric, and the conditions of its latency.

    Both are empty without a network. A failure costs no result: it is recorded in place of the
    latency.

    Args:
        trial: Context of the trial, after the training.
        outcome: Outcome of the trial; costs among its metrics are not measured again.
        options: How latency is measured.
    """
    if not trial.built:
        return {}, {}

    from archive.trainer.nn import costs

    try:
        form = trial.task.form(trial.protocol)
        module = trial.module()
        metrics: Metrics = {}
        if not {"params", "flops"} <= outcome.metrics.keys():
            size = costs.measure(module, form.input_shape)
            metrics |= {"params": float(size.params), "flops": float(size.flops)}
    except Exception as error:
        # A builder of another package may raise anything.
        log.warning("costs not measured reason=%r", str(error))
        return {}, {}

    if not options.seconds:
        return metrics, {}

    try:
        measured, conditions = _latencies(
            module, form.input_shape, trial.device, options, outcome.precision
        )
    except Exception as error:
        log.warning("latency not measured reason=%r", str(error))
        return metrics, {"error": f"{type(error).__name__}: {error}"}

    return metrics | measured, conditions


def _latencies(
    module: nn.Module,
    input_shape: tuple[int, ...],
    device: str,
    options: LatencyOptions,
    precision: str,
) -> tuple[Metrics, dict[str, Any]]:
    """Return the latencies of a network by metric, and their conditions."""
    from archive.trainer.nn.base import HasCache

    measured = latency(module, input_shape, device, options, precision)
    metrics: Metrics = {
        "latency_ms": measured.median,
        "latency_iqr_ms": measured.iqr,
        "latency_batch": float(options.batch),
    }
    conditions: dict[str, Any] = {"warmup": WARMUP, "runs": measured.runs}
    if isinstance(module, HasCache):
        generating = generation(module, input_shape[0], device, options, precision)
        metrics["latency_prefill_ms"] = generating.prefill.median
        metrics["latency_decode_ms"] = generating.decode.median
        metrics["cache_bytes"] = generating.cache_bytes
        conditions["prefills"] = generating.prefill.runs
        conditions["decoded"] = generating.decode.runs

    return metrics, conditions


def latency(
    module: nn.Module,
    input_shape: tuple[int, ...],
    device: str,
    options: LatencyOptions,
    precision: str = "float32",
) -> Latency:
    """Return the latency of a network.

    Args:
        module: The network; moved to the device, and left there in evaluation mode.
        input_shape: Shape of one input.
        device: Device in torch's notation.
        options: Time and batch.
        precision: `float32`, `bf16` or `tf32`.
    """
    import torch

    target = torch.device(device)
    module = module.to(target, memory_format=torch.channels_last).eval()  # type: ignore[call-overload]
    x = torch.zeros((options.batch, *input_shape), device=target)
    if x.ndim == 4:
        x = x.contiguous(memory_format=torch.channels_last)

    with _measuring(target, precision):
        return _measure(lambda: module(x), target, options.seconds)


@dataclass(frozen=True, slots=True)
class Generation:
    """Measured generation.

    Attributes:
        prefill: Time of reading a sequence into a new cache.
        decode: Time of each next token.
        cache_bytes: Memory of the cache of one sequence that was read.
    """

    prefill: Latency
    decode: Latency
    cache_bytes: float


def generation(
    module: HasCache,
    length: int,
    device: str,
    options: LatencyOptions,
    precision: str = "float32",
) -> Generation:
    """Return the latencies of a decoder with a cache, and the cache's memory.

    Args:
        module: The network, on the device and in evaluation mode.
        length: Tokens of a sequence that is read.
        device: Device in torch's notation.
        options: Time of each of the two latencies, and sequences of a pass.
        precision: `float32`, `bf16` or `tf32`.
    """
    import torch

    target = torch.device(device)
    tokens = torch.zeros((options.batch, length), dtype=torch.int64, device=target)
    with _measuring(target, precision):
        prefill = _measure(
            lambda: module.extend(tokens, module.new_cache()), target, options.seconds
        )
        cache = module.new_cache()
        module.extend(tokens, cache)
        size = cache.bytes() / options.batch
        decode = _measure(lambda: module.extend(tokens[:, :1], cache), target, options.seconds)

    return Generation(prefill, decode, size)


@contextmanager
def _measuring(device: torch.device, precision: str) -> Iterator[None]:
    """Set the precision, without gradients."""
    import torch

    from archive.trainer.fit import precision as precisions

    with (
        torch.inference_mode(),
        precisions.tf32_units(precision),
        precisions.autocast_context(precision, device),
    ):
        yield


def _measure(run: Callable[[], object], device: torch.device, seconds: float) -> Latency:
    """Return the latency of a pass on a device."""
    import torch

    wait: Callable[[], object] = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    times = _times(run, wait, seconds)
    quartiles = statistics.quantiles(times, n=4, method="inclusive")
    return Latency(1000 * quartiles[1], 1000 * (quartiles[2] - quartiles[0]), len(times))


def _times(run: Callable[[], object], wait: Callable[[], object], seconds: float) -> list[float]:
    deadline = time.perf_counter() + seconds
    for _ in range(WARMUP):
        run()
        wait()
        if time.perf_counter() > deadline:
            break

    times: list[float] = []
    while len(times) < LEAST or (len(times) < RUNS and time.perf_counter() < deadline):
        start = time.perf_counter()
        run()
        wait()
        times.append(time.perf_counter() - start)

    return times


class PeakMemory:
    """Largest memory of a trial since its start.

    Args:
        device: Device in torch's notation.
    """

    def __init__(self, device: str) -> None:
        import psutil

        self.device = device
        self._before = int(psutil.Process().memory_info().rss)

    def bytes(self) -> int:
        """Return the memory in bytes."""
        if self.device.startswith("cuda"):
            import torch

            return int(torch.cuda.max_memory_allocated(self.device))

        peak = _peak()
        child = _UNIT * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        growth = max(peak - self._before, 0)
        # A child's peak includes its time as a copy of this process, before it ran its own program.
        return max(growth, child) if child > peak else growth


def _peak() -> int:
    """Return the largest resident memory of this process in bytes."""
    # `ru_maxrss` would include the memory of the program that started this one.
    line = _first_line("/proc/self/status", "VmHWM:")
    if line is not None:
        return 1024 * int(line.split()[1])

    return _UNIT * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def hardware_name(device: str) -> str:
    """Return the name of a device's hardware: the model of the GPU or of the CPU."""
    if device.startswith("cuda"):
        import torch

        return torch.cuda.get_device_name(device)

    line = _first_line("/proc/cpuinfo", "model name") or ""
    return line.partition(":")[2].strip() or platform.processor() or platform.machine()


def _first_line(path: str, prefix: str) -> str | None:
    """Return the first line of a file with a prefix; None without such a line or file."""
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                if line.startswith(prefix):
                    return line
    except OSError:
        pass

    return None
