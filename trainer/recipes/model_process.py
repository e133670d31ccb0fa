"""Costs of a user's models before any training: built by a process that is kept for a search.

    ModelProcess(target, example)  ── parameters ──>  process: imports the function once,
                                   <── params, flops ──        builds on `meta`

The same process answers whether a module takes inputs of a shape (`ModelProcess.try_inputs`). The
user's code runs in the process alone, which is bounded in time and memory: a model that hangs
or takes too much costs a search `SECONDS`, and its costs stay unknown.
"""

from __future__ import annotations

import inspect
import logging
import math
import os
import resource
import subprocess
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archive.architecture.aten.wiring import read_input
from archive.architecture.graph import Architecture
from archive.architecture.parameter_operations import parameters_of
from archive.errors import (
    InvalidArchitectureError,
    SettingsError,
    UsageError,
    first_line,
    with_line,
)
from archive.trainer.recipes.loading import ModelSource
from archive.trainer.recipes.registry import read_models

if TYPE_CHECKING:
    import torch
    from torch import nn

    from archive.constraints import KnownCosts
    from archive.parameters.model import Model

log = logging.getLogger("archive.trainer")

START_SECONDS = 60.0
"""Longest time until the process has imported torch and the function."""

SECONDS = 10.0
"""Longest time for the costs of one configuration."""

MEMORY_BYTES = 8 * 2**30
"""Limit of the memory of the process."""

MOST_KILLED = 3
"""Times that the process is ended at a limit before the search does without it."""

NAMES = ("params", "flops")

Shape = tuple[int, ...]
"""Shape of an input or an output without the batch."""

BATCH = 2
"""Inputs by which a shape is tried: batch normalisation takes no single one."""

_UNKNOWN = (math.nan, math.nan)
_BEGIN = "from archive.trainer.recipes.model_process import answer; answer()"


def known_costs(model: Model | None, home: Path | None) -> KnownCosts:
    """Return the costs of a space's model; none where this machine knows no function for it.

    Args:
        model: The model of the space; None for none.
        home: Folder of the archive, whose `recipes.toml` names models; None for no such file.
    """
    if model is None:
        return {}

    target = model.target(model.reference)
    example = None if model.example is None else model.target(model.example)
    if target is None and home is not None and model.reference in (models := read_models(home)):
        target = models[model.reference].target

    if target is None or (model.example is not None and example is None):
        return {}

    process = ModelProcess(target, list(model.inputs) if example is None else example)
    return {name: _ModelCost(process, index) for index, name in enumerate(NAMES)}


@dataclass(frozen=True)
class ModelAttempt:
    """What became of an input in a module.

    Attributes:
        built: Whether the module could be built.
        fault: Why it could not, or why it takes none of the inputs; empty where it does.
        outputs: Shape of its outputs, without the batch.
    """

    built: bool
    fault: str = ""
    outputs: Shape = ()


class _ModelCost:
    """A cost of the module that a model makes of a configuration."""

    def __init__(self, process: ModelProcess, index: int) -> None:
        self._process = process
        self._index = index

    def __call__(self, architectures: Sequence[Architecture]) -> NDArray[np.float64]:
        """Return the costs of configurations; NaN for one that cannot be built."""
        costs = []
        for architecture in architectures:
            costs.append(self._process.costs(architecture)[self._index])

        return np.array(costs, np.float64)


class ModelProcess:
    """A process that builds the modules of configurations; it starts at the first question.

    Not thread-safe.

    Args:
        target: The user's function, `module:function` or `/path/of/file.py:function`.
        example: Texts of the shapes of its inputs, or the target of a function that returns them.
        seconds: Longest time for one configuration.
    """

    def __init__(self, target: str, example: list[str] | str, seconds: float = SECONDS) -> None:
        self._question = (target, example)
        self._seconds = seconds
        self._costs: dict[str, tuple[float, float]] = {}
        self._connection: Connection | None = None
        self._end: Callable[[], Any] = lambda: None
        self._killed = 0
        self._unimported = ""
        self._reported = False

    def costs(self, architecture: Architecture) -> tuple[float, float]:
        """Return parameters and multiply-adds of a configuration's module; NaN where unknown."""
        key = architecture.functional_key
        if key not in self._costs:
            self._costs[key] = self._ask(parameters_of(architecture))

        return self._costs[key]

    def try_inputs(
        self, parameters: Mapping[str, Any], shapes: Sequence[Shape]
    ) -> ModelAttempt | None:
        """Return what a configuration's module makes of inputs, the first that it takes.

        Args:
            parameters: The configuration as a tree.
            shapes: Shapes of inputs, in float32.

        Returns:
            None where the process gives no answer; a line of the log says why.
        """
        answer = self._send((parameters, list(shapes)))
        if self._unimported:
            return ModelAttempt(False, self._unimported)

        if isinstance(answer, str):
            self._report(answer)
            return None

        attempt: ModelAttempt = answer
        return attempt

    def close(self) -> None:
        """End the process."""
        self._connection = None
        self._end()

    def _ask(self, parameters: Mapping[str, Any]) -> tuple[float, float]:
        if self._killed >= MOST_KILLED:
            return _UNKNOWN

        answer = self._send((parameters, None))
        if isinstance(answer, str):
            self._report(answer)
            return _UNKNOWN

        costs: tuple[float, float] = answer
        return costs

    def _send(self, question: tuple[Mapping[str, Any], list[Shape] | None]) -> Any:
        """Return the answer of the process; a text is the reason why there is none."""
        try:
            if self._connection is None:
                self._start()

            assert self._connection is not None
            self._connection.send(question)
            return self._receive(self._seconds)
        except (EOFError, OSError, TimeoutError) as error:
            self._killed += 1
            self.close()
            return str(error) or "its process ended: it may have taken too much memory"

    def _start(self) -> None:
        """Start the process, and wait until it has imported the function."""
        to_child, from_parent = os.pipe(), os.pipe()
        child = subprocess.Popen(
            [sys.executable, "-c", _BEGIN, str(to_child[0]), str(from_parent[1])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(to_child[0], from_parent[1]),
        )
        os.close(to_child[0])
        os.close(from_parent[1])
        writer = Connection(to_child[1], readable=False)
        reader = Connection(from_parent[0], writable=False)
        self._connection = writer
        self._reader = reader
        self._end = weakref.finalize(self, _end_child, child, writer, reader)
        writer.send(self._question)
        fault = self._receive(START_SECONDS)
        if isinstance(fault, str):
            self._killed = MOST_KILLED
            self._unimported = fault
            raise OSError(fault)

    def _receive(self, seconds: float) -> Any:
        if not self._reader.poll(seconds):
            raise TimeoutError(f"it took longer than {seconds:g} s")

        return self._reader.recv()

    def _report(self, reason: str) -> None:
        """Say once why costs are unknown: the trainings of these configurations are made anyway."""
        if not self._reported:
            self._reported = True
            log.warning("costs of the model unknown model=%s reason=%r", self._question[0], reason)


def _end_child(child: subprocess.Popen[bytes], *connections: Connection) -> None:
    for connection in connections:
        with suppress(OSError):
            connection.close()

    child.kill()
    child.wait()


def answer() -> None:
    """Answer the questions of a search, in the process, until its pipe is closed."""
    questions = Connection(int(sys.argv[1]), writable=False)
    answers = Connection(int(sys.argv[2]), readable=False)
    sys.argv[1:] = []
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    target, example = questions.recv()
    try:
        build = ModelSource(target.rpartition("/")[2], target).load()
        inputs = _inputs(example)
    except (Exception, SystemExit) as error:
        answers.send(_line(error))
        return

    answers.send(None)
    while True:
        try:
            parameters, shapes = questions.recv()
        except EOFError:
            return

        try:
            if shapes is None:
                answers.send(_measure(build, parameters, inputs))
            else:
                answers.send(_try(build, parameters, shapes))
        except (Exception, SystemExit) as error:
            answers.send(_line(error))


def _inputs(example: list[str] | str) -> list[tuple[tuple[int, ...], str]]:
    """Return shape and type of each input, from texts or from what the user's function returns."""
    if isinstance(example, list):
        return [tuple(read_input(text)) for text in example]  # type: ignore[misc]

    returned = ModelSource("example", example).load()()
    inputs = []
    for tensor in returned if isinstance(returned, list | tuple) else [returned]:
        inputs.append((tuple(tensor.shape[1:]), str(tensor.dtype).removeprefix("torch.")))

    return inputs


def _measure(
    build: Callable[..., Any],
    parameters: Mapping[str, Any],
    inputs: Sequence[tuple[tuple[int, ...], str]],
) -> tuple[float, float]:
    import torch

    from archive.trainer.intake import configured
    from archive.trainer.nn import costs

    try:
        with torch.device("meta"):
            module = configured.build(build, parameters)
            return float(costs.params(module)), _flops(module, inputs)
    except (RuntimeError, NotImplementedError, TypeError):
        # Not every module can be made without numbers.
        module = configured.build(build, parameters)
        return float(costs.params(module)), _flops(module, inputs)


def _try(
    build: Callable[..., Any], parameters: Mapping[str, Any], shapes: list[Shape]
) -> ModelAttempt:
    """Build a module, and give it one input after the other until it takes one."""
    import torch

    for device in ("meta", "cpu"):
        # Not every module can be made without numbers.
        attempt = _try_on(torch.device(device), build, parameters, shapes)
        if not attempt.fault:
            break

    return attempt


def _try_on(
    device: torch.device,
    build: Callable[..., Any],
    parameters: Mapping[str, Any],
    shapes: list[Shape],
) -> ModelAttempt:
    import torch

    from archive.trainer.intake import configured

    code = getattr(inspect.unwrap(build), "__code__", None)
    file = getattr(code, "co_filename", None)
    try:
        with device:
            module = configured.build(build, parameters).eval()
    except (Exception, SystemExit) as error:
        return ModelAttempt(False, _line(error, file))

    fault = ""
    for shape in shapes:
        try:
            with torch.inference_mode():
                outputs = module(torch.zeros((BATCH, *shape), device=device))
        except (Exception, SystemExit) as error:
            # The first shape is the task's.
            fault = fault or _line(error, file)
            continue

        return ModelAttempt(True, outputs=tuple(getattr(outputs, "shape", ()))[1:])

    return ModelAttempt(True, fault)


def _flops(module: nn.Module, inputs: Sequence[tuple[tuple[int, ...], str]]) -> float:
    """Return the multiply-adds of one input; NaN for several inputs, or for indices."""
    from archive.trainer.nn import costs

    if len(inputs) != 1 or inputs[0][1] != "float32":
        return math.nan

    return float(costs.flops(module, inputs[0][0]))


def _line(error: BaseException, file: str | None = None) -> str:
    if isinstance(error, SettingsError | InvalidArchitectureError | UsageError):
        return str(error)

    if file is not None and isinstance(error, Exception):
        return " ".join(with_line(error, file=file, most=300).split())

    return f"{type(error).__name__}: {first_line(Exception(*error.args), 200)}"
