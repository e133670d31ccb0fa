"""Trials that continue on another node: two trainers with separate homes and one location of
checkpoints."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from archive.api import Archive
from archive.database.connection import Connection
from archive.trainer.daemon import events
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.trainer import Trainer
from archive.trainer.storage import checkpoints, remote_files
from tests.support import serve, wait_until
from tests.support.daemons import NETS, propose


def saved_epochs(shared):
    """Return the number of epochs before the only checkpoint;

    0 without one, or before the first epoch.
    """
    # A writer that is killed leaves a file that it would have renamed.
    found = [one for one in remote_files.listed(shared) if not one.name.endswith(remote_files.PART)]
    if not found:
        return 0

    note = checkpoints._note(remote_files.read(found[0].uri).partition(checkpoints._MAGIC)[2][32:])
    return len(note["about"]["trial"]["curve"].get("epoch", ()))


@pytest.mark.lasts(8)
def test_a_trial_of_a_killed_node_goes_on_at_another(
    archive, store_settings, start, monkeypatch, tmp_path
):
    # The trainers know it as a file system of fsspec, not as a folder.
    shared = f"local://{tmp_path}/shared"
    serve.know(serve.SLOW)
    propose(archive, NETS[:1], "slow")
    monkeypatch.setenv("ARCHIVE_CHECKPOINTS", shared)
    first = start(home=str(tmp_path / "a"), checkpoint_seconds=0.0, lease_seconds=1)
    wait_until(lambda: saved_epochs(shared), 90, "a checkpoint of the first node after an epoch")
    first.kill()
    first.wait()
    done = saved_epochs(shared)

    trained = []
    with Connection.open(replace(store_settings, checkpoints=shared)) as connection:
        options = TrainerOptions(threads=1, device="cpu", lease_seconds=2, checkpoint_seconds=0.0)
        second = Trainer(Archive(connection), options, home=tmp_path / "b")
        second.observers.append(
            lambda event: isinstance(event, events.EpochTrained) and trained.append(event.metrics)
        )
        thread = threading.Thread(target=second.run)
        thread.start()
        wait_until(lambda: trained, 90, "an epoch at the second node")
        second.stop()
        thread.join()

    # The trial of the killed daemon may have saved another epoch before it ended.
    assert trained[0]["epoch"] > done >= 1
    assert (
        not (tmp_path / "a" / "checkpoints").exists()
        and not (tmp_path / "b" / "checkpoints").exists()
    )
