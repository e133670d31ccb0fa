"""The graph of an ONNX file as a PyTorch module.

A file does not say what is trained. Tensors of real numbers with more than one number are, except
the statistics of a batch normalisation; numbers and tensors of integers are constants. Matrices are
kept as `torch.nn.Linear` has them, and a vector that is added to the product of a matrix is its
bias.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from archive.errors import ArchiveError, UsageError, first_line
from archive.trainer.intake.onnx_graphs import files, operators, sizes
from archive.trainer.intake.onnx_graphs.values import Call, Value, known

_STATISTICS = (3, 4)
_NONE = np.empty(0)


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
        constants = {each.name: files.array(each) for each in graph.initializer}
        self._inputs = [each.name for each in graph.input if each.name not in constants]
        self._outputs = [each.name for each in graph.output]
        self._steps: list[_Step] = []
        for node in graph.node:
            if node.op_type == "Constant":
                constants[node.output[0]] = _constant(node)
            else:
                self._steps.append(_step(node))

        self._fuse(
            {
                name
                for name, value in constants.items()
                if value.ndim == 1 and value.dtype.kind == "f"
            },
            constants,
        )
        self._fold_statistics(constants)
        self._own(constants)

    def forward(self, *inputs: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Run all nodes."""
        values: dict[str, Value | None] = {"": None, **self._known}
        values.update(
            {name: self.get_parameter_or_buffer(at) for name, at in self._tensors.items()}
        )
        values.update(zip(self._inputs, inputs, strict=True))
        for step in self._steps:
            missing = next((name for name in step.inputs if name not in values), None)
            if missing is not None:
                raise UsageError(
                    f"the operator {step.op} has the input {missing!r:.60}, which no node gives"
                )

            used = tuple(values[name] for name in step.inputs)
            call = Call(
                step.op,
                step.outputs[0],
                used,
                step.attributes,
                len(step.outputs),
                self._batch,
                self._opset,
            )
            results = _run(call)
            values.update(zip(step.outputs, results, strict=False))

        outputs = tuple(
            Call("output", name, (values.get(name),), {}).tensor(0) for name in self._outputs
        )
        return outputs[0] if len(outputs) == 1 else outputs

    def get_parameter_or_buffer(self, name: str) -> Tensor:
        """Return one of the module's tensors."""
        return getattr(self, name)  # type: ignore[no-any-return]

    def _fuse(self, vectors: set[str], constants: dict[str, np.ndarray[Any, Any]]) -> None:
        """Make a product with a matrix of the file, and the sum with a vector behind it, one
        step.
        """
        uses = Counter(name for step in self._steps for name in step.inputs)
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
                step = _Step(
                    "Linear",
                    step.inputs,
                    step.outputs,
                    {"transB": step.attributes.get("transB", 0)},
                )
            elif step.op == "Add" and len(step.inputs) == 2:
                for product, vector in (step.inputs, step.inputs[::-1]):
                    at = products.get(product)
                    if at is None or uses[product] > 1 or vector not in vectors:
                        continue

                    before = steps[at]
                    if (
                        len(before.inputs) == 2
                        and constants[vector].shape[0] == constants[before.inputs[1]].shape[1]
                    ):
                        # The product moves to the sum, where both are known.
                        steps[at] = _Step("", (), (), {})
                        step = _Step("Linear", (*before.inputs, vector), step.outputs, {})
                        break

            steps.append(step)

        self._steps = [step for step in steps if step.op]
        self._transpose(constants)

    def _transpose(self, constants: dict[str, np.ndarray[Any, Any]]) -> None:
        """Turn the matrices of linear steps as `torch.nn.Linear` has them; one that others use
        stays.
        """
        uses = Counter(name for step in self._steps for name in step.inputs)
        for at, step in enumerate(self._steps):
            if step.op != "Linear":
                continue

            turned = bool(step.attributes.get("transB"))
            if not turned and uses[step.inputs[1]] == 1:
                constants[step.inputs[1]] = np.ascontiguousarray(constants[step.inputs[1]].T)
                turned = True

            self._steps[at] = _Step("Linear", step.inputs, step.outputs, {"transB": int(turned)})

    def _fold_statistics(self, constants: dict[str, np.ndarray[Any, Any]]) -> None:
        """Compute the statistics of batch normalisations that the file computes from constants."""
        needed = {
            step.inputs[at]
            for step in self._steps
            if step.op == "BatchNormalization"
            for at in _STATISTICS
        }
        for step in reversed(self._steps):
            if needed.intersection(step.outputs):
                needed.update(step.inputs)

        steps = []
        for step in self._steps:
            if not needed.intersection(step.outputs) or not constants.keys() >= {*step.inputs} - {
                ""
            }:
                steps.append(step)
                continue

            used = tuple(constants.get(name) for name in step.inputs)
            results = _run(
                Call(
                    step.op,
                    step.outputs[0],
                    used,
                    step.attributes,
                    len(step.outputs),
                    None,
                    self._opset,
                )
            )
            for name, result in zip(step.outputs, results, strict=False):
                constants[name] = result.numpy() if isinstance(result, Tensor) else result

        self._steps = steps

    def _settings(self) -> set[str]:
        """Return the inputs that are sizes and scales, and what these are computed from."""
        names: set[str] = set()
        for step in reversed(self._steps):
            if step.op in ("Resize", "Upsample"):
                names.update(step.inputs[1:])
            elif step.op in sizes.FUNCTIONS and names.intersection(step.outputs):
                names.update(step.inputs)

        return names

    def _own(self, constants: dict[str, np.ndarray[Any, Any]]) -> None:
        """Register trained tensors and statistics; keep the rest as constants."""
        used = {name for step in self._steps for name in step.inputs} | {*self._outputs}
        normalised = [step.inputs for step in self._steps if step.op == "BatchNormalization"]
        statistics = {inputs[at] for inputs in normalised for at in _STATISTICS}
        # Those of one channel as well: a layer of the archive has them.
        of_norms = {name for inputs in normalised for name in inputs[1:]}
        settings = self._settings()
        for number, (name, value) in enumerate(constants.items()):
            if name not in used:
                continue

            if (
                value.dtype.kind != "f"
                or (value.size < 2 and name not in of_norms)
                or name in settings
            ):
                self._known[name] = value
                continue

            # Names of a file may have dots.
            self._tensors[name] = owned = f"tensor_{number}"
            tensor = torch.from_numpy(np.array(value))
            if name in statistics:
                self.register_buffer(owned, tensor)
            else:
                self.register_parameter(owned, nn.Parameter(tensor))


def _run(call: Call) -> tuple[Value, ...]:
    try:
        return _results(call)
    except (KeyError, IndexError, AttributeError, TypeError, ValueError, AssertionError) as error:
        raise call.fault(
            f"cannot be read: {type(error).__name__}: {first_line(error, 100)}"
        ) from error


def _results(call: Call) -> tuple[Value, ...]:
    if call.op == "Shape":
        return (_shape(call),)

    if call.op in sizes.FUNCTIONS and known(*call.inputs) and not _fills_a_batch(call):
        return (sizes.FUNCTIONS[call.op](call),)

    output = operators.get(call)(call)
    results = output if isinstance(output, tuple) else (output,)
    return tuple(one if isinstance(one, Tensor) else np.asarray(one) for one in results)


def _fills_a_batch(call: Call) -> bool:
    """Return whether a tensor is to be filled whose size depends on the batch."""
    return call.op == "ConstantOfShape" and any(
        type(side) is not int for side in call.numbers(0) or []
    )


def _shape(call: Call) -> np.ndarray[Any, Any]:
    value = call.value(0)
    assert value is not None
    sides = list(value.shape)[call.get("start", 0) : call.get("end", None)]
    return np.array(sides, dtype=np.int64 if all(type(side) is int for side in sides) else object)


def _step(node: Any) -> _Step:
    if node.domain not in ("", "ai.onnx"):
        raise UsageError(
            f"the operator {node.op_type} of the domain {node.domain!r:.60} is not one of ONNX"
        )

    operators.check(node.op_type)
    return _Step(node.op_type, tuple(node.input), tuple(node.output), files.attributes(node))


def _constant(node: Any) -> np.ndarray[Any, Any]:
    values = list(files.attributes(node).values())
    numbers = isinstance(values[0], (float, int, list, np.ndarray)) if len(values) == 1 else False
    if not numbers or (
        isinstance(values[0], list) and any(isinstance(each, (str, bytes)) for each in values[0])
    ):
        raise UsageError(f"the constant {node.output[0]!r:.60} holds no numbers")

    (value,) = values
    if isinstance(value, float) or (
        isinstance(value, list) and value and isinstance(value[0], float)
    ):
        return np.array(value, np.float32)

    return value if isinstance(value, np.ndarray) else np.array(value)


def _plain_gemm(step: _Step, vectors: set[str]) -> bool:
    """Return whether a general product is a linear layer: without scales, and a vector of the file
    as bias, if any.
    """
    settings = step.attributes
    bias = step.inputs[2] if len(step.inputs) > 2 else ""
    plain = settings.get("alpha", 1.0) == settings.get("beta", 1.0) == 1.0 and not settings.get(
        "transA", 0
    )
    return plain and (not bias or bias in vectors)
