"""The default recipe on a GPU: it learns, resumes, and records its precision and its recorded
steps."""

from __future__ import annotations

import pytest
import torch

from archive.errors import TrainingError
from archive.trainer.fit import step_graphs
from archive.trainer.fit.train import fit, train
from archive.trainer.recipes.base import Resources
from archive.trainer.recipes.context import TrialContext
from archive.trainer.recipes.run import Cancelled, run
from tests.gpu.problems import SMALL, chain, patterns


@pytest.fixture
def eager(monkeypatch):
    """Switches the recording of steps off."""

    def off() -> None:
        monkeypatch.setattr(step_graphs, "WARMUP", 10**9)

    return off


def test_gpu_learns_and_returns_weights_of_the_cpu():
    outcome = train(SMALL, patterns(), device="cuda")
    assert outcome.value > 0.95
    assert all(tensor.device.type == "cpu" for tensor in outcome.weights.values())


@pytest.mark.parametrize(
    "changes", [{}, {"augmentation": "shift-flip"}, {"optimiser": "sgd", "learning_rate": 0.02}]
)
def test_recorded_steps_train_as_steps_kernel_by_kernel(eager, changes):
    # 1,000 inputs in batches of at most 48 have two sizes. The schedule changes the learning rate
    # in each step.
    task = patterns(**changes)
    recorded = train(SMALL, task, device="cuda", precision="float32")
    eager()
    plain = train(SMALL, task, device="cuda", precision="float32")
    assert recorded.environment["cuda_graphs"] == 2
    assert "cuda_graphs" not in plain.environment
    assert recorded.curve["train_loss"] == pytest.approx(
        plain.curve["train_loss"], rel=0.02, abs=1e-3
    )
    assert recorded.curve["valid_accuracy"] == pytest.approx(
        plain.curve["valid_accuracy"], abs=0.02
    )


def test_gpu_trains_as_the_cpu_does():
    outcomes = [
        train(SMALL, patterns(epochs=2), device=device, precision="float32")
        for device in ("cpu", "cuda")
    ]
    assert outcomes[1].curve["train_loss"] == pytest.approx(
        outcomes[0].curve["train_loss"], rel=0.05
    )


@pytest.mark.parametrize("hyperparameters", [{}, {"dropout": 0.1}, {"max_norm": 2.0}])
def test_training_resumes(tmp_path, hyperparameters):
    path = tmp_path / "a.checkpoint"
    task = patterns()
    whole = train(SMALL, task, device="cuda", hyperparameters=hyperparameters)
    resources = Resources(("cuda",))
    first = TrialContext(
        SMALL, task, hyperparameters=hyperparameters, resources=resources, checkpoint=path, checkpoint_seconds=0.0,
        on_report=lambda row, _: first.cancel() if row["epoch"] == 2 else None,
    )  # fmt: skip
    with pytest.raises(Cancelled):
        run(fit, first)

    resumed = train(SMALL, task, device="cuda", hyperparameters=hyperparameters, checkpoint=path)
    assert resumed.resumed == 1
    assert resumed.curve["train_loss"] == pytest.approx(
        whole.curve["train_loss"], rel=0.05, abs=2e-3
    )


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
def test_precision_is_the_one_on_record(precision):
    if precision != "float32" and torch.cuda.get_device_capability() < (8, 0):
        pytest.skip("this GPU has no such units")

    outcome = train(SMALL, patterns(epochs=2), device="cuda", precision=precision)
    assert outcome.precision == precision
    assert {tensor.dtype for tensor in outcome.weights.values()} <= {torch.float32, torch.int64}


def test_exhausted_memory_is_named():
    wide = chain(" ".join(["conv3/1024"] * 12) + " fc/32 softmax")
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(2**29 / total)
    try:
        with pytest.raises(TrainingError, match="out of memory on cuda"):
            train(wide, patterns(batch=1000), device="cuda")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()
