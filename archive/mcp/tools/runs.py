"""Tools about runs of programs: what was tried, and a run that a model has made itself."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from archive.api import Archive
from archive.errors import UsageError
from archive.mcp.access import UnopenedArchive
from archive.mcp.arguments import NetworkArgument, network_of
from archive.mcp.limits import ROWS, largest
from archive.queries.runs import TriedRun, find_runs
from archive.queries.tried.matches import MOST, PlannedRun, RunMatch, find_matches
from archive.runs.code_state import difference_text, told_changes
from archive.runs.life_cycle import check_objective
from archive.runs.secrets import Secrets
from archive.runs.told.telling import ToldOutcome, keep_told, record_told
from archive.runs.told.told_run import ToldRun


@dataclass(frozen=True)
class TriedAnswer:
    """Runs that hold some words, the newest of `total`; or the runs closest to a planned one.

    `known` says whether one of them has everything in common with the planned run that was given of
    it; `matches` has, in the order of `runs`, what each has in common with it.
    """

    total: int
    known: bool
    runs: list[TriedRun]
    matches: list[RunMatch]
    truncated: bool = False


def tried(
    archive: Archive,
    words: Annotated[
        list[str] | None,
        Field(
            description="Words that a run must hold, all of them, in its motivation, the lines of "
            "its source files that it changes, its arguments, the end of its output or the reason "
            "of its failure."
        ),
    ] = None,
    network: NetworkArgument | None = None,
    values: Annotated[
        dict[str, Any] | None,
        Field(description='Values that the planned run is given, all of them: {"lr": 0.1}.'),
    ] = None,
    diff: Annotated[
        str | None,
        Field(description="Unified difference (`git diff`) of its source files from its parent's."),
    ] = None,
    code: Annotated[
        str | None, Field(description="Digest of its source files, as `values.code` of a run.")
    ] = None,
    study: Annotated[str | None, Field(description="Name of a study, to leave out others.")] = None,
    k: Annotated[int, Field(ge=1, le=ROWS, description="Most runs to return.")] = MOST,
) -> TriedAnswer:
    """Return the runs of programs, and the ideas, that were tried: what each changed of its parent,
    why, and the gain that it brought (larger is better). Ask before a training.

    With `words`, the newest runs that hold them. With what a planned run would be (`network`,
    `values`, `diff`, `code`), the runs that did the same, then the nearest: `matches` says what is
    the same, whatever its name, and how far the values are.
    """
    planned = PlannedRun(
        values,
        None if diff is None else _masked(diff),
        code,
        None if network is None else network_of(archive, network).functional_key,
    )
    parts = [name for name, part in vars(planned).items() if part is not None]
    matches: list[RunMatch] = []
    if not parts:
        runs, total = find_runs(archive.connection, words or (), study=study, most=k)
    elif words:
        raise UsageError(f"look up words, or a planned run by its {parts[0]}, in a call each")
    else:
        matches, runs = find_matches(archive.connection, planned, study=study, most=k)
        total = len(runs)

    is_known = any(len(match.same) == len(parts) for match in matches)

    def first(count: int) -> TriedAnswer:
        return TriedAnswer(total, is_known, runs[:count], matches[:count], truncated=count < total)

    return largest(first, len(runs))


def record_run(
    archive: Archive | UnopenedArchive,
    study: Annotated[
        str, Field(description="Name of its study; the first run with a metric begins a new one.")
    ],
    metrics: Annotated[
        dict[str, float] | None,
        Field(description="Its last metrics by name, the study's objective among them."),
    ] = None,
    reason: Annotated[
        str | None,
        Field(description="Why it failed, in place of the metrics: a failure is a result."),
    ] = None,
    values: Annotated[
        dict[str, Any] | None, Field(description='Values that it was given by name: {"lr": 0.1}.')
    ] = None,
    motivation: Annotated[
        str | None, Field(max_length=4000, description="Why it was tried, in one line.")
    ] = None,
    parent: Annotated[
        str | None,
        Field(description="Run that it is a change of: STUDY#NUMBER, a number, best or last."),
    ] = None,
    network: NetworkArgument | None = None,
    diff: Annotated[
        str | None,
        Field(
            description="Unified difference (`git diff`) of its source files from the parent's; "
            "without it, they are the parent's."
        ),
    ] = None,
    curve: Annotated[
        dict[str, list[float | None]] | None,
        Field(description='Metrics by step: {"step": [1, 2], "val_loss": [0.9, 0.7]}.'),
    ] = None,
    seed: Annotated[
        int | None, Field(description="Its seed; runs that differ in it alone are repeats.")
    ] = None,
    seconds: Annotated[float | None, Field(ge=0, description="Its time.")] = None,
    program: Annotated[
        str | None, Field(description="Name of the program; the parent's by default.")
    ] = None,
    minimise: Annotated[
        str | None, Field(description="Metric that a new study judges by, smaller is better.")
    ] = None,
    maximise: Annotated[
        str | None, Field(description="Metric that a new study judges by, larger is better.")
    ] = None,
    token: Annotated[
        str | None,
        Field(
            description="Name of your own for this run: calls with one token add one run. Without "
            "it, calls with the same arguments do."
        ),
    ] = None,
    model: Annotated[
        str | None, Field(max_length=200, description="Name of the model that made the run.")
    ] = None,
) -> ToldOutcome:
    """Put a run on record that you have trained yourself, outside of the study's queue: its result,
    or the reason why it failed. A call that is repeated adds nothing.

    The answer has the gain over its parent. In a study with a space of networks or parameters, the
    run has a network or values of that space, and the study's agent learns from it. Secrets are
    masked. While the database is away, the run is kept on disk, and `note` says so. `archive record
    -- COMMAND` records a command without this call.
    """
    objective, direction = check_objective(minimise, maximise)
    report = ToldRun(
        study=study,
        metrics=metrics or {},
        reason=reason,
        values=values or {},
        program=program,
        curve=curve or {},
        motivation=motivation,
        parent=parent,
        network=None if network is None else network_of(archive, network),
        diff=diff,
        seed=seed,
        seconds=seconds,
        objective=objective,
        direction=direction,
        model=model,
        token=token,
    )
    if isinstance(archive, UnopenedArchive):
        return keep_told(archive.home, report, archive.error)

    return record_told(archive, report)


def _masked(diff: str) -> str:
    """Return a difference as the archive keeps differences."""
    return difference_text(told_changes(diff), Secrets.find(os.environ))
