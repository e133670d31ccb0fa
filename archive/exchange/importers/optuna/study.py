"""Import of a study of Optuna: every finished trial becomes a proposal, once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from archive import __version__
from archive.architecture.graph import Architecture
from archive.errors import (
    ArchiveError,
    SettingsError,
    StudyConflictError,
    UnknownNameError,
    UsageError,
)
from archive.exchange.importers.additions import Addition, add_missing
from archive.exchange.importers.optuna import trials
from archive.exchange.importers.optuna.parameters import SPACE
from archive.exchange.importers.optuna.trials import OptunaTrial
from archive.store.dump_statements import RESULTS_OF_IMPORT
from archive.store.records import Direction, Objective, Result, Study
from archive.store.studies.creation import check_new_name
from archive.values import counted

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

    from archive.api import Archive


KIND = "optuna"
NAMES = "optuna_names"
"""Key of the study's configuration for names of parameters in Optuna, where they differ."""


Read = Callable[[Mapping[str, Any], Mapping[str, Any]], tuple[Architecture, Mapping[str, Any]]]
"""Function from parameters and user attributes of a trial to its architecture and the remaining
parameters."""


def import_study(
    archive: Archive,
    source: optuna.Study,
    study: Study,
    read: Read,
    notify: Callable[[str], None] | None = None,
    names: Mapping[str, str] | None = None,
    provenance: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, int]:
    """Add the finished trials of a study to the archive.

    Args:
        archive: The archive.
        source: The study of Optuna.
        study: The study to create: name, task, protocol, space, and the names of its objectives;
            directions, constraints and budget come from `source`.
        read: Reads the architecture of a trial.
        notify: Receives a line on what the archive does not keep.
        names: Names in the trials by the names of the parameters, where they differ.
        provenance: Origin of the results, by names of `archive.store.records.PROVENANCE`; the
            source is the study's name if it is not given.

    Returns:
        Numbers of trials that are `evaluated`, `pruned`, `failed`, and `left_out`: unfinished, or
        failed without an architecture.

    Raises:
        UsageError: The source has another number of objectives, or a trial's parameters describe no
            architecture.
        StudyConflictError: The archive has another study of this name, or trials of another one of
            Optuna in it.
    """
    objectives = _objectives(source, study)
    finished = source.get_trials(deepcopy=False)
    constrained, named = trials.is_constrained(finished)
    suggestions: dict[int, OptunaTrial] = {}
    for trial in finished:
        if (suggestion := _suggestion(trial, read)) is not None:
            suggestions[trial.number] = suggestion

    config: dict[str, Any] = {"optuna": source.study_name}
    left = trials.attributes(source.user_attrs)
    left.pop(SPACE, None)
    if left:
        config[trials.ATTRIBUTES] = left

    if names:
        config[NAMES] = dict(names)

    made = replace(
        study,
        objective=objectives[0].name,
        direction=objectives[0].direction,
        further=objectives[1:],
        constraints=(trials.FEASIBLE,) if constrained else (),
        budget=len(finished),
        config=config,
    )
    if study.name not in archive.studies.names():
        check_new_name(study.name)

    usable = [trial for trial in finished if trial.number in suggestions]
    origin = {"source": f"Optuna study {source.study_name}", **provenance}
    additions = []
    for trial in usable:
        outcome = trials.outcome(trial, objectives, named=named)
        if isinstance(outcome, Result):
            outcome = replace(outcome, provenance=origin)

        token = f"{KIND}/{source.study_name}/{trial.number}"
        additions.append(Addition(token, suggestions[trial.number], outcome))

    archive.studies.create(made)
    _check_same(archive, study.name, additions)
    if archive.studies.get(study.name).budget < len(finished):
        archive.studies.set_budget(study.name, len(finished))

    agent = archive.proposals.register_agent(KIND, {"study": source.study_name}, __version__)
    add_missing(archive, study.name, agent, lambda: additions, "trial")
    if notify is not None:
        for line in _left_out(usable, additions):
            notify(line)

    failed = sum(isinstance(addition.outcome, str) for addition in additions)
    pruned = sum(
        isinstance(addition.outcome, Result) and addition.outcome.partial for addition in additions
    )
    return {
        "evaluated": len(additions) - failed - pruned,
        "pruned": pruned,
        "failed": failed,
        "left_out": len(finished) - len(additions),
    }


def objective_names(
    archive: Archive, source: optuna.Study, name: str, requested: Sequence[str] = ()
) -> list[str]:
    """Return the names of the objectives of an imported study.

    Args:
        archive: The archive.
        source: The study of Optuna.
        name: Name of the study in the archive.
        requested: Names that the caller prefers; empty for the names of an earlier
            import, else the names in `source`.
    """
    if requested:
        return list(requested)

    if name in archive.studies.names():
        stored = archive.studies.get(name)
        if stored.config.get("optuna") == source.study_name and len(stored.objectives) == len(
            source.directions
        ):
            return [objective.name for objective in stored.objectives]

    if source.metric_names:
        return list(source.metric_names)

    count = len(source.directions)
    return ["value"] if count == 1 else [f"value_{index}" for index in range(count)]


def _objectives(source: optuna.Study, study: Study) -> tuple[Objective, ...]:
    names = [objective.name for objective in study.objectives]
    if len(names) != len(source.directions):
        raise UsageError(
            f"the study {source.study_name!r} has {counted(len(source.directions), 'objective')}, "
            f"got {counted(len(names), 'name')}: {', '.join(names)}"
        )

    directions: list[Direction] = []
    for direction in source.directions:
        directions.append("maximise" if direction.name == "MAXIMIZE" else "minimise")

    return tuple(map(Objective, names, directions))


def _suggestion(trial: FrozenTrial, read: Read) -> OptunaTrial | None:
    if not trial.state.is_finished():
        return None

    try:
        network, rest = read(trial.params, trial.user_attrs)
    except ArchiveError as error:
        if trial.state.name != "COMPLETE":
            return None

        raise UsageError(f"trial {trial.number} holds no architecture: {error}") from None

    return OptunaTrial(network, rest, **trials.times(trial))


def _left_out(finished: Sequence[FrozenTrial], additions: Sequence[Addition]) -> Iterator[str]:
    """Yield a line for each kind of data that the archive does not keep."""
    back = []
    for trial in finished:
        if trials.is_returned(trial):
            back.append(trial.number)

    if back:
        yield (
            f"the clock went back during {counted(len(back), 'trial')}, "
            f"the first of which is {back[0]}: their times and durations are left out"
        )

    without_place = 0
    for trial, addition in zip(finished, additions, strict=True):
        if isinstance(addition.outcome, str) and trials.attributes(trial.user_attrs):
            without_place += 1

    if without_place:
        yield (
            f"the user attributes of {counted(without_place, 'failed trial')} are left out: "
            "only results keep them"
        )


def _check_same(archive: Archive, study: str, additions: Sequence[Addition]) -> None:
    """Check that added trials have the same values: two storages may share a study's name.

    Raises:
        StudyConflictError: One has another value.
    """
    rows = archive.connection.read(lambda tx: tx.run(RESULTS_OF_IMPORT, study=study).data())
    stored = {row["token"]: row["value"] for row in rows}
    for token, _, outcome in additions:
        value = outcome.value if isinstance(outcome, Result) else None
        recorded = stored.get(token)
        # A user may have removed a value from the archive, and earlier releases stored infinite
        # ones.
        if recorded is not None and math.isfinite(recorded) and recorded != value:
            raise StudyConflictError(
                f"the study {study!r} has trials of another study of Optuna with this name: "
                f"{token} has the value {recorded} in the archive, and {value} in the storage; "
                "import it under another name with --study"
            )


def open_study(reference: str) -> optuna.Study:
    """Open a study of Optuna.

    Args:
        reference: `URL#STUDY`: a storage as Optuna names it (`sqlite:///study.db`), and the study's
            name.

    Raises:
        UsageError: The text names no study, or the storage cannot be read.
        UnknownNameError: The storage has no such study.
        SettingsError: Optuna is not installed.
    """
    url, separator, name = _parts(reference)
    if not separator or not url or not name:
        raise UsageError(
            f"a study of Optuna is named as URL#STUDY, got {_without_password(reference)!r}"
        )

    try:
        import optuna
    except ImportError:
        raise SettingsError(
            "reading studies of Optuna needs it: pip install 'nas-archive[bench]'"
        ) from None

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
        # A database driver may raise any error, and its text may contain the address with a
        # password.
        what = type(error).__name__
        raise UsageError(
            f"Optuna cannot read the storage {_without_password(url)}: {what}"
        ) from None
    finally:
        optuna.logging.set_verbosity(before)


def _parts(reference: str) -> tuple[str, str, str]:
    """Return storage, separator and name of a study; a file tells which `#` separates them."""
    parts = reference.rpartition("#")
    earlier = parts
    while earlier[1]:
        if (file := _file(earlier[0])) is not None and file.is_file():
            return earlier[0], "#", reference[len(earlier[0]) + 1 :]

        earlier = earlier[0].rpartition("#")

    return parts


def _file(url: str) -> Path | None:
    """Return the file of a storage; None for a server."""
    return Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:///") else None


def _without_password(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    _, mark, host = rest.rpartition("@")
    return f"{scheme}{separator}…@{host}" if mark else url
