"""Trainers as jobs of Slurm: an array of jobs, each with one trainer.

    sbatch    reads the script of a fleet, which `archive.launchers.slurm_script` writes
    squeue    lists the jobs by their name, which is the fleet's id: Slurm keeps the list, no file does
    scancel   sends SIGTERM, upon which a trainer returns its proposals, and kills after KillWait (30 s by default)

A job that Slurm requeues, after the failure of its node or a preemption, keeps its id and counts as
pending.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from archive.errors import LaunchError
from archive.launchers.base import LaunchedTrainer, Launcher, TrainerFailure
from archive.launchers.fleet import WITHOUT_LOGIN, TrainerFleet
from archive.launchers.logs import tail
from archive.launchers.slurm_script import SlurmRequest, log_path, script

COMMAND_SECONDS = 60.0
"""Longest wait for an answer of Slurm's controller."""
MOST_AT_ONCE = 1000
"""Largest array of jobs (Slurm's default MaxArraySize is 1001), and number of ids in one
command."""
RUNNING = ("RUNNING", "COMPLETING", "STAGE_OUT", "SIGNALING", "STOPPED", "SUSPENDED")
"""States of jobs whose trainer has started and may not have ended."""
FAILED = ("FAILED", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE")


@dataclass
class SlurmLauncher(SlurmRequest, Launcher):
    """A Slurm cluster whose nodes share the archive's home with this machine, and this Python
    environment.
    """

    name: ClassVar[str] = "slurm"
    where: ClassVar[str] = "the nodes of Slurm"

    def elsewhere(self) -> bool:
        """Whether Slurm has a node that is not this machine."""
        try:
            lines = self._run("sinfo", "--noheader", "--Node", "--format=%n").split()
        except LaunchError:
            return True

        here = platform.node().partition(".")[0]
        return any(line.partition(".")[0] not in (here, "localhost") for line in lines)

    def start(self, fleet: TrainerFleet, count: int) -> None:
        """Submit arrays of jobs."""
        log_path(fleet).parent.mkdir(parents=True, exist_ok=True)
        for size in _chunks(count):
            self._run("sbatch", "--parsable", text=script(fleet, self, size))

    def running(self, fleet: TrainerFleet) -> list[LaunchedTrainer]:
        """Return the jobs that are pending or running."""
        rows = self._run(
            "squeue", "--noheader", "--array", "--me", f"--name={fleet.id}", "--format=%i|%T|%N|%r"
        )
        trainers = []
        for row in rows.splitlines():
            id_, state, host, reason = [*row.split("|"), "", "", ""][:4]
            if state in RUNNING:
                trainers.append(LaunchedTrainer(id_, "running", host or None))
            else:
                trainers.append(
                    LaunchedTrainer(
                        id_, "pending", reason=None if reason in ("", "None") else reason
                    )
                )

        return sorted(trainers, key=lambda trainer: _order(trainer.id))

    def stop(self, fleet: TrainerFleet, ids: Sequence[str]) -> None:
        """Cancel jobs."""
        own = [trainer.id for trainer in self.running(fleet) if trainer.id in set(ids)]
        for at in range(0, len(own), MOST_AT_ONCE):
            self._run("scancel", "--quiet", *own[at : at + MOST_AT_ONCE])

    def preview(self, fleet: TrainerFleet, count: int) -> str:
        """Return the scripts for sbatch."""
        return "\n".join(script(fleet, self, size) for size in _chunks(count))

    def failures(self, fleet: TrainerFleet, ids: Collection[str]) -> list[TrainerFailure]:
        """Return the failed jobs by number;

        Slurm forgets jobs after MinJobAge (5 minutes by default).
        """
        columns = "JobArrayID:|,State:|,exit_code:|"
        rows = self._run(
            "squeue",
            "--noheader",
            "--array",
            "--me",
            f"--name={fleet.id}",
            f"--states={','.join(FAILED)}",
            f"--Format={columns}",
        ).splitlines()
        failures = []
        for row in sorted(rows, key=_order):
            id_, state, status = ([part.strip() for part in row.split("|")] + ["", ""])[:3]
            if id_ in ids:
                code = _exit_code(status)
                words = (
                    f"job {id_} is {state}, exit code {code}; {tail(log_path(fleet, id_), code)}"
                )
                failures.append(TrainerFailure(id_, code, words))

        return failures

    def _run(self, *command: str, text: str | None = None) -> str:
        """Run a command of Slurm, and return its output.

        Raises:
            LaunchError: It is missing, fails, or does not answer.
        """
        # Slurm stores the environment of sbatch, and gives it to the jobs.
        environment = {
            name: value for name, value in os.environ.items() if name not in WITHOUT_LOGIN
        }
        try:
            done = subprocess.run(
                command, input=text, capture_output=True, text=True, errors="replace", timeout=COMMAND_SECONDS,
                env=environment, stdin=subprocess.DEVNULL if text is None else None,
            )  # fmt: skip
        except FileNotFoundError:
            raise LaunchError(
                f"{command[0]} is not on this machine: run this on a login node of Slurm"
            ) from None
        except subprocess.TimeoutExpired:
            raise LaunchError(
                f"{command[0]} has not answered within {COMMAND_SECONDS:g} s"
            ) from None

        if done.returncode:
            words = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
            raise LaunchError(f"{command[0]} failed: {words}")

        return done.stdout


def _chunks(count: int) -> Iterator[int]:
    for at in range(0, count, MOST_AT_ONCE):
        yield min(MOST_AT_ONCE, count - at)


def _order(row: str) -> tuple[int, int]:
    """Return the order of submission of the job with the id `ARRAY_TASK` at the beginning of a
    row.
    """
    array, _, task = row.partition("|")[0].strip().partition("_")
    return int(array) if array.isdigit() else 0, int(task) if task.isdigit() else 0


def _exit_code(status: str) -> int | None:
    """Return the exit code in a wait status; that of an end by a signal is negative."""
    return os.waitstatus_to_exitcode(int(status)) if status.isdigit() else None
