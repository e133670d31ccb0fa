"""A trainer daemon in a separate process, for tests that kill it: `python -m tests.support.serve
OPTIONS-AS-JSON`.

The archive is that of the environment. `slow` is a task that takes its time between epochs.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import archive
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.trainer import Trainer
from archive.trainer.datasets import scikit_learn
from archive.trainer.datasets.splits import Splits
from archive.trainer.tasks import registry
from archive.trainer.tasks.registry import TrainingProtocol

LONG = dataclasses.replace(
    registry.DIABETES.protocol(), name="slow/1", epochs=100_000, patience=100_000
)

LONGER_PROTOCOL = dataclasses.replace(
    registry.DIABETES.protocol(), name="longer/1", epochs=40, patience=40
)


def waits(protocol: TrainingProtocol) -> Splits:
    time.sleep(2)
    return scikit_learn.load("diabetes", protocol)


def writes_a_megabyte(protocol: TrainingProtocol) -> Splits:
    with tempfile.TemporaryFile() as file:
        file.write(bytes(1 << 20))

    return scikit_learn.load("diabetes", protocol)


SLOW = dataclasses.replace(
    registry.DIABETES, name="slow", protocols=(LONG,), loader=partial(scikit_learn.load, "diabetes")
)
LONGER = dataclasses.replace(
    registry.DIABETES,
    name="longer",
    protocols=(LONGER_PROTOCOL,),
    loader=partial(scikit_learn.load, "diabetes"),
)
BULKY = dataclasses.replace(registry.DIABETES, name="bulky", loader=writes_a_megabyte)
DELAYED = dataclasses.replace(registry.DIABETES, name="delayed", loader=waits)


def know(*offered: registry.Task) -> None:
    """Make tasks known in this process, as an entry point would."""
    for task in offered:
        registry.registry._loaded[task.name] = task


if __name__ == "__main__":
    from tests.support import serve

    # Under its own name, by which a trial's process can import it.
    know(serve.SLOW, serve.DELAYED, serve.LONGER, serve.BULKY)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    options = json.loads(sys.argv[1])
    home = options.pop("home", None)
    with archive.connect() as opened:
        Trainer(opened, TrainerOptions(**options), home=home and Path(home)).run()
