r"""The script of a fleet for sbatch.

    --signal=B:TERM@180    180 s before the time limit, the shell gets SIGTERM; after `exec` it is the trainer
    --requeue              a job whose node fails, or that is preempted, starts again on another node
    --open-mode=append     the log of the first run is kept

The trainer gets the time until that signal as `--max-time`, so that it claims nothing that cannot
finish or come to a checkpoint. Without a limit in the request, the job asks Slurm for its own end:
that of the partition.

With `requeue_at_limit` the shell stays: it turns the signal before the limit into SIGTERM for the
trainer, waits for it, and requeues its own job, also where the trainer has ended by itself shortly
before. scancel signals every process of a job, hence the trainer, too.
"""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from archive.errors import UsageError
from archive.launchers.fleet import TrainerFleet
from archive.launchers.options import launch_option
from archive.launchers.preview import exports
from archive.trainer.storage.history_gc import trainer_logs

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

# A trainer stops claiming a tenth of its time before it must hand back, at the earliest
# (`archive.trainer.daemon.limits.time_limit`). From then on it ends as soon as it has nothing to
# do.
_MAX_TIME = """\
left=$(({left}))
if [ "$left" -gt {grace} ]; then set -- --max-time "${{left}}s"; else left=0; fi
late=$((SECONDS + left * 9 / 10 - {grace}))"""
_OWN_END = (
    '$(date -d "$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%e)" +%s 2>/dev/null) '
    "- $(date +%s)"
)
"""Seconds until the end that Slurm has set for the job: a year without a limit, negative where
there is no squeue."""


@dataclass
class SlurmRequest:
    """What a job asks Slurm for.

    Attributes are the options of `SlurmLauncher`; times are in seconds, sizes in bytes.
    """

    partition: str | None = launch_option("Partition of the jobs.", shown="the cluster's")
    account: str | None = launch_option("Account that pays for the jobs.", shown="the user's")
    qos: str | None = launch_option("Quality of service.", shown="the user's")
    constraint: str | None = launch_option("Features that the nodes must have, such as a100|h100.")
    gpus: str | None = launch_option(
        "GPUs of each trainer: a number, or a type and a number such as a100:1."
    )
    cpus: int | None = launch_option("Processor cores of each trainer.", "positive")
    memory: int | None = launch_option("Memory of each trainer.", "size", shown="the partition's")
    time: float | None = launch_option(
        "Time limit of each job.", "duration", shown="the partition's"
    )
    warning: float = launch_option(
        (
            "Time before the limit at which a trainer must return its proposals; it stops claiming "
            "earlier."
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
            f"{request.warning:g} s "
            f"(--warning) before its time limit, and its trials have {fleet.grace_seconds:g} s "
            "(--grace) for that; "
            "give it a longer --time or a shorter --warning"
        )

    command = shlex.join(fleet.command(request.python or sys.executable))
    if limited := not any(each.split("=")[0] == "--max-time" for each in fleet.arguments):
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
        limit = f"{60 * _minutes(request.time)} - SECONDS" if request.time else _OWN_END
        lines.append(
            _MAX_TIME.format(
                left=f"{limit} - {request.warning:.0f}", grace=math.ceil(fleet.grace_seconds)
            )
        )

    lines += [f"{command} &", _REQUEUE] if request.requeue_at_limit else [f"exec {command}"]
    return "\n".join([*lines, ""])


def _options(fleet: TrainerFleet, request: SlurmRequest, count: int) -> Iterator[str]:
    # sbatch replaces %A and %a in the whole path.
    log = log_path(fleet)
    output = f"{str(log.parent).replace('%', '%%')}/{log.name}"
    yield f"--job-name={fleet.id}"
    yield f"--array=0-{count - 1}"
    yield from ("--nodes=1", "--ntasks=1")
    yield f"--output={_quoted(output)}"
    yield from ("--open-mode=append", "--requeue")
    yield f"--signal=B:{'USR1' if request.requeue_at_limit else 'TERM'}@{request.warning:.0f}"
    for name in ("partition", "account", "qos", "constraint"):
        if (value := getattr(request, name)) is not None:
            yield f"--{name}={_quoted(value)}"

    if request.gpus is not None:
        yield f"--gres=gpu:{request.gpus}"

    if request.cpus:
        yield f"--cpus-per-task={request.cpus}"

    if request.memory:
        yield f"--mem={-(-request.memory // 2**20)}M"

    if request.time:
        yield f"--time={_minutes(request.time)}"

    for option in request.sbatch:
        name, separator, value = option.partition("=")
        yield option if value.startswith('"') else f"{name}{separator}{_quoted(value)}"


def _minutes(seconds: float) -> int:
    """Return a time limit in whole minutes, as Slurm counts it."""
    return max(1, -int(-seconds // 60))


def _quoted(value: str) -> str:
    r"""Return a value in double quotes where sbatch would split it or begin a comment."""
    if not any(each in value for each in " \t\"'#\\|&"):
        return value

    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
