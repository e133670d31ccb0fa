"""Fleets, and their records on disk, by which other commands can list and stop their trainers.

A fleet is the trainers of one engine with one command line and one way to the archive.

HOME/fleets/NAME/fleet.json    the fleet, without a password
HOME/fleets/NAME/password      the database's password, mode 0600; exists where there is one
HOME/fleets/NAME/stopping      exists from the beginning of its stop: its command or search starts no more trainers
HOME/fleets/NAME/lock          locked while these adjust the number of trainers
HOME/fleets/NAME/attended      locked by the command or search that starts its trainers
HOME/fleets/NAME/…             files of the launcher
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archive.errors import SettingsError, UnknownNameError
from archive.files import check_obeyed, lock_file, write_atomically
from archive.queue.workers import FLEET
from archive.settings import LOGIN, Settings, environment

if TYPE_CHECKING:
    from archive.launchers.base import LaunchedTrainer, Launcher

RECORD = "fleet.json"
STOPPING = "stopping"
LOCK = "lock"
ATTENDED = "attended"
_STORED = (
    "name",
    "engine",
    "arguments",
    "study",
    "slots",
    "lower",
    "upper",
    "grace_seconds",
    "options",
    "created",
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_LONGEST = 60


def save(fleet: TrainerFleet) -> TrainerFleet:
    """Write a fleet and its password to its folder, and return it with the time of its creation.

    Raises:
        SettingsError: The name of the fleet is invalid, or the folder cannot be written.
    """
    check_name(fleet.name)
    fleet = fleet if fleet.created else replace(fleet, created=time.time())
    try:
        fleet.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if fleet.password_file is not None and fleet.settings.password is not None:
            write_atomically(fleet.password_file, fleet.settings.password)

        content = {name: getattr(fleet, name) for name in _STORED}
        # Left by a stop that was interrupted, of a fleet that a search takes over.
        (fleet.folder / STOPPING).unlink(missing_ok=True)
        write_atomically(fleet.folder / RECORD, json.dumps(content, indent=1))
    except OSError as error:
        raise SettingsError(
            f"cannot write the fleet's folder {fleet.folder}: {error.strerror or error}"
        ) from None

    return fleet


def add(fleet: TrainerFleet) -> TrainerFleet:
    """Save a new fleet: of two commands with the same name at the same moment, one is refused.

    Raises:
        SettingsError: There is a fleet of this name, the name is invalid, or the folder cannot be
            written.
    """
    check_name(fleet.name)
    try:
        fleet.folder.mkdir(parents=True, mode=0o700)
    except FileExistsError:
        raise _is_taken(fleet.name) from None
    except OSError as error:
        raise SettingsError(
            f"cannot write the fleet's folder {fleet.folder}: {error.strerror or error}"
        ) from None

    try:
        return save(fleet)
    except BaseException:
        # Its name would be taken, and no command would find it to free it.
        remove(fleet)
        raise


def check_new(settings: Settings, name: str) -> None:
    """Refuse the name of a fleet that exists.

    Raises:
        SettingsError: There is one.
    """
    if (fleets_folder(settings.home) / name).exists():
        raise _is_taken(name)


def saved(settings: Settings) -> list[TrainerFleet]:
    """Return the fleets of an archive, the oldest first."""
    return sorted(_all(settings), key=lambda fleet: (fleet.created, fleet.name))


def get(settings: Settings, name: str) -> TrainerFleet:
    """Return a fleet by name.

    Raises:
        UnknownNameError: There is none.
    """
    fleets = {fleet.name: fleet for fleet in _all(settings)}
    if name not in fleets:
        raise UnknownNameError("fleet", name, fleets, "start one with: archive launch")

    return fleets[name]


@contextlib.contextmanager
def adjusting(fleet: TrainerFleet) -> Iterator[bool]:
    """Delay a stop of the fleet during the block, and yield whether none has begun before."""
    with _lock(fleet):
        yield _kept(fleet)


@contextlib.contextmanager
def attending(fleet: TrainerFleet) -> Iterator[None]:
    """Mark the fleet for the length of the block as one whose trainers this process starts."""
    with _lock(fleet, ATTENDED, shared=True):
        yield


def is_attended(fleet: TrainerFleet) -> bool:
    """Whether a process may start trainers: `attending`, or the file system has no locks."""
    try:
        with (fleet.folder / ATTENDED).open("a") as file:
            return not lock_file(file.fileno())
    except OSError:
        return True


def begin_stop(fleet: TrainerFleet) -> None:
    """Keep the fleet's command or search from starting trainers; waits while it starts some."""
    # A full disk must not keep trainers from being stopped.
    with _lock(fleet), contextlib.suppress(OSError):
        (fleet.folder / STOPPING).touch()


def remove(fleet: TrainerFleet) -> None:
    """Delete the folder of a fleet, its password first."""
    if fleet.password_file is not None:
        fleet.password_file.unlink(missing_ok=True)

    shutil.rmtree(fleet.folder, ignore_errors=True)


def new_name(settings: Settings, engine: str, study: str | None) -> str:
    """Return a name that no fleet has: `slurm-STUDY`, then `slurm-STUDY-2` and so on."""
    base = base_name(engine, study)
    number = 1
    while (
        fleets_folder(settings.home) / (name := base if number == 1 else f"{base}-{number}")
    ).exists():
        number += 1

    return name


def base_name(engine: str, study: str | None) -> str:
    """Return the name of an engine and a study, with a digest if characters were replaced."""
    if study is None:
        return engine

    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", study)[:_LONGEST]
    digest = "" if plain == study else f"-{hashlib.sha256(study.encode()).hexdigest()[:6]}"
    return f"{engine}-{plain}{digest}"


def check_name(name: str) -> None:
    """Refuse a name that is no name of a folder and of a job.

    Raises:
        SettingsError: It is none.
    """
    if not _NAME.fullmatch(name) or len(name) > 2 * _LONGEST:
        raise SettingsError(
            f"the name of a fleet has letters, digits, -, _ and . only, got {name!r}"
        )


def _kept(fleet: TrainerFleet) -> bool:
    # A file system that does not answer says nothing.
    return _exists(fleet.folder / RECORD, unknown=True) and not _exists(
        fleet.folder / STOPPING, unknown=False
    )


def _exists(path: Path, *, unknown: bool) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return False
    except OSError:
        return unknown

    return True


def _is_taken(name: str) -> SettingsError:
    return SettingsError(
        f"there is a fleet {name!r}: stop it with archive launch stop {name}, or choose a name"
    )


@contextlib.contextmanager
def _lock(fleet: TrainerFleet, name: str = LOCK, *, shared: bool = False) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        # Some file systems of clusters have no locks; the fleet's folder may be gone.
        with contextlib.suppress(OSError):
            file = stack.enter_context((fleet.folder / name).open("a"))
            lock_file(file.fileno(), shared=shared, wait=True)

        yield


def _all(settings: Settings) -> Iterator[TrainerFleet]:
    for path in fleets_folder(settings.home).glob(f"*/{RECORD}"):
        check_obeyed(path.parent, "the fleet's folder")
        check_obeyed(path, "the fleet")
        try:
            content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            content["arguments"] = tuple(content["arguments"])
            yield TrainerFleet(settings=settings, **content)
        except FileNotFoundError:
            continue  # the fleet has ended meanwhile
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise SettingsError(
                f"cannot read the fleet {path}: {error}; delete {path.parent}"
            ) from None


def running_or_ended(
    launcher: Launcher, fleet: TrainerFleet
) -> tuple[Sequence[LaunchedTrainer], bool]:
    """Return the trainers of a fleet that are pending or running_or_ended, and whether the fleet has ended.

    Raises:
        LaunchError: The engine does not answer.
    """
    # First: a process that ends now has started its trainers before the engine is asked.
    attended = is_attended(fleet)
    trainers = launcher.running(fleet)
    return trainers, not (attended or trainers or launcher.has_unlisted(fleet))


PASSWORD = "ARCHIVE_PASSWORD"
PASSWORD_FILE = "ARCHIVE_PASSWORD_FILE"
WITHOUT_LOGIN = frozenset(LOGIN)
"""Variables of the caller that no engine may copy: engines store the environment of a job, and show
it."""


def without_login(variables: Mapping[str, str]) -> dict[str, str]:
    """Return variables that an engine may copy."""
    return {name: value for name, value in variables.items() if name not in WITHOUT_LOGIN}


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
        return without_login(inherited) | self.environment()


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
