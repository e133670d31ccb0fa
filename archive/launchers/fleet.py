"""A fleet: trainers of one engine with one command line, and their way to the archive."""

from __future__ import annotations

import hashlib
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from archive.queue.workers import FLEET
from archive.settings import LOGIN, Settings, environment

PASSWORD = "ARCHIVE_PASSWORD"
PASSWORD_FILE = "ARCHIVE_PASSWORD_FILE"
WITHOUT_LOGIN = frozenset(LOGIN)
"""Variables of the caller that no engine may copy: engines store the environment of a job, and show
it."""


@dataclass(frozen=True)
class TrainerFleet:
    """Trainers of one engine with the same command line.

    Attributes:
        name: Name, unique in the archive's home: letters, digits, `-`, `_` and `.`.
        engine: Name of the launcher.
        settings: Settings of the archive.
        arguments: Options of `archive trainer`.
        study: The only study that the trainers serve; None for any.
        slots: Number of trials that each trainer runs at a time.
        lower: Smallest number of trainers.
        upper: Largest number of trainers.
        grace_seconds: Time that each trainer needs to end.
        options: Options of the launcher, as `archive.launchers.options.values` returns them.
        created: Time of its creation, in seconds since 1970.
    """

    name: str
    engine: str
    settings: Settings
    arguments: tuple[str, ...] = ()
    study: str | None = None
    slots: int = 1
    lower: int = 1
    upper: int = 1
    grace_seconds: float = 8.0
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    created: float = 0.0

    @property
    def id(self) -> str:
        """The name with a digest of the home: unique among a user's fleets on an engine."""
        digest = hashlib.sha256(str(self.settings.home).encode()).hexdigest()[:6]
        return f"archive-{self.name}-{digest}"

    @property
    def folder(self) -> Path:
        """Folder of the fleet's files in the archive's home, on every machine of the engine."""
        return fleets_folder(self.settings.home) / self.name

    @property
    def password_file(self) -> Path | None:
        """File of mode 0600 with the password, which `records.save` writes; None without one.

        None without a password.
        """
        return (
            None
            if self.settings.embedded or self.settings.password is None
            else self.folder / "password"
        )

    def command(self, python: str = sys.executable) -> list[str]:
        """Return the command of one trainer; it contains no password.

        Args:
            python: Interpreter with this package.
        """
        # Not from the current folder: one named `archive` in it would hide an editable
        # installation.
        return [python, "-P", "-m", "archive.cli.main", "trainer", *self.arguments]

    def environment(self) -> dict[str, str]:
        """Return a trainer's variables: fleet and archive, the password by its file only."""
        variables = {}
        for name, value in environment(self.settings).items():
            if value and name != PASSWORD:
                variables[name] = value

        variables[FLEET] = self.name
        if self.password_file is not None:
            variables[PASSWORD_FILE] = str(self.password_file)

        return variables

    def environment_from(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """Return a trainer's environment: the caller's without its login, and `environment()`."""
        return {
            name: value for name, value in inherited.items() if name not in WITHOUT_LOGIN
        } | self.environment()


def fleets_folder(home: Path) -> Path:
    """Return the folder with the files of all fleets of an archive."""
    return home / "fleets"


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
