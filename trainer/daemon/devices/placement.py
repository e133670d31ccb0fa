"""Placement of trials: the devices of a trainer, and the slots on each.

    slots             trials at a time on all devices
    slots per device  trials at a time on one device, except for trials that have it alone

A trial goes to the device with the fewest trials; among equals, to the smallest that has the memory
that the proposal is known to need. After a trial ran out of memory beside others, its device gets
no new trial until all have ended, so that the proposal can have the device alone. Beside another
program, it gets none until that has freed the memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from archive.errors import SettingsError
from archive.queue.capabilities import FOREVER
from archive.store.records import Proposal
from archive.trainer.daemon.devices.occupancy import Occupancy
from archive.trainer.daemon.in_flight import InFlight
from archive.trainer.trial.devices import Device
from archive.trainer.trial.messages import TrialFailed


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
        occupancy: The devices whose memory other programs use; None begins without any.

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
        self.per_device = per_device or (1 if slots is None else -(-slots // len(self.devices)))
        self.slots = slots or self.per_device * len(self.devices)
        if self.slots > self.per_device * len(self.devices):
            raise SettingsError(
                f"{len(self.devices)} devices with {self.per_device} slots each have no "
                f"{self.slots} slots: choose "
                "fewer --slots, more --devices or more --slots-per-device"
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
        usable = [device for device, count in free.items() if count]
        empty = [device for device in usable if not _beside(device, in_flight)]
        return Room(max(0, slots), _largest(usable), _largest(empty))

    def choose(self, proposal: Proposal, in_flight: Sequence[InFlight]) -> Device | None:
        """Return the device for a proposal; None if no device has room for it."""
        fitting = [
            device
            for device in self.devices
            if self._free(device, in_flight)
            and device.memory_bytes >= (proposal.memory_bytes or 0)
            and not (proposal.alone and _beside(device, in_flight))
        ]
        return min(
            fitting, key=lambda one: (len(_beside(one, in_flight)), one.memory_bytes), default=None
        )

    def with_neighbours(
        self, failed: TrialFailed, device: Device | None, others: Sequence[InFlight]
    ) -> TrialFailed:
        """Add to a failure for want of memory whether other trials were on the device, which is
        then emptied.

        A device that only other programs use gets no trial until they have freed the memory.

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

            return replace(
                failed,
                reason=f"{failed.reason}; other programs use it: {device.label} waits "
                "for its memory",
            )

        self._draining.add(device)
        return replace(failed, memory=replace(failed.memory, alone=False))

    def _free(self, device: Device, in_flight: Sequence[InFlight]) -> int:
        beside = _beside(device, in_flight)
        if not beside:
            self._draining.discard(device)

        if device in self._draining or any(each.claim.proposal.alone for each in beside):
            return 0

        if not beside and self._occupancy.lacks_memory(device):
            return 0

        return max(0, self.per_device - len(beside))


class ClusterPlacement(Placement):
    """The nodes of a cluster, which gives each trial the resources that it asks for, and no
    neighbours on them.

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


def _largest(devices: Sequence[Device]) -> int:
    return max((device.memory_bytes for device in devices), default=-1)


def _beside(device: Device, in_flight: Sequence[InFlight]) -> list[InFlight]:
    return [each for each in in_flight if each.device == device]
