"""Runs that this home has seen, in one file, so that a repeat is named before it trains.

    HOME/runs/known.jsonl     one line for each run that ended: what it was given, the network it
                              trained, and its metrics

A look needs no server. Runs of other machines are not in the file: `archive tried` asks the archive.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from archive.runs.measurements import OF_PROCESS
from archive.runs.run_folder import RunRecord

NAME = "known.jsonl"
MOST_METRICS = 8


@dataclass(frozen=True)
class KnownRun:
    """A run that ended.

    Attributes:
        run: Its id.
        study: Name of its study.
        fingerprint: Digest of program, source files and arguments (`fingerprint_of`); what a program
            tells of itself is known too late for it.
        network: Functional key of the network that it trained; None where it is unknown.
        metrics: Its last metrics, at most `MOST_METRICS`.
        reason: Why it failed; None where it did not.
        motivation: Reason for it in words; None without one.
        seed: Its seed; None where it is unknown.
    """

    run: str
    study: str
    fingerprint: str
    network: str | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    reason: str | None = None
    motivation: str | None = None
    seed: int | None = None

    def __str__(self) -> str:
        """Return the run with its outcome on one line."""
        name = self.run if self.seed is None else f"{self.run} with seed {self.seed}"
        if self.reason is not None:
            return f"{name}, which failed: {self.reason}"

        metrics = []
        for metric, value in self.metrics.items():
            if metric not in OF_PROCESS:
                metrics.append(f"{metric} {value:.4g}")

        return f"{name}: {', '.join(metrics) or 'no metrics'}"


def fingerprint_of(record: RunRecord, code_digest: str | None) -> str:
    """Return the digest of what a run is given; equal for runs that differ in their seeds alone."""
    text = json.dumps([record.program, code_digest, record.values], sort_keys=True, default=str)
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:16]


def add(runs: Path, run: KnownRun) -> None:
    """Append a run to the file of a folder of runs, in one write."""
    metrics = dict(list(run.metrics.items())[:MOST_METRICS])
    line = json.dumps({**asdict(run), "metrics": metrics}) + "\n"
    handle = os.open(runs / NAME, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, line.encode())
    finally:
        os.close(handle)


def find(runs: Path, *, fingerprint: str = "", network: str = "") -> list[KnownRun]:
    """Return the runs with a fingerprint, or with a network, oldest first."""
    digest = fingerprint or network
    if not digest:
        return []

    earlier = []
    for run in _matching(runs / NAME, digest):
        if digest in (run.fingerprint, run.network):
            earlier.append(run)

    return earlier


def _matching(path: Path, text: str) -> Iterator[KnownRun]:
    """Yield the runs of those lines that hold a text."""
    searched = text.encode()
    with suppress(FileNotFoundError), path.open("rb") as lines:
        for line in lines:
            # A kill may have cut the last line.
            if searched in line:
                with suppress(ValueError, TypeError):
                    yield KnownRun(**json.loads(line))
