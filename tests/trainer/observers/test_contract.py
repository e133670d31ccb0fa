"""The contract of observers, for every one that is installed: the same life of trials, over two
trainers."""

from __future__ import annotations

import dataclasses
import logging
import math
import pickle
import subprocess
import sys

import pytest

from archive.trainer.observers import registry
from archive.trainer.observers.base import ObservedTrial, TrialEnd
from archive.trainer.observers.process import Ended, Measured, ObserverProcess, Started
from tests.support import trackers, whole

STUDY = "../täst: a/b #1"
READERS = {name: getattr(trackers, name) for name in ("tensorboard", "mlflow", "wandb")}

# A client of these two takes seconds to load.
HEAVY = ("mlflow", "wandb")
every = pytest.mark.parametrize(
    "life", [whole(name) if name in HEAVY else name for name in registry.names()], indirect=True
)
built_in = pytest.mark.parametrize("life", ["tensorboard", "mlflow", whole("wandb")], indirect=True)


def trial(number: int, **changes) -> ObservedTrial:
    standard = ObservedTrial(
        run=f"{number:016x}", proposal=f"{STUDY}#{number:05d}", study=STUDY, number=number, attempt=1, continues=False,
        agent="random-1", task="digits", space="mlp", objective="valid_accuracy", direction="maximise",
        architecture={"key": "k" * 32, "layers": 4, "edges": 3, "depth": 3, "operations": "1 relu, 1 tanh"},
        hyperparameters={"learning_rate": 0.01, "odd, näme": [1, 2], "dropout": None},
        protocol={"name": "digits/1", "epochs": 3, "schedule": "cosine", "epoch_steps": None},
        seed=3, worker="w", device="cpu",
    )  # fmt: skip
    return dataclasses.replace(standard, **changes)


COSTS = {"epochs": 3.0, "seconds": 1.5, "params": 1e6}
FIRST = [
    Started(trial(0)),
    Started(trial(1)),
    Measured(trial(0).run, 1, {"train_loss": 2.5, "odd, näme [%]": 1.0}),
    Measured(trial(1).run, 1, {"train_loss": math.inf}),
    # The start of this trial was dropped.
    Measured(trial(9).run, 1, {"train_loss": 1.0}),
    Measured(trial(0).run, 2, {"train_loss": 2.0}),
    Ended(
        trial(1).run, TrialEnd("FAILED", reason="training diverged: train_loss is nan in epoch 2")
    ),
    Ended(trial(0).run, TrialEnd("RETURNED", reason="interrupted after 2 epochs")),
    Started(trial(2)),
    Ended(trial(2).run, TrialEnd("PAUSED", 0.25, None, {}, {"epochs": 1.0})),
    Started(trial(3)),
    Measured(trial(3).run, 1, {"train_loss": math.nan}),
]
SECOND = [
    Started(trial(0, attempt=2, continues=True, worker="v")),
    Measured(trial(0).run, 2, {"train_loss": 1.75}),
    Measured(trial(0).run, 3, {"train_loss": 1.5}),
    Ended(trial(0).run, TrialEnd("COMPLETE", 0.875, None, {"test_accuracy": 0.75}, COSTS)),
    Started(trial(2, continues=True)),
    Ended(trial(2).run, TrialEnd("LOST", reason="the lease was lost")),
]


class Lines(logging.Handler):
    """Keeps what the trainer logs."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


@pytest.fixture(scope="module")
def life(request, tmp_path_factory):
    """The folder of an observer after the life of four trials, and what its trainers logged."""
    home = tmp_path_factory.mktemp("home")
    lines = Lines()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WANDB_MODE", "offline")
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        logger = logging.getLogger("archive.trainer")
        logger.addHandler(lines)
        level = logger.level
        _ = logger.setLevel(logging.INFO)
        for records in (FIRST, SECOND):
            name, observer = registry.create(request.param, home)
            process = ObserverProcess(name, observer, home / "log")
            for record in records:
                process.put(record)

            process.finish()
            process.close(300)

        logger.removeHandler(lines)
        logger.setLevel(level)

    return request.param, home, lines.said


@every
@pytest.mark.lasts(10)
def test_a_life_of_trials_is_observed_without_a_failure(life):
    name, home, said = life
    # Of each trainer one line, with the place where results can be looked at.
    assert all(line.startswith(f"observing observer={name} place=") for line in said), said
    assert len(said) in (0, 2)
    assert len(list(home.rglob("*"))) > 2
    assert not list(home.parent.glob("*täst*"))


@every
def test_an_observer_is_made_without_its_libraries(life):
    name, *_ = life
    large = {*registry.get(name).requires, "torch"}
    program = (
        "import pathlib, sys; from archive.trainer.observers import registry; "
        f"registry.create({name!r}, pathlib.Path('x')); print(*({large!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not done.stdout.strip()


@every
def test_an_observer_with_its_options_is_pickled(life, tmp_path):
    name, *_ = life
    _, observer = registry.create(name, tmp_path)
    assert vars(pickle.loads(pickle.dumps(observer))) == vars(observer)
    described = registry.options(registry.get(name))
    assert described.keys() <= vars(observer).keys()


@built_in
def test_metrics_are_on_record_by_step(life):
    name, home, _ = life
    runs = READERS[name](home)
    assert runs.keys() == {f"{STUDY}#{number:05d}" for number in range(4)}
    # The second trainer continues the run from its checkpoint, and repeats a step.
    losses = runs[f"{STUDY}#00000"].metrics["train_loss"]
    assert losses == {1: 2.5, 2: 1.75, 3: 1.5}
    assert any("me" in name for name in runs[f"{STUDY}#00000"].metrics if name.startswith("odd"))
    assert math.isinf(runs[f"{STUDY}#00001"].metrics["train_loss"][1])
    assert math.isnan(runs[f"{STUDY}#00003"].metrics["train_loss"][1])


@built_in
def test_ends_are_on_record_with_values_and_costs(life):
    name, home, _ = life
    complete, failed, paused, left = (
        READERS[name](home)[f"{STUDY}#{number:05d}"] for number in range(4)
    )
    assert complete.state == "COMPLETE"
    assert complete.final == {
        "value": 0.875, "final/test_accuracy": 0.75, "cost/epochs": 3.0, "cost/seconds": 1.5, "cost/params": 1e6,
    }  # fmt: skip
    assert (failed.state, failed.reason) == (
        "FAILED",
        "training diverged: train_loss is nan in epoch 2",
    )
    assert paused.final["value"] == 0.25
    assert left.state in ("", "RUNNING")


@built_in
def test_settings_are_on_record(life):
    name, home, _ = life
    settings = READERS[name](home)[f"{STUDY}#00000"].settings
    nested = {part: value for part, value in settings.items() if isinstance(value, dict)}
    flat = {
        f"{part}.{key}": value for part, values in nested.items() for key, value in values.items()
    } | settings
    assert float(flat["hyperparameters.learning_rate"]) == 0.01
    assert (float(flat["protocol.epochs"]), flat["protocol.name"]) == (3.0, "digits/1")
    assert (flat["task"], flat["space"], flat["agent"]) == ("digits", "mlp", "random-1")
    assert (flat["architecture.key"], float(flat["architecture.depth"])) == ("k" * 32, 3)
