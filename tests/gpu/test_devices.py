"""Devices, visibility and exhausted memory on a real GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from archive.queue.causes import Cause
from archive.trainer.trial import devices
from archive.trainer.trial.failures import failure_of, memory_need
from archive.trainer.trial.messages import TrialFailed, TrialFinished
from archive.trainer.trial.process import TrialProcess
from archive.trainer.trial.spec import TrialSpec
from tests.gpu.problems import SMALL, patterns
from tests.gpu.test_spare import finished


def test_each_gpu_is_found_with_its_own_name_for_trials():
    found = devices.find("auto")
    assert len(found) == torch.cuda.device_count()
    assert (
        len({device.visible for device in found})
        == len({device.uuid for device in found})
        == len(found)
    )
    assert found[0].memory_bytes == torch.cuda.get_device_properties(0).total_memory
    assert devices.find("0") == devices.find("cuda") == found[:1]
    devices.check(found[0])


def test_free_memory_is_what_other_programs_see():
    device = devices.find("0")[0]
    before = devices.free_memory(device)
    held = torch.empty(4 << 30, dtype=torch.uint8, device="cuda")
    assert before - devices.free_memory(device) == pytest.approx(held.numel(), rel=0.25)


def test_trial_trains_on_the_gpu_that_it_is_given(tmp_path):
    device = devices.find("0")[0]
    task = patterns(epochs=2)
    spec = TrialSpec(
        SMALL, task, task.protocols[0], 1, device.name, 1, tmp_path, visible=device.visible
    )
    last = finished(TrialProcess(spec))
    assert isinstance(last, TrialFinished), last
    assert last.result.hardware == device.hardware


def test_gpu_that_is_gone_is_the_environments_fault(tmp_path):
    task = patterns(epochs=2)
    spec = TrialSpec(SMALL, task, task.protocols[0], 1, "cuda", 1, tmp_path)
    last = finished(TrialProcess(replace(spec, visible="GPU-00000000-0000-0000-0000-000000000000")))
    assert isinstance(last, TrialFailed)
    assert (last.cause, last.refused) == (Cause.DEVICE, True)


def test_memory_need_of_a_trial_that_took_the_whole_gpu():
    total = torch.cuda.get_device_properties(0).total_memory
    held = torch.empty(total // 4, dtype=torch.uint8, device="cuda")
    with pytest.raises(RuntimeError) as caught:
        torch.empty(total, dtype=torch.uint8, device="cuda")

    assert failure_of(caught.value).cause is Cause.OUT_OF_MEMORY
    need = memory_need("cuda", caught.value)
    assert need.capacity == total
    assert need.needed > total + held.numel() // 2
    assert need.alone
