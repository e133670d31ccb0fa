"""What runs in the process of a trial: trains, tells its daemon, saves the weights, and leaves when it should.

main thread    trains; sends Epoch, Beat and the last message
listener       waits on the pipe: a word from the daemon asks the trial to leave, its end that the daemon is gone
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
from archive.trainer.morphism import inherited_weights
from archive.trainer.storage import checkpoints
from archive.trainer.storage.timeouts import in_time
from archive.trainer.trial import failures
from archive.trainer.trial import log as triallog
from archive.trainer.trial.job import Beat, Epoch, Finished, Interrupted, Job, Message
from archive.trainer.trial.session import Left, Metrics, Session

if TYPE_CHECKING:
    from archive.trainer.fit.train import Outcome

log = logging.getLogger("archive.trainer")

Send = Callable[[Message | Beat], None]

SAVING_SECONDS = 600.0
"""How long a place may take to keep weights; the trial shows that it is alive meanwhile."""

NO_ANSWER = f"the place did not take them within {SAVING_SECONDS:g} s"


def run(job: Job, daemon: Connection) -> None:
    """Do a job, and say how it ended."""
    # Ctrl-C reaches every process of the terminal; the daemon decides what becomes of its trials.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if job.log is not None:
        triallog.capture(job.log)
        log.info("attempt began proposal=%s pid=%d device=%s", job.proposal, os.getpid(), job.device)
    triallog.show_stacks()
    sending = threading.Lock()

    def send(message: Message | Beat) -> None:
        with sending:
            daemon.send(message)

    session = _session(job, send)
    threading.Thread(target=_listen, args=(daemon, session, send), daemon=True, name="listener").start()
    try:
        send(_last_words(job, session, send))
    except BrokenPipeError:
        return


def _last_words(job: Job, session: Session, send: Send) -> Message:
    try:
        return Finished(_result_of(job, session, send))
    except Left as left:
        log.info("left as it was asked to saved=%s epoch=%d", left.saved, left.epoch)
        return Interrupted(left.saved, left.epoch)
    except BrokenPipeError:
        raise
    except Exception as error:
        failed = failures.failed(error)
        log.exception("trial failed reason=%r", failed.reason)
        if not failed.retry:
            checkpoints.forget(job.resume_folder, job.proposal)
        return failed


def _session(job: Job, send: Send) -> Session:
    def on_resumed(curve: list[Metrics]) -> None:
        for metrics in curve:
            send(Epoch(metrics, resumed=True))

    return Session(
        path=checkpoints.path_of(job.resume_folder, job.proposal) if job.resume_folder and job.proposal else None,
        checkpoint_seconds=job.checkpoint_seconds,
        on_resumed=on_resumed,
        on_beat=lambda: send(Beat()),
    )


def _listen(daemon: Connection, session: Session, send: Send) -> None:
    """Pass on that the trial should leave; end the process when the pipe is closed at the other end."""
    while True:
        try:
            daemon.recv()
        except (EOFError, OSError):
            os._exit(1)
        session.leave()
        if not session.stepping:
            # It reads data or builds: that may take long, and nothing is lost with it.
            send(Interrupted(session.path is not None and session.path.exists(), 0))
            os._exit(0)


def _result_of(job: Job, session: Session, send: Send) -> Result:
    import torch

    if job.threads is not None:
        torch.set_num_threads(job.threads)
    # Weights that decay towards zero pass through denormal numbers, which a CPU multiplies a hundred times slower.
    torch.set_flush_denormal(True)

    def on_epoch(metrics: Metrics) -> None:
        log.info("%s", " ".join(f"{name}={value:.6g}" for name, value in metrics.items()))
        send(Epoch(metrics))

    job, outcome = _trained(job, session, on_epoch)
    environment: dict[str, Any] = {
        "host": platform.node(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        # A plain string: the class of torch's own would make the daemon import torch to read it.
        "torch": str(torch.__version__),
        "threads": torch.get_num_threads(),
        "precision": outcome.precision,
        "ended": outcome.ended,
    }
    for name, value in (("resumed", outcome.resumed), ("inherited", dict(outcome.inherited))):
        if value:
            environment[name] = value
    if job.hyperparameters:
        environment["hyperparameters"] = dict(job.hyperparameters)
    # The state goes on from a rung; weights are for what is whole.
    saved, problem = (None, "") if outcome.ended == "rung" else _saved(job, outcome.weights, lambda: send(Beat()))
    if problem:
        environment["checkpoint"] = problem
    log.info("finished value=%.6g ended=%s seconds=%.3f", outcome.value, outcome.ended, outcome.seconds)
    return Result(
        value=outcome.value,
        metrics={job.task.objective: outcome.value, **outcome.metrics},
        curve=outcome.curve,
        epochs=outcome.epochs,
        seconds=outcome.seconds,
        seed=job.seed,
        device=job.device,
        environment=environment,
        checkpoint=saved,
    )


def _trained(job: Job, session: Session, on_epoch: Callable[[Metrics], None]) -> tuple[Job, Outcome]:
    """Train, and return the job as it was done: where nothing can be inherited after all, by the rules of those."""
    from archive.trainer.fit.train import train

    def trained(job: Job) -> Outcome:
        return train(
            job.architecture,
            job.task,
            job.protocol,
            seed=job.seed,
            device=job.device,
            on_epoch=on_epoch,
            hyperparameters=job.hyperparameters,
            initial=job.initial,
            inherited=job.inherited,
            epochs=job.epochs,
            precision=job.precision,
            session=session,
        )

    try:
        return job, trained(job)
    except CheckpointError as error:
        log.warning("inherits nothing reason=%r", error.reason)
        job = inherited_weights.without(job)
        return job, replace(trained(job), inherited={"error": error.reason})


def _saved(job: Job, weights: dict[str, Any], on_beat: Callable[[], None]) -> tuple[Checkpoint | None, str]:
    """Return where the weights were saved, or why they could not be.

    The result took the time and answers the question: it is not given up for want of disk space, nor for a place that
    says nothing.
    """
    from archive.trainer.storage import weights_file

    about = {"task": job.task.name, "protocol": job.protocol.name, "seed": job.seed, **job.about}
    if job.hyperparameters:
        about["hyperparameters"] = dict(job.hyperparameters)
    try:
        found = in_time(
            lambda: weights_file.save(job.folder, job.architecture.canonical, weights, about), SAVING_SECONDS, on_beat
        )
    except CheckpointError as error:
        log.warning("weights not saved reason=%r", error.reason)
        return None, error.reason
    if found is None:
        log.warning("weights not saved reason=%r", NO_ANSWER)
        return None, NO_ANSWER
    return found, ""
