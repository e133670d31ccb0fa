"""A user's models before any training: costs and networks, by a process that a search keeps.

    ModelProcess  ── costs or network, parameters ──>  process: imports the function once,
                  <── params, flops, or a network ──       builds on `meta`

The same process answers whether a module takes inputs of a shape (`ModelProcess.try_inputs`). The
user's code runs in the process alone, which is bounded in time and memory: a model that hangs
or takes too much costs a search some seconds, and its costs and its network stay unknown.
"""

from __future__ import annotations

import logging
import math
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archive.architecture import compact
from archive.architecture.graph import Architecture
from archive.architecture.parameter_operations import NAME, parameters_of
from archive.errors import ArchiveError
from archive.parameters.nesting import counts_of
from archive.store.studies.builds import Build
from archive.trainer.recipes.loading import file_of_target
from archive.trainer.recipes.model_answers import Kind, ModelAttempt, NetworkAnswer, Shape
from archive.trainer.recipes.registry import RecipeAccess, read_models
from archive.trainer.recipes.source import digest_of, version_of
from archive.trainer.tasks import registry
from archive.trainer.tasks.base import Task

if TYPE_CHECKING:
    from archive.constraints import KnownCosts
    from archive.parameters.model import Model
    from archive.parameters.parameter_space import ParameterSpace
    from archive.store.records import Study
    from archive.trainer.tasks.file_access import FileAccess

log = logging.getLogger("archive.trainer")

START_SECONDS = 60.0
"""Longest time until the process has imported torch and the function."""

SECONDS = 10.0
"""Longest time for the costs of one configuration."""

NETWORK_SECONDS = 60.0
"""Longest time for the network of one configuration, by `torch.export`."""

MOST_KILLED = 3
"""Times that the process is ended at a limit before the search does without it."""

MOST_FAILED = 5
"""Configurations in a row that cannot be exported before the search does without networks."""

NAMES = ("params", "flops")

_UNKNOWN = (math.nan, math.nan)
_BEGIN = "from archive.trainer.recipes.model_answers import answer; answer()"


def process_of(space: ParameterSpace, home: Path | None) -> ModelProcess | None:
    """Return the process of a space's model; None where this machine knows no function for it.

    Args:
        space: The space.
        home: Folder of the archive, whose `recipes.toml` names models; None for no such file.
    """
    model = space.model
    if model is None:
        return None

    target = model.target(model.reference)
    if target is None and home is not None and model.reference in (models := read_models(home)):
        target = models[model.reference].target

    inputs = _example_of(model)
    if target is None or inputs is None:
        return None

    return ModelProcess(target, inputs, name=model.reference, counts=counts_of(space.declared))


def process_of_target(target: str, space: ParameterSpace, shape: Sequence[int]) -> ModelProcess:
    """Return the process of a model that this machine names, as trainers use it.

    Args:
        target: The function, `module:function` or `/path/of/file.py:function`.
        space: The space.
        shape: Shape of an input of the task, which counts where the space names no inputs.
    """
    name = Path(target).name if space.model is None else space.model.reference
    inputs = None if space.model is None else _example_of(space.model)
    if inputs is None:
        inputs = ["x".join(map(str, shape))]

    return ModelProcess(target, inputs, name=name, counts=counts_of(space.declared))


def process_of_study(
    study: Study, space: ParameterSpace, home: Path, access: FileAccess
) -> ModelProcess | None:
    """Return the process of the model that trainers of this machine would use for a study.

    A recipe's own model comes first. A study for a training loop of its caller has the model of its
    space alone.

    Args:
        study: The study.
        space: Its space.
        home: Folder of the archive, whose `recipes.toml` names models.
        access: Files that may be opened because the study names them.

    Returns:
        None where this machine knows no function for it.
    """
    recipes = RecipeAccess(home)
    with suppress(ArchiveError):
        task = registry.of_study(study, access)
        if isinstance(task, Task):
            protocol = task.protocol(study.protocol)
            recipe = recipes.find(protocol.recipe)
            if recipe.model:
                return process_of_target(recipe.model, space, task.form(protocol).input_shape)

    return process_of(space, home)


def _example_of(model: Model) -> list[str] | str | None:
    """Return the inputs of a model: their shapes, or the target of a function; None for neither."""
    return list(model.inputs) if model.example is None else model.target(model.example)


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

    Thread-safe: questions wait for each other, and `close` ends the one at work.

    Args:
        target: The user's function, `module:function` or `/path/of/file.py:function`.
        example: Texts of the shapes of its inputs, or the target of a function that returns them.
        seconds: Longest time for the costs of one configuration.
        name: Name of the model in spaces; None for the target.
        counts: Parameter that says how often a group is repeated, by the group's name.
    """

    def __init__(
        self,
        target: str,
        example: list[str] | str,
        seconds: float = SECONDS,
        name: str | None = None,
        counts: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._question = (target, example)
        self._seconds = seconds
        self.name = target if name is None else name
        self._counts = counts
        self._costs: dict[str, tuple[float, float]] = {}
        self._builds: dict[str, Build | None] = {}
        self._failed = 0
        self._version: str | None = None
        self._connection: Connection | None = None
        self._end: Callable[[], Any] = lambda: None
        self._killed = 0
        self._unimported = ""
        self._reported: set[Kind] = set()
        self._lock = threading.Lock()

    @property
    def version(self) -> str | None:
        """Version of the model's package, or digest of its file; None where it is unknown."""
        target = self._question[0]
        file = file_of_target(target)
        return version_of(target.rpartition(":")[0]) if file is None else digest_of(file)

    def costs(self, architecture: Architecture) -> tuple[float, float]:
        """Return parameters and multiply-adds of a configuration's module; NaN where unknown."""
        key = architecture.functional_key
        if key not in self._costs:
            answer = self._ask("costs", parameters_of(architecture), self._seconds)
            self._costs[key] = _UNKNOWN if answer is None else answer

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
        answer = self._send("inputs", parameters, list(shapes), self._seconds)
        if self._unimported:
            return ModelAttempt(False, self._unimported)

        if isinstance(answer, str):
            self._report("inputs", answer)
            return None

        attempt: ModelAttempt = answer
        return attempt

    def known_costs(self) -> KnownCosts:
        """Return the costs of the modules, as functions of configurations."""
        return {name: _ModelCost(self, index) for index, name in enumerate(NAMES)}

    def builds(self, architectures: Sequence[Architecture]) -> list[Build | None]:
        """Return the network of each configuration; None where it is unknown."""
        builds = []
        for architecture in architectures:
            builds.append(self._build(architecture) if architecture.space == NAME else None)

        return builds

    def _build(self, architecture: Architecture) -> Build | None:
        key = architecture.key
        if key not in self._builds:
            if self._failed >= MOST_FAILED:
                return None

            answer = self._ask("network", parameters_of(architecture), NETWORK_SECONDS)
            self._failed = self._failed + 1 if answer is None else 0
            self._builds[key] = None if answer is None else self._read(architecture, answer)

        return self._builds[key]

    def _read(self, configuration: Architecture, answer: NetworkAnswer) -> Build:
        network = compact.decode(answer.key, answer.space, answer.functional_key, answer.code)
        reads = answer.reads
        if reads is not None:
            # The length of a group that is read tells how often it is repeated.
            counts = [self._counts[name] for name in reads if name in self._counts]
            reads = sorted({*reads, *counts})

        return Build(configuration, network, self.name, self._version, reads, answer.state)

    def close(self) -> None:
        """End the process."""
        self._connection = None
        self._end()

    def _ask(self, kind: Kind, parameters: Mapping[str, Any], seconds: float) -> Any:
        """Return the answer to a question; None without one, and a line of the log says why."""
        if self._killed >= MOST_KILLED:
            return None

        answer = self._send(kind, parameters, [], seconds)
        if isinstance(answer, str):
            self._report(kind, answer)
            return None

        return answer

    def _send(
        self, kind: Kind, parameters: Mapping[str, Any], shapes: list[Shape], seconds: float
    ) -> Any:
        """Return the answer of the process; a text is the reason why there is none."""
        try:
            with self._lock:
                if self._connection is None:
                    self._start()

                assert self._connection is not None
                self._connection.send((kind, parameters, shapes))
                return self._receive(seconds)
        except (EOFError, OSError, TimeoutError) as error:
            self._killed += 1
            self.close()
            return str(error) or "its process ended: it may have taken too much memory"

    def _start(self) -> None:
        """Start the process, and wait until it has imported the function."""
        # Before the import: the file may be edited meanwhile.
        self._version = self.version
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

    def _report(self, kind: Kind, reason: str) -> None:
        """Say once why costs or networks are unknown: the configurations are trained anyway."""
        if kind in self._reported:
            return

        self._reported.add(kind)
        subject = "network" if kind == "network" else "costs"
        log.warning(
            "%s of the model unknown model=%s reason=%r", subject, self._question[0], reason
        )


def _end_child(child: subprocess.Popen[bytes], *connections: Connection) -> None:
    for connection in connections:
        with suppress(OSError):
            connection.close()

    child.kill()
    child.wait()
