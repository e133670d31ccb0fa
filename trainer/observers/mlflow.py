"""MLflow: one experiment a study, one run a proposal.

    params    every choice of the training     metrics   the curve; at the end `value` and `cost.…`
    tags      archive.run, archive.proposal, architecture, agent, worker; later state and reason

A later attempt at a proposal continues its run, on whichever machine. The login of a server comes
from MLflow's own variables (`MLFLOW_TRACKING_USERNAME`, `MLFLOW_TRACKING_PASSWORD`,
`MLFLOW_TRACKING_TOKEN`).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archive.trainer.observers.base import ObservedTrial, TrialEnd, TrialObserver

if TYPE_CHECKING:
    from mlflow import MlflowClient

_STATUS = {
    "COMPLETE": "FINISHED",
    "FAILED": "FAILED",
    "PAUSED": "SCHEDULED",
    "RETURNED": "SCHEDULED",
}
_UNUSABLE = re.compile(r"[^\w\-. :/]")
_LONGEST = 500
"""Largest length of a param that every release of MLflow accepts."""


class MlflowObserver(TrialObserver):
    """MLflow runs on a tracking server, or in a folder or a database of this machine.

    Args:
        home: Folder of the trainer's files.
        uri: Tracking URI; `MLFLOW_TRACKING_URI`, else the file store `HOME/mlflow`, if None.
        experiment: Name of the experiment; the name of each study if None.
    """

    requires = ("mlflow",)
    extra = "mlflow"

    def __init__(self, home: Path, uri: str | None = None, experiment: str | None = None) -> None:
        super().__init__(home)
        self.uri = (
            uri or os.environ.get("MLFLOW_TRACKING_URI") or (home / "mlflow").absolute().as_uri()
        )
        self.experiment = experiment
        self._runs: dict[str, str] = {}
        self._experiments: dict[str, str] = {}

    def open(self) -> str:
        """See `TrialObserver.open`."""
        # MLflow 3.7 and later refuse the file store without this; a file store is what a folder
        # asks for.
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        from mlflow import MlflowClient

        self._client: MlflowClient = MlflowClient(tracking_uri=self.uri)
        return self.uri

    def on_start(self, trial: ObservedTrial) -> None:
        """See `TrialObserver.on_start`."""
        from mlflow.entities import Param

        experiment = self._experiment_id(self.experiment or trial.study)
        run = self._find_run(experiment, trial) if trial.continues else None
        if run is None:
            run = self._client.create_run(
                experiment, run_name=trial.proposal, tags=_tags(trial)
            ).info.run_id
            params: list[Param] = []
            for name, value in trial.settings().items():
                params.append(Param(_key(name), str(value)[:_LONGEST]))

            self._client.log_batch(run, params=params)
        else:
            self._client.update_run(run, status="RUNNING")
            for name, value in _tags(trial).items():
                self._client.set_tag(run, name, value)

        self._runs[trial.run] = run

    def on_metrics(self, trial: ObservedTrial, step: int, metrics: Mapping[str, float]) -> None:
        """See `TrialObserver.on_metrics`."""
        self._log(self._runs[trial.run], metrics, step)

    def on_end(self, trial: ObservedTrial, end: TrialEnd) -> None:
        """See `TrialObserver.on_end`."""
        run = self._runs.pop(trial.run)
        if end.state == "LOST":
            return

        values = {f"final.{name}": value for name, value in end.metrics.items()}
        values |= {f"cost.{name}": value for name, value in end.costs.items()}
        if end.value is not None:
            values["value"] = end.value

        self._log(run, values, int(end.costs.get("epochs", 0)))
        self._client.set_tag(run, "archive.state", end.state)
        if end.reason is not None:
            self._client.set_tag(run, "archive.reason", end.reason)

        if end.state in ("COMPLETE", "FAILED"):
            self._client.set_terminated(run, _STATUS[end.state])
        else:
            self._client.update_run(run, status=_STATUS[end.state])

    def close(self) -> None:
        """See `TrialObserver.close`."""
        while self._runs:
            self._client.set_terminated(self._runs.popitem()[1], "KILLED")

    def _log(self, run: str, values: Mapping[str, float], step: int) -> None:
        from mlflow.entities import Metric

        now = int(1000 * time.time())
        metrics = [Metric(_key(name), value, now, step) for name, value in values.items()]
        self._client.log_batch(run, metrics=metrics)

    def _experiment_id(self, name: str) -> str:
        if name not in self._experiments:
            self._experiments[name] = self._find_or_create(name)

        return self._experiments[name]

    def _find_or_create(self, name: str) -> str:
        from mlflow.exceptions import MlflowException

        # MLflow looks names up by a filter that puts them in single quotes.
        name = name.replace("'", "’")
        experiment = self._client.get_experiment_by_name(name)
        if experiment is None:
            try:
                return str(self._client.create_experiment(name))
            except MlflowException:
                # Another trainer was first.
                experiment = self._client.get_experiment_by_name(name)
                if experiment is None:
                    raise

        return str(experiment.experiment_id)

    def _find_run(self, experiment: str, trial: ObservedTrial) -> str | None:
        runs: list[Any] = self._client.search_runs(
            [experiment], f"tags.`archive.run` = '{trial.run}'", max_results=1
        )
        return str(runs[0].info.run_id) if runs else None


def _tags(trial: ObservedTrial) -> dict[str, str]:
    return {
        "archive.run": trial.run,
        "archive.proposal": trial.proposal,
        "archive.architecture": str(trial.architecture["key"]),
        "archive.agent": trial.agent or "",
        "archive.worker": trial.worker,
        "archive.objective": trial.objective,
        "archive.state": "RUNNING",
    }


def _key(name: str) -> str:
    """Return a name that MLflow accepts: a relative path without empty parts."""
    parts = _UNUSABLE.sub("_", name).split("/")
    return "/".join(part for part in parts if part not in ("", ".", "..")) or "_"
