"""Placement of trials: the devices of a trainer, and the slots on each.

A trainer takes a seat on each GPU (`archive.trainer.daemon.seats`).

    slots             trials at a time on all devices
    slots per device  trials at a time on one device, except for trials that have it alone
    devices per trial devices that a trial has together, as a group that is placed as one device

A trial goes to the device with the fewest trials; among equals, to the smallest that has the memory
that the proposal is known to need. After a trial ran out of memory beside others, its device gets
no new trial until all have ended, so that the proposal can have the device alone.

A trial that runs out of memory without another trial of its trainer on the GPU shares it with a
program that the trainer does not know: another user's, or another trainer's. Its proposal would run
out of memory again and again. The trainer therefore waits until the GPU has the memory that the
trial needed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from archive.errors import SettingsError, StoreError
from archive.queue.capabilities import FOREVER
from archive.queue.causes import MemoryNeed
from archive.store.records import Proposal, Study
from archive.trainer.daemon.in_flight import InFlight
from archive.trainer.daemon.options import TrainerOptions
from archive.trainer.daemon.seats import Seats
from archive.trainer.fit.memory import device_memory
from archive.trainer.tasks.tabular import TabularTask
from archive.trainer.trial import devices, failures
from archive.trainer.trial.devices import Device, free_memory, group
from archive.trainer.trial.failures import OTHERS_BYTES
from archive.trainer.trial.messages import TrialFailed

if TYPE_CHECKING:
    from archive.api import Archive

CONTEXT_BYTES = 1 << 30
"""Memory that a process takes on a GPU beside its tensors: CUDA's context and its libraries."""
LOOK_SECONDS = 5.0
"""Time between two looks at the memory of a GPU."""

log = logging.getLogger("archive.trainer")


class Occupancy:
    """The GPUs that lack memory for trials.

    Args:
        free_memory: Returns the free memory of a GPU in bytes; None if that is not known.
        clock: Returns a time in seconds.
    """

    def __init__(
        self,
        free_memory: Callable[[Device], int | None] = free_memory,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._free_memory = free_memory
        self._clock = clock
        self._needed: dict[Device, int] = {}
        self._looked: dict[Device, float] = {}

    def note(self, device: Device, memory: MemoryNeed) -> bool:
        """Note a trial's lack of memory beside another program; return whether trials wait.

        Args:
            device: Its GPU.
            memory: Its need.
        """
        # A GPU that only contexts and the driver use is as free as it gets.
        needed = min(memory.needed + CONTEXT_BYTES, memory.capacity - OTHERS_BYTES)
        free = self._free_memory(device)
        if free is None or free >= needed:
            return False

        self._needed[device] = needed
        self._looked[device] = self._clock()
        log.warning(
            "waiting for memory that other programs use device=%s needed=%.1fGiB free=%.1fGiB",
            device,
            needed / 2**30,
            free / 2**30,
        )
        return True

    def lacks_memory(self, device: Device) -> bool:
        """Whether a GPU still lacks the memory that the last failed trial needed."""
        if device not in self._needed:
            return False

        if self._clock() - self._looked[device] < LOOK_SECONDS:
            return True

        self._looked[device] = self._clock()
        free = self._free_memory(device)
        if free is not None and free < self._needed[device]:
            return True

        log.info("memory is free again device=%s", device)
        del self._needed[device]
        return False


@dataclass(frozen=True, slots=True)
class Room:
    """Room for further trials.

    Attributes:
        slots: Number of free slots.
        memory_bytes: Memory of the largest device with a free slot.
        alone_bytes: Memory of the largest device without any trial; -1 without one.
    """

    slots: int
    memory_bytes: int
    alone_bytes: int


class Placement:
    """The devices of a trainer.

    Args:
        devices: The devices, at least one.
        slots: Number of trials at a time; None for all slots of the devices.
        per_device: Number of trials at a time on each device; None divides the slots among the
            devices.
        occupancy: The devices that other programs use; None begins without any.

    Attributes:
        devices: The devices.
        slots: Number of trials at a time.
        per_device: Number of trials at a time on each device.

    Raises:
        SettingsError: The devices have fewer slots than requested.
    """

    def __init__(
        self,
        devices: Sequence[Device],
        slots: int | None = None,
        per_device: int | None = None,
        occupancy: Occupancy | None = None,
    ) -> None:
        self.devices = tuple(devices)
        count = len(self.devices)
        self.per_device = per_device or (1 if slots is None else -(-slots // count))
        self.slots = slots or self.per_device * count
        if self.slots > self.per_device * count:
            raise SettingsError(
                f"{count} devices with {self.per_device} slots each have no {self.slots} slots: "
                "choose fewer --slots, more --devices or more --slots-per-device"
            )

        self._draining: set[Device] = set()
        self._occupancy = occupancy or Occupancy()

    @property
    def memory_bytes(self) -> int | None:
        """Memory of the largest device; None if that is not known."""
        most = max(device.memory_bytes for device in self.devices)
        return None if most == FOREVER else most

    def room(self, in_flight: Sequence[InFlight]) -> Room:
        """Return the room beside these trials."""
        free = {device: self._free(device, in_flight) for device in self.devices}
        slots = min(sum(free.values()), self.slots - len(in_flight))
        memory_bytes = alone_bytes = -1
        for device, count in free.items():
            if count:
                memory_bytes = max(memory_bytes, device.memory_bytes)
                if not _beside(device, in_flight):
                    alone_bytes = max(alone_bytes, device.memory_bytes)

        return Room(max(0, slots), memory_bytes, alone_bytes)

    def choose(self, proposal: Proposal, in_flight: Sequence[InFlight]) -> Device | None:
        """Return the device for a proposal; None if no device has room for it."""
        best: Device | None = None
        best_load = (0, 0)
        for device in self.devices:
            beside = len(_beside(device, in_flight))
            if not self._free(device, in_flight) or (proposal.alone and beside):
                continue

            load = (beside, device.memory_bytes)
            fits = device.memory_bytes >= (proposal.memory_bytes or 0)
            if fits and (best is None or load < best_load):
                best = device
                best_load = load

        return best

    def with_neighbours(
        self, failed: TrialFailed, device: Device | None, others: Sequence[InFlight]
    ) -> TrialFailed:
        """Add to a failure for lack of memory whether other trials were on the device.

        With others, the device is emptied for the next trial. Beside other programs alone, it gets
        no trial until they have freed the memory.

        Args:
            failed: The failure.
            device: Device of the trial.
            others: The other trials.
        """
        if failed.memory is None or device is None:
            return failed

        if not _beside(device, others):
            if failed.memory.alone or not self._occupancy.note(device, failed.memory):
                return failed

            cause = f"other programs use it: {device.label} waits for its memory"
            return replace(failed, reason=f"{failed.reason}; {cause}")

        self._draining.add(device)
        return replace(failed, memory=replace(failed.memory, alone=False))

    def _free(self, device: Device, in_flight: Sequence[InFlight]) -> int:
        beside = _beside(device, in_flight)
        if not beside:
            self._draining.discard(device)

        if device in self._draining or any(work.claim.proposal.alone for work in beside):
            return 0

        if not beside and self._occupancy.lacks_memory(device):
            return 0

        return max(0, self.per_device - len(beside))


class ClusterPlacement(Placement):
    """The nodes of a cluster: each trial has its requested resources for itself.

    Args:
        cluster: Name of the cluster.
        slots: Number of trials at a time.
    """

    def __init__(self, cluster: str, slots: int) -> None:
        super().__init__([Device("auto", "cluster", cluster, FOREVER)], slots)

    def room(self, in_flight: Sequence[InFlight]) -> Room:
        """Return the free slots: whether a node has the memory is found out there."""
        return Room(max(0, self.slots - len(in_flight)), FOREVER, FOREVER)

    def choose(self, proposal: Proposal, in_flight: Sequence[InFlight]) -> Device | None:
        """Return the cluster if it has a free slot."""
        return self.devices[0] if len(in_flight) < self.slots else None

    def with_neighbours(
        self, failed: TrialFailed, device: Device | None, others: Sequence[InFlight]
    ) -> TrialFailed:
        """Return the failure as it is."""
        return failed


def _beside(device: Device, in_flight: Sequence[InFlight]) -> list[InFlight]:
    return [work for work in in_flight if work.device == device]


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
            self.placement = of_devices(self._options, self._seats)

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


def of_devices(options: TrainerOptions, seats: Seats) -> Placement:
    """Take a trainer's GPUs, and return its placement.

    Raises:
        SettingsError: A device cannot be used, or other trainers use it.
    """
    available = devices.find(options.device)
    if options.precision == "tf32" and not available[0].name.startswith("cuda"):
        raise SettingsError(f"precision tf32 needs a GPU, got the device {available[0].label}")

    most = _most(options, len(available))
    taken = seats.choose(available, most, shared=options.share_devices)
    answering = _answering(taken, options)
    if options.devices_per_trial == 1:
        return Placement(answering, options.slots, options.slots_per_device)

    groups, left = in_groups(answering, options.devices_per_trial)
    _check_rest(groups, left, options)
    seats.release(left)
    # Any number of trials share a CPU.
    per_device = 1 if answering[0].uuid else None
    return Placement(groups, options.slots, per_device)


def in_groups(devices: Sequence[Device], size: int) -> tuple[list[Device], list[Device]]:
    """Return groups of devices, in their order, and the rest, which is too small for a group.

    A device that is no GPU serves all ranks of a group.
    """
    if not devices[0].uuid:
        return [group([device] * size) for device in devices], []

    groups: list[Device] = []
    whole = len(devices) - len(devices) % size
    for index in range(0, whole, size):
        groups.append(group(devices[index : index + size]))

    return groups, list(devices[whole:])


def _check_rest(groups: Sequence[Device], left: Sequence[Device], options: TrainerOptions) -> None:
    """Check that devices are whole groups; a rest of those that the trainer chose is logged.

    Raises:
        SettingsError: There is no group, or a rest of devices that the user named.
    """
    size = options.devices_per_trial
    labels = ", ".join(device.label for device in left)
    if not groups:
        raise SettingsError(
            f"a trial needs {size} devices (--devices-per-trial), and this trainer has "
            f"{len(left)}: {labels}"
        )

    if left and options.device != "auto":
        count = size * len(groups) + len(left)
        raise SettingsError(
            f"{count} devices are no groups of {size} (--devices-per-trial): leave out {labels}"
        )

    if left:
        log.warning("left out device=%s reason=%r", labels, f"no group of {size}")


def _most(options: TrainerOptions, count: int) -> int | None:
    """Return how many of the devices to use; None for all that are free."""
    if options.device != "auto" or options.slots is None:
        return None

    groups = -(-options.slots // (options.slots_per_device or 1))
    return min(count, groups * options.devices_per_trial)


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
