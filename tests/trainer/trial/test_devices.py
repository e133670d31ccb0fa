"""Devices of this machine, found by real processes; fake programs stand for GPUs at the border of
the system."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
import torch

from archive.errors import SettingsError
from archive.trainer.recipes.source import RecipeSource
from archive.trainer.tasks import registry
from archive.trainer.trial import devices
from archive.trainer.trial.messages import TrialFinished
from archive.trainer.trial.process import TrialProcess
from archive.trainer.trial.spec import TrialSpec
from tests.support import faulty
from tests.support.networks.nets import TINY_MLP
from tests.trainer.trial.test_process import told

without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")


def test_wedged_device_times_out(monkeypatch):
    monkeypatch.setattr(devices, "PROBE_SECONDS", 0.2)
    monkeypatch.setattr(devices, "_list", faulty.never_answers)
    with pytest.raises(
        SettingsError,
        match=r"the device 'cuda' cannot be used: it did not "
        r"answer within 0\.2 s",
    ):
        devices.find("cuda")


@pytest.mark.parametrize("request_", ["cuda:99", "0,99", "toaster"])
def test_missing_device_is_a_clear_error(request_):
    with pytest.raises(SettingsError, match=f"the device '{request_}' cannot be used: .+"):
        devices.find(request_)


def test_cpu_is_any_trainers_device():
    (cpu,) = devices.find("cpu")
    assert (cpu.name, cpu.label, cpu.visible, cpu.uuid) == ("cpu", "cpu", None, "")
    assert cpu.memory_bytes > 1 << 28


@without_gpu
def test_gpu_that_does_not_answer_is_an_error(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv(devices.VISIBLE, raising=False)
    with pytest.raises(
        SettingsError,
        match=r"a GPU \(GPU 0: NVIDIA H100 80GB HBM3\) that does "
        r"not answer: Found no",
    ):
        devices.find("auto")

    # Who hides all GPUs asks for the CPU.
    monkeypatch.setenv(devices.VISIBLE, "")
    assert [device.name for device in devices.find("auto")] == ["cpu"]


@pytest.mark.parametrize(
    ("answer", "free"), [("echo 1024", 1 << 30), ("echo 'No devices were found'; exit 6", None)]
)
def test_free_memory_of_a_gpu_is_that_of_its_uuid(tmp_path, monkeypatch, answer, free):
    program = tmp_path / "nvidia-smi"
    program.write_text(f'#!/bin/sh\ncase "$*" in *--id=GPU-12ab*) {answer} ;; esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    gpu = devices.Device("cuda", "cuda:1", "H100", 80 << 30, "1", "12ab")
    assert devices.free_memory(gpu) == free
    assert devices.free_memory(replace(gpu, uuid="")) is None
    program.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert devices.free_memory(gpu) is None


def test_trial_sees_its_own_gpu_alone(tmp_path):
    recipe = RecipeSource("mine", "tests.support.recipes:tells_its_gpus")
    task = registry.DIABETES
    spec = TrialSpec(
        TINY_MLP, task, task.protocol(), 0, "cpu", 1, tmp_path, recipe=recipe, visible="7"
    )
    (last,) = told(TrialProcess(spec))
    assert isinstance(last, TrialFinished), last
    assert last.result.value == 7.0
