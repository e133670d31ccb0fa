"""Seats of trainers on the GPUs of a machine: two trainers do not use one GPU by accident.

A seat is an exclusive lock of a file that is named after the GPU's UUID; the system releases it
when the trainer ends, however it ends. The trainer with the first seat has the GPU to itself.
Trainers that share GPUs take the next seats, each on the GPU with the fewest trainers.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from archive.errors import SettingsError
from archive.files import lock_file
from archive.trainer.storage.file_names import file_name
from archive.trainer.trial.devices import Device

MOST_SEATS = 256


class Seats:
    """The seats that a trainer has taken.

    Args:
        folder: Folder of the files, which all users of the machine share.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = _folder() if folder is None else folder
        self._locks: dict[Device, int] = {}

    def choose(self, devices: list[Device], most: int | None, *, shared: bool) -> list[Device]:
        """Take seats, and return their devices.

        Args:
            devices: Devices to choose from, in the order of preference.
            most: Largest number of devices; None for all.
            shared: Whether to use GPUs of other trainers, too, beginning with the fewest trainers.

        Raises:
            SettingsError: Other trainers have all of these devices.
        """
        taken: list[Device] = []
        for seat in range(MOST_SEATS if shared else 1):
            for device in devices:
                if len(taken) == (len(devices) if most is None else most):
                    return taken

                if device not in taken and (not device.uuid or self._take(device, seat)):
                    taken.append(device)

        if not taken:
            labels = ", ".join(device.label for device in devices)
            raise SettingsError(
                f"another trainer of this machine uses {labels}: choose other GPUs with "
                "--devices, or start this trainer with --share-devices"
            )

        return taken

    def release(self, devices: Sequence[Device] | None = None) -> None:
        """Give the seats of devices back; None for all."""
        for device in list(self._locks) if devices is None else devices:
            if device in self._locks:
                os.close(self._locks.pop(device))

    def _take(self, device: Device, seat: int) -> bool:
        path = self.folder / f"archive-gpu-{file_name(device.uuid)}-{seat}.lock"
        lock = _open_lock(path)
        if lock is None:
            return False

        try:
            taken = lock_file(lock)
        except OSError:
            taken = False

        if taken:
            self._locks[device] = lock
        else:
            os.close(lock)

        return taken


def _folder() -> Path:
    # TMPDIR may be another one in each job.
    shared = Path("/dev/shm")
    return shared if os.access(shared, os.W_OK) else Path(tempfile.gettempdir())


def _open_lock(path: Path) -> int | None:
    """Open a lock file; None where another user's file cannot be opened."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        # Every user may read the file, which is enough to lock it. Linux forbids O_CREAT on another
        # user's file in a folder like /tmp.
        return os.open(path, flags)
    except FileNotFoundError:
        pass
    except OSError:
        return None

    try:
        lock = os.open(path, flags | os.O_CREAT, 0o644)
    except OSError:
        return None

    return lock
