"""Costs of a trial's network: the record of a real trial, and latency measured with a clock of the
test."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from archive.objectives import COST_METRICS
from archive.trainer.nn import builders
from archive.trainer.nn.costs import measure
from archive.trainer.recipes.context import TrialContext
from archive.trainer.tasks import registry, text
from archive.trainer.trial import costs
from archive.trainer.trial.costs import LatencyOptions
from archive.trainer.trial.messages import TrialFinished
from archive.trainer.trial.process import TrialProcess
from archive.trainer.trial.spec import TrialSpec
from tests.support.networks.decoders import sampled
from tests.support.networks.nets import TINY_CNN, TINY_MLP
from tests.trainer.trial.test_process import told

DIGITS = registry.DIGITS
PYDOC = text.pydoc_topics()


def trial(folder, **changes):
    protocol = DIGITS.protocol("digits/small")
    (*_, last) = told(
        TrialProcess(TrialSpec(TINY_CNN, DIGITS, protocol, 1, "cpu", 1, folder, **changes))
    )
    assert isinstance(last, TrialFinished)
    return last.result


def test_a_trial_records_the_costs_of_its_network(tmp_path):
    result = trial(tmp_path, latency=LatencyOptions(0.2, batch=4), slots=3)
    form = DIGITS.form(DIGITS.protocol("digits/small"))
    size = measure(builders.build(TINY_CNN, form), form.input_shape)
    assert (result.metrics["params"], result.metrics["flops"]) == size
    assert result.metrics["latency_ms"] > 0 <= result.metrics["latency_iqr_ms"]
    assert result.metrics["latency_batch"] == 4
    how = result.environment["latency"]
    assert (how["warmup"], how["slots"]) == (costs.WARMUP, 3) and costs.LEAST <= how[
        "runs"
    ] <= costs.RUNS
    # At least the weights, their gradients and a copy; at most what a small network may take.
    assert 3 * 4 * size.params < result.metrics["peak_memory_bytes"] < 1e9
    assert result.hardware == costs.hardware_name("cpu") != ""


def test_latency_can_be_left_out(tmp_path):
    result = trial(tmp_path, latency=LatencyOptions(0.0))
    assert not [name for name in result.metrics if name.startswith("latency")]
    assert "latency" not in result.environment
    assert result.metrics["params"] > 0


class Passes(nn.Module):
    """Takes the time that the test says, by the test's clock."""

    def __init__(self, clock, seconds):
        super().__init__()
        self.clock = clock
        self.seconds = iter(seconds)
        self.inputs = []

    def forward(self, x):
        self.inputs.append((tuple(x.shape), self.training, torch.is_grad_enabled()))
        self.clock.now += next(self.seconds)
        return x


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=0.0, perf_counter=lambda: clock.now)
    monkeypatch.setattr(costs, "time", clock)
    return clock


def test_latency_is_the_median_after_the_warm_up(clock):
    seconds = [9.0] * costs.WARMUP + [0.001 * (at + 1) for at in range(costs.RUNS)]
    module = Passes(clock, seconds)
    measured = costs.latency(module, (3, 8, 8), "cpu", LatencyOptions(1000.0, batch=2))
    assert measured.runs == costs.RUNS
    assert measured.median == pytest.approx(25.5)
    assert measured.iqr == pytest.approx(24.5)
    assert set(module.inputs) == {((2, 3, 8, 8), False, False)}


def test_latency_of_a_slow_network_is_bounded(clock):
    module = Passes(clock, [10.0] * 100)
    measured = costs.latency(module, (5,), "cpu", LatencyOptions(0.5))
    assert (measured.runs, measured.median, measured.iqr) == (costs.LEAST, 10_000.0, 0.0)
    assert len(module.inputs) == 1 + costs.LEAST


class Reader(nn.Module):
    """Takes a second to read a token, and a number for each token to remember it."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock
        self.lengths = []

    def new_cache(self):
        cache = SimpleNamespace(length=0)
        cache.bytes = lambda: 2 * 4 * cache.length
        return cache

    def extend(self, tokens, cache):
        self.clock.now += tokens.shape[1]
        cache.length += tokens.shape[1]
        self.lengths.append((cache.length, torch.is_grad_enabled()))


def test_generation_is_measured_with_a_growing_cache(clock):
    module = Reader(clock)
    measured = costs.generation(module, 10, "cpu", LatencyOptions(1000.0, batch=2))
    assert (measured.prefill.median, measured.decode.median) == (10_000.0, 1000.0)
    # Two sequences of 10 tokens share 80 bytes.
    assert measured.cache_bytes == 40
    decoded = costs.WARMUP + measured.decode.runs
    assert module.lengths[-1] == (10 + decoded, False)


def test_decoders_have_latencies_of_generation():
    trial = TrialContext(sampled(1)[0], PYDOC)
    trial.task = replace(trial.task, outputs=11)
    trial.module()
    measured, conditions = costs.of_network(trial, outcome(), LatencyOptions(0.02))
    assert measured["latency_prefill_ms"] > 0 < measured["latency_decode_ms"]
    assert measured["cache_bytes"] > 0
    assert conditions["decoded"] >= costs.LEAST
    # Reports and plots tell costs from metrics by their names.
    assert {*measured} <= {*COST_METRICS}


def context(built):
    trial = TrialContext(TINY_MLP, registry.DIABETES)
    if built:
        trial.module()

    return trial


def outcome(**metrics):
    return SimpleNamespace(metrics=metrics, precision="float32")


def test_a_recipe_with_a_network_of_its_own_has_only_its_own_costs():
    assert costs.of_network(context(built=False), outcome(), LatencyOptions()) == ({}, {})


def test_costs_that_a_recipe_reports_are_not_measured_again():
    measured, _ = costs.of_network(
        context(built=True), outcome(params=1.0, flops=2.0), LatencyOptions(0.01)
    )
    assert measured.keys() == {"latency_ms", "latency_iqr_ms", "latency_batch"}


def test_a_failing_measurement_costs_no_result(monkeypatch):
    trial = context(built=True)

    def broken(*_, **__):
        raise RuntimeError("CUDA error: the device is busy")

    monkeypatch.setattr(costs, "latency", broken)
    measured, how = costs.of_network(trial, outcome(), LatencyOptions())
    assert measured.keys() == {"params", "flops"}
    assert how == {"error": "RuntimeError: CUDA error: the device is busy"}
    monkeypatch.setattr(builders, "build", broken)
    assert costs.of_network(trial, outcome(), LatencyOptions()) == ({}, {})


GROWS = """
import subprocess, sys
from archive.trainer.trial.costs import PeakMemory
memory = PeakMemory("cpu")
taken = bytearray(200 << 20)
del taken
print(memory.bytes() >> 20)
subprocess.run([sys.executable, "-c", "bytearray(400 << 20)"], check=True)
print(memory.bytes() >> 20)
"""


def test_peak_memory_is_the_growth_of_the_process_or_its_largest_child():
    done = subprocess.run([sys.executable, "-c", GROWS], capture_output=True, text=True, check=True)
    own, child = map(int, done.stdout.split())
    assert 195 <= own <= 260 and 395 <= child <= 480
