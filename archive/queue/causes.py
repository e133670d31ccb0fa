"""Causes of attempts without a result, and what each costs the proposal.

| cause           | meaning                                                              | consequence            |
|-----------------|----------------------------------------------------------------------|------------------------|
| `environment`   | task, recipe, package, home or process not usable on this machine    | goes to another worker |
| `data`          | data set not on this machine                                         | goes to another worker |
| `device`        | GPU or driver failed before the training; later, it costs an attempt | goes to another worker |
| `disk-full`     | no space left                                                        | goes to another worker |
| `out-of-memory` | memory of the device or the machine exhausted                        | see `leases.exhaust`   |
| `crash`         | end of the trial's process without a message                         | attempt                |
| `stall`         | no progress for too long                                             | attempt                |
| `lease-expired` | no sign of life of the worker                                        | attempt                |
| `limit`         | limit of the trainer exceeded                                        | final                  |
| `training`      | training diverged, invalid network, faulty recipe                    | final                  |

A proposal that goes to another worker loses no attempt, and the worker that refused it does not get
it again (`Proposal.refused_by`). After a lost attempt another worker may try, while attempts are
left.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """Cause of an attempt without a result."""

    ENVIRONMENT = "environment"
    DATA = "data"
    DEVICE = "device"
    DISK_FULL = "disk-full"
    OUT_OF_MEMORY = "out-of-memory"
    CRASH = "crash"
    STALL = "stall"
    LEASE_EXPIRED = "lease-expired"
    LIMIT = "limit"
    TRAINING = "training"


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """Memory of a trial that ran out of it.

    Attributes:
        needed: Memory that the trial needs at least, in bytes.
        capacity: Memory of its device, in bytes.
        alone: Whether no other process used much of the device's memory.
    """

    needed: int
    capacity: int
    alone: bool
