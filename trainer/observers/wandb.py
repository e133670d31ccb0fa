"""Weights & Biases: one run a proposal, grouped by study.

A later attempt at a proposal continues its run. Offline runs are folders that `wandb sync` uploads.
The API key comes from `WANDB_API_KEY` or from `wandb login`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archive.errors import UsageError
from archive.trainer.observers.base import ObservedTrial, TrialEnd, TrialObserver

if TYPE_CHECKING:
    import wandb

MODES = ("online", "offline")


class WandbObserver(TrialObserver):
    """Weights & Biases runs, online or as folders to upload later.

    Args:
        home: Folder of the trainer's files.
        project: Project of the runs; `WANDB_PROJECT`, else `archive`, if None.
        entity: User or team of the project; the login's if None.
        mode: `online` or `offline`; `WANDB_MODE`, else online where there is a login, if None.
        folder: Folder of the local files; `HOME/wandb` if None.
    """

    requires = ("wandb",)
    extra = "wandb"

    def __init__(
        self,
        home: Path,
        project: str | None = None,
        entity: str | None = None,
        mode: str | None = None,
        folder: Path | None = None,
    ) -> None:
        super().__init__(home)
        if mode not in (None, *MODES):
            raise UsageError(
                f"the mode of the observer wandb must be online or offline, got {mode!r}"
            )

        self.project = project or os.environ.get("WANDB_PROJECT") or "archive"
        self.entity = entity
        self.mode = mode or os.environ.get("WANDB_MODE")
        self.folder = home if folder is None else folder
        self._runs: dict[str, wandb.Run] = {}

    def open(self) -> str:
        """See `TrialObserver.open`."""
        import wandb

        self.folder.mkdir(parents=True, exist_ok=True)
        if self.mode is None:
            self.mode = "online" if wandb.api.api_key else "offline"

        return f"{self.mode}, project {self.project}, files in {self.folder / 'wandb'}"

    def on_start(self, trial: ObservedTrial) -> None:
        """See `TrialObserver.on_start`."""
        import wandb

        self._runs[trial.run] = wandb.init(
            project=self.project,
            entity=self.entity,
            dir=str(self.folder),
            id=trial.run,
            name=trial.proposal,
            group=trial.study,
            job_type="trial",
            config=_config(trial),
            mode=self.mode,  # type: ignore[arg-type]
            resume="allow" if self.mode == "online" else None,
            # Trials of several slots run at the same time.
            reinit="create_new",
            # The process has no script or repository of the user's, and its output is the
            # observer's log.
            settings=wandb.Settings(console="off", silent=True, disable_git=True, save_code=False),
        )

    def on_metrics(self, trial: ObservedTrial, step: int, metrics: Mapping[str, float]) -> None:
        """See `TrialObserver.on_metrics`."""
        self._runs[trial.run].log(dict(metrics), step=step)

    def on_end(self, trial: ObservedTrial, end: TrialEnd) -> None:
        """See `TrialObserver.on_end`."""
        run = self._runs.pop(trial.run)
        run.summary.update({"state": end.state})
        run.summary.update({f"final/{name}": value for name, value in end.metrics.items()})
        run.summary.update({f"cost/{name}": value for name, value in end.costs.items()})
        if end.value is not None:
            run.summary.update({"value": end.value})

        if end.reason is not None:
            run.summary.update({"reason": end.reason})

        run.finish(exit_code=1 if end.state == "FAILED" else 0)

    def close(self) -> None:
        """See `TrialObserver.close`."""
        while self._runs:
            self._runs.popitem()[1].finish(exit_code=1)


def _config(trial: ObservedTrial) -> dict[str, Any]:
    return {
        "proposal": trial.proposal,
        "attempt": trial.attempt,
        "agent": trial.agent,
        "task": trial.task,
        "space": trial.space,
        "objective": trial.objective,
        "direction": trial.direction,
        "seed": trial.seed,
        "worker": trial.worker,
        "device": trial.device,
        "architecture": dict(trial.architecture),
        "protocol": dict(trial.protocol),
        "hyperparameters": dict(trial.hyperparameters),
    }
