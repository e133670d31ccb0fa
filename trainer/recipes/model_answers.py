"""Program of a model's process: builds modules of configurations, and answers questions about them.

`archive.trainer.recipes.model_process` starts it, and reads its answers.
"""

from __future__ import annotations

import inspect
import math
import resource
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Literal

from archive.architecture import compact
from archive.architecture.aten.wiring import Input, read_input
from archive.errors import (
    InvalidArchitectureError,
    SettingsError,
    UsageError,
    first_line,
    with_line,
)
from archive.trainer.recipes.loading import ModelSource

if TYPE_CHECKING:
    import torch
    from torch import nn

MEMORY_BYTES = 8 * 2**30
"""Limit of the memory of the process."""

Kind = Literal["costs", "network", "inputs"]

Shape = tuple[int, ...]
"""Shape of an input or an output without the batch."""

BATCH = 2
"""Inputs by which a shape is tried: batch normalisation takes no single one."""


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


@dataclass(frozen=True)
class NetworkAnswer:
    """Answer to a question about a network: its text and keys, and as of `Build`."""

    code: str
    space: str
    key: str
    functional_key: str
    reads: list[str] | None
    state: str | None


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
        inputs = inputs_of(example)
    except (Exception, SystemExit) as error:
        answers.send(_line(error))
        return

    answers.send(None)
    while True:
        try:
            kind, parameters, shapes = questions.recv()
        except EOFError:
            return

        answers.send(reply(build, inputs, kind, parameters, shapes))


def reply(
    build: Callable[..., Any],
    inputs: Sequence[Input],
    kind: Kind,
    parameters: Mapping[str, Any],
    shapes: list[Shape],
) -> Any:
    """Return the answer to a question; a text is the reason why there is none."""
    try:
        if kind == "costs":
            return _measure(build, parameters, inputs)

        if kind == "network":
            return _export(build, parameters, inputs)

        return _try(build, parameters, shapes)
    except (Exception, SystemExit) as error:
        return _line(error)


def inputs_of(example: list[str] | str) -> list[Input]:
    """Return shape and type of each input, from texts or from what the user's function returns."""
    if isinstance(example, list):
        return list(map(read_input, example))

    returned = ModelSource("example", example).load()()
    inputs = []
    for tensor in returned if isinstance(returned, list | tuple) else [returned]:
        dtype = str(tensor.dtype).removeprefix("torch.")
        inputs.append(Input(tuple(tensor.shape[1:]), dtype))

    return inputs


def _measure(
    build: Callable[..., Any], parameters: Mapping[str, Any], inputs: Sequence[Input]
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
        params = float(costs.params(module))
        try:
            return params, _flops(module, inputs)
        except Exception:
            if len(inputs) == 1 and inputs[0].dtype == "float32":
                raise

            # No example has the values that the module needs.
            return params, math.nan


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


def _flops(module: nn.Module, inputs: Sequence[Input]) -> float:
    """Return the multiply-adds of one input; an input of indices is all zeros."""
    import torch

    from archive.trainer.nn import costs

    device = next(chain(module.parameters(), module.buffers()), torch.empty(())).device
    examples = []
    for spec in inputs:
        dtype = getattr(torch, spec.dtype)
        examples.append(torch.zeros((1, *spec.shape), dtype=dtype, device=device))

    return float(costs.flops_of(module, examples))


def _export(
    build: Callable[..., Any], parameters: Mapping[str, Any], inputs: Sequence[Input]
) -> NetworkAnswer:
    from archive.trainer.intake.built import build_network

    built = build_network(build, parameters, inputs)
    network = built.architecture
    code = compact.encode(network)
    return NetworkAnswer(
        code, network.space, network.key, network.functional_key, built.reads, built.state
    )


def _line(error: BaseException, file: str | None = None) -> str:
    if isinstance(error, SettingsError | InvalidArchitectureError | UsageError):
        return str(error)

    if file is not None and isinstance(error, Exception):
        return " ".join(with_line(error, file=file, most=300).split())

    return f"{type(error).__name__}: {first_line(Exception(*error.args), 200)}"
