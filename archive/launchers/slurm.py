"""Trainers as jobs of Slurm: an array of jobs, each with one trainer.

    sbatch    reads the script of a fleet, which `archive.launchers.slurm` writes
    squeue    lists the jobs by their name, which is the fleet's id: Slurm keeps the list, no file does
    scancel   sends SIGTERM, upon which a trainer returns its proposals, and kills after KillWait (30 s by default)

A job that Slurm requeues, after the failure of its node or a preemption, keeps its id and counts as
pending.
"""

from __future__ import annotations

import math
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from archive.errors import LaunchError, UsageError
from archive.launchers.base import LaunchedTrainer, Launcher, TrainerFailure, describe_log
from archive.launchers.options import launch_option
from archive.launchers.records import TrainerFleet, exports, without_login
from archive.trainer.storage.file_names import trainer_logs

# Requeues the job when its time is over and work may be left.
# - `kill -0` asks whether the trainer runs. `wait` returns at every trapped signal, so it is
#   repeated until the trainer has ended.
# - USR1 is Slurm's warning before the time limit. TERM is a cancellation: the job is not requeued.
# - A trainer stops claiming up to a tenth of its time (`shutdown.LARGEST_RESERVE`) before its end.
#   If it ends by itself after that moment (`late`), with code 0 or 3, proposals may be waiting:
#   this counts as the limit.
_REQUEUE = """\
trainer=$!
trap 'limit=reached; kill -TERM "$trainer"' USR1
trap 'stopped=yes' TERM
while kill -0 "$trainer" 2>/dev/null; do wait "$trainer"; done
wait "$trainer"
code=$?
if [ -z "${stopped:-}" ] && [ "${left:-0}" -gt 0 ] && [ "$SECONDS" -ge "$late" ]; then
  case $code in 0|3) limit=reached ;; esac
fi
if [ "${limit:-}" = reached ]; then scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"; fi
exit $code"""

# left   seconds that the trainer may use, 0 for no limit; {left} is an arithmetic expression
# late   value of SECONDS from which on the trainer may have stopped claiming
_MAX_TIME = """\
left=$(({left}))
if [ "$left" -gt {grace} ]; then set -- --max-time "${{left}}s"; else left=0; fi
late=$((SECONDS + left * 9 / 10 - {grace}))"""
_OWN_END = (
    '$(date -d "$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%e)" +%s 2>/dev/null) '
    "- $(date +%s)"
)
"""Seconds until the end of the job's time, in bash: a year without a limit, negative without
squeue."""


@dataclass
class SlurmRequest:
    """What a job asks Slurm for.

    Attributes are the options of `SlurmLauncher`; times are in seconds, sizes in bytes.
    """

    partition: str | None = launch_option("Partition of the jobs.", shown="the cluster's")
    account: str | None = launch_option("Account that pays for the jobs.", shown="the user's")
    qos: str | None = launch_option("Quality of service.", shown="the user's")
    constraint: str | None = launch_option("Features that the nodes must have, such as a100|h100.")
    nodes: int = launch_option(
        "Nodes of each trainer; with several, each trial has ranks on all of them.", "positive", 1
    )
    gpus: str | None = launch_option(
        "GPUs of each trainer on each node: a number, or a type and a number such as a100:1."
    )
    cpus: int | None = launch_option("Processor cores of each trainer on each node.", "positive")
    memory: int | None = launch_option(
        "Memory of each trainer on each node.", "size", shown="the partition's"
    )
    time: float | None = launch_option(
        "Time limit of each job.", "duration", shown="the partition's"
    )
    warning: float = launch_option(
        (
            "Time before the limit at which a trainer must return its proposals; "
            "it stops claiming earlier."
        ),
        "duration",
        180.0,
        "3min",
    )
    requeue_at_limit: bool = launch_option(
        "At the time limit, requeue the job, so that the fleet continues until no work is left.",
        "truth",
        False,
    )
    setup: tuple[str, ...] = launch_option(
        "Shell line to run before the trainer, such as module load cuda.", "texts", ()
    )
    sbatch: tuple[str, ...] = launch_option(
        "Further option of sbatch, such as --exclude=node7.", "texts", ()
    )
    python: str | None = launch_option("Python interpreter on the nodes.", shown="this one")


def log_path(fleet: TrainerFleet, id_: str = "%A_%a") -> Path:
    """Return the log of a job; by default its pattern for sbatch."""
    return trainer_logs(fleet.settings.home) / f"{fleet.id}-{id_}.log"


def script(fleet: TrainerFleet, request: SlurmRequest, count: int) -> str:
    """Return the script for sbatch.

    Args:
        fleet: The fleet.
        request: What each job asks for.
        count: Number of jobs.

    Raises:
        UsageError: The time limit is no longer than what a trainer needs to end.
    """
    end = request.warning + fleet.grace_seconds
    if request.time and 60 * _minutes(request.time) <= end:
        raise UsageError(
            f"a job of {60 * _minutes(request.time)} s has no time to train: it is told to end "
            f"{request.warning:g} s (--warning) before its time limit, "
            f"and its trials have {fleet.grace_seconds:g} s (--grace) for that; "
            "give it a longer --time or a shorter --warning"
        )

    words = fleet.command(request.python or sys.executable)
    if request.nodes > 1:
        words += ["--trials-on", "slurm"]

    command = shlex.join(words)
    limited = "--max-time" not in [argument.split("=")[0] for argument in fleet.arguments]
    if limited:
        command += ' "$@"'

    lines = [
        "#!/bin/bash",
        *(f"#SBATCH {option}" for option in _options(fleet, request, count)),
        *exports(fleet),
    ]
    if request.cpus and "--threads" not in fleet.arguments:
        lines.append(f"export OMP_NUM_THREADS={max(1, request.cpus // fleet.slots)}")

    lines += request.setup
    if limited:
        limit = _OWN_END
        if request.time:
            limit = f"{60 * _minutes(request.time)} - SECONDS"

        left = f"{limit} - {request.warning:.0f}"
        lines.append(_MAX_TIME.format(left=left, grace=math.ceil(fleet.grace_seconds)))

    if request.requeue_at_limit:
        lines += [f"{command} &", _REQUEUE]
    else:
        lines.append(f"exec {command}")

    return "\n".join([*lines, ""])


def _options(fleet: TrainerFleet, request: SlurmRequest, count: int) -> Iterator[str]:
    # sbatch replaces %A and %a in the whole path.
    log = log_path(fleet)
    output = f"{str(log.parent).replace('%', '%%')}/{log.name}"
    yield f"--job-name={fleet.id}"
    yield f"--array=0-{count - 1}"
    yield f"--nodes={request.nodes}"
    yield "--ntasks=1" if request.nodes == 1 else "--ntasks-per-node=1"
    yield f"--output={_quote(output)}"
    yield from ("--open-mode=append", "--requeue")
    signal = "USR1" if request.requeue_at_limit else "TERM"
    yield f"--signal=B:{signal}@{request.warning:.0f}"
    for name in ("partition", "account", "qos", "constraint"):
        if (value := getattr(request, name)) is not None:
            yield f"--{name}={_quote(value)}"

    if request.gpus is not None:
        yield f"--gres=gpu:{request.gpus}"

    if request.cpus:
        yield f"--cpus-per-task={request.cpus}"

    if request.memory:
        yield f"--mem={math.ceil(request.memory / 2**20)}M"

    if request.time:
        yield f"--time={_minutes(request.time)}"

    for option in request.sbatch:
        name, separator, value = option.partition("=")
        if not value.startswith('"'):
            option = f"{name}{separator}{_quote(value)}"

        yield option


def _minutes(seconds: float) -> int:
    """Return a time limit in whole minutes, as Slurm counts it."""
    return max(1, math.ceil(seconds / 60))


def _quote(value: str) -> str:
    r"""Return a value in double quotes where sbatch would split it or begin a comment."""
    if not any(character in value for character in " \t\"'#\\|&"):
        return value

    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


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
    """A Slurm cluster whose nodes share the archive's home and this Python environment."""

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
                trainer = LaunchedTrainer(id_, "running", host or None)
            elif reason in ("", "None"):
                trainer = LaunchedTrainer(id_, "pending")
            else:
                trainer = LaunchedTrainer(id_, "pending", reason=reason)

            trainers.append(trainer)

        return sorted(trainers, key=lambda trainer: _order(trainer.id))

    def stop(self, fleet: TrainerFleet, ids: Sequence[str]) -> None:
        """Cancel jobs."""
        requested = [trainer.id for trainer in self.running(fleet) if trainer.id in set(ids)]
        for index in range(0, len(requested), MOST_AT_ONCE):
            self._run("scancel", "--quiet", *requested[index : index + MOST_AT_ONCE])

    def preview(self, fleet: TrainerFleet, count: int) -> str:
        """Return the scripts for sbatch."""
        return "\n".join(script(fleet, self, size) for size in _chunks(count))

    def failures(self, fleet: TrainerFleet, ids: Collection[str]) -> list[TrainerFailure]:
        """Return the failed jobs by number.

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
                words = f"job {id_} is {state}, exit code {code}; {describe_log(log_path(fleet, id_), code)}"
                failures.append(TrainerFailure(id_, code, words))

        return failures

    def _run(self, *command: str, text: str | None = None) -> str:
        """Run a command of Slurm, and return its output.

        Raises:
            LaunchError: It is missing, fails, or does not answer.
        """
        # Slurm stores the environment of sbatch, and gives it to the jobs.
        environment = without_login(os.environ)
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
    for index in range(0, count, MOST_AT_ONCE):
        yield min(MOST_AT_ONCE, count - index)


def _order(row: str) -> tuple[int, int]:
    """Return the order of submission of the job `ARRAY_TASK` at the beginning of a row."""
    array, _, task = row.partition("|")[0].strip().partition("_")
    return int(array) if array.isdigit() else 0, int(task) if task.isdigit() else 0


def _exit_code(status: str) -> int | None:
    """Return the exit code in a wait status; after an end by a signal it is negative."""
    return os.waitstatus_to_exitcode(int(status)) if status.isdigit() else None
