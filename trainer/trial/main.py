"""The process of a trial: trains, reports to its daemon, saves the weights, and ends when it is interrupted.

main thread    trains; sends EpochReport, Heartbeat and the terminal message
listener       reads the pipe: a message interrupts the trial, a closed pipe means that the daemon is gone
"""

from __future__ import annotations

import logging
import os
import platform
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from archive.errors import CheckpointError
from archive.store.records import Checkpoint, Result
from archive.trainer.fit.context import Cancelled, Metrics, TrialContext
from archive.trainer.storage import checkpoints
from archive.trainer.storage.timeouts import call_with_timeout
from archive.trainer.trial import failures, inheritance
from archive.trainer.trial import log as triallog
from archive.trainer.trial.messages import EpochReport, Heartbeat, Message, TrialFinished, TrialInterrupted
from archive.trainer.trial.spec import TrialSpec

if TYPE_CHECKING:
    from archive.trainer.fit.train import Outcome

log = logging.getLogger("archive.trainer")

Send = Callable[[Message | Heartbeat], None]

SAVING_SECONDS = 600.0
"""Longest time for saving weights; the trial sends heartbeats meanwhile."""

NO_ANSWER = f"they could not be saved within {SAVING_SECONDS:g} s"


def run(spec: TrialSpec, daemon: Connection) -> None:
    """Run a trial, and send its messages to the daemon."""
    # Ctrl-C reaches every process of the terminal; the daemon decides what becomes of its trials.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if spec.log is not None:
        triallog.capture(spec.log)
        log.info("attempt began proposal=%s pid=%d device=%s", spec.proposal, os.getpid(), spec.device)
    triallog.show_stacks()
    sending = threading.Lock()

    def send(message: Message | Heartbeat) -> None:
        with sending:
            daemon.send(message)

    context = _context(spec, send)
    threading.Thread(target=_listen, args=(daemon, context, send), daemon=True, name="listener").start()
    try:
        send(_terminal_message(spec, context, send))
    except BrokenPipeError:
        return


def _terminal_message(spec: TrialSpec, context: TrialContext, send: Send) -> Message:
    try:
        return TrialFinished(_result_of(spec, context, send))
    except Cancelled as cancelled:
        log.info("interrupted saved=%s epoch=%d", cancelled.saved, cancelled.epoch)
        return TrialInterrupted(cancelled.saved, cancelled.epoch)
    except BrokenPipeError:
        raise
    except Exception as error:
        failed = failures.failure_of(error)
        log.exception("trial failed reason=%r", failed.reason)
        if not failed.retry:
            checkpoints.remove(spec.checkpoint_folder, spec.proposal)
        return failed


def _context(spec: TrialSpec, send: Send) -> TrialContext:
    def on_resumed(curve: list[Metrics]) -> None:
        for metrics in curve:
            send(EpochReport(metrics, resumed=True))

    folder, proposal = spec.checkpoint_folder, spec.proposal
    return TrialContext(
        path=checkpoints.path_of(folder, proposal) if folder and proposal else None,
        checkpoint_seconds=spec.checkpoint_seconds,
        on_resumed=on_resumed,
        on_heartbeat=lambda: send(Heartbeat()),
    )


def _listen(daemon: Connection, context: TrialContext, send: Send) -> None:
    """Cancel the training on the daemon's message; end the process when the daemon closes the pipe."""
    while True:
        try:
            daemon.recv()
        except (EOFError, OSError):
            os._exit(1)
        context.cancel()
        if not context.stepping:
            # Reading data or building the network may take long, and loses nothing when it is killed.
            send(TrialInterrupted(context.path is not None and context.path.exists(), 0))
            os._exit(0)


def _result_of(spec: TrialSpec, context: TrialContext, send: Send) -> Result:
    import torch

    if spec.threads is not None:
        torch.set_num_threads(spec.threads)
    # Weights that decay towards zero pass through denormal numbers, which a CPU multiplies a hundred times slower.
    torch.set_flush_denormal(True)

    def on_epoch(metrics: Metrics) -> None:
        log.info("%s", " ".join(f"{name}={value:.6g}" for name, value in metrics.items()))
        send(EpochReport(metrics))

    spec, outcome = _trained(spec, context, on_epoch)
    environment: dict[str, Any] = {
        "host": platform.node(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        # A plain string: to read torch's own class, the daemon would import torch.
        "torch": str(torch.__version__),
        "threads": torch.get_num_threads(),
        "precision": outcome.precision,
        "ended": outcome.ended,
    }
    for name, value in (("resumed", outcome.resumed), ("inherited", dict(outcome.inherited))):
        if value:
            environment[name] = value
    if spec.hyperparameters:
        environment["hyperparameters"] = dict(spec.hyperparameters)
    # A trial that pauses at a rung has its checkpoint; weights are those of finished trainings.
    paused = outcome.ended == "rung"
    saved, problem = (None, "") if paused else _saved(spec, outcome.weights, lambda: send(Heartbeat()))
    if problem:
        environment["checkpoint"] = problem
    log.info("finished value=%.6g ended=%s seconds=%.3f", outcome.value, outcome.ended, outcome.seconds)
    return Result(
        value=outcome.value,
        metrics={spec.task.objective: outcome.value, **outcome.metrics},
        curve=outcome.curve,
        epochs=outcome.epochs,
        seconds=outcome.seconds,
        seed=spec.seed,
        device=spec.device,
        environment=environment,
        checkpoint=saved,
    )


def _trained(spec: TrialSpec, context: TrialContext, on_epoch: Callable[[Metrics], None]) -> tuple[TrialSpec, Outcome]:
    """Train, and return the outcome with its specification, which is another one if inherited weights fail to load."""
    from archive.trainer.fit.train import train

    def trained(spec: TrialSpec) -> Outcome:
        return train(
            spec.architecture,
            spec.task,
            spec.protocol,
            seed=spec.seed,
            device=spec.device,
            on_epoch=on_epoch,
            hyperparameters=spec.hyperparameters,
            initial=spec.initial,
            inherited=spec.inherited,
            epochs=spec.epochs,
            precision=spec.precision,
            context=context,
        )

    try:
        return spec, trained(spec)
    except CheckpointError as error:
        log.warning("no inherited weights reason=%r", error.reason)
        spec = inheritance.without_inherited_weights(spec)
        return spec, replace(trained(spec), inherited={"error": error.reason})


def _saved(spec: TrialSpec, weights: dict[str, Any], on_wait: Callable[[], None]) -> tuple[Checkpoint | None, str]:
    """Return the address of the saved weights, or the reason why they could not be saved.

    The result is worth more than the weights: neither a full disk nor an unresponsive location discards it.
    """
    from archive.trainer.storage import weights_file

    metadata = {"task": spec.task.name, "protocol": spec.protocol.name, "seed": spec.seed, **spec.metadata}
    if spec.hyperparameters:
        metadata["hyperparameters"] = dict(spec.hyperparameters)
    try:
        saved = call_with_timeout(
            lambda: weights_file.save(spec.weights_folder, spec.architecture.canonical, weights, metadata),
            SAVING_SECONDS,
            on_wait,
        )
    except CheckpointError as error:
        log.warning("weights not saved reason=%r", error.reason)
        return None, error.reason
    if saved is None:
        log.warning("weights not saved reason=%r", NO_ANSWER)
        return None, NO_ANSWER
    return saved, ""
