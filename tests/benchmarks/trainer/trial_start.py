"""Benchmark of the start of a trial: its process, its data, its
network.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import torch

from archive.architecture.graph import Architecture, Layer
from archive.benchmarks.measurement import Figure
from archive.errors import TrainingError
from archive.trainer.tasks import registry
from archive.trainer.trial.messages import EpochReport
from archive.trainer.trial.process import TrialProcess
from archive.trainer.trial.spec import TrialSpec


def measure(device: torch.device, folder: Path) -> list[Figure]:
    """Measure the first trial of this process, and those that follow.

    Args:
        device: Device of the trials.
        folder: Folder of their files.
    """
    task = registry.DIGITS
    least = replace(task.protocol("digits/1"), epochs=1, epoch_steps=1)
    architecture = chain("cnn", "conv3/16 max-pool conv3/32 max-pool fc/32 softmax")
    job = TrialSpec(architecture, task, least, 0, str(device), 1, folder)
    first, *others = [_start(job) for _ in range(6)]
    whole, inside = min(others)
    return [
        Figure("a daemon's first trial: its process", first[0] - first[1], "s"),
        Figure("each further trial: its process", whole - inside, "s"),
        Figure(
            "each further trial: data read, network built, one step (digits, small cnn)",
            inside,
            "s",
        ),
    ]


def _start(job: TrialSpec) -> tuple[float, float]:
    """Return the seconds from the start of a trial to its first epoch, and those in `train`.

    Raises:
        TrainingError: The trial failed.
    """
    began = time.perf_counter()
    trial = TrialProcess(job)
    try:
        while not (messages := trial.messages()):
            trial.connection.poll(1.0)

        message = messages[0]
        if not isinstance(message, EpochReport):
            raise TrainingError(f"the benchmark's trial ended early: {message}")

        return time.perf_counter() - began, message.metrics["seconds"]
    finally:
        trial.kill()


def chain(space: str, text: str) -> Architecture:
    """Return a chain of layers, each given as `op/units`; pools have stride 2."""
    layers = [Layer("ip")]
    for word in text.split():
        op, _, units = word.partition("/")
        layers.append(Layer(op, int(units) if units else None, 2 if op.endswith("pool") else 1))

    layers.append(Layer("op"))
    return Architecture(space, layers, [(at, at + 1) for at in range(len(layers) - 1)])
