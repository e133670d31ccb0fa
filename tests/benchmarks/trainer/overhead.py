"""Benchmark of a trial's overhead and speed.

    ours     the default recipe as a trial runs it: log line and message after each epoch, best weights, curve
    plain    a hand-written loop over the same tensors with torch's own optimiser: steps, validation

Both train the same network for the same epochs, in turns, in one run and one process. The overhead
is the median over the turns of the quotient of their times, which follow one another; a rate is the
median of its own. On a CPU they have one thread, and seconds are processor time, since other
processes may use the processor; the time of a checkpoint on disk is a figure of its own. On a GPU
seconds are wall time. The start of a trial is measured apart: its cost does not depend on the
trial's length.
"""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import Pipe
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

from archive.architecture.graph import Architecture
from archive.benchmarks.measurement import Figure
from archive.errors import SettingsError, first_line
from archive.trainer.datasets.splits import DataPart, Splits
from archive.trainer.fit.batches import Batches
from archive.trainer.fit.precision import choose, tf32_units
from archive.trainer.fit.steps import factor_at
from archive.trainer.fit.train import fit
from archive.trainer.nn import builders
from archive.trainer.protocols.base import TrainingProtocol
from archive.trainer.recipes.base import Resources
from archive.trainer.recipes.checkpoint import CHECKPOINT_SECONDS
from archive.trainer.recipes.context import TrialContext
from archive.trainer.recipes.curve import Metrics
from archive.trainer.recipes.run import run
from archive.trainer.tasks import registry
from archive.trainer.tasks.base import Task
from archive.trainer.trial.messages import EpochReport
from tests.benchmarks.trainer import trial_start
from tests.benchmarks.trainer.trial_start import chain

GOAL = "< 3"
TURNS = 10
SECONDS = 3.0
"""Number of turns of both loops for each network, and the approximate duration of each."""

_log = logging.getLogger("archive.trainer")


def measure(turns: int = TURNS, seconds: float = SECONDS, device: str = "auto") -> Iterator[Figure]:
    """Measure trials on this machine.

    Args:
        turns: Number of turns of both loops for each network.
        seconds: Approximate duration of each.
        device: Device in torch's notation; `auto` is a GPU if there is one.

    Yields:
        The figures, in the order of display.

    Raises:
        SettingsError: There is no such device here.
    """
    on = _device(device)
    with _one_thread(), tempfile.TemporaryDirectory(prefix="archive-bench-") as folder:
        yield from trial_start.measure(on, Path(folder))
        with _log_to(Path(folder) / "log"):
            for name, task, architecture in _problems(on):
                yield from compare(
                    f"{name}, {on.type}", task, architecture, on, turns, seconds, Path(folder)
                )


def _device(name: str) -> torch.device:
    # In this process: the first measured trial must be the one that starts the fork server.
    try:
        device = torch.device(
            name if name != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
        )
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise SettingsError(f"the device {name!r} cannot be used: {first_line(error)}") from error

    return device


def _problems(device: torch.device) -> Iterator[tuple[str, Task, Architecture]]:
    digits = registry.DIGITS
    diabetes = registry.DIABETES
    yield (
        "digits, small cnn",
        digits,
        chain("cnn", "conv3/16 max-pool conv3/32 max-pool fc/32 softmax"),
    )
    yield (
        "digits, residual cnn",
        digits,
        chain("cnn", "res3/32 res3/32 max-pool res3/64 res3/64 fc/64 softmax"),
    )
    yield "diabetes, mlp", diabetes, chain("mlp", "relu/64 tanh/32 linear")
    images = _images(256 if device.type == "cpu" else 20_000)
    wide = "conv3/32 conv3/32 max-pool conv3/64 conv3/64 max-pool conv3/128 max-pool fc/128 softmax"
    yield "noise of 3 x 32 x 32, cnn", images, chain("cnn", wide)


def _images(count: int) -> Task:
    """Return a task with noise of the size of CIFAR-10's images; their content has no effect on the
    time.
    """
    sizes = (count, count // 8, count // 8)
    own = registry.DIGITS.protocol("digits/1")
    protocol = replace(own, name="noise/1", train=sizes[0], valid=sizes[1], test=sizes[2])

    def load(_: TrainingProtocol) -> Splits:
        rng = np.random.default_rng(0)
        return Splits(
            *(
                DataPart(rng.standard_normal((n, 3, 32, 32), np.float32), rng.integers(10, size=n))
                for n in sizes
            )
        )

    return replace(
        registry.DIGITS, name="noise", input_shape=(3, 32, 32), protocols=(protocol,), loader=load
    )


class LoopTiming(NamedTuple):
    """Time and losses of one of the loops.

    Attributes:
        seconds: Time of all epochs but the first.
        losses: Validation loss of each epoch, which must be the same in both loops.
    """

    seconds: float
    losses: list[float]


def compare(
    name: str,
    task: Task,
    architecture: Architecture,
    device: torch.device,
    turns: int,
    seconds: float,
    folder: Path,
) -> list[Figure]:
    """Return the figures of one network on one task.

    The arguments are those of `measure`, and a folder for checkpoints.
    """

    def protocol(epochs: int) -> TrainingProtocol:
        return replace(task.protocol(f"{task.name}/1"), epochs=epochs, patience=epochs)

    def trained(precision: str) -> LoopTiming:
        return ours(architecture, task, rules, device, path, precision)

    epochs = 2 + round(2 * seconds / plain(architecture, task, protocol(3), device).seconds)
    rules = protocol(epochs)
    path = folder / f"{name}.state"
    taken: dict[str, list[float]] = {"ours": [], "plain": []}
    for turn in range(turns):
        # Each goes first equally often, so that caches and clocks favour neither.
        for which in sorted(taken, reverse=bool(turn % 2)):
            run = plain(architecture, task, rules, device) if which == "plain" else trained("auto")
            taken[which].append(run.seconds)

    own = median(taken["ours"])
    reference = median(taken["plain"])
    quotient = median(
        mine / other for mine, other in zip(taken["ours"], taken["plain"], strict=True)
    )
    inputs = (epochs - 1) * rules.train
    other = "float32" if choose("auto", device) == "bf16" else "bf16"
    others = [trained(other).seconds for _ in range(2)]
    return [
        Figure(
            f"{name}: inputs/s, beside a plain loop", inputs / own, "1/s", None, inputs / reference
        ),
        Figure(f"{name}: overhead of the loop", 100 * (quotient - 1), "%", GOAL),
        Figure(
            f"{name}: inputs/s in {other}, beside the default",
            inputs / min(others),
            "1/s",
            None,
            inputs / own,
        ),
        Figure(
            f"{name}: a checkpoint saved, every {CHECKPOINT_SECONDS:g} s",
            *_saving(architecture, task, device, path),
        ),
    ]


def ours(
    architecture: Architecture,
    task: Task,
    protocol: TrainingProtocol,
    device: torch.device,
    state: Path,
    precision: str = "auto",
) -> LoopTiming:
    """Train as a trial does."""
    sender, receiver = Pipe()
    ends: list[float] = []

    def on_report(metrics: Metrics, resumed: bool) -> None:
        _log.info("%s", " ".join(f"{name}={value:.6g}" for name, value in metrics.items()))
        sender.send(EpochReport(metrics, resumed))
        receiver.recv()
        ends.append(_now(device))

    with sender, receiver:
        outcome = run(
            fit,
            TrialContext(
                architecture,
                task,
                protocol,
                resources=Resources((str(device),)),
                on_report=on_report,
                precision=precision,
                checkpoint=state,
            ),
        )

    return LoopTiming(ends[-1] - ends[0], outcome.curve["valid_loss"])


def _now(device: torch.device) -> float:
    return time.process_time() if device.type == "cpu" else time.perf_counter()


def plain(
    architecture: Architecture, task: Task, protocol: TrainingProtocol, device: torch.device
) -> LoopTiming:
    """Train in a plain loop, in the same precision."""
    with tf32_units(choose("auto", device)):
        return _plain(architecture, task, protocol, device)


def _plain(
    architecture: Architecture, task: Task, protocol: TrainingProtocol, device: torch.device
) -> LoopTiming:
    network = builders.build(architecture.canonical, task.form(protocol))
    network.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    splits = task.load(protocol)
    data, valid = (Batches.of(part, device, compact=False) for part in (splits.train, splits.valid))
    computing = torch.autocast(
        device.type, torch.bfloat16, enabled=choose("auto", device) == "bf16"
    )
    loss_of = F.cross_entropy if task.kind == "classification" else _squared_error
    optimiser = _torchs_own(network, protocol)
    generator = torch.Generator().manual_seed(0)
    batches = data.steps(protocol)
    done = 0
    ends = []
    losses = []
    for _ in range(protocol.epochs):
        network.train()
        for chosen in (
            torch.randperm(len(data), generator=generator).to(device).tensor_split(batches)
        ):
            with computing:
                loss = loss_of(network(data.inputs[chosen]), data.targets[chosen])

            loss.backward()  # type: ignore[no-untyped-call]
            for group in optimiser.param_groups:
                group["lr"] = protocol.learning_rate * factor_at(
                    done / (protocol.epochs * batches), protocol
                )

            optimiser.step()
            optimiser.zero_grad()
            done += 1

        network.eval()
        with torch.inference_mode(), computing:
            outputs = network(valid.inputs)
            losses.append(float(loss_of(outputs, valid.targets)))
            if task.kind == "classification":
                float((outputs.argmax(dim=1) == valid.targets).double().mean())

        ends.append(_now(device))

    return LoopTiming(ends[-1] - ends[0], losses)


def _squared_error(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return F.mse_loss(outputs.view_as(targets), targets)


def _torchs_own(network: torch.nn.Module, protocol: TrainingProtocol) -> torch.optim.Optimizer:
    groups = [
        {
            "params": [p for p in network.parameters() if p.ndim > 1],
            "weight_decay": protocol.weight_decay,
        },
        {"params": [p for p in network.parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ]
    if protocol.optimiser == "sgd":
        return torch.optim.SGD(
            groups, protocol.learning_rate, protocol.momentum, nesterov=True, fused=True
        )

    return torch.optim.AdamW(groups, protocol.learning_rate, fused=True)


def _saving(
    architecture: Architecture, task: Task, device: torch.device, path: Path
) -> tuple[float, str]:
    """Return the milliseconds of saving a checkpoint."""
    rung = replace(task.protocol(f"{task.name}/1"), epochs=2, epoch_steps=1)
    seconds = []
    for _ in range(3):
        path.unlink(missing_ok=True)
        trial = TrialContext(
            architecture, task, rung, resources=Resources((str(device),)), epochs=1, checkpoint=path
        )
        run(fit, trial)
        seconds.append(trial.checkpoint.save_seconds)

    return 1e3 * min(seconds), "ms"


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _log_to(path: Path) -> Iterator[None]:
    """Write the log to a file as a trial's process does, and not to the terminal."""
    handler = logging.FileHandler(path)
    level = _log.level
    passes = _log.propagate
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)
    _log.propagate = False
    try:
        yield
    finally:
        _log.removeHandler(handler)
        handler.close()
        _log.setLevel(level)
        _log.propagate = passes
