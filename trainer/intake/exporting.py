"""Export of a PyTorch model to operations of the vocabulary: `torch.export`, then decomposition.

    model ──torch.export──> operations of PyTorch
          ──stand-ins, decomposition──> operations of the core set and of `KEPT`

A model is traced in evaluation mode, and in training mode where it may be another network then.
Both traces become one program (`merging`). A batch normalisation with the mean of all batches
as its statistics has no momentum, which is exported as NaN.
"""

from __future__ import annotations

import io
import logging
import math
import re
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.export import ExportedProgram
from torch.nn.modules.batchnorm import _BatchNorm

from archive import runtime
from archive.architecture.aten.wiring import Input
from archive.errors import UsageError, first_line
from archive.trainer.intake import merging, tracing
from archive.trainer.intake.alignment import align
from archive.trainer.intake.decomposition import decompose
from archive.trainer.intake.modes import has_own_training, own_steps, replace
from archive.trainer.intake.onnx_graphs.module import OnnxModule
from archive.trainer.intake.programs import Program, read_program
from archive.trainer.intake.weightless import memory_lent


class Export(NamedTuple):
    """An exported model.

    Attributes:
        program: Its operations, of both modes.
        notes: Differences of the program from the model in training, a line each.
    """

    program: Program
    notes: tuple[str, ...]


def export(model: nn.Module, inputs: Sequence[Input], *, inference: bool = False) -> Export:
    """Return a model as operations of the vocabulary; its own modes are restored.

    Args:
        model: The model. On the device `meta`, no weights are needed.
        inputs: Its inputs, in the order of its `forward`; all have the batch as a further first
            side.
        inference: Whether the model has no training mode, as a file; its dropouts and
            normalisations follow the mode then.

    Raises:
        UsageError: The model cannot be exported; the message names the place in its code and the
            way out.
    """
    try:
        # A trace makes many lasting objects, which each run of the collector would scan.
        with (
            memory_lent(model) as absent,
            modes_kept(model),
            _momenta_given(model),
            _without_caches(model),
            _quiet(),
            runtime.pause_gc(),
        ):
            exported = _export_modes(model, tracing.examples_of(model, inputs), inference)
    except (UsageError, RecursionError):
        raise
    except Exception as error:
        raise UsageError(_reason(model, error)) from error

    tensors = exported.program.tensors
    for node, tensor in tensors.items():
        tensors[node] = tensor._replace(values=absent.get(tensor.name, tensor.values))

    return exported


@contextmanager
def modes_kept(model: nn.Module) -> Iterator[None]:
    """Restore the mode of each module afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


@contextmanager
def _momenta_given(model: nn.Module) -> Iterator[None]:
    """Give batch normalisations without a momentum NaN meanwhile.

    Their statistics are the mean of all batches. In evaluation mode, PyTorch has 0 for the
    momentum, which would mean statistics that never change.
    """
    cumulative: list[_BatchNorm] = []
    for module in model.modules():
        if isinstance(module, _BatchNorm) and module.momentum is None:
            cumulative.append(module)

    try:
        for norm in cumulative:
            norm.momentum = math.nan

        yield
    finally:
        for norm in cumulative:
            norm.momentum = None


@contextmanager
def _without_caches(model: nn.Module) -> Iterator[None]:
    """Keep language models of transformers from returning their cache, which is no tensor."""
    configs: dict[int, Any] = {}
    for module in model.modules():
        config = getattr(module, "config", None)
        if getattr(config, "use_cache", None) is True:
            configs[id(config)] = config

    try:
        for config in configs.values():
            config.use_cache = False

        yield
    finally:
        for config in configs.values():
            config.use_cache = True


def _export_modes(model: nn.Module, examples: tuple[torch.Tensor, ...], inference: bool) -> Export:
    notes = [] if inference else _state_notes(model)
    model.eval()
    with tracing.readers_of_mode() as readers, tracing.own_gradients() as functions:
        evaluation = tracing.trace(model, examples)

    training = None
    model.train()
    if not inference and has_own_training(model, readers, evaluation, examples):
        try:
            with tracing.own_gradients() as others:
                training = tracing.trace(model, examples)

            functions |= others
        except Exception as error:
            notes.append(
                f"in training mode the model cannot be exported ({_first_line(error):.160}): "
                "what it computes in training alone is left out"
            )

    if functions:
        notes.append(
            f"{', '.join(sorted(functions))} of the model has a backward pass of its own, "
            "and the network has the gradients of PyTorch's operations"
        )

    return Export(_joint(evaluation, training, notes), tuple(notes))


def _joint(
    evaluation: ExportedProgram, training: ExportedProgram | None, notes: list[str]
) -> Program:
    """Return one program of both traces, and add its omissions to the notes."""
    if training is None:
        replace(evaluation, None, {})
        notes += _steps_notes(evaluation)
        return decompose(evaluation)

    before = read_program(evaluation)
    after = read_program(training)
    notes += _training_notes(before, after)
    pairs = align(before, after)
    replace(evaluation, training, pairs)
    notes += _steps_notes(evaluation)
    if not merging.differs(before, after, pairs):
        return decompose(evaluation)

    merging.write_without_changes(pairs)
    if merging.is_safe(before, after, pairs):
        merging.merge(before, after, pairs)
        evaluation.graph.lint()
        evaluation.graph_module.recompile()
        return decompose(evaluation)

    before = decompose(evaluation)
    after = decompose(training)
    return merging.merge(before, after, align(before, after))


def _state_notes(model: nn.Module) -> list[str]:
    """Return notes about a state for training that no network can have."""
    notes = []
    frozen = [name for name, parameter in model.named_parameters() if not parameter.requires_grad]
    if frozen:
        notes.append(
            f"the model does not train {name_list(frozen, 'parameter')} "
            "(requires_grad is False), and the network does"
        )

    evaluated: dict[str, nn.Module] = {}
    for name, module in model.named_modules():
        if model.training and not module.training:
            evaluated[name] = module

    model.train()
    changed: list[str] = []
    for name, module in evaluated.items():
        if module.training and not list(module.children()):
            changed.append(name)

    if changed:
        verb = "is" if len(changed) == 1 else "are"
        notes.append(
            f"{name_list(changed, 'module')} of the model {verb} in evaluation mode, "
            "and in the network all follow its mode: override train() to keep them so"
        )

    return notes


def _steps_notes(evaluation: ExportedProgram) -> list[str]:
    steps = own_steps(evaluation)
    if not steps:
        return []

    names = name_list(steps, "module")
    return [f"the steps of {names} are layers: its weights are computed or shared"]


def _training_notes(evaluation: Program, training: Program) -> list[str]:
    notes = []
    changed = merging.changed_buffers(training) - merging.changed_buffers(evaluation)
    names: list[str] = []
    for name in sorted(changed):
        if not name.endswith("num_batches_tracked"):
            names.append(name)

    if names:
        notes.append(
            f"in training the model changes {name_list(names, 'buffer')}, "
            "and the network has the values of the import"
        )

    if len(training.outputs) != len(evaluation.outputs):
        notes.append(
            f"in training the model returns {len(training.outputs)} tensors, and in evaluation "
            f"{len(evaluation.outputs)}: the network returns those of evaluation"
        )

    return notes


def name_list(names: Sequence[str], noun: str) -> str:
    """Return some names as a text: `the buffers a, b and 3 more`."""
    listed = ", ".join(names[:3])
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"the {noun}{'s' if len(names) > 1 else ''} {listed}{more}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep notes for the authors of exporters away from the user."""
    levels: dict[logging.Logger, int] = {}
    for name in ("torch", "torch.export", "torch._export"):
        logger = logging.getLogger(name)
        levels[logger] = logger.level
        logger.setLevel(logging.CRITICAL)

    try:
        # torch prints the graph so far where an export fails.
        with (
            warnings.catch_warnings(),
            redirect_stdout(io.StringIO()),
            redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)


def _reason(model: nn.Module, error: Exception) -> str:
    location = _place(error)
    where = f" at {location}" if location else ""
    return (
        f"{type(model).__name__} cannot be exported{where}: "
        f"{_first_line(error):.300}{_way_out(model, error)}"
    )


def _first_line(error: Exception) -> str:
    # The rest is for the authors of exporters.
    return re.split(r" \(unhinted| For more information", first_line(error))[0].rstrip(".!")


def _place(error: Exception) -> str:
    """Return the innermost line of the model's code that led to an error."""
    torch_folder = Path(torch.__file__).parent
    innermost: traceback.FrameSummary | None = None
    for frame in traceback.extract_tb(error.__traceback__):
        if not frame.line or torch_folder in Path(frame.filename).parents:
            continue

        # Calls from `forward` on: functions of the model, but nothing of torch.
        if innermost is not None or frame.name == "forward":
            innermost = frame

    if innermost is None:
        return ""

    file_and_line = f"{Path(innermost.filename).name}:{innermost.lineno}"
    return f"{file_and_line} in {innermost.name} ({innermost.line:.80})"


def _way_out(model: nn.Module, error: Exception) -> str:
    text = f"{type(error).__name__} {error}"
    if "data-dependent" in text or "DataDependent" in text:
        return (
            "; a branch or a size that depends on the values of a tensor cannot be part of "
            "a graph: use torch.where, or leave the branch out of forward"
        )

    if "Constraint" in text or "specialized" in text:
        if isinstance(model, OnnxModule):
            return (
                "; the graph of the file takes batches of one size: "
                "export the model with a batch of any size"
            )

        if any(isinstance(part, nn.RNNBase) and not part.batch_first for part in model.modules()):
            return "; the first side is the batch: recurrent layers need batch_first=True"

        return "; the model must take a batch of any size: use x.shape[0] instead of a number"

    if "in output, which is not a known type" in text:
        return (
            "; a model must return tensors: give a module whose forward returns these alone, "
            "such as model(x, use_cache=False).logits"
        )

    if isinstance(error, AssertionError):
        return "; the model refuses this input: give another size by --input"

    if "fake tensor in the exported program" in text:
        return "; .data of a tensor has no graph: use .detach()"

    return ""
