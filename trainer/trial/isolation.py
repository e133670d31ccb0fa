"""The process of a trial apart from its daemon, the terminal and other trials: signals, log,
scratch folder.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

from archive.trainer.trial import log as triallog
from archive.trainer.trial import process_tree
from archive.trainer.trial.devices import show_only
from archive.trainer.trial.spec import TrialSpec

log = logging.getLogger("archive.trainer")


def separate(daemon: Connection) -> None:
    """Make this process and all that it will start independent of the terminal, and of other
    trials.
    """
    process_tree.lead_session()
    process_tree.adopt()
    process_tree.offer_memory()
    # Ctrl-C, or a service manager's signal, may reach all processes; the daemon decides what
    # becomes of its trials. Functions, because a program that the recipe starts would inherit that
    # the signals are ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)

    # A pool of multiprocessing ends its processes by SIGTERM, and waits for them.
    os.register_at_fork(after_in_child=_end_when_told)
    os.set_inheritable(daemon.fileno(), False)
    # A recipe may start processes, such as the workers of a data loader. multiprocessing forbids
    # that to the daemonic processes of the daemon, which it would wait for at its end if they were
    # not daemonic.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]


def enter(spec: TrialSpec) -> None:
    """Begin the log, enter the scratch folder, and see one GPU alone.

    Raises:
        OSError: The home or the scratch folder cannot be written.
    """
    if spec.log is not None:
        triallog.capture(spec.log)
        log.info(
            "attempt began proposal=%s pid=%d device=%s", spec.proposal, os.getpid(), spec.device
        )

    triallog.show_stacks()
    _enter_scratch(spec.scratch)
    show_only(spec.visible)


def _end_when_told() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _enter_scratch(scratch: Path | None) -> None:
    """Let relative paths and temporary files lead into the scratch folder."""
    if scratch is not None:
        os.chdir(scratch)
        os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
