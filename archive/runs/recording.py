"""Recording of runs: `archive record -- COMMAND`, and `archive.record(…)` within a program.

    with archive.record("mine", why="wider") as run:
        known = run.model(model, example)
        for step in range(1000):
            run.log(step, {"val_loss": loss})

Within a program that `archive record` runs, `archive.record` adds to that run.
"""

from __future__ import annotations

import json
import operator
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archive import settings as settings_module
from archive.errors import UsageError
from archive.files import write_atomically
from archive.queue.causes import Cause
from archive.runs import known_runs, life_cycle
from archive.runs.arguments import split_seed
from archive.runs.known_runs import KnownRun
from archive.runs.life_cycle import (
    TOLD,
    RunRequest,
    begin,
    check_objective,
    check_request,
    end,
    masked,
    read_told,
    say,
    take_told,
)
from archive.runs.measurements import Measurements
from archive.runs.program import RUN_VARIABLE
from archive.runs.run_folder import LOGGED, RunFolder, RunRecord, now, runs_of
from archive.runs.secrets import Secrets
from archive.runs.surroundings import describe
from archive.values import LARGEST

if TYPE_CHECKING:
    from torch import nn

    from archive.settings import Settings


class Recording:
    """A run of this process, from the begin of a `with` block to its end.

    Attributes:
        folder: Folder of the run.
    """

    def __init__(
        self, folder: RunFolder, record: RunRecord | None, configuration: Settings
    ) -> None:
        """Begin; a run of `archive record` around this process has no record of its own here."""
        self.folder = folder
        self._record = record
        self._configuration = configuration
        self._secrets = Secrets.find(os.environ, sys.argv)
        self._process = os.getpid()
        # A program may record itself more than once.
        self._told = read_told(folder)
        self._logged = (folder.path / LOGGED).open("a", encoding="utf-8", buffering=1 << 14)
        self._lock = threading.Lock()
        self._unwritten = 0
        self._error: OSError | None = None

    @property
    def id(self) -> str:
        """Id of the run."""
        return self.folder.id

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Keep metrics of a step; they reach the disk with the first hundred, and at the end.

        Args:
            step: Step or epoch, at least 0.
            metrics: Numbers by name.

        Raises:
            UsageError: The step is no whole number from 0, or a metric is no number.
        """
        number = _whole_step(step)
        line: dict[str, Any] = {"step": number}
        for name, value in metrics.items():
            try:
                line[name] = float(value)
            except (TypeError, ValueError, OverflowError, RuntimeError):
                raise UsageError(
                    f"the metric {name!r:.60} must be a number, got {value!r:.60}"
                ) from None

        text = json.dumps(line) + "\n"
        with self._lock:
            if self._error is not None:
                return

            try:
                self._logged.write(text)
                self._unwritten += 1
                if self._unwritten >= 100:
                    self._logged.flush()
                    self._unwritten = 0
            except OSError as error:
                self._stop(error)

    def _stop(self, error: OSError) -> None:
        """Keep no more metrics: a full disk ends no training."""
        if self._error is None:
            say(f"the metrics of the run have an end: {error.strerror}")

        self._error = error

    def set(self, **values: Any) -> None:
        """Keep values that the run is given: `run.set(lr=3e-4, depth=4)`."""
        self.add(values)

    def add(self, values: Mapping[str, Any]) -> None:
        """Keep values that the run is given, of any name."""
        self.tell(values={**self._told.get("values", {}), **values})

    def tell(self, **facts: Any) -> None:
        """Keep what is told of the run, by the names of `RunRecord`."""
        if "values" in facts:
            facts["values"] = masked(facts["values"], self._secrets)

        self._told |= {name: value for name, value in facts.items() if value is not None}
        write_atomically(self.folder.path / TOLD, json.dumps(self._told, default=str))

    def model(self, model: nn.Module, *example: Any) -> list[KnownRun]:
        """Capture the network that is trained, and return the earlier runs that trained it.

        A network that cannot be exported is trained all the same; one line says why.

        Args:
            model: The module.
            *example: Its inputs: tensors, of any batch.
        """
        from archive.architecture import codec
        from archive.errors import ArchiveError
        from archive.runs.captured import capture

        try:
            network = capture(model, example)
        except ArchiveError as error:
            say(f"the network is not captured: {error}")
            return []

        document = {"architecture": codec.to_dict(network), "key": network.functional_key}
        self.folder.write_network(document)
        earlier = known_runs.find(self.folder.path.parent, network=network.functional_key)
        for run in earlier[-3:]:
            say(f"this network was trained before, by {run}")

        return earlier

    def lightning(self) -> Any:
        """Return a callback of Lightning's Trainer (`archive.runs.callbacks.lightning_callback`).

        Raises:
            UsageError: Lightning is not installed.
        """
        from archive.runs.callbacks import lightning_callback

        return lightning_callback(self)

    def hugging_face(self) -> Any:
        """Return a callback of Hugging Face's Trainer (`callbacks.hugging_face_callback`).

        Raises:
            UsageError: The package `transformers` is not installed.
        """
        from archive.runs.callbacks import hugging_face_callback

        return hugging_face_callback(self)

    def close(self, error: BaseException | None = None) -> None:
        """End the run.

        Args:
            error: The exception that ended it; None where there was none.
        """
        if os.getpid() != self._process:
            # A child of a fork has left the block: the run goes on in its parent.
            return

        with self._lock:
            try:
                self._logged.close()
            except OSError as failure:
                self._stop(failure)

        record = self._record
        if record is None:
            return

        record.finished = now()
        if isinstance(error, SystemExit) and not error.code:
            error = None

        if error is not None:
            record.reason = self._secrets.mask(f"{type(error).__name__}: {error}")[:2000]
            interrupted = isinstance(error, KeyboardInterrupt)
            record.cause = (Cause.CRASH if interrupted else Cause.TRAINING).value

        take_told(self.folder, record, Measurements(), self._secrets)
        end(self.folder, record)
        life_cycle.start_delivery(self._configuration)


@contextmanager
def record(
    study: str | None = None,
    *,
    config: Mapping[str, Any] | None = None,
    parent: str | None = None,
    why: str | None = None,
    minimise: str | None = None,
    maximise: str | None = None,
    task: str | None = None,
    seed: int | None = None,
    settings: Settings | None = None,
) -> Iterator[Recording]:
    """Record what the block does as one run.

    The block never waits for the archive: the run is kept on disk, and delivered by a process of
    its own. An exception ends the run with its message, and goes on.

    Args:
        study: Name of the study; None takes the name of the repository or of the folder.
        config: Values that the run is given, by name.
        parent: The run that it is a change of: STUDY#NUMBER, a number in the study, `best` or
            `last`.
        why: Reason for the run in words.
        minimise: Metric that the run is judged by, smaller is better.
        maximise: Metric that the run is judged by, larger is better.
        task: Name of the task; None for the study's.
        seed: Seed of the run; None takes the one in `config`. Runs that differ in it alone are
            repeats.
        settings: Settings of the archive; None reads them as commands do.

    Raises:
        UsageError: Both `minimise` and `maximise` are given, or the study, the parent or the seed
            is invalid.
        StoreError: The folder of the run cannot be made.
    """
    objective, direction = check_objective(minimise, maximise)
    configuration = settings_module.load() if settings is None else settings
    request = RunRequest(study, parent, why, objective, direction, task)
    check_request(request, runs_of(configuration.home))
    seed = None if seed is None else whole_seed(seed)
    outer = _outer_run()
    if outer is not None:
        recording = Recording(outer, None, configuration)
        recording.add(config or {})
        recording.tell(
            parent=parent,
            motivation=why,
            objective=objective,
            direction=direction,
            task=task,
            seed=seed,
        )
        with closing(recording):
            yield recording

        return

    folder = RunFolder.create(runs_of(configuration.home))
    run = begin(folder, request, Path(sys.argv[0] or "python").name)
    run.command = [Secrets.find(os.environ, sys.argv).mask(word) for word in sys.argv]
    values, config_seed = split_seed(config or {})
    run.values = masked(values, Secrets.find(os.environ))
    run.seed = config_seed if seed is None else seed
    run.environment = describe(sys.executable, os.environ)
    folder.write(run)
    recording = Recording(folder, run, configuration)
    try:
        yield recording
    except BaseException as error:
        recording.close(error)
        raise

    recording.close()


def _outer_run() -> RunFolder | None:
    """Return the run of `archive record` around this process; None where there is none, or no more.

    A process that outlives its run, such as a terminal's server, hands the variable on.
    """
    path = os.environ.get(RUN_VARIABLE)
    if not path:
        return None

    folder = RunFolder(Path(path))
    outer = folder.read()
    is_running = outer is not None and outer.finished is None and folder.is_recording()
    return folder if is_running else None


def whole_seed(seed: Any) -> int:
    """Return a seed as a whole number of 64 bits.

    Raises:
        UsageError: It is none.
    """
    try:
        number = operator.index(seed)
    except TypeError:
        number = LARGEST

    if abs(number) >= LARGEST:
        raise UsageError(f"a seed must be a whole number of 64 bits, got {seed!r:.60}")

    return number


def _whole_step(step: Any) -> int:
    try:
        number = int(step)
    except (TypeError, ValueError, OverflowError):
        number = -1

    if isinstance(step, bool) or number < 0 or number != step:
        raise UsageError(f"a step must be a whole number from 0, got {step!r:.60}")

    return number
