"""Seats on the GPUs of this machine, so that two trainers do not use one GPU by accident.

A seat is an exclusive lock of a file that is named after the GPU's UUID; the system releases it
when the trainer ends, however it ends. The trainer with the first seat has the GPU to itself.
Trainers that share GPUs take the next seats, each on the GPU with the fewest trainers.
"""

from __future__ import annotations

import os
import tempfile
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
        self._locks: list[int] = []

    def choose(self, devices: list[Device], most: int | None, *, shared: bool) -> list[Device]:
        """Take seats, and return their devices.

        Args:
            devices: Devices to choose from, in the order of preference.
            most: Largest number of devices; None for all.
            shared: Whether to use GPUs of other trainers, too, those with the fewest of them first.

        Raises:
            SettingsError: Other trainers have all of these devices.
        """
        chosen: list[Device] = []
        for seat in range(MOST_SEATS if shared else 1):
            for device in devices:
                if len(chosen) == (len(devices) if most is None else most):
                    return chosen

                if device not in chosen and (not device.uuid or self._take(device, seat)):
                    chosen.append(device)

        if not chosen:
            labels = ", ".join(device.label for device in devices)
            raise SettingsError(
                f"another trainer of this machine uses {labels}: choose other GPUs with "
                "--devices, or start this "
                "trainer with --share-devices"
            )

        return chosen

    def release(self) -> None:
        """Give all seats back."""
        while self._locks:
            os.close(self._locks.pop())

    def _take(self, device: Device, seat: int) -> bool:
        path = self.folder / f"archive-gpu-{file_name(device.uuid)}-{seat}.lock"
        lock = _opened(path)
        if lock is None:
            return False

        try:
            taken = lock_file(lock)
        except OSError:
            taken = False

        if taken:
            self._locks.append(lock)
        else:
            os.close(lock)

        return taken


def _folder() -> Path:
    # TMPDIR may be another one in each job.
    shared = Path("/dev/shm")
    return shared if os.access(shared, os.W_OK) else Path(tempfile.gettempdir())


def _opened(path: Path) -> int | None:
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
