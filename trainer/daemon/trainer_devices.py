"""The devices of a trainer: requested, free of other trainers, and answering.

A trainer takes a seat on each GPU, so that two trainers do not use one GPU by accident. A seat is
an exclusive lock of a file that is named after the GPU's UUID; the system releases it when the
trainer ends, however it ends. The trainer with the first seat has the GPU to itself. Trainers that
share GPUs take the next seats, each on the GPU with the fewest trainers.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from archive.errors import SettingsError, StoreError
from archive.files import lock_file
from archive.store.records import Study
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.placement import ClusterPlacement, Placement
from archive.trainer.fit.memory import device_memory
from archive.trainer.storage.file_names import file_name
from archive.trainer.tasks.tabular import TabularTask
from archive.trainer.trial import devices, failures
from archive.trainer.trial.devices import Device

if TYPE_CHECKING:
    from archive.api import Archive

MOST_SEATS = 256

log = logging.getLogger("archive.trainer")


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

    def release(self) -> None:
        """Give all seats back."""
        while self._locks:
            os.close(self._locks.pop())

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
            self._locks.append(lock)
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


class TrainerDevices:
    """The devices of a trainer.

    Args:
        options: How the daemon works.
        cluster: Name of the cluster that runs the trials; None for this machine.

    Attributes:
        placement: Devices and slots. Until `find` was called, it is the placement for tables, which
            need no device, or the cluster's.
    """

    def __init__(self, options: TrainerOptions, cluster: str | None = None) -> None:
        self._options = options
        self._seats = Seats()
        self.placement: Placement
        if cluster is None:
            self.placement = _of_table(options)
        else:
            self.placement = ClusterPlacement(cluster, options.slots or 1)

        self._found = cluster is not None

    @property
    def label(self) -> str:
        """The devices in torch's notation."""
        return ",".join(device.label for device in self.placement.devices)

    def find(self, archive: Archive, task_of: Callable[[Study], object]) -> None:
        """Find the devices, and lock their GPUs; a second call has no effect.

        Args:
            archive: The archive. A trainer that serves one study on a table needs no device.
            task_of: Returns the task of a study.

        Raises:
            SettingsError: A device cannot be used, or other trainers use it.
            StoreError: The store cannot be read.
        """
        if not self._found and not _serves_table(archive, self._options.study, task_of):
            self.placement = _of_devices(self._options, self._seats)

        self._found = True

    def record(self) -> dict[str, str | int | list[str] | None]:
        """Return the properties of the worker's record."""
        devices = [str(device) for device in self.placement.devices]
        return {"device": ", ".join(devices), "devices": devices, "slots": self.placement.slots}

    def release(self) -> None:
        """Leave the GPUs to other trainers."""
        self._seats.release()


def _serves_table(archive: Archive, study: str | None, task_of: Callable[[Study], object]) -> bool:
    """Return whether a trainer serves one study only, on a table."""
    try:
        return study is not None and isinstance(task_of(archive.studies.get(study)), TabularTask)
    except StoreError:
        raise
    except Exception as error:
        # A task of another package may raise anything; each proposal of the study is refused with
        # the same reason.
        log.warning("cannot work on study=%s reason=%r", study, failures.failure_of(error).reason)
        return False


def _of_table(options: TrainerOptions) -> Placement:
    """Return the placement of a trainer for tables, without loading torch, which takes seconds."""
    return Placement([Device("table", "table", "no training", device_memory())], options.slots)


def _of_devices(options: TrainerOptions, seats: Seats) -> Placement:
    """Take a trainer's GPUs, and return its placement.

    Raises:
        SettingsError: A device cannot be used, or other trainers use it.
    """
    available = devices.find(options.device)
    if options.precision == "tf32" and not available[0].name.startswith("cuda"):
        raise SettingsError(f"precision tf32 needs a GPU, got the device {available[0].label}")

    most = _most(options, len(available))
    taken = seats.choose(available, most, shared=options.share_devices)
    return Placement(_answering(taken, options), options.slots, options.slots_per_device)


def _most(options: TrainerOptions, count: int) -> int | None:
    """Return how many of the devices to use; None for all that are free."""
    if options.device != "auto" or options.slots is None:
        return None

    return min(count, -(-options.slots // (options.slots_per_device or 1)))


def _answering(devices_taken: list[Device], options: TrainerOptions) -> list[Device]:
    """Return the GPUs that answer, and all other devices.

    Raises:
        SettingsError: None answers, or one that the user named does not.
    """
    answering = []
    for device in devices_taken:
        try:
            if device.uuid:
                devices.check(device)
        except SettingsError as error:
            if options.device != "auto" or len(devices_taken) == 1:
                raise

            log.warning("left out device=%s reason=%r", device, str(error))
        else:
            answering.append(device)

    if not answering:
        raise SettingsError(
            f"none of {len(devices_taken)} GPUs answers: repair their driver, or use --devices cpu"
        )

    return answering
