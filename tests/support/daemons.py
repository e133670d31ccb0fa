"""Proposals for trainer daemons, and queries of both."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from archive.store.records import Study
from archive.trainer.daemon.trainer import Trainer
from archive.trainer.tasks import registry
from tests.support.networks.nets import TINY_MLP, net

NETS = [TINY_MLP, net("mlp", "relu/32 linear"), net("mlp", "elu/12 tanh/8 linear")]


@dataclass
class Suggestion:
    architecture: object


def propose(archive, architectures, task="diabetes", protocol=None, name="study", **changes):
    """A study with a proposal for each of these networks."""
    known = registry.get(task)
    study = Study(
        name,
        task,
        protocol or known.protocol().name,
        "mlp",
        known.objective,
        known.direction,
        budget=100,
        seed=3,
    )
    archive.studies.create(dataclasses.replace(study, **changes))
    agent = archive.proposals.register_agent("random", {}, "1")
    return archive.proposals.create(name, agent, [Suggestion(each) for each in architectures])


def states(archive, name="study"):
    return [proposal.state for proposal in archive.proposals.list(name)]


@contextmanager
def running(trainer: Trainer) -> Iterator[None]:
    """Let a daemon run for the time of a block."""
    thread = in_thread(trainer)
    try:
        yield
    finally:
        trainer.stop()
        thread.join()


def in_thread(trainer: Trainer) -> threading.Thread:
    thread = threading.Thread(target=trainer.run)
    thread.start()
    return thread


def recipe(trainer, module="tests.support.recipes", **others):
    """Give the machine of a trainer recipes of the tests."""
    trainer.paths.home.mkdir(exist_ok=True)
    path = trainer.paths.home / "recipes.toml"
    path.touch(0o600)
    entries = {"mine": "depth", **others}.items()
    path.write_text(
        "".join(f'[{name}]\nfit = "{module}:{function}"\n' for name, function in entries)
    )
    return trainer
