"""GPUs whose memory other programs use: no trial starts there until there is room for it.

A trial that runs out of memory without another trial of its trainer on the GPU shares it with a
program that the trainer does not know: another user's, or another trainer's. Its proposal would run
out of memory again and again. The trainer therefore waits until the GPU has the memory that the
trial needed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from archive.queue.causes import MemoryNeed
from archive.trainer.trial.devices import Device, free_memory
from archive.trainer.trial.memory_need import OTHERS_BYTES

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
        """Note that a trial had too little memory beside another program; return whether further
        trials wait.

        Args:
            device: Its GPU.
            memory: Its need.
        """
        # A GPU that only contexts and the driver use is as free as it gets.
        needed = min(memory.needed + CONTEXT_BYTES, memory.capacity - OTHERS_BYTES)
        free = self._free_memory(device)
        if free is None or free >= needed:
            return False

        self._needed[device], self._looked[device] = needed, self._clock()
        log.warning(
            "waiting for memory that other programs use device=%s needed=%.1fGiB free=%.1fGiB",
            device,
            needed / 2**30,
            free / 2**30,
        )
        return True

    def lacks_memory(self, device: Device) -> bool:
        """Whether a GPU lacks the memory that the last trial needed which had too little of it."""
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
