"""Shell text of a fleet's trainers: variables, and the command."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from archive.launchers.fleet import WITHOUT_LOGIN, TrainerFleet


def exports(fleet: TrainerFleet) -> list[str]:
    """Return the lines by which a shell gives a trainer its way to the archive, and no password."""
    variables = fleet.environment()
    removed = sorted(WITHOUT_LOGIN - set(variables))
    return [f"unset {' '.join(removed)}"] + [
        f"export {name}={shlex.quote(value)}" for name, value in variables.items()
    ]


def shell_script(
    fleet: TrainerFleet,
    before: str,
    command: Sequence[str],
    after: str,
    *,
    background: bool = False,
) -> str:
    """Return a script that starts trainers.

    Args:
        fleet: The fleet.
        before: Line before the command.
        command: Command of a trainer.
        after: Line after the command.
        background: Whether the command runs in the background, in a separate session.
    """
    line = f"    setsid {shlex.join(command)} &" if background else shlex.join(command)
    return "\n".join(["#!/bin/sh", *exports(fleet), before, line, after, ""])
