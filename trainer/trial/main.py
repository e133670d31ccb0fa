"""The process of a trial: trains, reports to its daemon, saves the weights, can be interrupted.

main thread    trains; sends EpochReport, Heartbeat and the terminal message
listener       reads the pipe: a message interrupts the trial; it is closed when the daemon is gone
"""

from __future__ import annotations

import logging
import math
import os
import platform
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from archive.architecture.parameter_operations import NAME as PARAMETERS
from archive.errors import TrainingError, WeightsError
from archive.queue.causes import Cause
from archive.queue.reuse import PARAMETERS_READ
from archive.store.properties import UNSAVED_WEIGHTS
from archive.store.records import Result, Weights
from archive.trainer.recipes.base import Resources, Stop
from archive.trainer.recipes.context import TrialContext
from archive.trainer.recipes.curve import Metrics
from archive.trainer.recipes.run import Cancelled, Outcome, run_beside
from archive.trainer.recipes.run import run as run_recipe
from archive.trainer.storage import checkpoints
from archive.trainer.storage.timeouts import call_with_timeout
from archive.trainer.trial import costs, failures, process_tree
from archive.trainer.trial import log as log_file
from archive.trainer.trial.devices import show_only
from archive.trainer.trial.failures import memory_need
from archive.trainer.trial.messages import (
    EpochReport,
    Heartbeat,
    Message,
    TrialFailed,
    TrialFinished,
    TrialInterrupted,
    encode,
)
from archive.trainer.trial.spec import TrialSpec, without_inherited_weights

log = logging.getLogger("archive.trainer")

Send = Callable[[Message | Heartbeat], None]
SAVING_SECONDS = 600.0
"""Longest time for saving weights; the trial sends heartbeats meanwhile."""

NO_ANSWER = f"they could not be saved within {SAVING_SECONDS:g} s"


def run(spec: TrialSpec, daemon: Connection) -> None:
    """Run a trial, and send its messages to the daemon."""
    process_tree.separate(daemon)
    sending = threading.Lock()
    pid = os.getpid()

    def send(message: Message | Heartbeat) -> None:
        if os.getpid() != pid:
            raise TrainingError(
                "a process that the recipe has forked cannot report: its parent can"
            )

        content = memoryview(encode(message))
        try:
            with sending:
                while content:
                    content = content[os.write(daemon.fileno(), content) :]
        except ConnectionError as error:
            raise _DaemonGone from error

    attempt = _Attempt(spec, send)
    threading.Thread(target=_listen, args=(daemon, attempt), daemon=True, name="listener").start()
    try:
        send(_terminal_message(attempt))
    except _DaemonGone:
        return


class _DaemonGone(Exception):  # noqa: N818 - no error of the trial, and never seen outside its process
    """The daemon no longer reads the pipe. A recipe's own broken pipe is an ordinary error."""


class _Attempt:
    """The trial as this process knows it: its specification, and its context once there is one."""

    def __init__(self, spec: TrialSpec, send: Send) -> None:
        self.spec = spec
        self.send = send
        self.cancelled = threading.Event()
        self.context: TrialContext | None = None
        self.recipe: dict[str, str] = {}
        # File of the recipe's function.
        self.file: str | None = None
        folder = spec.checkpoint_folder
        self.checkpoint = (
            checkpoints.path_of(folder, spec.proposal) if folder and spec.proposal else None
        )

    @property
    def begun(self) -> bool:
        """Whether the recipe has begun with its steps, as far as its context tells."""
        return self.context is not None and (self.context.stepping or self.context.reports > 0)

    def begin(self) -> TrialContext:
        """Return a new context of the trial.

        Raises:
            UsageError: The specification contradicts the protocol.
        """
        spec = self.spec
        self.context = TrialContext(
            spec.architecture,
            spec.task,
            spec.protocol,
            seed=spec.seed,
            hyperparameters=spec.hyperparameters,
            parameters=spec.parameters,
            objective=spec.objective,
            direction=spec.direction,
            epochs=spec.epochs,
            precision=spec.precision,
            resources=Resources(
                (spec.device,), spec.threads, spec.seconds, spec.scratch_bytes, spec.memory_bytes
            ),
            scratch=spec.scratch,
            initial=spec.initial,
            inherited=spec.inherited,
            recipe=self.recipe,
            model=spec.model,
            checkpoint=self.checkpoint,
            checkpoint_seconds=spec.checkpoint_seconds,
            on_report=self._report,
            on_heartbeat=lambda: self.send(Heartbeat()),
            cancelled=self.cancelled,
            rank=spec.ranks.rank,
            world_size=spec.ranks.world_size,
        )
        self.context.checkpoint.run = spec.run
        return self.context

    def interrupt(self) -> None:
        """Let the recipe stop; before its first step, end the process at once."""
        self.cancelled.set()
        if self.context is None or not self.context.stepping:
            # Reading data or building the network may take long, and loses nothing when it is
            # killed. Remote storage is not asked: it may answer late.
            saved = isinstance(self.checkpoint, Path) and self.checkpoint.exists()
            with suppress(_DaemonGone):
                self.send(TrialInterrupted(saved, epoch=0))

            os._exit(0)

    def _report(self, metrics: Metrics, resumed: bool) -> None:
        if not resumed:
            log.info("%s", " ".join(f"{name}={value:.6g}" for name, value in metrics.items()))

        self.send(EpochReport(metrics, resumed))


def _listen(daemon: Connection, attempt: _Attempt) -> None:
    """Interrupt the trial on the daemon's message; end the process with the pipe."""
    while True:
        try:
            daemon.recv()
        except (EOFError, OSError):
            process_tree.end_children()
            os._exit(1)

        attempt.interrupt()


def _terminal_message(attempt: _Attempt) -> Message:
    spec = attempt.spec
    try:
        _enter(spec)
        return TrialFinished(_result_of(attempt))
    except Cancelled as cancelled:
        log.info("interrupted saved=%s epoch=%d", cancelled.saved, cancelled.epoch)
        return TrialInterrupted(cancelled.saved, cancelled.epoch)
    except _DaemonGone:
        raise
    except Exception as error:
        failed = failures.failure_of(error, begun=attempt.begun, file=attempt.file)
        if failed.cause is Cause.OUT_OF_MEMORY:
            # A device that does not answer now leaves the failure final.
            with suppress(RuntimeError, OSError):
                failed = replace(failed, memory=memory_need(spec.device, error))

        log.exception("trial failed cause=%s reason=%r", failed.cause, failed.reason)
        # A rank may fail because another one has: the daemon knows whether the failure is final.
        if not failed.retry and failed.memory is None and spec.ranks.world_size == 1:
            checkpoints.remove(spec.checkpoint_folder, spec.proposal)

        return failed
    except BaseException as error:
        # SystemExit, KeyboardInterrupt, and exceptions of libraries: asyncio's CancelledError.
        log.exception("the recipe ended the process")
        return TrialFailed(f"the recipe ended the process: {type(error).__name__}: {error}")


def _enter(spec: TrialSpec) -> None:
    """Begin the log, enter the scratch folder, see the trial's GPUs alone, and know the rank.

    Raises:
        OSError: The home or the scratch folder cannot be written.
    """
    if spec.log is not None:
        log_file.capture(spec.log, spec.ranks)
        log.info(
            "attempt began proposal=%s pid=%d device=%s", spec.proposal, os.getpid(), spec.device
        )

    log_file.show_stacks()
    _enter_scratch(spec.scratch)
    show_only(spec.visible)
    os.environ.update(spec.ranks.environment())


def _enter_scratch(scratch: Path | None) -> None:
    """Let relative paths and temporary files lead into the scratch folder."""
    if scratch is not None:
        scratch.mkdir(exist_ok=True)
        os.chdir(scratch)
        os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)


def _result_of(attempt: _Attempt) -> Result:
    _set_up_torch(attempt.spec.threads)
    # Before the import: the file may be edited during the training.
    attempt.recipe = attempt.spec.recipe.record()
    if attempt.spec.ranks.rank:
        _follow(attempt)
        return Result(math.nan)

    outcome, latency = _train(attempt, costs.PeakMemory(attempt.spec.device))
    spec = attempt.spec
    environment = _environment(spec, outcome, attempt.recipe, latency)
    # A trial that pauses at a rung has its checkpoint; weights are saved for finished trainings.
    saved = None
    problem = ""
    if outcome.weights and outcome.ended != Stop.RUNG:
        saved, problem = _save(spec, outcome.weights, lambda: attempt.send(Heartbeat()))

    # A recipe's own entries of these names are none of ours.
    environment.pop(UNSAVED_WEIGHTS, None)
    environment.pop(PARAMETERS_READ, None)
    reads = None if attempt.context is None else attempt.context.reads.known()
    if reads is not None and spec.architecture.space == PARAMETERS:
        environment[PARAMETERS_READ] = reads

    if problem:
        environment[UNSAVED_WEIGHTS] = problem

    log.info(
        "finished value=%.6g ended=%s seconds=%.3f", outcome.value, outcome.ended, outcome.seconds
    )
    return Result(
        value=outcome.value,
        metrics=outcome.metrics,
        curve=outcome.curve,
        epochs=outcome.epochs,
        seconds=outcome.seconds,
        seed=spec.seed,
        device=spec.device,
        hardware=costs.hardware_name(spec.device),
        environment=environment,
        weights=saved,
    )


def _set_up_torch(threads: int | None) -> None:
    import torch

    if threads is not None:
        torch.set_num_threads(threads)

    # Weights that decay towards zero pass through denormal numbers, which a CPU multiplies a
    # hundred times slower.
    torch.set_flush_denormal(True)


def _environment(
    spec: TrialSpec, outcome: Outcome, recipe: Mapping[str, Any], latency: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the record of a training's conditions: machine, versions, recipe, its end."""
    import torch

    environment: dict[str, Any] = {
        "host": platform.node(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        # A plain string: to read torch's own class, the daemon would import torch.
        "torch": str(torch.__version__),
        "threads": torch.get_num_threads(),
        **outcome.environment,
        **recipe,
        "ended": outcome.ended,
    }
    if spec.ranks.world_size > 1:
        environment["world_size"] = spec.ranks.world_size

    if outcome.resumed:
        environment["resumed"] = outcome.resumed

    if outcome.inherited:
        environment["inherited"] = dict(outcome.inherited)

    if latency:
        environment["latency"] = {**latency, "slots": spec.slots}

    if spec.hyperparameters:
        environment["hyperparameters"] = dict(spec.hyperparameters)

    return environment


def _train(attempt: _Attempt, memory: costs.PeakMemory) -> tuple[Outcome, dict[str, Any]]:
    """Run the recipe, and return the outcome with its costs, and the conditions of the latency.

    If inherited weights fail to load, the trial runs again by the specification without them.
    """
    fit = attempt.spec.recipe.load()
    attempt.file = attempt.spec.recipe.file_of(fit)
    latency: dict[str, Any] = {}

    def run_once() -> Outcome:
        trial = attempt.begin()

        def measure(outcome: Outcome) -> Metrics:
            peak = float(memory.bytes())
            metrics, conditions = costs.of_network(trial, outcome, attempt.spec.latency)
            latency.update(conditions)
            return {"peak_memory_bytes": peak, **metrics}

        return run_recipe(fit, trial, measure)

    try:
        return run_once(), latency
    except WeightsError as error:
        if attempt.spec.initial is None:
            raise

        log.warning("no inherited weights reason=%r", error.reason)
        attempt.spec = without_inherited_weights(attempt.spec)
        return replace(run_once(), inherited={"error": error.reason}), latency


def _follow(attempt: _Attempt) -> None:
    """Run the recipe on a rank above 0: costs, weights and result are rank 0's."""
    fit = attempt.spec.recipe.load()
    attempt.file = attempt.spec.recipe.file_of(fit)
    try:
        run_beside(fit, attempt.begin())
    except WeightsError:
        if attempt.spec.initial is None:
            raise

        attempt.spec = without_inherited_weights(attempt.spec)
        run_beside(fit, attempt.begin())


def _save(
    spec: TrialSpec, weights: dict[str, Any], on_wait: Callable[[], None]
) -> tuple[Weights | None, str]:
    """Return the address of the saved weights, or the reason why they could not be saved.

    The result is worth more than the weights: neither a full disk nor an unresponsive location
    discards it.
    """
    from archive.trainer.storage import weights_file

    metadata = {
        "task": spec.task.name,
        "protocol": spec.protocol.name,
        "seed": spec.seed,
        **spec.metadata,
    }
    # An export then needs neither the task nor its data.
    metadata["form"] = asdict(spec.task.form(spec.protocol))
    if spec.hyperparameters:
        metadata["hyperparameters"] = dict(spec.hyperparameters)

    try:
        saved = call_with_timeout(
            lambda: weights_file.save(
                spec.weights_folder, spec.architecture.canonical, weights, metadata
            ),
            SAVING_SECONDS,
            on_wait,
        )
    except WeightsError as error:
        log.warning("weights not saved reason=%r", error.reason)
        return None, error.reason

    if saved is None:
        log.warning("weights not saved reason=%r", NO_ANSWER)
        return None, NO_ANSWER

    return saved, ""
