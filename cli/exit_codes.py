"""The exit codes of the commands, which the help of `archive` lists."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command ends with; an end by a signal is 128 plus its number, as a shell counts it."""

    OK = 0
    ERROR = 1
    USAGE = 2
    NOTHING_SUCCEEDED = 3
    UNFIT_MACHINE = 4
    HUNG_UP = 129
    INTERRUPTED = 130
    TERMINATED = 143


MEANINGS = {
    ExitCode.OK: "success",
    ExitCode.ERROR: "an error, also in Cypher; doctor: a fault; trainer status --healthcheck: no "
    "trainer is alive",
    ExitCode.USAGE: "a mistake in the command, its settings or a name",
    ExitCode.NOTHING_SUCCEEDED: "search, study best: no evaluation has a feasible value; "
    "trainer: trials failed, none succeeded",
    ExitCode.UNFIT_MACHINE: "trainer: three trials in a row could not begin on this machine "
    "(GPU, data, disk, package)",
    ExitCode.HUNG_UP: "ended with its terminal (SIGHUP)",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C (SIGINT)",
    ExitCode.TERMINATED: "ended by SIGTERM; a trainer that is told to stop ends with 0, 3 or 4",
}
"""Exit code to its meaning."""


def epilog() -> str:
    """Return the table for a help text; click then breaks no line of it."""
    return "\b\nExit codes:\n" + "\n".join(
        f"  {code.value:<3}  {text}" for code, text in MEANINGS.items()
    )
