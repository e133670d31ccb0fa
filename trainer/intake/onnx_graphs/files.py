"""Reading of ONNX files: the graph, its inputs, and attributes as Python values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from archive.architecture.aten.signature import DTYPES
from archive.architecture.aten.wiring import Input
from archive.errors import SettingsError, UsageError, first_line
from archive.trainer.intake.onnx_graphs.values import Call

LEAST_OPSET = 9
"""Oldest version of ONNX's operators that is read."""


def read(path: Path) -> Any:
    """Return the `onnx.ModelProto` of a file, with its functions written out.

    Raises:
        UsageError: It cannot be read, is no ONNX model, or is too old.
        SettingsError: The package onnx is not installed.
    """
    try:
        import onnx
        from onnx import inliner
    except ModuleNotFoundError as error:
        raise SettingsError(
            "ONNX files need the extra onnx: pip install 'nas-archive[onnx]'"
        ) from error

    try:
        model = onnx.load(str(path))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    except Exception as error:
        # Errors of protobuf, or of a file of weights beside it.
        raise UsageError(f"{path} is no ONNX model: {first_line(error, 200)}") from error

    if not model.graph.node:
        raise UsageError(f"{path} is no ONNX model: it has no graph")

    version = opset(model)
    if version < LEAST_OPSET:
        raise UsageError(
            f"{path} has operators of version {version}, "
            f"and {LEAST_OPSET} is the oldest that is read: convert it with "
            "onnx.version_converter.convert_version(model, 13), or export the model again"
        )

    try:
        return inliner.inline_local_functions(model) if model.functions else model
    except Exception as error:
        raise UsageError(
            f"{path} has functions that cannot be written out: {first_line(error, 200)}"
        ) from error


def opset(model: Any) -> int:
    """Return the version of ONNX's operators that a model uses; 0 for a model without them."""
    for imported in model.opset_import:
        if imported.domain in ("", "ai.onnx"):
            return int(imported.version)

    return 0


def inputs(model: Any) -> tuple[list[Input], int | None]:
    """Return the inputs of a model without the batch, and the batch's size if the file fixes it.

    Raises:
        UsageError: An input has sides of no fixed size, or a type that no architecture has.
    """
    initial = {tensor.name for tensor in model.graph.initializer}
    listed = []
    batches = set()
    for entry in model.graph.input:
        if entry.name in initial:
            continue

        if not entry.type.HasField("tensor_type"):
            raise UsageError(
                f"the input {entry.name!r:.60} is no tensor: "
                "export the model with tensors as inputs"
            )

        sides = list(entry.type.tensor_type.shape.dim)
        shape = tuple(side.dim_value for side in sides[1:])
        if not sides or min(shape, default=1) < 1:
            lengths = [str(side.dim_value or side.dim_param or "?") for side in sides]
            shown = "x".join(lengths) or "none"
            raise UsageError(
                f"the input {entry.name!r:.60} has the shape {shown}: give --input, as in 3x224x224"
            )

        batches.add(sides[0].dim_value if sides[0].dim_value > 0 else None)
        name = _type_name(entry.type.tensor_type.elem_type)
        if name not in DTYPES:
            raise UsageError(
                f"the input {entry.name!r:.60} has values of the type {name}, and a network "
                f"takes values of {', '.join(DTYPES)}: export the model without it"
            )

        listed.append(Input(shape, name))

    if not listed:
        raise UsageError("the ONNX model has no input")

    return listed, batches.pop() if len(batches) == 1 else None


def array(tensor: Any) -> np.ndarray[Any, Any]:
    """Return a tensor of a file, bfloat16 and smaller types as float32.

    Raises:
        UsageError: It holds texts, or other data than it declares.
    """
    from onnx import numpy_helper

    try:
        values: np.ndarray[Any, Any] = numpy_helper.to_array(tensor)
        numbers = values if values.dtype.kind in "biufc" else values.astype(np.float32)
    except Exception as error:
        # Of a damaged file, errors of protobuf and of numpy.
        reason = first_line(error, 100)
        raise UsageError(
            f"the tensor {tensor.name!r:.60} of the file holds no numbers: {reason}"
        ) from error

    return numbers


def attributes(node: Any) -> dict[str, Any]:
    """Return the attributes of a node.

    Raises:
        UsageError: One of them is a graph: a branch or a loop.
    """
    from onnx import helper

    by_name: dict[str, Any] = {}
    for attribute in node.attribute:
        if attribute.HasField("g") or attribute.graphs:
            raise UsageError(
                f"the operator {node.op_type} ({node.output[0]!r:.60}) is control flow, "
                "which no graph has"
            )

        value = helper.get_attribute_value(attribute)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")

        if attribute.HasField("t"):
            value = array(value)

        by_name[attribute.name] = list(value) if _is_list(value) else value

    return by_name


def torch_type(call: Call, number: int) -> torch.dtype:
    """Return the type of numbers that ONNX gives a number.

    Raises:
        UsageError: PyTorch has none.
    """
    try:
        return _type(number)
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise call.fault(f"has numbers of the unknown type {number}") from error


def numpy_type(call: Call, number: int) -> Any:
    """Return the type of constants that ONNX gives a number; float32 for types that numpy lacks.

    Raises:
        UsageError: PyTorch has none.
    """
    from onnx import helper

    torch_type(call, number)
    # Not by a tensor: tensors of torch.export have no values.
    dtype = helper.tensor_dtype_to_np_dtype(number)
    return dtype if dtype.kind in "biufc" else np.dtype(np.float32)


def _type_name(number: int) -> str:
    """Return PyTorch's name of a type, or ONNX's where PyTorch has none."""
    from onnx import TensorProto

    try:
        return str(_type(number)).removeprefix("torch.")
    except (KeyError, AttributeError, TypeError, ValueError):
        if number in TensorProto.DataType.values():
            return str(TensorProto.DataType.Name(number)).lower()

        return str(number)


def _type(number: int) -> torch.dtype:
    from onnx import TensorProto

    name = TensorProto.DataType.Name(number).lower()
    short = {"float": "float32", "double": "float64"}.get(name, name)
    dtype = getattr(torch, short)
    if not isinstance(dtype, torch.dtype):
        raise TypeError(short)

    return dtype


def _is_list(value: Any) -> bool:
    return not isinstance(value, (str, np.ndarray, int, float))
