"""Recipe of a command: training in another language, or in another program.

    stdin     one line with a JSON object: what to train (`description`)
    stdout    one JSON object per line:
              {"step": 1, "metrics": {"valid_accuracy": 0.5}}         an epoch is over
              {"checkpoint": "epoch-1"}                               a folder with a checkpoint
              {"result": {"metrics": {…}, "weights": "model.npz"}}    the result; may be left out
              {}                                                      a sign of life
    stderr    the log of the trial

The command runs in the scratch folder, and ends with status 0 when it is done. SIGTERM tells it to
stop soon: it should write a checkpoint and end. A checkpoint belongs to the reports before it; the
command must not touch its folder again, since the trainer reads it later. When the command
continues, the files are in the folder that its input names.

A program that knows nothing of this takes its parameters as flags, and prints a metric:

    flags = true     the arguments end in --name=value for each parameter, --group.name=value in groups
    prints = true    stdout is text: `accuracy: 0.93` and `loss=0.2` are metrics, the last value
                     counts; a last line of one number is the objective. The first line
                     of `epoch 3` is its report. `accuracy` also stands for `valid_accuracy`.

Commands are named in `HOME/recipes.toml` of the trainer's machine
(`archive.trainer.recipes.registry`), without a shell.
"""

from __future__ import annotations

import json
import logging
import os
import re
import selectors
import shutil
import signal
import subprocess
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile

from archive.architecture import codec
from archive.errors import SettingsError, TrainingError
from archive.trainer.recipes.base import FitResult, Stop
from archive.trainer.recipes.context import TrialContext

log = logging.getLogger("archive.trainer")

MOST_BYTES = 1 << 24
"""Longest line of a command."""
LOOK_SECONDS = 0.2
"""Time between two looks for an interruption while the command says nothing."""

_SHOWN = 80
_METRIC = re.compile(
    r"(?<![\w.-])([A-Za-z_]\w*)\s*[:=]\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w.%])",
    re.ASCII,
)
_EPOCH = re.compile(r"\bepoch\s*[:=]?\s*(\d+)", re.IGNORECASE | re.ASCII)
_WEIGHTS = (".npz", ".safetensors")


@dataclass(frozen=True, slots=True)
class CommandRecipe:
    """A recipe that runs a command.

    Attributes:
        command: Program and arguments.
        data: Whether the command gets the data of the task, as the arrays of `data.npz`.
        flags: Whether the parameters of the trial are arguments, `--name=value`.
        prints: Whether the command prints metrics as text, and no messages.
    """

    command: tuple[str, ...]
    data: bool = False
    flags: bool = False
    prints: bool = False

    def __call__(self, trial: TrialContext) -> FitResult:
        """Run the command, and return its result.

        Raises:
            SettingsError: The command cannot be started on this machine.
            TrainingError: It failed, or wrote a line that is not a message.
        """
        checkpoint = trial.scratch / "resumed"
        checkpoint.mkdir(exist_ok=True)
        if (saved := trial.checkpoint.load()) is not None:
            saved.extract(checkpoint)

        data = _write_data(trial) if self.data else None
        arguments = flags_of(trial.parameters) if self.flags else []
        with _input(trial, description(trial, checkpoint, data)) as about:
            try:
                process = subprocess.Popen(
                    [*self.command, *arguments],
                    stdin=about,
                    stdout=subprocess.PIPE,
                    cwd=trial.scratch,
                )
            except OSError as error:
                raise SettingsError(
                    f"the command {self.command[0]} cannot be started: {error.strerror}"
                ) from error

        with process:
            try:
                return _Conversation(trial, process, self.prints).run()
            finally:
                process.kill()


def flags_of(parameters: Mapping[str, Any], group: str = "") -> list[str]:
    """Return parameters as arguments of a program: texts as they are, other values as JSON.

    Args:
        parameters: The parameters as a tree.
        group: What stands before their names.
    """
    flags = []
    for name, value in parameters.items():
        if isinstance(value, Mapping):
            flags += flags_of(value, f"{group}{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            for number, member in enumerate(value):
                flags += flags_of(member, f"{group}{name}.{number}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value)
            flags.append(f"--{group}{name}={text}")

    return flags


def description(trial: TrialContext, checkpoint: Path, data: Path | None) -> dict[str, Any]:
    """Return what a command learns of its trial, as JSON values."""
    return {
        "architecture": codec.to_dict(trial.architecture),
        "task": trial.task.name,
        "kind": trial.task.kind,
        "input_shape": list(trial.task.input_shape),
        "outputs": trial.task.outputs,
        "protocol": trial.protocol.as_dict(),
        "objective": trial.objective,
        "direction": trial.direction,
        "epochs": trial.epochs,
        "reports": trial.reports,
        "hyperparameters": dict(trial.hyperparameters),
        "parameters": trial.parameters,
        "seed": trial.seed,
        "devices": list(trial.resources.devices),
        "rank": trial.rank,
        "world_size": trial.world_size,
        "threads": trial.resources.threads,
        "seconds": trial.resources.seconds,
        "precision": trial.precision,
        "scratch": str(trial.scratch),
        "checkpoint": str(checkpoint),
        "data": None if data is None else str(data),
    }


@dataclass(slots=True)
class _Conversation:
    """The messages of a command, until it ends."""

    trial: TrialContext
    process: subprocess.Popen[bytes]
    prints: bool = False
    result: FitResult = field(default_factory=FitResult)
    told: bool = False
    printed: dict[str, float] = field(default_factory=dict)
    last: bytes = b""
    epoch: str = ""

    def run(self) -> FitResult:
        """Handle each line, and return the result."""
        handle = self._read_text if self.prints else self._handle
        for line in self._lines():
            handle(line)

        if self.prints:
            self.result = FitResult(self._printed_metrics())

        status = self.process.wait()
        if self.told and not self.result.ended and self.trial.stop is Stop.INTERRUPTED:
            return FitResult()

        # SIGTERM may end a command that has reported all epochs after its last message: that is no
        # failure.
        if status and not (self.told and status == -signal.SIGTERM):
            name = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
            raise TrainingError(f"the command ended with {name}; its log tells why")

        return self.result

    def _lines(self) -> Iterator[bytes]:
        """Yield the lines that the command writes, and tell it when it should stop."""
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        waiting = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while True:
                self._interrupt_if_told()
                if not selector.select(LOOK_SECONDS):
                    if self.process.poll() is None:
                        continue

                    # The command may have written its last lines since the look.
                    if not selector.select(0):
                        # The command has ended; a process that it has started still holds the pipe.
                        break

                content = os.read(descriptor, 1 << 16)
                waiting += content
                *lines, rest = waiting.split(b"\n")
                waiting = bytearray(rest)
                yield from map(bytes, lines)
                if len(waiting) > MOST_BYTES:
                    raise TrainingError(f"the command wrote a line of more than {MOST_BYTES} bytes")

                if not content:
                    break

        if waiting:
            yield bytes(waiting)

    def _interrupt_if_told(self) -> None:
        if not self.told and self.trial.interrupted:
            self.told = True
            self.process.terminate()

    def _handle(self, line: bytes) -> None:
        if not line.strip():
            return

        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None

        if not isinstance(message, dict):
            shown = line[:_SHOWN].decode(errors="replace")
            raise TrainingError(f"the command wrote a line that is not a JSON object: {shown!r}")

        if unknown := message.keys() - {"step", "metrics", "checkpoint", "result"}:
            raise TrainingError(f"the command wrote an unknown key: {min(unknown)[:_SHOWN]!r}")

        # Each line is a sign of life.
        self.trial.beat()
        if "step" in message or "metrics" in message:
            self.trial.report(message.get("step"), message.get("metrics", {}))  # type: ignore[arg-type]

        if "checkpoint" in message:
            self._take(message["checkpoint"])

        if "result" in message:
            self.result = self._result(message["result"])

    def _read_text(self, line: bytes) -> None:
        """Note the metrics in a line of text, and report them where it names an epoch."""
        self.trial.beat()
        if not line.strip():
            return

        self.last = line
        text = line.decode(errors="replace")
        metrics = {}
        for name, number in _METRIC.findall(text):
            if name.lower() != "epoch":
                metrics[name] = float(number)

        self.printed |= metrics
        epoch = _EPOCH.search(text)
        if epoch is not None and metrics and epoch[1] != self.epoch:
            self.epoch = epoch[1]
            self.trial.report(self.trial.reports + 1, metrics)

    def _printed_metrics(self) -> dict[str, float]:
        """Return the last value of each printed metric, the objective by its whole name."""
        metrics = dict(self.printed)
        objective = self.trial.objective
        short = objective.removeprefix("valid_")
        if objective not in metrics and short in metrics:
            metrics[objective] = metrics.pop(short)

        with suppress(ValueError):
            metrics.setdefault(objective, float(self.last))

        return metrics

    def _take(self, name: Any) -> None:
        """Save the folder of a checkpoint if one is due, and delete it."""
        folder = self.trial.scratch.joinpath(str(name)).resolve()
        if (
            not isinstance(name, str)
            or folder.parent != self.trial.scratch.resolve()
            or not folder.is_dir()
        ):
            shown = repr(name)[:_SHOWN]
            raise TrainingError(
                "the checkpoint of a command must be a folder in its working "
                f"directory, got {shown}"
            )

        if self.trial.checkpoint.due() or self.trial.stop is not None:
            self.trial.checkpoint.save(folder=folder)

        shutil.rmtree(folder, ignore_errors=True)

    def _result(self, answer: Any) -> FitResult:
        if not isinstance(answer, dict) or not answer.keys() <= {
            "metrics",
            "weights",
            "ended",
            "environment",
        }:
            raise TrainingError(
                "the result of a command must be an object with metrics, "
                f"weights, ended and environment, got {str(answer)[:_SHOWN]}"
            )

        weights = {} if answer.get("weights") is None else self._weights(answer["weights"])
        return FitResult(
            answer.get("metrics", {}),
            weights,
            str(answer.get("ended", "")),
            _mapping(answer.get("environment", {})),
        )

    def _weights(self, name: Any) -> Mapping[str, Any]:
        """Return the arrays of an `.npz` or `.safetensors` file."""
        if not isinstance(name, str) or not name.endswith(_WEIGHTS):
            raise TrainingError(
                f"the weights of a command must be a file {' or '.join(_WEIGHTS)}, got "
                f"{repr(name)[:_SHOWN]}"
            )

        import numpy as np
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        path = self.trial.scratch / name
        try:
            if path.suffix == ".safetensors":
                return load_file(path)

            with path.open("rb") as file:
                arrays = np.load(file, allow_pickle=False)
                if isinstance(arrays, np.ndarray):
                    raise ValueError("it holds one array without a name")

                return dict(arrays)
        except (OSError, ValueError, EOFError, BadZipFile, zlib.error, SafetensorError) as error:
            raise TrainingError(
                f"the weights {name[:_SHOWN]!r} of the command cannot be read: {error}"
            ) from error


def _input(trial: TrialContext, about: dict[str, Any]) -> IO[bytes]:
    """Return the description as an open file; a pipe could block an idle reader."""
    file = tempfile.TemporaryFile(dir=trial.scratch)
    file.write(json.dumps(about).encode() + b"\n")
    file.seek(0)
    return file


def _mapping(environment: Any) -> Mapping[str, Any]:
    if not isinstance(environment, dict):
        raise TrainingError(
            f"the environment of a result must be an object, got {str(environment)[:_SHOWN]}"
        )

    return environment


def _write_data(trial: TrialContext) -> Path:
    """Write the data to a file with `train_inputs`, `valid_inputs`, …, and return its path."""
    import numpy as np

    splits = trial.data()
    path = trial.scratch / "data.npz"
    parts = {"train": splits.train, "valid": splits.valid, "test": splits.test}
    arrays = {}
    for name, part in parts.items():
        for what in ("inputs", "targets"):
            arrays[f"{name}_{what}"] = getattr(part, what)

    np.savez(path, **arrays)
    return path
