"""Death of a database process: words of the supervisor, which clients find in the run file.

The words are in `ServerRun.error`, beside the state of the process that replaced the dead one.
"""

from __future__ import annotations

from dataclasses import dataclass

OUT_OF_MEMORY_STATUS = 3
"""Exit status of Java with the option `ExitOnOutOfMemoryError`."""

_OUT_OF_MEMORY = "the database needed more memory than its heap has"


@dataclass(frozen=True)
class Death:
    """End of a server that nobody asked for.

    Attributes:
        reason: Words of the supervisor; empty if it died, too.
    """

    reason: str = ""

    @property
    def out_of_memory(self) -> bool:
        """Whether the heap was full."""
        return _OUT_OF_MEMORY in self.reason

    @property
    def heap(self) -> str:
        """Size of the full heap, as ` (512 MiB)`; empty if it is unknown."""
        _, _, rest = self.reason.partition(_OUT_OF_MEMORY)
        return rest.partition(")")[0] + ")" if ")" in rest else ""


def describe(status: int, heap_mb: int) -> str:
    """Return why the database died.

    Args:
        status: Exit status of its process.
        heap_mb: Bound on its heap, in MiB.
    """
    if status == OUT_OF_MEMORY_STATUS:
        return f"{_OUT_OF_MEMORY} ({heap_mb} MiB), and was started again"

    ended = f"signal {-status}" if status < 0 else f"status {status}"
    return f"the database died with {ended}, and was started again"
