"""Trainings in the calling process, for benchmarks that search without trainers:

`python -m tests.benchmarks first`.
"""

from __future__ import annotations

from archive.architecture.graph import Architecture
from archive.errors import UsageError
from archive.store.records import Result
from archive.trainer.protocols.base import TrainingProtocol
from archive.trainer.tasks import registry
from archive.trainer.tasks.base import Task


def trained(architecture: Architecture, task: str, protocol: str, seed: int) -> Result:
    """Train a network on the CPU as a trial does, without its process, its log and its weights on
    disk.

    Args:
        architecture: The network.
        task: Name of the task.
        protocol: Name of its protocol.
        seed: Seed of the study.

    Raises:
        TrainingError: The training failed.
        UsageError: See `check`.
    """
    # torch is loaded by the processes that train, not by the command that starts them.
    from archive.trainer.fit.train import train

    chosen, rules = check(task, protocol)
    outcome = train(architecture, chosen, rules, seed=seed)
    return Result(
        value=outcome.value,
        metrics={chosen.objective: outcome.value, **outcome.metrics},
        curve=outcome.curve,
        epochs=outcome.epochs,
        seconds=outcome.seconds,
        seed=seed,
        device="cpu",
    )


def check(task: str, protocol: str) -> tuple[Task, TrainingProtocol]:
    """Return a task and its protocol, for training in this process.

    Raises:
        UsageError: A table answers the task, or its networks inherit weights, which only trials can
            do.
    """
    chosen = registry.get(task)
    if not isinstance(chosen, Task):
        raise UsageError(f"the task must be one that networks are trained on, got {task!r}")

    rules = chosen.protocol(protocol)
    if rules.inherited_epochs is not None:
        raise UsageError(f"the protocol must be one without inherited weights, got {protocol!r}")

    return chosen, rules
