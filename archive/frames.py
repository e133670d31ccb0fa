"""Pandas data frames of studies, evaluations, curves and proposals.

They need `pip install 'nas-archive[pandas]'`.

    frames.studies(store)                     one row per study
    frames.evaluations(store, "my-study")     one row per evaluation, one column per metric
    frames.curves(store, "my-study")          one row per epoch of an evaluation
    frames.proposals(store, "my-study")       one row per proposal, in any state
    frames.pareto_set(store, "my-study")      one row per result of the Pareto set, one column per objective
    frames.hypervolume(store, "my-study")     the hypervolume after each result
    frames.answer(store.named("cost"))        the rows of any query

Frames are copies: changing one changes nothing in the archive. Times are in UTC, values in the
task's own unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from archive.errors import SettingsError
from archive.queries import pareto as pareto_sets
from archive.store.properties import EPOCH
from archive.store.records import Evaluation, State, Study
from archive.store.studies.configurations import read_configurations, values_of
from archive.store.studies.rows import PARAMETER

if TYPE_CHECKING:
    import pandas as pd

    from archive.api import Archive
    from archive.database.user_query import QueryResult

_EVALUATION = (
    "study",
    "number",
    "task",
    "protocol",
    "value",
    "score",
    "agent",
    "epochs",
    "seconds",
    "seed",
    "device",
    "hardware",
    "answered_from",
    "partial",
    "created",
)
_PROPOSAL = (
    "study",
    "number",
    "agent",
    "priority",
    "acquisition",
    "mean",
    "std",
    "fidelity",
    "attempts",
    "worker",
    "reason",
    "seconds",
    "hyperparameters",
    "created",
    "started",
    "finished",
)
_CURVE = ("train_loss", "valid_loss", "seconds")
"""Columns of every training, whatever its task."""
_WHOLE = ("number", "epochs", "seed")
_NUMBERS = (
    "value",
    "score",
    "best",
    "seconds",
    "acquisition",
    "mean",
    "std",
    "fidelity",
    "hypervolume",
    "train_loss",
    "valid_loss",
)
"""Columns of numbers, also where all of them are missing: pandas would take those for objects."""
_TIMES = ("created", "started", "finished")


def studies(archive: Archive) -> pd.DataFrame:
    """Return the studies by name, oldest first.

    The columns are objective, counts of proposals, best value and constraints.
    """
    rows = []
    for summary in archive.studies.list():
        study = summary.study
        names = ("task", "protocol", "space", "objective", "direction", "budget", "seed", "created")
        counts = {state.value.lower(): summary.counts.get(state, 0) for state in State}
        row = {"study": study.name}
        for name in names:
            row[name] = getattr(study, name)

        rows.append({**row, **counts, "best": summary.best})
        rows[-1]["constraints"] = ", ".join(map(str, study.constraints)) or None

    return _frame(rows, "study", [], ())


def evaluations(
    archive: Archive,
    names: str | Sequence[str] | None = None,
    *,
    task: str | None = None,
    space: str | None = None,
    protocol: str | None = None,
) -> pd.DataFrame:
    """Return evaluations by their ids, without learning curves.

    Arguments as for `Studies.evaluations`.

    Leave out the rows with `partial` in comparisons: their trainings paused at a rung.

    Columns: the fields of an `archive.store.records.Evaluation`, the architecture as its key with
    its space, number of layers and edges; every metric as `metric_…`, every hyperparameter as
    `hyperparameter_…`, every named decision of the space as `parameter_…`.

    Raises:
        UnknownNameError: There is no study of this name.
    """
    _check_studies(archive, names)
    results = archive.studies.evaluations(
        names, task=task, space=space, protocol=protocol, curves=False
    )
    studies_by_name: dict[str | None, Study | None] = {None: None}
    rows = []
    for evaluation in results:
        if evaluation.study not in studies_by_name:
            studies_by_name[evaluation.study] = archive.studies.find(evaluation.study or "")

        study = studies_by_name[evaluation.study]
        architecture = evaluation.architecture
        row: dict[str, Any] = {"evaluation": evaluation.id}
        for name in _EVALUATION:
            row[name] = getattr(evaluation, name)

        row |= {"architecture": architecture.key, "space": architecture.space}
        row |= {"layers": len(architecture.layers), "edges": len(architecture.edges)}
        for name, value in evaluation.metrics.items():
            row[f"metric_{name}"] = value

        for name, setting in evaluation.hyperparameters.items():
            row[f"hyperparameter_{name}"] = setting

        for name, value in values_of(study, architecture).items():
            row[PARAMETER + name] = value

        rows.append(row)

    return _frame(
        rows, "evaluation", [*_EVALUATION, "architecture", "space", "layers", "edges"], _WHOLE
    )


def curves(
    archive: Archive, names: str | Sequence[str] | None = None, *, task: str | None = None
) -> pd.DataFrame:
    """Return the training curves of evaluations by id and epoch, one column per metric.

    An evaluation without a curve has no rows.

    Raises:
        UnknownNameError: There is no study of this name.
    """
    _check_studies(archive, names)
    results = archive.studies.evaluations(names, task=task)
    return _frame([*chain.from_iterable(map(_epochs, results))], ["evaluation", EPOCH], _CURVE, ())


def proposals(archive: Archive, study: str) -> pd.DataFrame:
    """Return the proposals of a study by their ids.

    `seconds` is the agent's time, without the training. Every named decision of the space is a
    column `parameter_…`.

    Raises:
        UnknownNameError: There is no study of this name.
    """
    configurations = read_configurations(archive.connection, archive.studies.get(study))
    rows = []
    for proposal in archive.proposals.list(study):
        row = {"proposal": proposal.id, "state": proposal.state.value}
        row["architecture"] = proposal.architecture_key
        for name in _PROPOSAL:
            row[name] = getattr(proposal, name)

        for name, value in configurations.get(proposal.number, {}).items():
            row[PARAMETER + name] = value

        rows.append(row)

    return _frame(rows, "proposal", ["state", "architecture", *_PROPOSAL], ())


def pareto_set(archive: Archive, study: str) -> pd.DataFrame:
    """Return the Pareto set of a study by the ids of the proposals.

    The best in the first objective is first.

    Raises:
        UnknownNameError: There is no study of this name.
    """
    snapshot = archive.studies.snapshot(study)
    pareto = pareto_sets.pareto_set(snapshot)
    names = [objective.name for objective in snapshot.study.objectives]
    rows: list[dict[str, Any]] = []
    if pareto is not None:
        for view, values in zip(pareto.proposals, pareto.values, strict=True):
            row = {"proposal": view.id, "number": view.number}
            row["architecture"] = view.architecture_key
            rows.append(row | dict(zip(names, values, strict=True)))

    return _frame(rows, "proposal", ["number", "architecture", *names], ())


def hypervolume(archive: Archive, study: str) -> pd.DataFrame:
    """Return the hypervolume of a study after each result, by the number of the proposal.

    Raises:
        UnknownNameError: There is no study of this name.
    """
    pareto = pareto_sets.pareto_set(archive.studies.snapshot(study))
    history = () if pareto is None else pareto.history
    return _frame(
        [{"number": number, "hypervolume": volume} for number, volume in history],
        "number",
        ["hypervolume"],
        (),
    )


def answer(result: QueryResult) -> pd.DataFrame:
    """Return the rows of a query."""
    return _pandas().DataFrame(result.rows, columns=result.columns)


def _check_studies(archive: Archive, names: str | Sequence[str] | None) -> None:
    for name in [names] if isinstance(names, str) else names or ():
        archive.studies.get(name)


def _epochs(evaluation: Evaluation) -> list[dict[str, Any]]:
    epochs = evaluation.curve.get(EPOCH, [])
    others = dict(evaluation.curve)
    others.pop(EPOCH, None)
    # A user, or an earlier release, may have stored lists of different lengths.
    rows = []
    for index, epoch in enumerate(epochs):
        row: dict[str, Any] = {"evaluation": evaluation.id, EPOCH: int(epoch)}
        for name, values in others.items():
            row[name] = values[index] if index < len(values) else None

        rows.append(row)

    return rows


def _frame(
    rows: Sequence[dict[str, Any]],
    index: str | list[str],
    columns: Sequence[str],
    whole: Sequence[str],
) -> pd.DataFrame:
    """Return a frame with its columns, even without rows."""
    pandas = _pandas()
    by = [index] if isinstance(index, str) else index
    names = list(dict.fromkeys(chain.from_iterable(rows))) or [*by, *columns]
    frame = pandas.DataFrame(rows, columns=names)
    for name in _TIMES:
        if name in frame:
            frame[name] = pandas.to_datetime(frame[name], unit="ms", utc=True)

    for name in _NUMBERS:
        if name in frame:
            frame[name] = frame[name].astype("float64")

    for name in whole:
        # In a column of numbers, one missing value turns all of them into floats, which lose digits
        # above 2^53.
        frame[name] = pandas.array([row[name] for row in rows], dtype="Int64")

    return frame.set_index(index)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise SettingsError("data frames need pandas: pip install 'nas-archive[pandas]'") from None

    return pandas
