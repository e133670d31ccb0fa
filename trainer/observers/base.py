"""The contract of an observer of trials, and the records that it receives.

    on_start ── on_metrics … ── on_end         of each trial; trials of several slots alternate
    open ── … ── close                         once

An observer runs in a separate process, where it may be slow, fail or crash: neither a trial nor its
lease waits for it. The trainer drops metrics that an observer is too slow for.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

Ending = Literal["COMPLETE", "PAUSED", "FAILED", "RETURNED", "LOST"]
"""How a trial ended: with a result, at a rung, without a result, handed back to the queue, or by a
lost lease."""

HIDDEN = "***"
_LOGIN = re.compile(r"(?<=://)[^/\s]+(?=@)")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL")
_SHORTEST = 6
"""Length from which a variable's value counts as a secret: shorter ones occur in any text."""


@dataclass(frozen=True, slots=True)
class ObservedTrial:
    """One attempt of a trainer at a proposal, in plain values.

    Attributes:
        run: Identity of the proposal, the same for all attempts and trainers, and different in
            another archive.
        proposal: Id of the proposal, `study#number`.
        study: Name of the study.
        number: Number of the proposal in its study.
        attempt: Number of the attempt, from 1.
        continues: Whether an earlier attempt, or an earlier rung, may have reported metrics.
        agent: Id of the agent that proposed the network; None without one.
        task: Name of the task; of a task on a file without the file's folder.
        space: Name of the space.
        objective: Name of the metric that the study optimises.
        direction: `maximise` or `minimise`.
        architecture: Summary of the network: `key`, `layers`, `edges`, `depth`, and `operations`,
            their counts.
        hyperparameters: Training settings of this proposal that differ from the protocol.
        protocol: Every choice of the training, `name` among them.
        seed: Seed of the study.
        worker: Id of the trainer.
        device: Device of the training.
    """

    run: str
    proposal: str
    study: str
    number: int
    attempt: int
    continues: bool
    agent: str | None
    task: str
    space: str
    objective: str
    direction: str
    architecture: Mapping[str, Any]
    hyperparameters: Mapping[str, Any]
    protocol: Mapping[str, Any]
    seed: int
    worker: str
    device: str

    def settings(self) -> dict[str, Any]:
        """Return the conditions of the metrics as a flat mapping; dots join nested names."""
        flat = {
            "study": self.study,
            "task": self.task,
            "space": self.space,
            "agent": self.agent,
            "seed": self.seed,
            "device": self.device,
            **_flatten(self.architecture, "architecture."),
            **_flatten(self.protocol, "protocol."),
            **_flatten(self.hyperparameters, "hyperparameters."),
        }
        return {name: value for name, value in flat.items() if value is not None}


@dataclass(frozen=True, slots=True)
class TrialEnd:
    """The end of a trial.

    Attributes:
        state: How it ended.
        value: The objective, in the task's own unit; None without a result.
        reason: Why there is no result, or why it was handed back.
        metrics: Final metrics by name, costs left out.
        costs: `epochs`, `seconds`, `params`, `flops`, and other costs of the network, as far as
            they are known.
    """

    state: Ending
    value: float | None = None
    reason: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    costs: Mapping[str, float] = field(default_factory=dict)


class TrialObserver(ABC):
    """Receives the progress of trials.

    The first line of the class's docstring is what `archive observers` shows. The keyword arguments
    of the constructor are the options of `--observe NAME:key=value`, converted to their
    annotations: `str`, `int`, `float`, `bool` or `Path`. The constructor runs in the trainer and
    only checks the options: it opens nothing and imports nothing large. The object is then pickled
    to a separate process, where all other methods are called, one at a time.

    An exception of a method is logged once, and costs nothing but the call. Secrets come from the
    environment, never from options: a command line is visible to every user of the machine.

    Args:
        home: Folder of the trainer's files; an observer that writes files keeps them there unless
            told otherwise.

    Attributes:
        requires: Names of the modules that it needs beside the archive's own dependencies.
        extra: Extra of `nas-archive` that installs them; None if another package does.
    """

    requires: ClassVar[tuple[str, ...]] = ()
    extra: ClassVar[str | None] = None

    def __init__(self, home: Path) -> None:
        self.home = home

    def open(self) -> str:
        """Prepare for the first trial; return the folder or address of the results, or empty."""
        return ""

    @abstractmethod
    def on_start(self, trial: ObservedTrial) -> None:
        """Receive the start of a trial.

        An attempt that continues another one has the same `run`.
        """

    @abstractmethod
    def on_metrics(self, trial: ObservedTrial, step: int, metrics: Mapping[str, float]) -> None:
        """Receive metrics of a trial that has started.

        Args:
            trial: The trial.
            step: Number of the step, rising within an attempt; the epoch, for the trainer's own
                loop. A later attempt may repeat steps that were trained after the checkpoint that
                it continues from.
            metrics: Values by name; any of them may be infinite or NaN.
        """

    @abstractmethod
    def on_end(self, trial: ObservedTrial, end: TrialEnd) -> None:
        """Receive the end of a started trial; after `LOST`, another trainer may own the run."""

    def close(self) -> None:  # noqa: B027 - an observer that keeps nothing open has nothing to do
        """End within seconds: the trainer stops, perhaps with trials that have not ended."""


def _flatten(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value

    return flat


def has_login(text: str) -> bool:
    """Whether a text has an address with a login, `scheme://user:password@host`."""
    return _LOGIN.search(text) is not None


def redact(text: str, environment: Mapping[str, str] | None = None) -> str:
    """Return a text without logins in addresses, and without the values of secret variables.

    Args:
        text: The text.
        environment: Stands in for `os.environ`.
    """
    variables = os.environ if environment is None else environment
    secrets: set[str] = set()
    for name, value in variables.items():
        if _SECRET.search(name.upper()) and len(value) >= _SHORTEST:
            secrets.add(value)

    # The longest first: one secret may be a part of another.
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)

    return _LOGIN.sub(HIDDEN, text)
