"""Daemons of the tests of this folder."""

from __future__ import annotations

import pytest

from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.trainer import Trainer


@pytest.fixture
def trainer(archive, tmp_path):
    """Makes daemons that train on one thread and keep their files with the test."""

    def make(**options) -> Trainer:
        return Trainer(
            archive,
            TrainerOptions(**{"threads": 1, "device": "cpu", **options}),
            home=tmp_path / "trainer",
        )

    return make


@pytest.fixture
def run(trainer):
    """Lets a daemon work until there is nothing to do."""
    return lambda **options: trainer(**{"idle_seconds": 0.3, **options}).run()
