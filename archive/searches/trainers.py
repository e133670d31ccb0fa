"""Trainers of a search: a fleet on this machine or a cluster, which ends with the search."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING

from archive.errors import ArchiveError, LaunchError
from archive.launchers import options, records
from archive.launchers.base import Launcher
from archive.launchers.keeper import FleetKeeper
from archive.launchers.local import LocalLauncher
from archive.launchers.records import TrainerFleet
from archive.searches.events import Listener, Notice, ignore
from archive.settings import Settings
from archive.trainer.storage.file_names import trainer_logs

if TYPE_CHECKING:
    from archive.agents.base import Agent
    from archive.api import Archive
    from archive.architecture.graph import Architecture
    from archive.searches.interruption import Interruption
    from archive.store.records import Study
    from archive.trainer.protocols.base import TrainingProtocol
    from archive.trainer.tasks.base import Task


OBSERVED_SECONDS = 30.0
"""Time that trainers with observers get to end: the observers may have to reach a server."""
STALE_SECONDS = 60.0
"""Age from which the fleet of a killed search is deleted, if none of its trainers runs."""

LIMIT_OPTIONS = {
    "stall_seconds": "--stall",
    "trial_seconds": "--trial-timeout",
    "scratch_bytes": "--scratch-limit",
    "memory_bytes": "--memory-limit",
}
"""Options of `archive trainer` that limit a trial, by the names of their parameters; in seconds and
bytes."""


class SearchTrainers:
    """A number of trainers that serve one study and end with this process.

    On this machine they end even if this process is killed; on an engine they end when they are
    idle, and a search that resumes the study takes them over.

    Args:
        launcher: The engine.
        count: Number of trainers.
        study: Study that they serve.
        settings: Settings of the archive.
        device: Device of the trainings; None lets the trainers choose.
        devices_per_trial: Number of devices of each trial.
        limits: Limits of a trial, by the names of `LIMIT_OPTIONS`; None for no limit.
        observe: Observers of the trials, as `--observe` takes them.
        proxies: Number of random networks of which they measure the proxies, as `--proxies` takes
            it.
        notify: Receives events.

    Attributes:
        proxies: The same.
    """

    def __init__(
        self,
        launcher: Launcher,
        count: int,
        study: str,
        settings: Settings,
        *,
        device: str | None = None,
        devices_per_trial: int = 1,
        limits: Mapping[str, float | None] | None = None,
        observe: Sequence[str] = (),
        proxies: int | None = None,
        notify: Listener = ignore,
    ) -> None:
        self.proxies = proxies
        self._notify = notify
        local = launcher.name == "local"
        grace = max(OBSERVED_SECONDS, launcher.grace_seconds) if observe else launcher.grace_seconds
        arguments = ["--study", study, "--grace", f"{grace:g}s"]
        arguments += ["--parent", str(os.getpid())] if local else launcher.arguments
        # Local trainers share the GPUs, one trial each.
        shared = ["--devices", device or "auto", "--slots", "1", "--share-devices"]
        arguments += shared if local else ["--devices", device] if device else []
        if devices_per_trial > 1:
            arguments += ["--devices-per-trial", str(devices_per_trial)]

        arguments += limit_arguments(limits or {})
        arguments += [] if proxies is None else ["--proxies", str(proxies)]
        for observer in observe:
            arguments += ["--observe", observer]

        name = records.base_name(f"search-{launcher.name}", study) + (
            f"-{os.getpid()}" if local else ""
        )
        self.fleet = TrainerFleet(
            name=name,
            engine=launcher.name,
            settings=settings,
            arguments=tuple(arguments),
            study=study,
            lower=count if local else 0,
            upper=count,
            grace_seconds=grace,
            options=options.values(launcher),
        )
        self.keeper = FleetKeeper(launcher, self.fleet)
        self._attended = ExitStack()

    def __enter__(self) -> SearchTrainers:
        """Save the fleet, and start trainers of this machine; an engine's wait for `keep_alive`."""
        if self.fleet.upper:
            _forget_killed(self.fleet.settings)
            records.save(self.fleet)
            self._attended.enter_context(records.attending(self.fleet))

        if self.fleet.lower:
            self.keep_alive(0, self.fleet.upper)

        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the trainers, and wait while they return their unfinished proposals."""
        if not self.fleet.upper:
            return

        with self._attended:
            self._end()

    def _end(self) -> None:
        try:
            self.keeper.stop()
            self._wait()
        except LaunchError as problem:
            self._notify(
                Notice(f"the trainers end when they are idle, as they cannot be stopped: {problem}")
            )
            return

        records.remove(self.fleet)

    def keep_alive(self, evaluations: int, budget: int) -> None:
        """Start trainers for the rest of the budget, and replace those that have died.

        Args:
            evaluations: Number of evaluations of the study.
            budget: Total number of evaluations.

        Raises:
            LaunchError: Another command has stopped the trainers.
            SettingsError: A trainer refused its settings, such as a missing device.
            TrainingError: Trainers die one after another.
        """
        if not self.fleet.upper:
            return

        with records.adjusting(self.fleet) as kept:
            if not kept:
                raise LaunchError(
                    f"the trainers of this search, the fleet {self.fleet.name}, were stopped by "
                    "archive launch stop: finished results are kept; the same command continues"
                )

            self.keeper.keep(max(0, budget - evaluations), evaluations)

    def absence(self) -> str:
        """Return why no trainer of the fleet serves the study yet."""
        logs = trainer_logs(self.fleet.settings.home)
        if self.fleet.engine == "local":
            return f"the local trainers are still starting; their logs are in {logs}"

        return f"{self.keeper.state} on {self.keeper.launcher.where}; the logs are in {logs}"

    def _wait(self) -> None:
        """Wait until the trainers have ended, at most for their grace."""
        launcher = self.keeper.launcher
        deadline = time.monotonic() + self.fleet.grace_seconds
        while launcher.running(self.fleet) and time.monotonic() < deadline:
            time.sleep(min(1.0, max(0.1, launcher.poll_seconds)))


def limit_arguments(limits: Mapping[str, float | None]) -> list[str]:
    """Return the options of `archive trainer` that set limits, by the names of `LIMIT_OPTIONS`.

    None for no limit.
    """
    words: list[str] = []
    for name, value in limits.items():
        if value is not None:
            words += [LIMIT_OPTIONS[name], str(value)]

    return words


def _forget_killed(settings: Settings) -> None:
    """Delete the fleets of killed local searches."""
    for fleet in records.saved(settings):
        if (
            fleet.engine == "local"
            and fleet.name.startswith("search-")
            and fleet.created < time.time() - STALE_SECONDS
        ):
            # A search that lives is about to replace trainers that have ended.
            if not records.is_attended(fleet):
                with records.adjusting(fleet):
                    if LocalLauncher().has_ended(fleet):
                        records.remove(fleet)


MOST_SECONDS = 120.0
"""Longest wait: trainers may be late, or networks large. Later scores inform later proposals."""
PAUSE = 0.5
"""Seconds between two looks."""


def await_proxies(
    archive: Archive,
    study: Study,
    agent: Agent,
    trainers: SearchTrainers,
    interruption: Interruption,
    notify: Listener,
) -> None:
    """Wait until trainers have measured a new study's sample, for an agent that uses proxies.

    Args:
        archive: The archive.
        study: The study.
        agent: Its agent.
        trainers: Trainers of the search, which have started.
        interruption: Ends the wait.
        notify: Receives events.

    Raises:
        InterruptedBySignal: A signal has arrived.
        ArchiveError: The trainers have ended with an error, or the store does not answer.
    """
    if not trainers.proxies or not trainers.fleet.upper:
        return

    try:
        task, protocol, sample = _sample(archive, study, trainers.proxies)
    except ArchiveError as error:
        notify(Notice(f"no proxies are measured: {error}"))
        return

    if not agent.uses_proxies:
        notify(Notice(f"proxies are measured, and the agent {agent.kind} does not use them"))
        return

    _wait(archive, study, (task, protocol, sample), trainers, interruption, notify)


def _sample(
    archive: Archive, study: Study, count: int
) -> tuple[Task, TrainingProtocol, list[Architecture]]:
    """Return the task, the protocol and the networks that trainers of a study measure.

    Raises:
        ArchiveError: They measure none.
    """
    from archive.spaces import stored_spaces
    from archive.trainer.proxies import measurement
    from archive.trainer.tasks.file_access import FileAccess

    home = archive.connection.settings.home
    task, protocol = measurement.subject_of(study, FileAccess.of(home))
    space = stored_spaces.of_record(study.space, study.space_config, home)
    return task, protocol, measurement.sample_of(space, count)


def _wait(
    archive: Archive,
    study: Study,
    subject: tuple[Task, TrainingProtocol, list[Architecture]],
    trainers: SearchTrainers,
    interruption: Interruption,
    notify: Listener,
) -> None:
    from archive.trainer.proxies.measurement import find_unmeasured

    evaluated = sum(
        count for state, count in archive.studies.counts(study.name).items() if state.evaluated
    )
    end = time.monotonic() + MOST_SECONDS
    task, protocol, left = subject
    left = [] if evaluated else find_unmeasured(archive, task, protocol, left)
    if left:
        notify(
            Notice(
                f"the trainers measure the proxies of {len(left)} networks before "
                f"the first proposal, which waits for {MOST_SECONDS:g} s at most"
            )
        )

    while left and time.monotonic() < end:
        interruption.wait(PAUSE)
        interruption.check()
        trainers.keep_alive(0, study.budget)
        left = find_unmeasured(archive, task, protocol, left)

    if left:
        notify(Notice(f"the search begins while {len(left)} networks are left to measure"))
