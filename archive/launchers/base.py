"""The contract of a launcher: it starts trainers on an engine, lists them, and stops them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from archive.trainer.storage.file_names import last_lines

if TYPE_CHECKING:
    from archive.launchers.records import TrainerFleet


FRUITLESS_CODE = 3
"""Exit code of a trainer that ended in order after trials that failed
(`archive.cli.exit_codes`)."""
UNFIT_CODE = 4
"""Exit code of a trainer on a machine where trials cannot begin (`archive.cli.exit_codes`)."""


@dataclass(frozen=True, slots=True)
class LaunchedTrainer:
    """A trainer, as its engine knows it.

    Attributes:
        id: The engine's id of it.
        state: Whether its process has started.
        host: Machine; null while it is pending.
        reason: Why it is pending, in the engine's words.
    """

    id: str
    state: Literal["pending", "running"]
    host: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class TrainerFailure:
    """The end of a trainer that failed.

    Attributes:
        id: The engine's id of the trainer.
        code: Exit code of its process, not 0; None where it is unknown.
        reason: What happened, with the place of its log.
    """

    id: str
    code: int | None
    reason: str


class Launcher(ABC):
    """An engine that runs trainers.

    A subclass is a dataclass. Its fields are its options, each made by
    `archive.launchers.options.launch_option`, all with a default: `archive launch NAME` has them as
    options, `--on NAME:key=value` as keys, and `config.toml` in a table `[launch.NAME]`.
    Constructing a launcher contacts no engine.

    Every method may be called by any process of the user, not only by the one that has started the
    fleet: the engine, or files in the fleet's folder, keep the list of its trainers. `FleetKeeper`
    calls them from one thread.

    Attributes:
        name: Name in the registry.
        where: Its machines, in messages.
        requires: Modules that it imports and that the package does not install.
        extra: Extra of the package that installs them, if any.
        poll_seconds: Shortest time between two questions to the engine.
        grace_seconds: Time that the engine gives a trainer between SIGTERM and SIGKILL, minus a
            reserve.
        arguments: Options of `archive trainer` that precede the user's.
    """

    name: ClassVar[str]
    where: ClassVar[str] = "another machine"
    requires: ClassVar[tuple[str, ...]] = ()
    extra: ClassVar[str | None] = None
    poll_seconds: ClassVar[float] = 15.0
    grace_seconds: ClassVar[float] = 20.0
    arguments: ClassVar[tuple[str, ...]] = ("--idle", "10min", "--wait", "10min")

    @abstractmethod
    def elsewhere(self) -> bool:
        """Whether trainers may run on other machines, where no embedded server can be reached."""

    @abstractmethod
    def start(self, fleet: TrainerFleet, count: int) -> None:
        """Start trainers, beside those that the fleet has.

        Returns as soon as the engine has accepted them; they may be pending for long. An engine
        that restarts a lost trainer by itself keeps its id.

        Args:
            fleet: A fleet of this engine that `archive.launchers.records` has saved.
            count: Number of trainers to start, at least 1.

        Raises:
            LaunchError: The engine does not answer, or refuses them; the message has its words.
        """

    @abstractmethod
    def running(self, fleet: TrainerFleet) -> list[LaunchedTrainer]:
        """Return the trainers of a fleet that are pending or running, in the order of their start.

        Raises:
            LaunchError: The engine does not answer.
        """

    def has_unlisted(self, fleet: TrainerFleet) -> bool:
        """Whether a fleet may have trainers that `running` does not list, as on other machines."""
        return False

    @abstractmethod
    def stop(self, fleet: TrainerFleet, ids: Sequence[str]) -> None:
        """Stop trainers: pending ones never start, running ones return their proposals on SIGTERM.

        Returns when they have ended, or when the engine has taken over to kill those that do not
        end in time. Ids that are unknown, or whose trainers have ended, are ignored.

        Args:
            fleet: The fleet.
            ids: Ids of trainers, as `running` returns them.

        Raises:
            LaunchError: The engine does not answer.
        """

    @abstractmethod
    def preview(self, fleet: TrainerFleet, count: int) -> str:
        """Return the text that `start` would submit, for a user to read; nothing is started."""

    @abstractmethod
    def failures(self, fleet: TrainerFleet, ids: Collection[str]) -> list[TrainerFailure]:
        """Return the failures of ended trainers that the engine remembers, the last one last.

        A trainer that `stop` has ended is none, however it ended.

        Args:
            fleet: The fleet.
            ids: Ids of trainers, as `running` returned them.

        Raises:
            LaunchError: The engine does not answer.
        """


LOG_LINES = 3


def describe_log(path: Path, code: int | None) -> str:
    """Return the place of a log and its last lines, as one line.

    Args:
        path: The log.
        code: Exit code of the trainer; None where it is unknown.
    """
    # The last line of a trainer on a machine where trials cannot begin has the reason, and those
    # before it have not.
    number = 1 if code == UNFIT_CODE else LOG_LINES
    try:
        lines = last_lines(path, number)
    except FileNotFoundError:
        lines = []
    except OSError as error:
        # The failure of the trainer is the message; it must not get lost for its log.
        lines = [f"the log cannot be read: {error.strerror or error}"]

    return f"see {path}: " + " | ".join(lines)
