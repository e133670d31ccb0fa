"""Import of Optuna's studies whose trials contain architectures.

| Optuna | archive |
|---|---|
| study, direction | study, direction; an agent of the kind `optuna` made its proposals |
| trial, complete | proposal with its evaluation; value, duration, intermediate values as the curve |
| trial, failed or pruned | proposal FAILED, with the reason; a pruned trial's last value measures another training |
| trial, running or waiting | left out until it has finished |
| parameters of the architecture | the architecture |
| other parameters | hyperparameters of the proposal |
| numbers among the user attributes | metrics |

The caller passes a function that reads a trial's architecture. A trial is added once: importing again adds the trials
that have finished since. The storage's address is not recorded, because it may contain a password.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from archive import __version__
from archive.architecture.graph import Architecture
from archive.errors import ArchiveError, SettingsError, StudyConflictError, UnknownNameError, UsageError
from archive.queue.admission import Request, admit
from archive.store.records import Direction, Result, Study
from archive.store.studies.creation import check_new_name

if TYPE_CHECKING:
    import optuna

    from archive.api import Archive

KIND = "optuna"
BATCH = 200
"""Trials of one transaction."""

ADDED = """
MATCH (s:Study {name: $study})
USING INDEX SEEK s:Study(name)
OPTIONAL MATCH (s)-[:PROPOSED]->(p:Proposal)
RETURN count(p) AS total, collect(p.request) AS tokens
"""

STORED = """
MATCH (s:Study {name: $study})
USING INDEX SEEK s:Study(name)
MATCH (s)-[:PROPOSED]->(p:Proposal)
MATCH (p)-[:RESULTED_IN]->(e:Evaluation)
RETURN p.request AS token, e.value AS value
"""

Read = Callable[[Mapping[str, Any], Mapping[str, Any]], tuple[Architecture, Mapping[str, Any]]]
"""Function from parameters and user attributes of a trial to its architecture and the remaining parameters."""


@dataclass(frozen=True)
class OptunaTrial:
    """Suggestion of a trial (`archive.queue.admission.SuggestionLike`)."""

    architecture: Architecture
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)


class TrialToAdd(NamedTuple):
    """A trial to add.

    Attributes:
        token: Token that identifies the trial in later imports.
        trial: Suggestion of the trial.
        outcome: Result, or reason of the failure.
    """

    token: str
    trial: OptunaTrial
    outcome: Result | str


def open_study(reference: str) -> optuna.Study:
    """Open a study of Optuna.

    Args:
        reference: `URL#STUDY`: a storage as Optuna names it (`sqlite:///study.db`), and the study's name.

    Raises:
        UsageError: The text names no study, or the storage cannot be read.
        UnknownNameError: The storage has no such study.
        SettingsError: Optuna is not installed.
    """
    url, separator, name = _parts(reference)
    if not separator or not url or not name:
        raise UsageError(f"a study of Optuna is named as URL#STUDY, got {_without_password(reference)!r}")
    try:
        import optuna
    except ImportError:
        raise SettingsError("reading studies of Optuna needs it: pip install 'nas-archive[bench]'") from None
    if (file := _file(url)) is not None and not file.is_file():
        # Optuna would create an empty file.
        raise UsageError(f"there is no file {file}")
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        # It would create its tables in the database of another program.
        storage = optuna.storages.RDBStorage(url, skip_table_creation=True)
        names = optuna.get_all_study_names(storage)
        if name not in names:
            raise UnknownNameError("study of Optuna", name, names)
        return optuna.load_study(study_name=name, storage=storage)
    except ArchiveError:
        raise
    except Exception as error:
        # A database driver may raise any error, and its text may contain the address with a password.
        what = type(error).__name__
        raise UsageError(f"Optuna cannot read the storage {_without_password(url)}: {what}") from None
    finally:
        optuna.logging.set_verbosity(before)


def _parts(reference: str) -> tuple[str, str, str]:
    """Return the storage, the separator and the name of a study; a file tells which `#` of several separates them."""
    parts = reference.rpartition("#")
    earlier = parts
    while earlier[1]:
        if (file := _file(earlier[0])) is not None and file.is_file():
            return earlier[0], "#", reference[len(earlier[0]) + 1 :]
        earlier = earlier[0].rpartition("#")
    return parts


def _file(url: str) -> Path | None:
    """Return the file of a storage; None for that of a server."""
    return Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:///") else None


def import_study(archive: Archive, source: optuna.Study, study: Study, read: Read) -> dict[str, int]:
    """Add the finished trials of a study to the archive.

    Args:
        archive: The archive.
        source: The study of Optuna.
        study: The study to create: name, task, protocol, space; direction and budget are those of `source`.
        read: Reads the architecture of a trial.

    Returns:
        Numbers of trials that are `evaluated`, `failed`, and `left_out`: unfinished, or failed without an architecture.

    Raises:
        UsageError: The source has several objectives, or a trial's parameters describe no architecture.
        StudyConflictError: The archive has another study of this name, or trials of another one of Optuna in it.
    """
    if len(source.directions) != 1:
        raise UsageError(
            f"the study {source.study_name!r} has {len(source.directions)} objectives, one can be imported"
        )
    trials = source.get_trials(deepcopy=False)
    suggestions = {trial.number: one for trial in trials if (one := _suggestion(trial, read)) is not None}
    direction: Direction = "maximise" if source.direction.name == "MAXIMIZE" else "minimise"
    made = Study(
        study.name, study.task, study.protocol, study.space, study.objective, direction, len(trials),
        {"optuna": source.study_name}, study.space_config,
    )  # fmt: skip
    if study.name not in archive.studies.names():
        check_new_name(study.name)
    additions = [
        TrialToAdd(
            f"{KIND}/{source.study_name}/{trial.number}", suggestions[trial.number], _outcome(trial, study.objective)
        )
        for trial in trials
        if trial.number in suggestions
    ]
    archive.studies.create(made)
    _check_same(archive, study.name, additions)
    if archive.studies.get(study.name).budget < len(trials):
        archive.studies.set_budget(study.name, len(trials))
    agent = archive.proposals.register_agent(KIND, {"study": source.study_name}, __version__)
    _add(archive, study.name, agent, additions)
    failed = sum(isinstance(addition.outcome, str) for addition in additions)
    return {"evaluated": len(additions) - failed, "failed": failed, "left_out": len(trials) - len(additions)}


def _check_same(archive: Archive, study: str, additions: Sequence[TrialToAdd]) -> None:
    """Check that trials that were added before have the values of these: two storages may have studies of one name.

    Raises:
        StudyConflictError: One has another value.
    """
    rows = archive.connection.read(lambda tx: tx.run(STORED, study=study).data())
    stored = {row["token"]: row["value"] for row in rows}
    for token, _, outcome in additions:
        value = outcome.value if isinstance(outcome, Result) else None
        # A user may have removed a value from the archive.
        if stored.get(token) not in (None, value):
            raise StudyConflictError(
                f"the study {study!r} has trials of another study of Optuna with this name: {token} has the value "
                f"{stored[token]} in the archive, and {value} in the storage; "
                "import it under another name with --study"
            )


def _add(archive: Archive, study: str, agent: str, additions: Sequence[TrialToAdd]) -> None:
    """Add the trials that the study does not have, in their order, in batches.

    Raises:
        UsageError: The study has no room for them.
    """
    total, left = _missing(archive, study, additions)
    while left:
        part = left[:BATCH]
        trials, outcomes, tokens = [w.trial for w in part], [w.outcome for w in part], [w.token for w in part]
        request = Request(study, agent, trials, None, False, "", outcomes=outcomes, after=total, tokens=tokens)
        stored = len(admit(archive.connection, request))
        if stored == len(part):
            total, left = total + stored, left[stored:]
            continue
        # Another process added to the study, or an acknowledgement was lost.
        before = total
        total, left = _missing(archive, study, additions)
        if left and total == before:
            raise UsageError(f"the study {study!r} has no room for {len(left)} trials: raise its budget")


def _missing(archive: Archive, study: str, additions: Sequence[TrialToAdd]) -> tuple[int, list[TrialToAdd]]:
    """Return the number of a study's proposals, and the additions that are not among them."""
    row = archive.connection.read(lambda tx: tx.run(ADDED, study=study).single(strict=True))
    known = set(row["tokens"])
    return int(row["total"]), [addition for addition in additions if addition.token not in known]


def _suggestion(trial: optuna.trial.FrozenTrial, read: Read) -> OptunaTrial | None:
    if not trial.state.is_finished():
        return None
    try:
        return OptunaTrial(*read(trial.params, trial.user_attrs))
    except ArchiveError as error:
        if trial.state.name != "COMPLETE":
            return None
        raise UsageError(f"trial {trial.number} holds no architecture: {error}") from None


def _outcome(trial: optuna.trial.FrozenTrial, objective: str) -> Result | str:
    steps = sorted(trial.intermediate_values)
    if trial.state.name == "PRUNED":
        return f"pruned by Optuna after step {steps[-1]}" if steps else "pruned by Optuna"
    if trial.state.name != "COMPLETE" or trial.value is None:
        return str(trial.system_attrs.get("fail_reason") or "failed in Optuna")
    numbers = {name: value for name, value in trial.user_attrs.items() if type(value) in (int, float)}
    return Result(
        value=trial.value,
        metrics={**numbers, objective: trial.value},
        curve={"epoch": steps, objective: [trial.intermediate_values[step] for step in steps]} if steps else {},
        seconds=trial.duration.total_seconds() if trial.duration else None,
        environment={"optuna": trial.number},
    )


def _without_password(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    _, at, place = rest.rpartition("@")
    return f"{scheme}{separator}…@{place}" if at else url
