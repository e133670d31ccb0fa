"""Ranks: the processes of a trial on several devices, under the variables that `torchrun` sets.

    RANK, WORLD_SIZE              number of the process in the trial, and their count
    LOCAL_RANK, LOCAL_WORLD_SIZE  the same among the processes of its machine
    GROUP_RANK, GROUP_WORLD_SIZE  number of the machine, and their count
    MASTER_ADDR, MASTER_PORT      where rank 0 listens

A script for `torchrun`, PyTorch Lightning and accelerate read them. A trial of one process has none
of them, as it is no distributed training.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Ranks:
    """The processes of a trial, and the position of one among them.

    Attributes:
        count: Number of processes on each machine.
        local: Number of this process on its machine.
        nodes: Number of machines.
        node: Number of this machine.
        address: Address of the first machine, at which rank 0 listens.
        port: Its port; 0 for a free one, which the starter of the processes chooses.
        run: Identity of the attempt, the same for all its processes.
    """

    count: int = 1
    local: int = 0
    nodes: int = 1
    node: int = 0
    address: str = LOOPBACK
    port: int = 0
    run: str = ""

    @property
    def rank(self) -> int:
        """Number of this process in the trial."""
        return self.node * self.count + self.local

    @property
    def world_size(self) -> int:
        """Number of processes of the trial."""
        return self.nodes * self.count

    def environment(self) -> dict[str, str]:
        """Return the variables of this process; none in a trial of one process."""
        if self.world_size == 1:
            return {}

        return {
            "MASTER_ADDR": self.address,
            "MASTER_PORT": str(self.port),
            "RANK": str(self.rank),
            "WORLD_SIZE": str(self.world_size),
            "LOCAL_RANK": str(self.local),
            "LOCAL_WORLD_SIZE": str(self.count),
            "GROUP_RANK": str(self.node),
            "GROUP_WORLD_SIZE": str(self.nodes),
            "ROLE_NAME": "default",
            "ROLE_RANK": str(self.rank),
            "ROLE_WORLD_SIZE": str(self.world_size),
            "TORCHELASTIC_RUN_ID": self.run,
            "TORCHELASTIC_RESTART_COUNT": "0",
            "TORCHELASTIC_MAX_RESTARTS": "0",
            # Rank 0 has the store at MASTER_PORT: there is no agent beside it that could.
            "TORCHELASTIC_USE_AGENT_STORE": "False",
        }


def free_port() -> int:
    """Return a port of this machine at which no process listens now."""
    with socket.socket() as listener:
        listener.bind(("", 0))
        port: int = listener.getsockname()[1]

    return port
