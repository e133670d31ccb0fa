"""An observer: one JSON object per line, in one file for each study."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from archive.trainer.observers.base import ObservedTrial, TrialEnd, TrialObserver


class JsonLines(TrialObserver):
    """Files of JSON lines.

    A trial has a line for its start, for the metrics of each step, and for its end.

    Args:
        home: Folder of the trainer's files.
        folder: Folder of the files.
        curve: Whether the metrics of steps are written, too.
    """

    def __init__(self, home: Path, folder: Path | None = None, curve: bool = True) -> None:
        """Keep the options; the object is pickled to its own process."""
        super().__init__(home)
        self.folder = home / "json-lines" if folder is None else folder
        self.curve = curve

    def open(self) -> str:
        """Create the folder; the trainer's log shows it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return str(self.folder)

    def on_start(self, trial: ObservedTrial) -> None:
        """Write the start of a trial, with every setting that its metrics may depend on."""
        self._write(trial, {"attempt": trial.attempt, **trial.settings()})

    def on_metrics(self, trial: ObservedTrial, step: int, metrics: Mapping[str, float]) -> None:
        """Write the metrics of a step."""
        if self.curve:
            self._write(trial, {"step": step, **metrics})

    def on_end(self, trial: ObservedTrial, end: TrialEnd) -> None:
        """Write how it ended."""
        self._write(
            trial, {"state": end.state, "value": end.value, "reason": end.reason, **end.costs}
        )

    def _write(self, trial: ObservedTrial, content: dict[str, Any]) -> None:
        # A study's name may hold any character.
        path = self.folder / f"{trial.study.encode().hex()}.jsonl"
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"run": trial.run, "proposal": trial.proposal, **content}) + "\n")
