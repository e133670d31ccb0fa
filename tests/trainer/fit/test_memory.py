"""Memory that a process may use, and the recognition of exhausted memory in torch's errors."""

from __future__ import annotations

import psutil
import pytest

from archive.trainer.fit import memory
from archive.trainer.fit.memory import device_memory, out_of_memory

GPU = (
    "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.18 GiB of "
    "which 2.62 MiB is "
    "free. Process 8935 has 78.10 GiB memory in use. Including non-PyTorch memory, this process "
    "has 1.06 GiB memory in "
    "use"
)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (
            f"{GPU}. Of the allocated memory 213.72 MiB is allocated by PyTorch, with 82.00 MiB in "
            "private pools",
            GPU,
        ),
        (
            "[enforce fail at alloc_cpu.cpp:1] . DefaultCPUAllocator: can't allocate memory",
            "can't allocate memory",
        ),
        ("CUDA error: an illegal memory access was encountered", None),
    ],
)
def test_reason_has_the_sizes_without_the_advice(message, reason):
    assert out_of_memory(RuntimeError(message)) == reason


TOTAL = psutil.virtual_memory().total


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({}, TOTAL),
        ({"memory.max": "max\n"}, TOTAL),
        ({"memory.max": "1048576\n"}, 2**20),
        ({"memory.limit_in_bytes": "9223372036854771712\n"}, TOTAL),
        ({"memory.max": "max\n", "memory.limit_in_bytes": "1048576\n"}, 2**20),
        ({"memory.max": "3145728\n", "memory.limit_in_bytes": "2097152\n"}, 2 * 2**20),
    ],
)
def test_the_smallest_limit_of_a_container_counts(tmp_path, monkeypatch, texts, expected):
    for name, text in texts.items():
        (tmp_path / name).write_text(text)

    limits = [str(tmp_path / "memory.max"), str(tmp_path / "memory.limit_in_bytes")]
    monkeypatch.setattr(memory, "_LIMITS", limits)
    assert device_memory() == expected
