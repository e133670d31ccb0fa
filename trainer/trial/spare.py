"""Spare processes: each is connected to a GPU for the next trial while the present one trains.

    prepare_next(spec) ── fork ──> CUDA context, libraries ── READY ──> waits for a specification
    take(spec)         ── specification ──────────────────────────────> runs that trial, and ends

The context of a GPU and its libraries take seconds, as long as a whole trial of a small network.
Every trial still has a separate process, which no earlier trial has touched. A device has one spare
at most; its context takes some 500 MB of the GPU's memory, so there is none on a GPU with
little memory. A spare that failed, or is not ready in time, costs nothing: the trial starts as one
without.

Only trials of the default recipe have spares. Another recipe may choose its devices before it
begins with CUDA, or fork processes that do.
"""

from __future__ import annotations

import pickle
import signal
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from archive.errors import TrainingError
from archive.trainer.recipes.registry import DEFAULT_SOURCE
from archive.trainer.trial import fork_server
from archive.trainer.trial.devices import show_only
from archive.trainer.trial.main import run
from archive.trainer.trial.spec import TrialSpec

LEAST_FREE = 0.25
"""Least share of a GPU's memory that must be free beside a spare."""
_READY = b"ready"
_JOIN_SECONDS = 5.0


class Spare(NamedTuple):
    """The pipe to a process, and the process."""

    connection: Connection
    process: Any


DeviceKey = tuple[str, str | None]
"""Device in torch's notation, and the value of CUDA_VISIBLE_DEVICES."""
_spares: dict[DeviceKey, Spare] = {}


def prepare_next(spec: TrialSpec) -> None:
    """Start a spare for the trial after this one, where trials have spares and there is none yet.

    Returns at once.

    The present trial should be connected to its GPU: one of a single connection refuses the spare
    then, not the trial.
    """
    if spec.device.startswith("cuda") and spec.recipe == DEFAULT_SOURCE:
        with suppress(TrainingError):  # The next trial starts without it, and reports the reason.
            prepare(spec.device, spec.visible)


def prepare(device: str, visible: str | None = None) -> None:
    """Start a spare for a device, unless there is one. Returns at once.

    Raises:
        TrainingError: No process could be started.
    """
    key = (device, visible)
    if key not in _spares:
        _spares[key] = Spare(*fork_server.start(_wait, key))


def take(spec: TrialSpec) -> Spare | None:
    """Give a trial to the spare of its device; a spare that is not ready ends.

    Returns:
        None if there is no ready spare.

    Raises:
        pickle.PicklingError: The specification cannot be pickled.
    """
    key = (spec.device, spec.visible)
    if key not in _spares or spec.recipe != DEFAULT_SOURCE:
        return None

    content = fork_server.pickle_argument(spec)
    spare = _spares.pop(key)
    try:
        if spare.connection.poll() and spare.connection.recv_bytes() == _READY:
            spare.connection.send_bytes(content)
            return spare
    except (EOFError, OSError):
        pass  # It could not reach its device, or was killed.

    _end(spare)
    return None


def discard() -> None:
    """End all spares, which frees the memory of their devices."""
    while _spares:
        _end(_spares.popitem()[1])


def _end(spare: Spare) -> None:
    spare.connection.close()
    spare.process.kill()
    spare.process.join(_JOIN_SECONDS)


# The functions below run in a separate process.


def _wait(key: DeviceKey, daemon: Connection) -> None:
    device, visible = key
    show_only(visible)
    # The fork server ignores it, and Ctrl-C reaches all processes of a terminal. A spare has
    # nothing to lose.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)

    try:
        if not _connect(device):
            return

        daemon.send_bytes(_READY)
        content = daemon.recv_bytes()
    except (EOFError, OSError):  # The trainer is gone, or has no use for the spare.
        return

    run(pickle.loads(content), daemon)


def _connect(device: str) -> bool:
    """Create the context of a device, and load its libraries; return False if that fails."""
    import torch
    from torch.nn import functional as F

    try:
        with torch.no_grad():
            image = torch.zeros((8, 8, 3, 3), device=device)
            F.linear(
                F.conv2d(image, image, padding=1).flatten(1), torch.zeros((8, 72), device=device)
            )

        if not device.startswith("cuda"):
            return True

        torch.cuda.synchronize(device)
        free, total = torch.cuda.mem_get_info(device)
    # The trial that starts without a spare reports the reason.
    except (RuntimeError, AssertionError):
        return False

    return free > LEAST_FREE * total
