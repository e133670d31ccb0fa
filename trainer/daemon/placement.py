"""Placement of trials: the devices of a trainer, and the slots on each.

    slots             trials at a time on all devices
    slots per device  trials at a time on one device, except for trials that have it alone

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

from archive.errors import SettingsError
from archive.queue.capabilities import FOREVER
from archive.queue.causes import MemoryNeed
from archive.store.records import Proposal
from archive.trainer.daemon.in_flight import InFlight
from archive.trainer.trial.devices import Device, free_memory
from archive.trainer.trial.failures import OTHERS_BYTES
from archive.trainer.trial.messages import TrialFailed

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
