"""Tensors and arrays of a recipe: those that a file can hold, and those that it cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from archive.errors import TrainingError
from archive.trainer.recipes.checkpoint import as_tensors


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array.flags.writeable = False
    return array


HELD: dict[str, tuple[Any, torch.Tensor]] = {
    "number": (np.array(3.0, np.float32), torch.tensor(3.0)),
    "number of other bytes": (np.array(3.0, ">f4"), torch.tensor(3.0)),
    "other bytes": (np.arange(3, dtype=">i2"), torch.arange(3, dtype=torch.int16)),
    "unsigned": (np.arange(3, dtype=np.uint16), torch.arange(3).to(torch.uint16)),
    "bfloat16": (np.arange(3).astype(ml_dtypes.bfloat16), torch.arange(3, dtype=torch.bfloat16)),
    "bfloat16 number": (np.array(2, ml_dtypes.bfloat16), torch.tensor(2, dtype=torch.bfloat16)),
    "backwards": (np.arange(3.0)[::-1], torch.tensor([2.0, 1.0, 0.0], dtype=torch.float64)),
    "columns": (
        np.arange(4.0).reshape(2, 2).T,
        torch.tensor([[0.0, 2.0], [1.0, 3.0]], dtype=torch.float64),
    ),
    "read-only": (read_only(np.ones(2, bool)), torch.ones(2, dtype=torch.bool)),
    "empty": (np.ones((0, 3), np.int8), torch.ones((0, 3), dtype=torch.int8)),
    "conjugate": (torch.tensor([1 + 2j]).conj(), torch.tensor([1 - 2j])),
    "negative": (torch._neg_view(torch.ones(2)), -torch.ones(2)),
    "trained": (torch.nn.Parameter(torch.ones(())), torch.ones(())),
}


@pytest.mark.parametrize("case", HELD)
def test_a_file_holds_shape_and_numbers(case: str) -> None:
    value, expected = HELD[case]
    found = load(
        save({name: tensor.contiguous() for name, tensor in as_tensors({"w": value}).items()})
    )["w"]
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert torch.equal(found, expected)


def test_tied_values_become_copies() -> None:
    tied = torch.zeros(3)
    found = as_tensors({"one": tied, "two": tied})
    assert found["one"].data_ptr() == tied.data_ptr() != found["two"].data_ptr()


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "list": (lambda: [1.0], "weights are tensors or arrays by name, got list as 'w'"),
    "objects": (
        lambda: np.array([1, None]),
        "of a type that safetensors has, got an array of object as 'w'",
    ),
    "texts": (lambda: np.array(["a"]), "got an array of <U1 as 'w'"),
    "dates": (lambda: np.array(["2020"], "M8[D]"), "got an array of datetime64"),
    "fields": (lambda: np.ones(2, [("a", "f4")]), "got an array of .*'a', '<f4'"),
    "complex128": (lambda: np.ones(2, np.complex128), "got an array of complex128 as 'w'"),
    "complex tensor": (
        lambda: torch.ones(2, dtype=torch.complex128),
        "got a tensor of complex128 as 'w'",
    ),
    "sparse": (
        lambda: torch.eye(2).to_sparse(),
        "dense tensors or arrays .* got a tensor that is sparse_coo as 'w'",
    ),
    "meta": (
        lambda: torch.ones(2, device="meta"),
        "got a tensor without values, on the device meta as 'w'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_file_can_hold_is_refused(case: str) -> None:
    make, reason = REFUSED[case]
    with pytest.raises(TrainingError, match=reason):
        as_tensors({"w": make()})
