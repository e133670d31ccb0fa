"""Random models and files: imported with the outputs that they have, or refused in one line."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from archive.architecture.aten.wiring import Input
from archive.errors import ArchiveError
from archive.trainer.intake.models import import_model
from archive.trainer.intake.onnx_graphs import files, module
from archive.trainer.intake.onnx_graphs.module import OnnxModule
from archive.trainer.nn.aten import network

pytestmark = pytest.mark.lasts(2)

SECONDS = float(os.environ.get("ARCHIVE_FUZZ_SECONDS", "1"))
"""Processor seconds of each test."""

MOST_NUMBERS = 10**6
OPERATORS = sorted({*module.FUNCTIONS, *module.ON_SIZES} - {"Linear"})
NUMBERS = (-1, 0, 1, 2, 3, 7, 2**31, -(2**63), 0.0, -1.5, float("nan"), float("inf"))
TYPES = (
    TensorProto.FLOAT,
    TensorProto.INT64,
    TensorProto.BOOL,
    TensorProto.DOUBLE,
    TensorProto.BFLOAT16,
)
TYPES = (
    *TYPES,
    TensorProto.STRING,
    TensorProto.FLOAT8E4M3FN,
    TensorProto.UINT64,
    TensorProto.UINT8,
)
ATTRIBUTES = (
    *(
        "axis",
        "axes",
        "keepdims",
        "perm",
        "kernel_shape",
        "pads",
        "strides",
        "dilations",
        "group",
        "to",
        "mode",
    ),
    *(
        "alpha",
        "beta",
        "epsilon",
        "num_groups",
        "size",
        "select_last_index",
        "value",
        "auto_pad",
        "equation",
        "k",
    ),
)


def check_refusal(call: Any, *arguments: Any) -> None:
    """Check that a call raises an error of the archive in one line, or none."""
    try:
        call(*arguments)
    except ArchiveError as error:
        assert "\n" not in str(error) and str(error)


def read(path: Path) -> None:
    model = files.read(path)
    OnnxModule(model, files.inputs(model)[1])


def imported(path: Path) -> None:
    model = files.read(path)
    inputs, batch = files.inputs(model)
    if sum(int(np.prod(each.shape, dtype=float)) for each in inputs) < MOST_NUMBERS:
        import_model(OnnxModule(model, batch), inputs)


def constant(rng: np.random.Generator, name: str) -> TensorProto:
    shape = [int(side) for side in rng.choice([0, 1, 2, 4], size=rng.integers(0, 4))]
    kind = rng.choice(["f", "i", "b", "text", "small"])
    if kind == "text":
        return helper.make_tensor(name, TensorProto.STRING, [1], [b"text"])

    if kind == "small":
        return helper.make_tensor(name, TensorProto.BFLOAT16, [2], [1.0, 2.0])

    dtype = {"f": np.float32, "i": np.int64, "b": np.bool_}[str(kind)]
    return numpy_helper.from_array(rng.integers(-3, 4, size=shape).astype(dtype), name)


def attribute(rng: np.random.Generator, name: str) -> onnx.AttributeProto:
    number = NUMBERS[rng.integers(len(NUMBERS))]
    kinds: list[Any] = [
        number,
        [1, 2],
        [int(rng.integers(-3, 4))] * 2,
        "reflect",
        "ij,jk->ik",
        [0.5],
    ]
    return helper.make_attribute(name, kinds[rng.integers(len(kinds))])


def file_of(rng: np.random.Generator) -> onnx.ModelProto:
    """A graph of two random operators with random attributes."""
    given = helper.make_tensor_value_info(
        "x",
        int(rng.choice(TYPES)),
        ["N", *[int(side) for side in rng.choice([1, 2, 4], size=rng.integers(0, 4))]],
    )
    nodes = []
    names = ["x", "c", "d", ""]
    for number in range(2):
        inputs = [str(name) for name in rng.choice(names, size=rng.integers(0, 5))]
        node = helper.make_node(str(rng.choice(OPERATORS)), inputs, [f"y{number}"])
        node.attribute.extend(
            attribute(rng, str(name)) for name in rng.choice(ATTRIBUTES, size=2, replace=False)
        )
        nodes.append(node)
        names.append(f"y{number}")

    result = helper.make_tensor_value_info("y1", TensorProto.FLOAT, None)
    graph = helper.make_graph(
        nodes, "g", [given], [result], [constant(rng, "c"), constant(rng, "d")]
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", int(rng.choice([9, 11, 13, 17, 18, 21])))]
    )


def sound_file() -> bytes:
    rng = np.random.default_rng(0)
    weights = {"w": (3, 4, 3, 3), "g": (3,), "h": (3,), "m": (3,), "t": (36, 5)}
    tensors = [
        numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name)
        for name, shape in weights.items()
    ]
    tensors.append(numpy_helper.from_array(np.array([0, 36]), "s"))
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["a", "g", "h", "m", "g"], ["b"]),
        helper.make_node("ReduceMean", ["b"], ["c"], axes=[1], keepdims=0),
        helper.make_node("Reshape", ["c", "s"], ["d"]),
        helper.make_node("MatMul", ["d", "t"], ["y"]),
    ]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4, 6, 6])
    graph = helper.make_graph(
        nodes, "g", [given], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], tensors
    )
    raw: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 13)]
    ).SerializeToString()
    return raw


def test_damaged_files_are_refused_in_one_line(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    raw = sound_file()
    path = tmp_path / "model.onnx"
    structure = [at for at, byte in enumerate(raw) if 32 <= byte < 127 or byte < 16]
    end = time.process_time() + SECONDS
    count = 0
    while time.process_time() < end or count < 5:
        damaged = bytearray(raw)
        for at in rng.choice(structure, size=rng.integers(1, 4)):
            damaged[at] ^= 1 << int(rng.integers(8))

        path.write_bytes(
            bytes(damaged[: rng.integers(len(damaged))] if rng.random() < 0.3 else damaged)
        )
        # Its sizes may be those of no memory.
        check_refusal(read, path)
        count += 1


def test_random_graphs_of_files_are_imported_or_refused_in_one_line(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    path = tmp_path / "model.onnx"
    end = time.process_time() + SECONDS
    count = 0
    while time.process_time() < end or count < 5:
        path.write_bytes(file_of(rng).SerializeToString())
        check_refusal(imported, path)
        count += 1


class Random(nn.Module):
    """Three random operations, with a size of the batch, random numbers or a change in place among
    them."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.chosen = [int(number) for number in rng.integers(len(STEPS), size=3)]
        self.number = NUMBERS[rng.integers(len(NUMBERS))]

    def forward(self, x: Tensor) -> Any:
        y: Any = self.linear(x.float() if x.shape[-1:] == (4,) else x)
        for number in self.chosen:
            y = STEPS[number](self, y)

        return y


STEPS: list[Any] = [
    lambda m, y: y / y.shape[0],
    lambda m, y: y + m.number,
    lambda m, y: y ** y.shape[0],
    lambda m, y: y * (y.shape[0] ** 0.5 + 1),
    lambda m, y: y[-1],
    lambda m, y: y.flip(0),
    lambda m, y: y.sum(int(m.number)) if m.number == m.number and abs(m.number) < 9 else y,
    lambda m, y: y.view(-1),
    lambda m, y: y.new_zeros(y.shape[0], 0),
    lambda m, y: y.sort(-1)[0],
    lambda m, y: y.half().float(),
    lambda m, y: y.to(torch.bfloat16),
    lambda m, y: y.to(torch.float8_e4m3fn),
    lambda m, y: y.to(torch.uint16),
    lambda m, y: torch.fft.fft(y),
    lambda m, y: torch.nn.functional.dropout(y, 0.5, m.training, inplace=True),
    lambda m, y: y + torch.rand_like(y) if m.training else y,
    lambda m, y: y.detach(),
    lambda m, y: y.unique(),
    lambda m, y: (y, y.max())[0],
    lambda m, y: y.item(),
    lambda m, y: y.tolist(),
    lambda m, y: None,
    lambda m, y: {"a": y},
    lambda m, y: y.to_sparse(),
    lambda m, y: torch.quantize_per_tensor(y, 0.1, 0, torch.qint8),
    lambda m, y: y.linear,
    lambda m, y: y.matmul(y),
    lambda m, y: y.squeeze(),
    lambda m, y: torch.arange(y.shape[0]).float() + y.sum(),
    lambda m, y: y.numel() * y,
]


@pytest.mark.whole
def test_random_models_are_imported_with_their_outputs_or_refused_in_one_line() -> None:
    rng = np.random.default_rng(3)
    end = time.process_time() + SECONDS
    count = 0
    while time.process_time() < end or count < 5:
        torch.manual_seed(count)
        model = Random(rng)
        shape = (4,) if rng.random() < 0.7 else (2, 4)
        check_refusal(same_outputs, model, Input(shape))
        count += 1


def same_outputs(model: nn.Module, given: Input) -> None:
    imported = import_model(model, [given])
    again = network.rebuilt(imported.architecture)
    again.load_state_dict(imported.state_dict(model))
    x = torch.randn(2, *given.shape)
    expected = model.eval()(x.clone())
    computed = again.eval()(x.clone())
    if isinstance(expected, dict):
        expected = expected["a"]

    torch.testing.assert_close(computed, expected, equal_nan=True, rtol=1e-3, atol=1e-4)
