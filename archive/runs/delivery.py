"""From folders of runs to the archive.

    python -m archive.runs.delivery      deliver all runs of the home that the environment names

A run that has ended becomes a proposal with its result, in one transaction; the token of the
request is the id of the run, so that a repeated delivery changes nothing. A run whose recorder is
gone without an end was killed, and is delivered as such. One process delivers at a time: another
one that starts meanwhile ends at once, after it has left a note to look again.

A study begins with its first run that has a metric to be judged by; runs without one wait for it.
A recorded run that a study of a search cannot have, because it is no member of its space or the
budget is spent, is put into a study beside it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from archive import __version__, settings
from archive.agents.ask_tell.enqueueing import budget_spent
from archive.architecture.graph import Architecture
from archive.architecture.parameter_operations import PROGRAM_NAME as PROGRAM
from archive.errors import (
    ArchiveError,
    NumericalError,
    QueryError,
    StoreError,
    UsageError,
    first_line,
)
from archive.files import closing, try_lock
from archive.queries.tried.changes import describe_network_change
from archive.queue.admission import known
from archive.queue.causes import Cause
from archive.runs.code_state import (
    CodeState,
    FileChange,
    changes_of,
    difference_text,
    told_changes,
    uncommitted,
)
from archive.runs.identity.graphs import CODE, code_of, graphs_of, program_of
from archive.runs.identity.parents import ParentRun, find_parent
from archive.runs.life_cycle import say, study_beside, take_told
from archive.runs.measurements import (
    OF_PROCESS,
    Measurements,
    choose_objective,
    compile_pattern,
)
from archive.runs.run_folder import (
    RunFolder,
    RunRecord,
    now,
    pending_runs,
    runs_of,
)
from archive.runs.run_log import log_files, read_end
from archive.runs.secrets import Secrets
from archive.runs.tracker_files import read_program_files
from archive.spaces.named_values import values_of_graph
from archive.store.properties import curve_properties
from archive.store.records import Proposal, Result, Study
from archive.store.studies.builds import Build
from archive.store.studies.creation import check_new_name
from archive.store.studies.studies import UNBOUNDED
from archive.values import setting_text

if TYPE_CHECKING:
    from archive.agents.advice.override_trust import Expectation
    from archive.api import Archive
    from archive.settings import Settings
    from archive.store.records import Direction

_SILENT_MILLISECONDS = 60_000
"""Time after the last sign of a killed recorder in which files are still its program's."""

_LOCK = "delivery.lock"
_AGAIN = "delivery.again"


@dataclass(frozen=True)
class _RunSuggestion:
    """A run as a suggestion (`archive.queue.admission.SuggestionLike`)."""

    architecture: Architecture
    motivation: str | None
    repeat: bool
    parent: Architecture | None
    operations: tuple[str, ...]
    created: int
    started: int
    finished: int
    properties: Mapping[str, Any] = field(default_factory=dict)
    mean: float | None = None
    std: float | None = None


def deliver_all(archive: Archive, runs: Iterator[RunFolder] | None = None) -> list[Proposal]:
    """Deliver all runs that have ended, and return their proposals, oldest first.

    Args:
        archive: The archive.
        runs: Folders of runs; None for all of the archive's home.
    """
    folders = pending_runs(runs_of(archive.connection.settings.home)) if runs is None else runs
    ended = []
    for folder in folders:
        record = folder.read()
        if record is None and not folder.path.exists():
            # The program could not be started.
            folder.set_delivered()

        if record is not None and (record.finished is not None or not folder.is_recording()):
            ended.append((folder, record))

    # A run may be a change of an earlier one.
    ended.sort(key=lambda run: _moment(run[1]))
    proposals, waiting = _deliver_each(archive, ended)
    later, _ = _deliver_each(archive, waiting)
    return proposals + later


def _moment(record: RunRecord) -> int:
    """Return the time by which runs are delivered: a told run may have begun at any time."""
    return (record.finished or record.started) if record.is_told else record.started


def _deliver_each(
    archive: Archive, runs: list[tuple[RunFolder, RunRecord]]
) -> tuple[list[Proposal], list[tuple[RunFolder, RunRecord]]]:
    """Return the proposals of runs, and the runs whose study has yet to begin.

    A run that the archive refuses stays in its folder, and holds no other.
    """
    proposals = []
    waiting = []
    for folder, record in runs:
        try:
            proposal = deliver(archive, folder, record)
        except (StoreError, OSError) as error:
            if not isinstance(error, QueryError):
                raise

            say(f"the run in {folder.path} is not delivered: {first_line(error, 500)}")
        except Exception as error:
            # Its files may hold anything.
            say(f"the run in {folder.path} is not delivered: {first_line(error, 500)}")
        else:
            if proposal is None:
                waiting.append((folder, record))
            else:
                proposals.append(proposal)

    return proposals, waiting


def read_outcome(record: RunRecord, objective: str) -> Result | str:
    """Return the result of a run that has ended, or the reason why it has none.

    Args:
        record: The run.
        objective: Name of the metric that is the value.
    """
    if record.reason is not None:
        return record.reason

    value = record.metrics.get(objective)
    if value is None:
        known_metrics = ", ".join(sorted(record.metrics)[:8]) or "none"
        return f"the run has no value of {objective}; its metrics: {known_metrics}"

    seconds = None
    # A run that is told without its time has none.
    if record.finished is not None and not (record.is_told and record.finished == record.started):
        seconds = max(0.0, (record.finished - record.started) / 1000)

    return Result(
        value=value,
        metrics=record.metrics,
        curve=record.curve,
        seconds=seconds,
        seed=record.seed,
        environment=record.environment,
        hardware=next(iter(record.environment.get("gpus", ())), None),
    )


def deliver(archive: Archive, folder: RunFolder, record: RunRecord) -> Proposal | None:
    """Store a run that has ended.

    Args:
        archive: The archive.
        folder: Folder of the run.
        record: The run.

    Returns:
        Its proposal; None if its study has yet to begin.

    Raises:
        UsageError: The study cannot have the run: its space has no such network, or its budget is
            spent.
    """
    if record.finished is None:
        _end_killed(folder, record)

    study = _study_of(archive, record)
    if study is None:
        return None

    try:
        return _store(archive, folder, record, study)
    except UsageError as error:
        if record.is_told or study.space == PROGRAM:
            raise

        # The program has run already: no result of it is given up.
        beside = _study_beside(archive, study)
        say(
            f"the run in {folder.path} is put into the study {beside.name!r}: {first_line(error, 500)}"
        )
        record.study = beside.name
        folder.write(record)
        return _store(archive, folder, record, beside)


def _study_beside(archive: Archive, study: Study) -> Study:
    """Return the study for the runs that a study of another space cannot have."""
    name = study_beside(study.name)
    if name in archive.studies.names():
        return archive.studies.get(name)

    return _create_study(archive, name, study.task, (study.objective, study.direction))


def _store(archive: Archive, folder: RunFolder, record: RunRecord, study: Study) -> Proposal:
    """Store a run in a study.

    Raises:
        UsageError: The study cannot have the run.
    """
    outcome = read_outcome(record, study.objective)
    parent = find_parent(archive, folder, record)
    record.program = program_of(record, parent)
    member, network = graphs_of(archive, study, record, folder.network(), parent)
    existing = archive.connection.read(lambda tx: known(tx, study.name, [member]))
    changes = _changes(folder, record, parent)
    expected = None
    if record.is_told and study.space != PROGRAM and record.proposal is None:
        expected = _expectation(archive, study, member)

    suggestion = _RunSuggestion(
        member,
        record.motivation,
        bool(existing),
        _morph_parent(member, parent),
        _operations(member, parent, changes),
        record.started,
        record.started,
        record.finished or now(),
        _properties(folder, record, changes, parent),
        None if expected is None else expected.mean,
        None if expected is None else expected.std,
    )
    config = {} if record.model is None else {"model": record.model}
    agent = archive.proposals.register_agent(record.recorder, config, __version__)
    made = archive.proposals.create(
        study.name, agent, [suggestion], outcomes=[outcome], unique=False, token=record.id
    )
    if not made:
        raise budget_spent(study)

    if network is not None:
        version = code_of(record, parent)
        archive.builds.add([Build(member, network, record.program, version, None, None)])

    record.proposal = made[0].id
    folder.write(record)
    folder.set_delivered()
    return made[0]


def _expectation(archive: Archive, study: Study, member: Architecture) -> Expectation | None:
    """Return the prediction of a result: evidence of what its proposer knows beyond the model."""
    # Imported here because it loads the models.
    from archive.agents.advice.overriding import expected_score

    try:
        return expected_score(archive, study.name, member)
    except (UsageError, NumericalError):
        return None


def _end_killed(folder: RunFolder, record: RunRecord) -> None:
    """Give a run whose recorder is gone the end that its files tell of."""
    pattern = None if record.pattern is None else compile_pattern(record.pattern)
    measurements = Measurements(pattern)
    for path in log_files(folder.path):
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                measurements.read_line(line)

    newest = 0.0
    for path in folder.path.iterdir():
        newest = max(newest, path.stat().st_mtime)

    record.finished = max(record.started, int(newest * 1000))
    # On another machine the folder may be another one; within `archive.record` no file is read.
    if record.command and record.host == os.uname().nodename:
        until = record.finished + _SILENT_MILLISECONDS
        read_program_files(record, folder.processes(), measurements, until)

    take_told(folder, record, measurements, Secrets.find(os.environ))
    record.reason = "killed: its recorder ended without a word"
    record.cause = Cause.CRASH.value
    folder.write(record)


def _study_of(archive: Archive, record: RunRecord) -> Study | None:
    """Return the study of a run, which is created at the first run that has a metric."""
    name = record.study
    if name in archive.studies.names():
        return archive.studies.get(name)

    objective_and_direction = None
    if record.objective is not None:
        objective_and_direction = (record.objective, record.direction or "minimise")
    else:
        names = [name for name in record.metrics if name not in OF_PROCESS]
        objective_and_direction = choose_objective(names)
        if objective_and_direction is None and names:
            objective_and_direction = (names[0], "minimise")

    if objective_and_direction is None:
        return None

    return _create_study(archive, name, record.task or name, objective_and_direction)


def _create_study(archive: Archive, name: str, task: str, judged: tuple[str, str]) -> Study:
    """Create a study of runs, which are judged by a metric and its direction."""
    check_new_name(name)
    objective, direction = judged
    study = Study(
        name,
        task,
        f"{task}/recorded",
        PROGRAM,
        objective,
        cast("Direction", direction),
        budget=UNBOUNDED,
    )
    return archive.studies.create(study)


def _changes(folder: RunFolder, record: RunRecord, parent: ParentRun | None) -> list[FileChange]:
    """Return what differs in the source files: from the parent's, or else from the commit."""
    if record.diff is not None:
        return told_changes(record.diff)

    if record.code is None:
        return []

    code = CodeState.from_json(record.code)
    if parent is not None:
        before = _code_of(folder, parent.proposal)
        if before is not None:
            return changes_of(before, code, folder.blobs)

    return uncommitted(code, folder.blobs)


def _code_of(folder: RunFolder, proposal: Proposal) -> CodeState | None:
    """Return the source files of an earlier run, if its folder is here."""
    if not proposal.request:
        return None

    earlier = RunFolder(folder.path.parent / proposal.request).read()
    return None if earlier is None or earlier.code is None else CodeState.from_json(earlier.code)


def _morph_parent(member: Architecture, parent: ParentRun | None) -> Architecture | None:
    """Return the network that a network is a change of; None for another evaluation of it."""
    if parent is None or parent.architecture.key == member.network.key:
        return None

    return parent.architecture if parent.architecture.space == member.space else None


def _operations(
    member: Architecture, parent: ParentRun | None, changes: list[FileChange]
) -> tuple[str, ...]:
    """Return in words what a run changes of its parent: values or layers, and source files."""
    if parent is None:
        return ()

    before = values_of_graph(parent.architecture)
    after = values_of_graph(member)
    operations = []
    for name in sorted({*before, *after} - {CODE}):
        if before.get(name) != after.get(name):
            old = setting_text(before[name]) if name in before else "absent"
            new = setting_text(after[name]) if name in after else "absent"
            operations.append(f"{name}: {old} -> {new}")

    if not after:
        operations += describe_network_change(parent.architecture, member.network)

    return tuple(operations) + tuple(map(str, changes))


def _properties(
    folder: RunFolder,
    record: RunRecord,
    changes: list[FileChange],
    parent: ParentRun | None,
) -> dict[str, Any]:
    """Return the further properties of the proposal of a run; absent where there is nothing."""
    secrets = Secrets.find(os.environ)
    properties: dict[str, Any] = {
        "program": record.program,
        "command": record.command or None,
        "folder": record.folder or None,
        "exit_status": record.status,
        "log_end": read_end(folder.path) or None,
        "diff": difference_text(changes, secrets) or None,
        "changed": list(map(str, changes)) or None,
        "derived_from": None if parent is None else parent.proposal.id,
        "kept": [str(folder.path / "kept" / name) for name in record.kept] or None,
        "cause": record.cause,
    }
    properties["code"] = code_of(record, parent)
    if record.code is not None:
        code = CodeState.from_json(record.code)
        properties |= {"code_commit": code.commit, "code_branch": code.branch}

    if record.reason is not None:
        properties |= curve_properties(record.curve)

    return {name: value for name, value in properties.items() if value is not None}


def deliver_home(configuration: Settings) -> list[Proposal]:
    """Deliver the runs of a home, unless another process does; it then looks again for this one.

    Args:
        configuration: Settings of the archive.
    """
    from archive.api import connect

    runs = runs_of(configuration.home)
    runs.mkdir(parents=True, exist_ok=True)
    again = runs / _AGAIN
    again.touch()
    proposals: list[Proposal] = []
    while again.exists():
        handle = try_lock(runs / _LOCK)
        if handle is None:
            return proposals

        with closing(handle):
            again.unlink(missing_ok=True)
            with connect(configuration) as archive:
                proposals += deliver_all(archive)

    return proposals


def main() -> int:
    """Deliver the runs of the home that the environment names; 1 after an error, in one line."""
    try:
        deliver_home(settings.load())
    except ArchiveError as error:
        print(error, file=sys.stderr)
        return 1

    return 0


if __name__ == "__main__":
    sys.exit(main())
