"""A study on a space of parameters as a study of Optuna, in a SQLite file.

| archive                                | Optuna                                                        |
|----------------------------------------|---------------------------------------------------------------|
| study, objectives                      | study with directions and metric names                        |
| parameters                             | distributions (`importers.optuna.distributions`)              |
| space                                  | user attribute `archive_space`: the import takes it again,    |
|                                        | with its conditions, constraints, groups and defaults         |
| proposal with a result                 | trial, complete or pruned, with the curve of the objective    |
| proposal that failed                   | trial that failed, with the reason                            |
| proposal that is waiting or running    | left out                                                      |
| metrics, other hyperparameters         | user attributes                                               |
| constraints of the study               | attribute `constraints`: at most 0 where one is met           |

Names of parameters that an import from Optuna changed have their first form.
"""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from archive.errors import ArchiveError, SettingsError, UsageError
from archive.exchange.importers.optuna.distributions import choice_of, distribution_of
from archive.exchange.importers.optuna.parameters import SPACE
from archive.exchange.importers.optuna.study import NAMES
from archive.exchange.importers.optuna.trials import ATTRIBUTES, LISTED, NAMED, PREFIX, VIOLATION
from archive.parameters.parameter_space import ParameterSpace
from archive.store.properties import CURVE, EPOCH, METRIC, from_json, with_prefix
from archive.store.records import Constraint, State, Study
from archive.store.studies.configurations import read_configurations
from archive.store.studies.creation import PARAMETERS
from archive.store.studies.rows import read_rows

if TYPE_CHECKING:
    from archive.api import Archive

_COLUMNS = ("number", "state", "started", "finished", "reason", "hyperparameters", "evaluation")


class OptunaFile(NamedTuple):
    """A study of Optuna as a file.

    Attributes:
        content: The SQLite file.
        trials: Number of its trials.
        left_out: Number of proposals that are no trials: they are open, or fit the space no longer.
    """

    content: bytes
    trials: int
    left_out: int


def check_optuna() -> None:
    """Check that Optuna is installed.

    Raises:
        SettingsError: It is not.
    """
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise SettingsError(
            "writing studies of Optuna needs it: pip install 'nas-archive[bench]'"
        ) from None


def to_optuna(archive: Archive, name: str) -> OptunaFile:
    """Return a study on a space of parameters as a study of Optuna.

    Raises:
        UnknownNameError: There is no study of this name.
        UsageError: Its space has no parameters.
        SettingsError: Optuna is not installed.
    """
    study = archive.studies.get(name)
    if study.space != PARAMETERS:
        raise UsageError(
            f"a study of parameters becomes one of Optuna, and {name!r} is on the space "
            f"{study.space}: export csv, json, jsonl or parquet"
        )

    check_optuna()
    import optuna

    writer = _TrialWriter(study, optuna)
    configurations = read_configurations(archive.connection, study)
    rows = archive.connection.read(lambda tx: read_rows(tx, _COLUMNS, study=name))
    trials = []
    for row in sorted(rows):
        values = dict(zip(_COLUMNS, row, strict=True))
        trial = writer.trial(values, configurations.get(values["number"], {}))
        if trial is not None:
            trials.append(trial)

    content = _write(study, trials, writer.space, optuna)
    return OptunaFile(content, len(trials), len(rows) - len(trials))


def _write(study: Study, trials: list[Any], space: ParameterSpace, package: Any) -> bytes:
    before = package.logging.get_verbosity()
    package.logging.set_verbosity(package.logging.ERROR)
    try:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            # Names of metrics are an experimental feature of Optuna.
            warnings.simplefilter("ignore", package.exceptions.ExperimentalWarning)
            path = Path(folder) / "study.db"
            storage = package.storages.RDBStorage(f"sqlite:///{path}")
            written = package.create_study(
                storage=storage,
                study_name=study.name,
                directions=[_direction(objective.direction) for objective in study.objectives],
            )
            written.set_metric_names([objective.name for objective in study.objectives])
            written.set_user_attr(SPACE, space.json())
            for key, value in dict(study.config.get(ATTRIBUTES, {})).items():
                written.set_user_attr(key, value)

            written.add_trials(trials)
            storage.remove_session()
            storage.engine.dispose()
            return path.read_bytes()
    finally:
        package.logging.set_verbosity(before)


def _direction(direction: str) -> str:
    return "maximize" if direction == "maximise" else "minimize"


class _TrialWriter:
    """Proposals of one study as trials."""

    def __init__(self, study: Study, package: Any) -> None:
        self.study = study
        self.package = package
        self.space = ParameterSpace.from_json(study.space_config)
        renamed: Mapping[str, str] = study.config.get(NAMES, {})
        self._theirs = {name: renamed.get(name, name) for name in self.space.names}
        self._distributions = {}
        for parameter in self.space.parameters:
            self._distributions[parameter.name] = distribution_of(parameter.domain, package)

    def trial(self, row: Mapping[str, Any], configuration: Mapping[str, Any]) -> Any:
        """Return a proposal as a trial; None where it is open, or is none of the space."""
        state = State(row["state"])
        if state in (State.WAITING, State.RUNNING):
            return None

        try:
            values = self.space.existing(
                {name: configuration[name] for name in self.space.names if name in configuration}
            )
        except ArchiveError:
            return None

        params = {}
        distributions = {}
        for name, value in values.items():
            theirs = self._theirs[name]
            params[theirs] = choice_of(self.space[name].domain, value)
            distributions[theirs] = self._distributions[name]

        result = dict(row["evaluation"] or {})
        trial = self.package.trial.create_trial(
            params=params,
            distributions=distributions,
            **self._outcome(state, result, str(row["reason"] or "")),
            user_attrs=self._attributes(row, result),
        )
        trial.datetime_start = _time(row["started"])
        trial.datetime_complete = _time(row["finished"])
        return trial

    def _outcome(self, state: State, result: Mapping[str, Any], reason: str) -> dict[str, Any]:
        """Return state, values, curve and system attributes of a trial."""
        states = self.package.trial.TrialState
        metrics = with_prefix(METRIC, result)
        first = self.study.objectives[0].name
        values = [result.get("value")]
        values += [metrics.get(objective.name) for objective in self.study.further]
        finite = all(value is not None and math.isfinite(value) for value in values)
        if state is State.FAILED or not finite:
            return {"state": states.FAIL, "system_attrs": {"fail_reason": reason or "no value"}}

        curve = with_prefix(CURVE, result)
        steps = [] if self.study.further else list(curve.get(EPOCH, ()))
        reported = dict(zip(steps, curve.get(first, ()), strict=False))
        system = self._constraints(metrics)
        outcome = {"intermediate_values": reported, "system_attrs": system}
        if state is State.PRUNED:
            if not self.study.further and not reported:
                outcome["intermediate_values"] = {0: values[0]}

            return {**outcome, "state": states.PRUNED}

        return {**outcome, "state": states.COMPLETE, "values": values}

    def _constraints(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        """Return the constraints of a trial as Optuna's samplers record them."""
        names = [name for name in metrics if name.startswith(PREFIX) and name != VIOLATION]
        if names:
            plain = [name.removeprefix(PREFIX) for name in names]
            if all(name.isdigit() for name in plain):
                ordered = sorted(plain, key=int)
                return {LISTED: [metrics[f"{PREFIX}{name}"] for name in ordered]}

            return {f"{NAMED}{name}": metrics[f"{PREFIX}{name}"] for name in plain}

        limits = [limit for limit in self.study.constraints if limit.name != VIOLATION]
        return {LISTED: [_excess(limit, metrics) for limit in limits]} if limits else {}

    def _attributes(self, row: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
        """Return metrics, attributes of an import and further hyperparameters of a trial."""
        attributes: dict[str, Any] = {}
        objectives = {objective.name for objective in self.study.objectives}
        for name, value in with_prefix(METRIC, result).items():
            if name not in objectives and not name.startswith(PREFIX):
                attributes[name] = value

        environment = from_json(result.get("environment"))
        attributes |= environment.get(ATTRIBUTES, {})
        further = from_json(row["hyperparameters"])
        return {**attributes, "hyperparameters": further} if further else attributes


def _excess(limit: Constraint, metrics: Mapping[str, Any]) -> float:
    """Return how far a metric is beyond its bound; at most 0 where it is within, inf if unknown."""
    value = metrics.get(limit.name)
    if value is None:
        return math.inf

    return float(value - limit.bound if limit.operator.startswith("<") else limit.bound - value)


def _time(milliseconds: int | None) -> datetime | None:
    """Return a time as Optuna has it: local, and without a zone."""
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000)
