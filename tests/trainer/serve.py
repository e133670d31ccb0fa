"""A trainer daemon in a process of its own, for tests that kill it: `python -m tests.trainer.serve OPTIONS-AS-JSON`.

The archive is that of the environment. `slow` is a task that takes its time between epochs.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import sys
import time

import archive
from archive.trainer import data, tasks
from archive.trainer.daemon import Trainer
from archive.trainer.data import Splits
from archive.trainer.options import Options
from archive.trainer.tasks import Protocol

LONG = dataclasses.replace(tasks.DIABETES.protocol(), name="slow/1", epochs=100_000, patience=100_000)

LONGER_PROTOCOL = dataclasses.replace(tasks.DIABETES.protocol(), name="longer/1", epochs=40, patience=40)


def waits(protocol: Protocol) -> Splits:
    time.sleep(2)
    return data.diabetes(protocol)


SLOW = dataclasses.replace(tasks.DIABETES, name="slow", protocols=(LONG,), loader=data.diabetes)
LONGER = dataclasses.replace(tasks.DIABETES, name="longer", protocols=(LONGER_PROTOCOL,), loader=data.diabetes)
DELAYED = dataclasses.replace(tasks.DIABETES, name="delayed", loader=waits)


def know(*offered: tasks.Task) -> None:
    """Make tasks known in this process, as an entry point would."""
    for task in offered:
        tasks.registry._loaded[task.name] = task


if __name__ == "__main__":
    from tests.trainer import serve

    # Under its own name, by which a trial's process can import it.
    know(serve.SLOW, serve.DELAYED, serve.LONGER)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    with archive.connect() as opened:
        Trainer(opened, Options(**json.loads(sys.argv[1]))).run()
