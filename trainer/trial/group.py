"""The ranks of a trial on one machine: several processes that the daemon sees as one trial.

    rank 0             its reports, its checkpoints and its result are the trial's
    any rank fails     the others are killed; the trial fails once, with the reason of that rank
    interruption       reaches rank 0, which saves and ends; the others are killed
    limits, kills      concern all ranks

A rank that fails or dies breaks the connections of the others, which then fail, too. Such a failure
counts only where no other rank has told the reason within `SETTLE_SECONDS`; it costs an attempt.
Reports and results of the other ranks are ignored. They get `END_SECONDS` to end after rank 0.
"""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import replace
from multiprocessing.connection import Connection

from archive.queue.causes import Cause
from archive.trainer.trial import failures, log
from archive.trainer.trial.messages import (
    EpochReport,
    Message,
    TrialFailed,
    TrialFinished,
)
from archive.trainer.trial.process import STACKS_SECONDS, TrialProcess
from archive.trainer.trial.ranks import Ranks, free_port
from archive.trainer.trial.spec import TrialSpec

SETTLE_SECONDS = 2.0
"""Longest wait for the failure that has broken the connection of a rank."""
END_SECONDS = 10.0
"""Longest wait for the end of the other ranks after the first one's result."""


def start(spec: TrialSpec) -> TrialProcess | TrialGroup:
    """Start the processes of a trial on this machine.

    Raises:
        TrainingError: A process could not be started.
    """
    return TrialProcess(spec) if spec.ranks.world_size == 1 else TrialGroup(spec)


class TrialGroup:
    """The ranks of a trial on this machine, as one handle.

    Args:
        spec: The trial; `ranks.count` is the number of processes. Device, threads and folder of
            each process are parts of the trial's.

    Attributes:
        spec: The trial.
        processes: The processes by local rank.
    """

    due = None
    enforces_limits = False

    def __init__(self, spec: TrialSpec) -> None:
        """Start the processes.

        Raises:
            TrainingError: A process could not be started; the others have ended.
        """
        self.spec = spec
        self.processes: list[TrialProcess] = []
        ranks = spec.ranks
        self._end = GroupEnd(ranks.count, whole=ranks.nodes == 1)
        if not ranks.port:
            ranks = replace(ranks, port=free_port(), run=secrets.token_hex(8))

        try:
            for local in range(ranks.count):
                self.processes.append(TrialProcess(_spec_of(spec, replace(ranks, local=local))))
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        """Id of the process of the first rank."""
        return self.processes[0].pid

    @property
    def pids(self) -> tuple[int, ...]:
        """Ids of all processes."""
        return tuple(process.pid for process in self.processes)

    @property
    def last_seen(self) -> float:
        """Time of the last sign of life of the first rank, which reports."""
        return time.monotonic() if self._end.has(0) else self.processes[0].last_seen

    @property
    def waitable(self) -> list[Connection | int]:
        """Pipes and ends of the processes that have not ended."""
        waitable: list[Connection | int] = []
        for local, process in enumerate(self.processes):
            if not self._end.has(local):
                waitable += process.waitable

        return waitable

    def messages(self) -> list[Message]:
        """Return the trial's messages that have arrived; the last one ends all ranks."""
        arrived: list[Message] = []
        for local, process in enumerate(self.processes):
            if self._end.has(local):
                continue

            for message in process.messages():
                if not isinstance(message, EpochReport):
                    self._end.note(local, _with_rank(message, process.spec.ranks.rank))
                elif local == 0:
                    arrived.append(message)

        last = self._end.last()
        return arrived if last is None else [*arrived, last]

    def interrupt(self) -> None:
        """Request a checkpoint of the first rank, and its end.

        The others could stop at another step, and would wait for each other.
        """
        self.processes[0].interrupt()

    def abandon(self, reason: str, cause: Cause) -> TrialFailed:
        """Kill all ranks; the log gets the stacks of their threads before."""
        for process in self.processes:
            # One after the other: they write into one file.
            if process.show_stacks():
                time.sleep(STACKS_SECONDS)

        self.kill()
        return TrialFailed(reason, cause is not Cause.LIMIT, log.tail(self.spec.log), cause)

    def kill(self) -> None:
        """Kill all ranks in any state, with all that they have started."""
        self._end.over = True
        for process in self.processes:
            process.kill()


class GroupEnd:
    """The last message of a trial, from the last messages of its members.

    Members are the ranks of a machine, or the machines of a trial; the first one has rank 0.

    Args:
        members: Number of members.
        whole: Whether they are the whole trial. Otherwise another member of it may tell why a
            connection broke, and a failure remains one of the connection.

    Attributes:
        over: Whether the trial has ended: there is no further message.
    """

    def __init__(self, members: int, *, whole: bool = True) -> None:
        self.over = False
        self._members = members
        self._whole = whole
        self._ends: dict[int, Message] = {}
        self._first_at = self._lead_at = 0.0

    def has(self, member: int) -> bool:
        """Whether a member has sent its last message."""
        return member in self._ends

    def note(self, member: int, message: Message) -> None:
        """Note the last message of a member."""
        if not self._ends:
            self._first_at = time.monotonic()

        if member == 0:
            self._lead_at = time.monotonic()

        self._ends.setdefault(member, message)

    def last(self) -> Message | None:
        """Return the last message of the trial, once; None before its end."""
        message = None if self.over else self._last()
        self.over = self.over or message is not None
        return message

    def _last(self) -> Message | None:
        lead = self._ends.get(0)
        failed = [end for end in self._ends.values() if isinstance(end, TrialFailed)]
        first = [failure for failure in failed if not failures.is_of_peer(failure)]
        have_ended = len(self._ends) == self._members
        if isinstance(lead, TrialFinished):
            # The end of rank 0 may break the others; their own exceptions count.
            raised = [failure for failure in first if failure.cause is not Cause.CRASH]
            is_late = time.monotonic() - self._lead_at > END_SECONDS
            return raised[0] if raised else lead if have_ended or is_late else None

        if lead is not None and not isinstance(lead, TrialFailed):
            return lead

        if first:
            return first[0]

        if failed and (have_ended or time.monotonic() - self._first_at > SETTLE_SECONDS):
            lost = replace(failed[0], retry=True, refused=False, cause=Cause.CRASH)
            return lost if self._whole else failed[0]

        return None


def _spec_of(spec: TrialSpec, ranks: Ranks) -> TrialSpec:
    """Return the specification of one process."""
    # All processes see all GPUs of the trial, as under torchrun; each one uses its own.
    device = f"cuda:{ranks.local}" if spec.device.startswith("cuda") else spec.device
    threads = spec.threads
    if threads is None and (variable := os.environ.get("OMP_NUM_THREADS", "")).isdecimal():
        threads = int(variable)

    if threads is not None:
        threads = max(1, threads // ranks.count)

    scratch = None if spec.scratch is None else spec.scratch / f"rank-{ranks.rank}"
    return replace(spec, ranks=ranks, device=device, threads=threads, scratch=scratch)


def _with_rank(message: Message, rank: int) -> Message:
    """Return the last message of a process; a failure names its rank, except the first."""
    if isinstance(message, TrialFailed) and rank:
        return replace(message, reason=f"rank {rank}: {message.reason}")

    return message
