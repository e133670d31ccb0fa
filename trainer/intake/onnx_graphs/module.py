"""The graph of an ONNX file as a PyTorch module.

A file does not mark its trained tensors. Tensors with more than one real number count as trained,
except the statistics of a batch normalisation; single numbers and tensors of integers are
constants. Matrices are kept as `torch.nn.Linear` has them, and a vector that is added to the
product of a matrix is its bias.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from archive.errors import ArchiveError, UsageError, first_line
from archive.trainer.intake.onnx_graphs import (
    elementwise,
    files,
    resizing,
    shapes,
    sizes,
    weighted,
)
from archive.trainer.intake.onnx_graphs.values import Call, Value, are_known

_STATISTICS = (3, 4)
_NONE = np.empty(0)

FUNCTIONS: dict[str, Callable[[Call], Any]] = {
    **elementwise.FUNCTIONS,
    **resizing.FUNCTIONS,
    **shapes.FUNCTIONS,
    **weighted.FUNCTIONS,
}
"""Operator to its function on tensors; `sizes` has functions on known values."""

ON_SIZES = ("Shape", "Range", "Constant")
"""Operators on known values alone."""


@dataclass(frozen=True)
class _Step:
    """A node, ready to run: its attributes are read."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]


class OnnxModule(nn.Module):
    """Runs the nodes of a graph.

    Args:
        model: The `onnx.ModelProto`.
        batch: Number of inputs in a batch that the file fixes; None where it does not.

    Raises:
        UsageError: The graph has an operator that is not known, or is no graph.
    """

    def __init__(self, model: Any, batch: int | None = None) -> None:
        """Read the weights and the attributes."""
        super().__init__()
        try:
            self._read(model, batch)
        except ArchiveError:
            raise
        except Exception as error:
            # Of a damaged file.
            raise UsageError(
                f"the ONNX graph cannot be read: {type(error).__name__}: {first_line(error, 100)}"
            ) from error

    def _read(self, model: Any, batch: int | None) -> None:
        graph = model.graph
        self._batch = batch
        self._opset = files.opset(model)
        self._known: dict[str, np.ndarray[Any, Any]] = {}
        self._tensors: dict[str, str] = {}
        constants = {tensor.name: files.array(tensor) for tensor in graph.initializer}
        self._inputs = [entry.name for entry in graph.input if entry.name not in constants]
        self._outputs = [entry.name for entry in graph.output]
        self._steps: list[_Step] = []
        for node in graph.node:
            if node.op_type == "Constant":
                constants[node.output[0]] = _read_constant(node)
            else:
                self._steps.append(_read_step(node))

        self._fuse(constants)
        self._fold_statistics(constants)
        self._register(constants)

    def forward(self, *inputs: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Run all nodes."""
        values: dict[str, Value | None] = {"": None, **self._known}
        for name, attribute in self._tensors.items():
            values[name] = self.get_parameter_or_buffer(attribute)

        values.update(zip(self._inputs, inputs, strict=True))
        for step in self._steps:
            for name in step.inputs:
                if name not in values:
                    raise UsageError(
                        f"the operator {step.op} has the input {name!r:.60}, which no node gives"
                    )

            results = self._run(step, tuple(map(values.__getitem__, step.inputs)), self._batch)
            values.update(zip(step.outputs, results, strict=False))

        outputs = tuple(_read_output(name, values.get(name)) for name in self._outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def get_parameter_or_buffer(self, name: str) -> Tensor:
        """Return one of the module's tensors."""
        return getattr(self, name)  # type: ignore[no-any-return]

    def _run(
        self, step: _Step, inputs: tuple[Value | None, ...], batch: int | None
    ) -> tuple[Value, ...]:
        """Return the outputs of a step."""
        call = Call(
            op=step.op,
            name=step.outputs[0],
            inputs=inputs,
            attributes=step.attributes,
            outputs=len(step.outputs),
            batch=batch,
            opset=self._opset,
        )
        try:
            return _compute(call)
        except (
            KeyError,
            IndexError,
            AttributeError,
            TypeError,
            ValueError,
            AssertionError,
        ) as error:
            raise call.fault(
                f"cannot be read: {type(error).__name__}: {first_line(error, 100)}"
            ) from error

    def _count_uses(self) -> Counter[str]:
        """Return how many inputs of steps have each name."""
        uses: Counter[str] = Counter()
        for step in self._steps:
            uses.update(step.inputs)

        return uses

    def _fuse(self, constants: dict[str, np.ndarray[Any, Any]]) -> None:
        """Join the product with a matrix of the file and the sum with a vector after it."""
        vectors = set()
        for name, value in constants.items():
            if value.ndim == 1 and value.dtype.kind == "f":
                vectors.add(name)

        uses = self._count_uses()
        uses.update(self._outputs)
        products: dict[str, int] = {}
        steps: list[_Step] = []
        for step in self._steps:
            if step.op == "MatMul" and constants.get(step.inputs[1], _NONE).ndim == 2:
                products[step.outputs[0]] = len(steps)
                step = _Step("Linear", step.inputs, step.outputs, {})
            elif (
                step.op == "Gemm"
                and _plain_gemm(step, vectors)
                and constants.get(step.inputs[1], _NONE).ndim == 2
            ):
                transposed = step.attributes.get("transB", 0)
                step = _Step("Linear", step.inputs, step.outputs, {"transB": transposed})
            elif step.op == "Add" and len(step.inputs) == 2:
                for product, vector in (step.inputs, step.inputs[::-1]):
                    index = products.get(product)
                    if index is None or uses[product] > 1 or vector not in vectors:
                        continue

                    before = steps[index]
                    if (
                        len(before.inputs) == 2
                        and constants[vector].shape[0] == constants[before.inputs[1]].shape[1]
                    ):
                        # The product moves to the sum, where both are known.
                        steps[index] = _Step("", (), (), {})
                        step = _Step("Linear", (*before.inputs, vector), step.outputs, {})
                        break

            steps.append(step)

        self._steps = [step for step in steps if step.op]
        self._transpose(constants)

    def _transpose(self, constants: dict[str, np.ndarray[Any, Any]]) -> None:
        """Turn the matrices of linear steps as `torch.nn.Linear` has them, unless shared."""
        uses = self._count_uses()
        for index, step in enumerate(self._steps):
            if step.op != "Linear":
                continue

            turned = bool(step.attributes.get("transB"))
            if not turned and uses[step.inputs[1]] == 1:
                constants[step.inputs[1]] = np.ascontiguousarray(constants[step.inputs[1]].T)
                turned = True

            self._steps[index] = _Step("Linear", step.inputs, step.outputs, {"transB": int(turned)})

    def _fold_statistics(self, constants: dict[str, np.ndarray[Any, Any]]) -> None:
        """Compute the statistics of batch normalisations that the file computes from constants."""
        needed = self._name_statistics()
        for step in reversed(self._steps):
            if needed.intersection(step.outputs):
                needed.update(step.inputs)

        steps = []
        for step in self._steps:
            present = set(step.inputs) - {""}
            if not needed.intersection(step.outputs) or not constants.keys() >= present:
                steps.append(step)
                continue

            results = self._run(step, tuple(map(constants.get, step.inputs)), None)
            for name, result in zip(step.outputs, results, strict=False):
                constants[name] = result.numpy() if isinstance(result, Tensor) else result

        self._steps = steps

    def _name_statistics(self) -> set[str]:
        """Return the names of the running statistics of batch normalisations."""
        names: set[str] = set()
        for step in self._steps:
            if step.op == "BatchNormalization":
                names.update(map(step.inputs.__getitem__, _STATISTICS))

        return names

    def _name_settings(self) -> set[str]:
        """Return the names of sizes and scales, and of the values that compute them."""
        names: set[str] = set()
        for step in reversed(self._steps):
            if step.op in ("Resize", "Upsample"):
                names.update(step.inputs[1:])
            elif step.op in sizes.FUNCTIONS and names.intersection(step.outputs):
                names.update(step.inputs)

        return names

    def _register(self, constants: dict[str, np.ndarray[Any, Any]]) -> None:
        """Register trained tensors and statistics; keep the rest as constants."""
        used = {*self._count_uses(), *self._outputs}
        statistics = self._name_statistics()
        settings = self._name_settings()
        # Tensors of normalisations of one channel as well: a layer of the archive has them.
        of_norms: set[str] = set()
        for step in self._steps:
            if step.op == "BatchNormalization":
                of_norms.update(step.inputs[1:])

        for number, (name, value) in enumerate(constants.items()):
            if name not in used:
                continue

            is_number = value.size < 2 and name not in of_norms
            if value.dtype.kind != "f" or is_number or name in settings:
                self._known[name] = value
                continue

            # Names of a file may have dots.
            attribute = f"tensor_{number}"
            self._tensors[name] = attribute
            tensor = torch.from_numpy(np.array(value))
            if name in statistics:
                self.register_buffer(attribute, tensor)
            else:
                self.register_parameter(attribute, nn.Parameter(tensor))


def _read_output(name: str, value: Value | None) -> Tensor:
    return Call("output", name, (value,), {}).tensor(0)


def _compute(call: Call) -> tuple[Value, ...]:
    if call.op == "Shape":
        return (_shape(call),)

    if call.op in sizes.FUNCTIONS and are_known(*call.inputs) and not _fills_a_batch(call):
        return (sizes.FUNCTIONS[call.op](call),)

    if call.op not in FUNCTIONS:
        raise call.fault("depends on values of a tensor")

    output = FUNCTIONS[call.op](call)
    results = []
    for value in output if isinstance(output, tuple) else (output,):
        results.append(value if isinstance(value, Tensor) else np.asarray(value))

    return tuple(results)


def _fills_a_batch(call: Call) -> bool:
    """Return whether the operator fills a tensor with a size that depends on the batch."""
    if call.op != "ConstantOfShape":
        return False

    return any(type(side) is not int for side in call.numbers(0) or [])


def _shape(call: Call) -> np.ndarray[Any, Any]:
    value = call.value(0)
    assert value is not None
    sides = list(value.shape)[call.get("start", 0) : call.get("end", None)]
    fixed = all(type(side) is int for side in sides)
    return np.array(sides, dtype=np.int64 if fixed else object)


def _read_step(node: Any) -> _Step:
    if node.domain not in ("", "ai.onnx"):
        raise UsageError(
            f"the operator {node.op_type} of the domain {node.domain!r:.60} is not one of ONNX"
        )

    _check_operator(node.op_type)
    return _Step(node.op_type, tuple(node.input), tuple(node.output), files.attributes(node))


def _read_constant(node: Any) -> np.ndarray[Any, Any]:
    values = list(files.attributes(node).values())
    value = values[0] if len(values) == 1 else None
    numbers = value if isinstance(value, list) else [value]
    if not all(isinstance(number, (float, int, np.ndarray)) for number in numbers):
        raise UsageError(f"the constant {node.output[0]!r:.60} holds no numbers")

    if isinstance(value, np.ndarray):
        return value

    if numbers and isinstance(numbers[0], float):
        return np.array(value, np.float32)

    return np.array(value)


def _plain_gemm(step: _Step, vectors: set[str]) -> bool:
    """Return whether a general product is a linear layer.

    It has no scales, and no bias but a vector of the file.
    """
    settings = step.attributes
    if settings.get("alpha", 1.0) != 1.0 or settings.get("beta", 1.0) != 1.0:
        return False

    if settings.get("transA", 0):
        return False

    bias = step.inputs[2] if len(step.inputs) > 2 else ""
    return not bias or bias in vectors


def _check_operator(name: str) -> None:
    if name not in FUNCTIONS and name not in ON_SIZES:
        near = difflib.get_close_matches(name, FUNCTIONS, 3)
        hint = f"; known ones like it: {', '.join(near)}" if near else ""
        raise UsageError(
            f"the ONNX operator {name!r:.60} has no counterpart here{hint}: import the model "
            "from PyTorch, or write it with other operators"
        )
