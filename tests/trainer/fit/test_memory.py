"""Recognition of exhausted memory in torch's errors."""

from __future__ import annotations

import pytest

from archive.trainer.fit.memory import out_of_memory

GPU = (
    "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.18 GiB of which 2.62 MiB is "
    "free. Process 8935 has 78.10 GiB memory in use. Including non-PyTorch memory, this process has 1.06 GiB memory in "
    "use"
)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (f"{GPU}. Of the allocated memory 213.72 MiB is allocated by PyTorch, with 82.00 MiB in private pools", GPU),
        ("[enforce fail at alloc_cpu.cpp:1] . DefaultCPUAllocator: can't allocate memory", "can't allocate memory"),
        ("CUDA error: an illegal memory access was encountered", None),
    ],
)
def test_reason_has_the_sizes_without_the_advice(message, reason):
    assert out_of_memory(RuntimeError(message)) == reason
