"""Networks of claimed configurations: built and stored before their trials, beside the loop.

    claim ──> NetworkWork ── builds the network, stores it ──> is a twin of it in training?
                                                                 │ no          │ yes: waits
                                                                 v             v
                                                               trial         the twin's result

The search has built the networks of its own proposals; others come from ask and tell, a person, a
language model, or a search on a machine without the model. This machine names the model
(`archive.trainer.recipes.registry`). A network that cannot be built is one line of the log, and
trained all the same.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, final

from archive.architecture.parameter_operations import NAME as PARAMETERS
from archive.errors import ArchiveError
from archive.queue.causes import Cause
from archive.queue.reuse import takes_twins
from archive.trainer.trial.messages import Message, TrialFailed, TrialFinished, TrialInterrupted

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.store.records import Claim, Result
    from archive.trainer.recipes.model_process import ModelProcess
    from archive.trainer.trial.spec import TrialSpec

log = logging.getLogger("archive.trainer")

LINGER_SECONDS = 60.0
"""Time without a network after which the process of a model ends."""
TWIN_SECONDS = 1.0
"""Time between two looks for the result of a twin."""


@final
class NetworkBuilder:
    """Builds the networks of a daemon's claims, one at a time.

    Args:
        archive: The store of networks and results.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._process: tuple[tuple[str, str], ModelProcess] | None = None
        self._used_at = 0.0
        self._lock = threading.Lock()

    def begin(self, claim: Claim, spec: TrialSpec) -> NetworkWork | None:
        """Begin with the network of a claim; None if it is no configuration with a model here."""
        if claim.architecture.space != PARAMETERS or spec.model is None:
            return None

        return NetworkWork(self, claim, spec)

    def prepare(self, claim: Claim, spec: TrialSpec, ended: threading.Event) -> Result | None:
        """Store the network of a claim; return the result of a twin, or None to train.

        Args:
            claim: The claim.
            spec: The specification of its trial.
            ended: Ends the wait for a twin.

        Raises:
            ArchiveError: The store cannot be used, or the space cannot be read.
        """
        self._store_network(claim, spec)
        if spec.recipe.command is not None or not takes_twins(claim.study, claim.proposal):
            return None

        while not ended.is_set():
            # Before the look for a result, so that a twin that ends meanwhile has it.
            is_open = self._archive.builds.is_in_training(claim.proposal)
            result = self._archive.answers.of_twin(claim.study, claim.proposal)
            if result is not None or not is_open:
                return result

            ended.wait(TWIN_SECONDS)

        return None

    def tidy(self) -> None:
        """End the process of a model that has built no network for a while."""
        if self._process is None or time.monotonic() - self._used_at <= LINGER_SECONDS:
            return

        # The daemon's loop never waits for a network.
        if self._lock.acquire(blocking=False):
            self._process[1].close()
            self._lock.release()

    def close(self) -> None:
        """End the process, which may be at work."""
        if self._process is not None:
            self._process[1].close()

    def _store_network(self, claim: Claim, spec: TrialSpec) -> None:
        with self._lock:
            self._used_at = time.monotonic()
            process = self._process_of(claim, spec)
            key = claim.architecture.key
            stored = self._archive.builds.of([key], process.name).get(key)
            if stored is None or stored.version != process.version:
                (build,) = process.builds([claim.architecture])
                if build is not None:
                    self._archive.builds.add([build])

            self._used_at = time.monotonic()

    def _process_of(self, claim: Claim, spec: TrialSpec) -> ModelProcess:
        # The start of a daemon must not wait for numpy.
        from archive.parameters.parameter_space import ParameterSpace
        from archive.trainer.recipes.model_process import process_of_target

        assert spec.model is not None
        run = spec.model.target, claim.study.name
        if self._process is None or self._process[0] != run:
            self.close()
            space = ParameterSpace.from_json(claim.study.space_config)
            shape = spec.task.form(spec.protocol).input_shape
            self._process = run, process_of_target(spec.model.target, space, shape)

        return self._process[1]


@dataclass(frozen=True, slots=True)
class NetworkReady:
    """The network of a claim is stored, or cannot be built: its trial begins."""


@final
class NetworkWork:
    """The work on the network of a claim, in a thread of its own; a `TrialHandle`.

    Args:
        builder: Builds the network.
        claim: The claim.
        spec: The specification of its trial.
    """

    pid = None
    pids = ()
    due = None
    enforces_limits = True

    def __init__(self, builder: NetworkBuilder, claim: Claim, spec: TrialSpec) -> None:
        """Begin."""
        self._builder = builder
        self._claim = claim
        self._spec = spec
        self._result: Result | None = None
        self._is_done = threading.Event()
        self._ended = threading.Event()
        self._reader, self._writer = Pipe(duplex=False)
        threading.Thread(target=self._run, daemon=True, name="network").start()

    @property
    def last_seen(self) -> float:
        """Now: the builder has its own limits."""
        return time.monotonic()

    @property
    def waitable(self) -> list[Connection | int]:
        """The end of a pipe that the thread closes."""
        return [self._reader]

    def messages(self) -> list[Message | NetworkReady]:
        """Return the end of the work when it is reached."""
        if self._ended.is_set():
            return [TrialInterrupted(saved=False, epoch=0)]

        if not self._is_done.is_set():
            return []

        return [NetworkReady() if self._result is None else TrialFinished(self._result)]

    def interrupt(self) -> None:
        """End without a result; there is nothing to save."""
        self._ended.set()

    def abandon(self, reason: str, cause: Cause) -> TrialFailed:
        """Return the failure."""
        self._ended.set()
        return TrialFailed(reason, cause is not Cause.LIMIT, cause=cause)

    def kill(self) -> None:
        """Ignore what the thread still finds."""
        self._ended.set()

    def _run(self) -> None:
        try:
            self._result = self._builder.prepare(self._claim, self._spec, self._ended)
        except ArchiveError as error:
            log.warning("network not stored proposal=%s reason=%r", self._claim.id, str(error))
        except Exception:
            log.exception("network not stored proposal=%s", self._claim.id)
        finally:
            self._is_done.set()
            self._writer.close()
