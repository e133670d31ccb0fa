"""Steps on a GPU: none waits for the device, and a recorded step does what its calls would do."""

from __future__ import annotations

import random
import warnings
from contextlib import contextmanager

import pytest
import torch
from torch import nn

from archive.trainer.fit.batches import Batches
from archive.trainer.fit.evaluate import evaluate
from archive.trainer.fit.hyperparameters import Hyperparameters
from archive.trainer.fit.step_graphs import WARMUP
from archive.trainer.fit.steps import Steps
from archive.trainer.nn import builders
from tests.gpu.problems import SMALL, patterns

CUDA = torch.device("cuda")


@contextmanager
def no_waiting():
    """Raise an error where the processor waits for the GPU."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Synchronization debug mode is a prototype")
        torch.cuda.set_sync_debug_mode("error")

    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def steps_of(network, task, hyperparameters=None, total=100):
    network.to(CUDA, memory_format=torch.channels_last).train()
    overrides = Hyperparameters.of(hyperparameters or {})
    return Steps(network, task, task.protocols[0], total, overrides, "float32")


@pytest.mark.parametrize("rule", ["none", "shift-flip"])
@pytest.mark.parametrize("hyperparameters", [{}, {"max_norm": 2.0}, {"dropout": 0.2}])
def test_no_step_waits_for_the_gpu(rule, hyperparameters):
    task = patterns(augmentation=rule)
    protocol = task.protocols[0]
    part = Batches.of(task.load(protocol).train, CUDA)
    steps = steps_of(builders.build(SMALL, task.form(protocol), 0), task, hyperparameters)
    order = torch.Generator().manual_seed(0)
    for inputs, targets in part.epoch(protocol, order):
        steps.take(inputs, targets)

    assert (steps.graphs is None) == ("dropout" in hyperparameters)
    assert steps.graphs is None or len(steps.graphs) == 2
    batches = part.epoch(protocol, order)
    steps.take(*next(batches))  # The draws of an epoch are copied at its begin.
    with no_waiting():
        losses = [steps.take(inputs, targets) for inputs, targets in batches]

    assert torch.stack(losses).isfinite().all()


class Dropping(nn.Module):
    """A network that draws from torch's generator, with a tensor that changes with the progress."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3 * 16 * 16, 10)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("scale", torch.ones(()), persistent=False)

    def set_progress(self, share: float) -> None:
        self.scale.fill_(share)

    def forward(self, x):
        return self.layer(self.drop(x.flatten(1))) * self.scale


def batch(n=32):
    return torch.randn(n, 3, 16, 16, device=CUDA), torch.zeros(n, dtype=torch.int64, device=CUDA)


def test_recorded_steps_draw_new_numbers_and_follow_the_progress():
    task = patterns(learning_rate=0.0, weight_decay=0.0)
    inputs, targets = batch()
    steps = steps_of(Dropping(), task, total=1000)
    losses = [float(steps.take(inputs, targets)) for _ in range(WARMUP + 20)]
    assert len(steps.graphs) == 1
    # The first step has the scale zero, and all classes are equally likely; later ones differ in
    # what is dropped.
    assert losses[0] == pytest.approx(32 * torch.tensor(10.0).log().item(), rel=1e-5)
    assert len(set(losses[WARMUP:])) == 20


def test_steps_are_recorded_after_an_earlier_use_of_much_memory():
    """As by an earlier training of the same process."""
    total = torch.cuda.get_device_properties(0).total_memory
    much = torch.empty(total // 4, dtype=torch.uint8, device="cuda")
    del much
    inputs, targets = batch()
    steps = steps_of(Dropping(), patterns(), total=1000)
    for _ in range(WARMUP + 1):
        steps.take(inputs, targets)

    assert len(steps.graphs) == 1


class Reading(Dropping):
    """A network that reads a number back in its forward pass, and so waits for the GPU."""

    def forward(self, x):
        return super().forward(x) + float(x.sum()) * 0


class Choosing(Dropping):
    """A network that leaves its output as it is by a random number of the CPU."""

    def forward(self, x):
        return super().forward(x) * (1.0 if random.random() < 0.5 else 0.9)


@pytest.mark.parametrize(
    ("kind", "reason"), [(Reading, "a step waits"), (Choosing, "random numbers on the CPU")]
)
def test_network_that_cannot_be_recorded_is_trained_all_the_same(caplog, kind, reason):
    inputs, targets = batch()
    steps = steps_of(kind(), patterns())
    losses = [float(steps.take(inputs, targets)) for _ in range(WARMUP + 10)]
    assert len(steps.graphs) == 0
    assert caplog.text.count("steps not recorded") == caplog.text.count(reason) == 1
    assert losses[-1] < losses[1]


class Breaking(Dropping):
    """A network that waits for the GPU only while it is recorded."""

    def forward(self, x):
        if torch.cuda.is_current_stream_capturing():
            torch.cuda.synchronize()

        return super().forward(x)


def test_failed_recording_leaves_generator_stream_and_memory_usable(caplog):
    """Without its repair, the next dropout raises "Offset increment outside graph capture"."""
    inputs, targets = batch()
    stream = torch.cuda.current_stream()
    steps = steps_of(Breaking(), patterns())
    losses = [float(steps.take(inputs, targets)) for _ in range(WARMUP + 10)]
    assert (len(steps.graphs), caplog.text.count("steps not recorded")) == (0, 1)
    assert torch.cuda.current_stream() == stream
    assert losses[-1] < losses[1]
    # So are those of later trainings of the process.
    later = steps_of(Dropping(), patterns(), total=1000)
    assert torch.stack([later.take(inputs, targets) for _ in range(WARMUP + 5)]).isfinite().all()


def test_numbers_after_a_failed_recording_continue_the_stream():
    """Dropout draws what it would have drawn without recordings."""
    inputs, targets = batch()
    losses = []
    for kind in (Breaking, Reading):
        torch.manual_seed(1)
        steps = steps_of(kind(), patterns(learning_rate=0.0, weight_decay=0.0), total=1000)
        losses.append([float(steps.take(inputs, targets)) for _ in range(WARMUP + 5)])

    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_images_are_bytes_on_the_gpu_and_equal_to_the_last_bit():
    task = patterns()
    part = task.load(task.protocols[0]).train
    coded = Batches.of(part, CUDA)
    floats = Batches.of(part, CUDA, compact=False)
    assert (coded.inputs.dtype, floats.inputs.dtype) == (torch.uint8, torch.float32)
    assert torch.equal(torch.cat(list(coded.parts(300))), floats.inputs)


def test_evaluation_frees_outputs_that_no_layer_needs():
    task = patterns()
    part = Batches.of(task.load(task.protocols[0]).train, CUDA)
    peaks = []
    for depth in (4, 16):
        network = builders.build(deep(depth), task.form(), 0).to(
            CUDA, memory_format=torch.channels_last
        )
        evaluate(network, part, task)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        evaluate(network, part, task)
        peaks.append(torch.cuda.max_memory_allocated() - before)

    assert peaks[1] < 1.5 * peaks[0]


def deep(depth):
    """A chain of so many convolutions of equal size."""
    from tests.gpu.problems import chain

    return chain(" ".join(["conv3/32"] * depth) + " fc/8 softmax")
