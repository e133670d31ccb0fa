"""Export of a PyTorch model to operations of the vocabulary: `torch.export`, then decomposition.

    model ──torch.export──> operations of PyTorch ──stand-ins, decomposition──> those of the core set and of `KEPT`

Decomposition fixes the behaviour of batch normalisation and dropout to training or evaluation. Stand-ins, operations
without a decomposition, pass through it unchanged and mean the operation in both. Circular padding has one too: its
decomposition has the lengths of the import. A batch normalisation whose statistics are the mean of all batches has no
momentum, which is exported as NaN.
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
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.export import Dim, ExportedProgram, exported_program
from torch.nn.modules.batchnorm import _BatchNorm

from archive.architecture.aten.wiring import Input
from archive.errors import UsageError
from archive.trainer.intake.settings import arguments_of
from archive.trainer.intake.signatures import KEPT

STAND_INS = "archive_intake"
"""Namespace of the stand-ins."""

_MODES = ("batch_norm", "dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
# Not 1, which torch.export would take for a constant.
_BATCH = 2

_library: Any = None


def exported(model: nn.Module, inputs: Sequence[Input]) -> ExportedProgram:
    """Return a model in evaluation mode as operations of the vocabulary; its own mode is restored.

    Args:
        model: The model. On the device `meta`, no weights are needed.
        inputs: Its inputs, in the order of its `forward`; all have the batch as a further first side.

    Raises:
        UsageError: The model cannot be exported; the message names the place in its code and the way out.
    """
    modes = [(module, module.training) for module in model.modules()]
    cumulative = [module for module in model.modules() if isinstance(module, _BatchNorm) and module.momentum is None]
    model.eval()
    try:
        # In evaluation mode, PyTorch has 0 for it, which would mean statistics that never change.
        for norm in cumulative:
            norm.momentum = math.nan
        with _quiet(), torch.no_grad():
            program = _traced(model, _examples(model, inputs))
            _stand_in(program)
            return _decomposed(program)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(_reason(model, error)) from error
    finally:
        for module, mode in modes:
            module.training = mode
        for norm in cumulative:
            norm.momentum = None


def _traced(model: nn.Module, examples: tuple[torch.Tensor, ...]) -> ExportedProgram:
    collection: Any = torch.export.ShapesCollection
    batch, shapes = Dim("batch", min=1), collection()
    for example in examples:
        # By tensor: a nested list would have to follow the signature of `forward`.
        shapes[example] = {0: batch}
    return torch.export.export(model, examples, dynamic_shapes=shapes, strict=False)


def _examples(model: nn.Module, inputs: Sequence[Input]) -> tuple[torch.Tensor, ...]:
    device = next((tensor.device for tensor in (*model.parameters(), *model.buffers())), torch.device("cpu"))
    return tuple(torch.zeros((_BATCH, *one.shape), dtype=getattr(torch, one.dtype), device=device) for one in inputs)


def _decomposed(program: ExportedProgram) -> ExportedProgram:
    """Return a program after its decomposition to the core set and the operations that are kept.

    `run_decompositions` overrides all composite operations of PyTorch meanwhile, which takes longer than the rest of
    the import of a small model. They decompose by themselves: only those that are kept need an override.
    """
    torch_export: Any = exported_program
    try:
        kept, table = _overrides()
        decomposed: ExportedProgram = torch_export._decompose_exported_program(
            program,
            cia_to_decomp=kept,
            python_decomp_table=dict(table),
            joint_loss_index=None,
            decompose_custom_triton_ops=False,
        )
    except (AttributeError, TypeError):
        # Private functions, which another release of PyTorch may lack or change.
        decomposed = program.run_decompositions(_table())
    return decomposed


@cache
def _overrides() -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Return the composite operations that are kept, with their override, and the decompositions of the others."""
    torch_export: Any = exported_program
    composite, table = torch_export._split_decomp_table_to_cia_and_python_decomp(dict(_table()))
    keeps = torch_export._special_op_to_preserve_cia
    return {op: override for op, override in composite.items() if override is keeps}, table


def _table() -> Any:
    """Return the decompositions to the core set, without those of the operations that are kept."""
    table: Any = torch.export.default_decompositions()
    # Of `pad`, the circular one alone is kept, by its stand-in.
    for name in set(KEPT) - {"pad"}:
        base, _, overload = name.partition(".")
        table.pop(getattr(getattr(torch.ops.aten, base), overload or "default"), None)
    return table


def _stand_in(program: ExportedProgram) -> None:
    """Replace operations whose decomposition depends on the mode, or on lengths."""
    _define()
    for node in program.graph.nodes:
        for name in (*_MODES, "pad"):
            if node.op == "call_function" and node.target is getattr(torch.ops.aten, name).default:
                if name != "pad" or arguments_of(node).get("mode") == "circular":
                    node.target = getattr(getattr(torch.ops, STAND_INS), name).default
    program.graph_module.recompile()


def _define() -> None:
    """Register the stand-ins, once in a process."""
    global _library
    if _library is not None:
        return
    make: Any = torch.library.Library
    _library = make(STAND_INS, "DEF")
    for name in (*_MODES, "pad"):
        schema = str(getattr(torch.ops.aten, name).default._schema).removeprefix("aten::")
        _library.define(schema)
        _library.impl(name, _padded if name == "pad" else _like, "CompositeExplicitAutograd")


def _like(x: torch.Tensor, *_: Any) -> torch.Tensor:
    return torch.empty_like(x)


def _padded(x: torch.Tensor, pad: Sequence[int], *_: Any) -> torch.Tensor:
    sides = list(x.shape)
    for axis, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True), start=1):
        sides[-axis] += before + after
    return x.new_empty(sides)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep notes for the authors of exporters away from the user."""
    loggers = [logging.getLogger(name) for name in ("torch", "torch.export", "torch._export")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        # torch prints the graph so far where an export fails.
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _reason(model: nn.Module, error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # What follows is for the authors of exporters.
    first = re.split(r" \(unhinted| For more information", (lines or [type(error).__name__])[0])[0].rstrip(".!")
    place = _place(error)
    where = f" at {place}" if place else ""
    return f"{type(model).__name__} cannot be exported{where}: {first:.300}{_way_out(error)}"


def _place(error: Exception) -> str:
    """Return the innermost line of the model's code that led to an error."""
    own = Path(torch.__file__).parent
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.line]
    outside = [frame for frame in frames if own not in Path(frame.filename).parents and frame.name == "forward"]
    users = outside or []
    if not users:
        return ""
    # Calls from `forward` on: functions of the model's own, but nothing of torch.
    behind = frames[frames.index(users[-1]) :]
    innermost = next((frame for frame in reversed(behind) if own not in Path(frame.filename).parents), users[-1])
    return f"{Path(innermost.filename).name}:{innermost.lineno} in {innermost.name} ({innermost.line:.80})"


def _way_out(error: Exception) -> str:
    text = f"{type(error).__name__} {error}"
    if "data-dependent" in text or "DataDependent" in text:
        return (
            "; a branch or a size that depends on the values of a tensor cannot be part of a graph: "
            "use torch.where, or leave the branch out of forward"
        )
    if "Constraint" in text or "specialized" in text:
        return "; the model must take a batch of any size: use x.shape[0] instead of a number"
    return ""
