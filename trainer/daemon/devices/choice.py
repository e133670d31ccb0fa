"""Choice of the devices of a trainer: requested, free of other trainers, and answering."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from archive.errors import SettingsError, StoreError
from archive.store.records import Study
from archive.trainer.daemon.devices.locks import Seats
from archive.trainer.daemon.devices.placement import ClusterPlacement, Placement
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.fit.memory import device_memory
from archive.trainer.tasks.tabular import TabularTask
from archive.trainer.trial import devices, failures
from archive.trainer.trial.devices import Device

if TYPE_CHECKING:
    from archive.api import Archive

log = logging.getLogger("archive.trainer")


class TrainerDevices:
    """The devices of a trainer.

    Args:
        options: How the daemon works.
        cluster: Name of the cluster on whose nodes the trials run; None for this machine.

    Attributes:
        placement: Devices and slots. Until `find` was called, it is the placement for tables, which
            need no device; on a cluster, it is that of the cluster from the start.
    """

    def __init__(self, options: TrainerOptions, cluster: str | None = None) -> None:
        self._options = options
        self._seats = Seats()
        self.placement = (
            _of_table(options) if cluster is None else ClusterPlacement(cluster, options.slots or 1)
        )
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
    """Return the placement of a trainer that only looks up tables, without loading torch, which
    takes seconds.
    """
    return Placement([Device("table", "table", "no training", device_memory())], options.slots)


def _of_devices(options: TrainerOptions, seats: Seats) -> Placement:
    """Return the placement of a trainer, whose GPUs are then taken.

    Raises:
        SettingsError: A device cannot be used, or other trainers use it.
    """
    available = devices.find(options.device)
    if options.precision == "tf32" and not available[0].name.startswith("cuda"):
        raise SettingsError(f"precision tf32 needs a GPU, got the device {available[0].label}")

    chosen = seats.choose(available, _most(options, len(available)), shared=options.share_devices)
    return Placement(_answering(chosen, options), options.slots, options.slots_per_device)


def _most(options: TrainerOptions, count: int) -> int | None:
    """Return how many of the devices to use; None for all that are free."""
    if options.device != "auto" or options.slots is None:
        return None

    return min(count, -(-options.slots // (options.slots_per_device or 1)))


def _answering(chosen: list[Device], options: TrainerOptions) -> list[Device]:
    """Return the GPUs that answer, and all other devices.

    Raises:
        SettingsError: None answers, or one that the user named does not.
    """
    answering = []
    for device in chosen:
        try:
            if device.uuid:
                devices.check(device)
        except SettingsError as error:
            if options.device != "auto" or len(chosen) == 1:
                raise

            log.warning("left out device=%s reason=%r", device, str(error))
        else:
            answering.append(device)

    if not answering:
        raise SettingsError(
            f"none of {len(chosen)} GPUs answers: repair their driver, or use --devices cpu"
        )

    return answering
