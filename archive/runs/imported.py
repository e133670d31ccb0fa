"""Runs of other tools and of tables, as runs of the archive.

A run of a history is a proposal with its result, as a recorded run is; its token is made of the
study and the run's id, so that the same history, or a longer one, adds new runs only. Runs may name
their parents in any order.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from archive import __version__
from archive.architecture.graph import Architecture
from archive.architecture.parameter_operations import PROGRAM_NAME as PROGRAM
from archive.architecture.parameter_operations import graph_of_values
from archive.errors import UsageError
from archive.exchange.importers.additions import BATCH, Addition, add_missing
from archive.queries.tried.changes import describe_network_change
from archive.runs.code_state import MOST_DIFF
from archive.runs.history.external_run import ExternalHistory, ExternalRun, choose_metric
from archive.runs.history.table_columns import RunMapping
from archive.runs.history.table_files import TableRow
from archive.runs.history.table_rows import MOST_TEXT, runs_of_rows
from archive.runs.identity.graphs import CODE, NETWORK
from archive.runs.life_cycle import masked
from archive.runs.run_folder import now
from archive.runs.secrets import Secrets, is_secret_name, option_secrets
from archive.store.architectures import batched
from archive.store.properties import curve_properties, proposal_id
from archive.store.records import Result, Study
from archive.store.studies.builds import Build
from archive.store.studies.creation import check_new_name
from archive.store.studies.studies import UNBOUNDED
from archive.values import check_length, setting_text

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.store.records import Direction

KIND = "import"


@dataclass(frozen=True)
class RunImport:
    """Outcome of an import of runs.

    Attributes:
        study: Name of the study.
        objective: The metric that its runs are judged by.
        runs: Number of runs of the source.
        added: Number of those that the study did not have.
        failed: Number of runs that failed, as the source says.
        without_value: Number of other runs without a number of the objective; they failed.
        without_parent: Number of runs whose parent is no run of the source or the study.
        left_out: What the source has besides: columns of which nothing is kept, or kinds of
            content with their number.
        networks: Number of different networks; null where runs have none.
    """

    study: str
    objective: str
    runs: int
    added: int
    failed: int
    without_value: int
    without_parent: int
    left_out: list[str]
    networks: int | None = None


@dataclass(frozen=True)
class _ImportedRun:
    """A run as a suggestion (`archive.queue.admission.SuggestionLike`)."""

    architecture: Architecture
    motivation: str | None
    repeat: bool
    parent: Architecture | None
    operations: tuple[str, ...]
    created: int
    started: int | None = None
    finished: int | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)


def import_runs(
    archive: Archive,
    name: str,
    rows: Sequence[TableRow],
    mapping: RunMapping,
    *,
    task: str | None = None,
    provenance: Mapping[str, str] = MappingProxyType({}),
) -> RunImport:
    """Add the rows of a table to a study of runs, which is created where there is none.

    Args:
        archive: The archive.
        name: Name of the study.
        rows: The rows, oldest first.
        mapping: Which column is what.
        task: Name of the task; None for the study's, and for the name of a new study.
        provenance: Origin of the results, by names of `archive.store.records.PROVENANCE`.

    Raises:
        UsageError: A column of the mapping is in no row, an id is there twice, or a time is none.
        StudyConflictError: The study exists with another space, task or objective.
    """
    return import_history(
        archive,
        name,
        runs_of_rows(rows, mapping),
        objective=mapping.objective,
        direction=mapping.direction,
        task=task,
        provenance=provenance,
    )


def import_history(
    archive: Archive,
    name: str,
    history: ExternalHistory,
    *,
    objective: str | None = None,
    direction: Direction | None = None,
    task: str | None = None,
    provenance: Mapping[str, str] = MappingProxyType({}),
) -> RunImport:
    """Add the runs of a history to a study of runs, which is created where there is none.

    Args:
        archive: The archive.
        name: Name of the study.
        history: The runs.
        objective: Metric that runs are judged by; None takes the study's, or one that the names of
            the metrics say.
        direction: Whether it is minimised or maximised; None with `objective`.
        task: Name of the task; None for the study's, and for the name of a new study.
        provenance: Origin of the results, by names of `archive.store.records.PROVENANCE`.

    Raises:
        UsageError: There is no run, no metric to judge by, or the study cannot have this name.
        StudyConflictError: The study exists with another space, task or objective.
    """
    study = _open_study(archive, name, history.runs, objective, direction, task)
    imported = _ImportedRuns(study, history.runs, provenance)
    agent = archive.proposals.register_agent(KIND, {}, __version__)

    def make_additions() -> list[Addition]:
        return imported.additions(_tokens_of(archive, name))

    added = add_missing(archive, name, agent, make_additions, "run")
    builds = imported.builds()
    if builds:
        # Rows that an earlier import added without their graphs are other configurations.
        stored = {proposal.architecture_key for proposal in archive.proposals.list(name)}
        builds = [build for build in builds if build.configuration.key in stored]

    for part in batched(builds, BATCH):
        archive.builds.add(part)

    return RunImport(
        study=name,
        objective=study.objective,
        runs=len(history.runs),
        added=added,
        failed=imported.failed,
        without_value=imported.without_value,
        without_parent=imported.without_parent,
        left_out=history.left_out,
        networks=len({build.network.key for build in builds}) or None,
    )


def _open_study(
    archive: Archive,
    name: str,
    runs: Sequence[ExternalRun],
    objective: str | None,
    direction: Direction | None,
    task: str | None,
) -> Study:
    """Return the study of the runs, which is created where there is none."""
    exists = name in archive.studies.names()
    if exists:
        study = archive.studies.get(name)
        task = task or study.task
        if objective is None:
            objective = study.objective
            direction = study.direction

    if objective is None or direction is None:
        objective, name_of_direction = choose_metric(runs)
        direction = cast("Direction", name_of_direction)
    elif runs and not any(objective in run.metrics for run in runs):
        _refuse_metric(objective, runs)

    if not exists:
        check_new_name(name)
        check_length("the name of the study", name)

    task = task or name
    return archive.studies.create(
        Study(name, task, f"{task}/recorded", PROGRAM, objective, direction, budget=UNBOUNDED)
    )


def _refuse_metric(objective: str, runs: Sequence[ExternalRun]) -> None:
    """Raise an error for a metric that no run has, if they have others."""
    names = sorted({name for run in runs for name in run.metrics})
    if names:
        raise UsageError(
            f"no run has the metric {objective!r:.80}: they have {', '.join(names[:20])}"
        )


class _ImportedRuns:
    """Runs of a history as additions to a study.

    Attributes:
        failed: Number of runs that failed, as the source says.
        without_value: Number of other runs without a number of the objective.
        without_parent: Number of runs whose parent is nowhere.
    """

    def __init__(
        self, study: Study, runs: Sequence[ExternalRun], provenance: Mapping[str, str]
    ) -> None:
        """Mask the runs, and make their graphs."""
        self._study = study
        self._provenance = provenance
        secrets = Secrets.find(os.environ)
        self._runs = [_masked_run(run, secrets) for run in runs]
        self._positions = {run.identity: number for number, run in enumerate(self._runs)}
        self._values = [_values_of(run) for run in self._runs]
        self._graphs = []
        for run, values in zip(self._runs, self._values, strict=True):
            # Runs that say nothing of what was run are different runs.
            self._graphs.append(graph_of_values(values or {"run": run.identity}, name=PROGRAM))

        self.failed = 0
        self.without_value = 0
        self.without_parent = 0

    def additions(self, tokens: Mapping[str, int]) -> list[Addition]:
        """Return the runs as additions to the study.

        Args:
            tokens: Numbers of the runs that the study has, by their tokens.
        """
        self.failed = 0
        self.without_value = 0
        self.without_parent = 0
        numbers = self._numbers(tokens)
        additions = []
        seen: set[str] = set()
        for position, run in enumerate(self._runs):
            architecture = self._graphs[position]
            outcome = self._outcome(run)
            parent_position = None if run.parent is None else self._positions.get(run.parent)
            parent = None if parent_position is None else self._graphs[parent_position]
            suggestion = _ImportedRun(
                architecture=architecture,
                motivation=run.motivation,
                repeat=architecture.functional_key in seen,
                parent=None if parent is None or parent.key == architecture.key else parent,
                operations=self._operations(position, parent_position),
                created=now() if run.started is None else run.started,
                started=None if run.finished is None else run.started,
                finished=run.finished,
                properties=self._properties(run, numbers, outcome),
            )
            seen.add(architecture.functional_key)
            additions.append(Addition(self._token(run.identity), suggestion, outcome))

        return additions

    def builds(self) -> list[Build]:
        """Return the network of each configuration that has one."""
        builds: dict[str, Build] = {}
        for run, configuration in zip(self._runs, self._graphs, strict=True):
            if run.network is not None and configuration.key not in builds:
                program = run.program or self._study.name
                build = Build(configuration, run.network, program, run.code, None, None)
                builds[configuration.key] = build

        return list(builds.values())

    def _token(self, identity: str) -> str:
        return f"{KIND}/{self._study.name}/{identity}"

    def _numbers(self, tokens: Mapping[str, int]) -> dict[str, int]:
        """Return the number that each run has or gets in the study, by its id.

        Parents that an earlier import has added are among them.
        """
        following = max(tokens.values(), default=-1) + 1
        numbers = {}
        for run in self._runs:
            number = tokens.get(self._token(run.identity))
            numbers[run.identity] = following if number is None else number
            following += number is None

        for run in self._runs:
            if run.parent is not None and run.parent not in numbers:
                number = tokens.get(self._token(run.parent))
                if number is None:
                    self.without_parent += 1
                else:
                    numbers[run.parent] = number

        return numbers

    def _operations(self, position: int, parent_position: int | None) -> tuple[str, ...]:
        """Return what a run changes of its parent, in words: values, layers, and source files."""
        if parent_position is None:
            return ()

        before = self._values[parent_position]
        after = self._values[position]
        operations = []
        for name in sorted({*before, *after} - {CODE, NETWORK}):
            if before.get(name) != after.get(name):
                old = setting_text(before[name]) if name in before else "absent"
                new = setting_text(after[name]) if name in after else "absent"
                operations.append(f"{name}: {old} -> {new}"[:MOST_TEXT])

        first = self._runs[parent_position].network
        second = self._runs[position].network
        if first is not None and second is not None:
            operations += describe_network_change(first, second)

        return tuple(operations) + tuple(self._runs[position].changed)

    def _outcome(self, run: ExternalRun) -> Result | str:
        if run.reason is not None:
            self.failed += 1
            return run.reason

        objective = self._study.objective
        metrics = {name: value for name, value in run.metrics.items() if math.isfinite(value)}
        value = metrics.get(objective)
        if value is None:
            self.without_value += 1
            names = ", ".join(sorted(metrics)[:8])
            reason = f"the run has no value of {objective}"
            return f"{reason}; its metrics: {names}" if metrics else reason

        seconds = None
        if run.started is not None and run.finished is not None:
            seconds = max(0.0, (run.finished - run.started) / 1000)

        return Result(
            value=value,
            metrics=metrics,
            curve=run.curve,
            seconds=seconds,
            seed=run.seed,
            environment=run.environment,
            hardware=run.hardware,
            provenance=self._provenance,
        )

    def _properties(
        self, run: ExternalRun, numbers: Mapping[str, int], outcome: Result | str
    ) -> dict[str, Any]:
        """Return the further properties of the proposal of a run; absent where there is nothing."""
        number = None if run.parent is None else numbers.get(run.parent)
        properties: dict[str, Any] = {
            "program": run.program or self._study.name,
            "command": list(run.command) or None,
            "folder": run.folder,
            "log_end": run.log_end,
            "diff": run.diff,
            "changed": list(run.changed) or None,
            "derived_from": None if number is None else proposal_id(self._study.name, number),
            "cause": run.cause,
            "code": run.code,
            "code_commit": run.commit,
            "code_branch": run.branch,
        }
        if isinstance(outcome, str):
            properties |= curve_properties(run.curve)

        return {name: value for name, value in properties.items() if value is not None}


def _masked_run(run: ExternalRun, secrets: Secrets) -> ExternalRun:
    """Return a run with its secrets masked, as texts that a server holds.

    Args:
        run: The run.
        secrets: Secrets of this machine.
    """
    own_secrets = option_secrets(run.command)
    for name, value in run.values.items():
        if is_secret_name(name) and isinstance(value, str):
            own_secrets.append(value)

    if own_secrets:
        secrets = secrets.adding(own_secrets)

    def text(content: str | None) -> str | None:
        if content is None:
            return None

        return secrets.mask(content).encode(errors="replace").decode()

    diff = text(run.diff)
    if diff is not None and len(diff) > MOST_DIFF:
        diff = f"{diff[:MOST_DIFF]}\n… {len(diff) - MOST_DIFF} letters are cut\n"

    return replace(
        run,
        values=masked(run.values, secrets),
        motivation=text(run.motivation),
        reason=text(run.reason),
        command=[text(word) or "" for word in run.command],
        folder=text(run.folder),
        program=text(run.program),
        branch=text(run.branch),
        diff=diff,
        changed=[text(change) or "" for change in run.changed],
        log_end=text(run.log_end),
        environment=masked(run.environment, secrets),
    )


def _values_of(run: ExternalRun) -> dict[str, Any]:
    """Return what a run was given, its program and its source files among it."""
    values: dict[str, Any] = {}
    if run.program is not None:
        values["program"] = run.program

    if run.code is not None:
        values[CODE] = run.code

    if run.network is not None:
        values[NETWORK] = run.network.key[:16]

    for name, value in run.values.items():
        values[f"{name}_" if name in values else name] = value

    return values


def _tokens_of(archive: Archive, study: str) -> dict[str, int]:
    """Return the number of each proposal of a study by its token."""
    tokens = {}
    for proposal in archive.proposals.list(study):
        if proposal.request is not None:
            tokens[proposal.request] = proposal.number

    return tokens
