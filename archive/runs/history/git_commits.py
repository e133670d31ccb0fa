"""Commits of a git repository as runs: one commit a run, with the metrics of its message or a file.

The parent of a run is the nearest ancestor that is a run, along first parents where there is one.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from archive.errors import UsageError
from archive.runs.arguments import split_seed
from archive.runs.code_state import GIT
from archive.runs.history.external_run import (
    ExternalHistory,
    ExternalRun,
    Omissions,
    check_path,
    choose_metric,
    flat_values,
)
from archive.runs.history.table_columns import time_of
from archive.runs.measurements import MOST_FILE_BYTES, Measurements, compile_pattern, flat
from archive.runs.texts.difference_files import list_changed_files
from archive.values import whole_number

MOST_COMMITS = 100_000
_GIT_SECONDS = 600.0
_MOST_PATCH_BYTES = 8 << 20


@dataclass(frozen=True)
class CommitPattern:
    """Where the metrics of a commit are.

    Attributes:
        pattern: Regular expression with a named group for each metric; None for `name: value`.
        file: Path of a file at the commit; None for the commit's message. Only commits that change
            it are runs.
        values: Names that are settings, and no metrics.
    """

    pattern: str | None = None
    file: str | None = None
    values: Collection[str] = ()


@dataclass
class _Commit:
    """A commit.

    Attributes:
        id: Its digest.
        parents: Digests of its parents.
        started: Time of its author, in milliseconds since 1970; None where it is damaged.
        message: Its message.
        metrics: Metrics of its message or its file.
        values: Settings of them.
    """

    id: str
    parents: list[str]
    started: int | None
    message: str
    metrics: dict[str, float] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)


def read_git(
    folder: Path,
    where: CommitPattern,
    *,
    revision: str = "HEAD",
    objective: str | None = None,
) -> ExternalHistory:
    """Return the commits of a repository that have a metric, oldest first.

    Args:
        folder: A folder of the repository.
        where: Where the metrics are.
        revision: Commit, branch or tag whose ancestors are read.
        objective: Metric that a run must have; None for one that the names say.

    Raises:
        UsageError: It is no repository, has no such revision, the pattern is invalid, or no commit
            has a metric.
    """
    check_path(folder)
    pattern = None if where.pattern is None else compile_pattern(where.pattern, "--pattern")
    head = _read(folder, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    commits = {commit.id: commit for commit in _read_commits(folder, head.strip())}
    left_out = Omissions()
    contents = _Contents(folder, where.file, commits)
    for commit, text in contents.texts(left_out):
        measurements = Measurements(pattern)
        if where.file is not None and where.file.endswith(".json") and pattern is None:
            measurements.read_object(text)
            commit.values = _named_values(text, where.values)
        else:
            for line in text.splitlines():
                measurements.read_line(line)

        commit.metrics = measurements.latest
        for name in where.values:
            number = commit.metrics.pop(name, None)
            if number is not None:
                commit.values.setdefault(name, int(number) if number.is_integer() else number)

    if objective is None:
        objective, _ = choose_metric(
            ExternalRun(commit.id, metrics=commit.metrics) for commit in commits.values()
        )

    run_ids = set()
    for commit in commits.values():
        if objective in commit.metrics:
            run_ids.add(commit.id)
        elif commit.metrics or where.file is None:
            left_out.add(f"commits without {objective}", commit.id[:8])

    if not run_ids:
        raise UsageError(f"no commit of {revision} has the metric {objective!r:.80}")

    branch = _branch_of(folder, revision)
    parents = _nearest_runs(commits, run_ids)
    runs = []
    for commit in commits.values():
        if commit.id in run_ids:
            runs.append(_external(folder, commit, parents[commit.id], branch))

    name = PurePath(_read(folder, "rev-parse", "--show-toplevel").rstrip("\n")).name
    return ExternalHistory(runs, left_out.texts(), name or None)


def _external(folder: Path, commit: _Commit, parent: str | None, branch: str | None) -> ExternalRun:
    before = parent or next(iter(commit.parents), None)
    diff = "" if before is None else _difference(folder, before, commit.id)
    metrics, seed = split_seed(commit.metrics)
    values, named_seed = split_seed(flat_values(commit.values))
    subject = commit.message.strip().partition("\n")[0]
    return ExternalRun(
        identity=f"git/{commit.id}",
        values=values,
        metrics=metrics,
        parent=None if parent is None else f"git/{parent}",
        motivation=subject or None,
        started=commit.started,
        seed=named_seed if seed is None else seed,
        folder=str(folder.resolve()),
        code=commit.id[:12],
        commit=commit.id,
        branch=branch,
        diff=diff or None,
        changed=list_changed_files(diff),
    )


def _nearest_runs(commits: dict[str, _Commit], run_ids: Collection[str]) -> dict[str, str | None]:
    """Return the nearest run among the ancestors of each commit; parents come before children."""
    nearest: dict[str, str | None] = {}
    for commit in commits.values():
        nearest[commit.id] = None
        for parent in commit.parents:
            run = parent if parent in run_ids else nearest.get(parent)
            if run is not None:
                nearest[commit.id] = run
                break

    return nearest


def _named_values(text: str, names: Collection[str]) -> dict[str, Any]:
    """Return the values of a JSON object that are no numbers, by names."""
    values = {}
    with suppress(ValueError, RecursionError):
        document = json.loads(text)
        for name, value in flat(document) if isinstance(document, dict) else []:
            if name in names:
                values[name] = value

    return values


class _Contents:
    """Texts of commits that may have metrics: messages, or a file where it changes."""

    def __init__(self, folder: Path, file: str | None, commits: dict[str, _Commit]) -> None:
        self._folder = folder
        self._file = file
        self._commits = commits

    def texts(self, left_out: Omissions) -> Iterator[tuple[_Commit, str]]:
        """Yield the commits with their texts, oldest first."""
        if self._file is None:
            for commit in self._commits.values():
                yield commit, commit.message

            return

        if "\n" in self._file or not self._file:
            raise UsageError(f"--file takes a path in the repository, got {self._file!r:.80}")

        digests: dict[str, str] = {}
        reader = subprocess.Popen(
            [*GIT, "cat-file", "--batch"],
            cwd=self._folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        with reader:
            for commit in self._commits.values():
                digest, content = _read_file(reader, f"{commit.id}:./{self._file}")
                digests[commit.id] = digest
                before = digests.get(commit.parents[0], "") if commit.parents else ""
                if digest in ("", before):
                    left_out.add(f"commits that do not change {self._file}", commit.id[:8])
                elif content is None:
                    left_out.add(f"{self._file} of more than 64 MiB", commit.id[:8])
                else:
                    yield commit, content.decode(errors="replace")

        if not any(digests.values()):
            raise UsageError(f"no commit has the file {self._file!r:.120}")


def _read_file(reader: subprocess.Popen[bytes], name: str) -> tuple[str, bytes | None]:
    """Return digest and content of a file at a commit; an empty digest where there is none."""
    assert reader.stdin is not None
    assert reader.stdout is not None
    reader.stdin.write(f"{name}\n".encode(errors="surrogateescape"))
    reader.stdin.flush()
    words = reader.stdout.readline().split()
    if len(words) != 3 or words[1] not in (b"blob", b"tree"):
        return "", None

    size = int(words[2])
    content = None
    if words[1] == b"blob" and size <= MOST_FILE_BYTES:
        content = reader.stdout.read(size)
        size = 0

    # What is not kept, and the end of the line.
    size += 1
    while size > 0:
        part = reader.stdout.read(min(size, 1 << 20))
        size -= len(part) or size

    return "" if words[1] == b"tree" else words[0].decode(), content


def _read_commits(folder: Path, head: str) -> list[_Commit]:
    """Return the ancestors of a commit and itself, parents before children."""
    text = _read(
        folder,
        "log",
        "-z",
        "--topo-order",
        # A user's settings may show signatures and use another encoding.
        "--no-show-signature",
        "--encoding=UTF-8",
        f"--max-count={MOST_COMMITS}",
        "--format=%H%n%P%n%at%n%B",
        head,
    )
    commits = []
    for record in text.split("\0"):
        lines = record.split("\n", 3)
        if len(lines) == 4:
            id_, parents, time, message = lines
            started = time_of(whole_number(time))
            commits.append(_Commit(id_, parents.split(), started, message))

    commits.reverse()
    return commits


def _branch_of(folder: Path, revision: str) -> str | None:
    """Return the name of the branch of a revision; None where it is none."""
    with suppress(UsageError):
        name = _read(folder, "rev-parse", "--abbrev-ref", "--end-of-options", revision).split()
        return name[-1] if name and name[-1] not in ("HEAD", "--end-of-options") else None

    return None


def _difference(folder: Path, before: str, after: str) -> str:
    """Return the difference of two commits as text, as much of it as is kept."""
    command = [
        *GIT,
        "-c",
        "core.quotePath=false",
        "diff",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "-U2",
    ]
    # Settings of a user leave the prefixes out, or name other ones.
    command += ["--src-prefix=a/", "--dst-prefix=b/", before, after]
    with subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        content = process.stdout.read(_MOST_PATCH_BYTES)
        process.kill()

    return content.decode(errors="replace")


def _read(folder: Path, *arguments: str) -> str:
    """Return the output of git.

    Raises:
        UsageError: It fails; the message is git's.
    """
    try:
        done = subprocess.run(
            [*GIT, *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError(f"git cannot read {folder}: {error}") from error

    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise UsageError(f"git cannot read {folder}: {lines[-1] if lines else done.returncode}")

    return done.stdout.decode(errors="replace")
