"""Seats of trainers on the GPUs of a machine."""

from __future__ import annotations

import pytest

from archive.errors import SettingsError
from archive.trainer.daemon.seats import Seats
from archive.trainer.trial.devices import Device

GIB = 1 << 30
GPUS = [
    Device("cuda", f"cuda:{i}", "GPU", (i + 1) * GIB, f"GPU-{i}", f"uuid-{i}") for i in range(3)
]


def test_two_trainers_never_use_one_gpu_by_accident(tmp_path):
    first, second, third = (Seats(tmp_path) for _ in range(3))
    assert first.choose(GPUS, 2, shared=False) == GPUS[:2]
    assert second.choose(GPUS, None, shared=False) == GPUS[2:]
    with pytest.raises(
        SettingsError, match="another trainer of this machine uses cuda:0, cuda:1, cuda:2"
    ):
        third.choose(GPUS, 1, shared=False)

    first.release()
    assert third.choose(GPUS, None, shared=False) == GPUS[:2]


def test_sharing_trainers_spread(tmp_path):
    seats = [Seats(tmp_path) for _ in range(7)]
    assert [each.choose(GPUS, 1, shared=True) for each in seats] == [
        [gpu] for gpu in [*GPUS, *GPUS, GPUS[0]]
    ]


def test_any_number_of_trainers_uses_a_cpu(tmp_path):
    cpu = [Device("cpu", "cpu", "x86_64", GIB)]
    assert all(Seats(tmp_path).choose(cpu, None, shared=False) == cpu for _ in range(2))
