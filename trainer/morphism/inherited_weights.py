"""What a network begins with that inherits: found in the archive by the daemon, made in the trial's process.

    find ── lineage ──> nearest ancestor with weights that can be kept ──> Beginning      in the daemon, without torch
    Beginning() ── checkpoint ──> weights of the ancestor ──> weights of the network      in the trial

By which rules a network inherits is said in `archive.trainer.morphism.protocol`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archive.architecture.graph import Architecture
from archive.errors import ArchiveError, CheckpointError, InvalidArchitectureError
from archive.store.lineage import Ancestor
from archive.store.records import Checkpoint
from archive.trainer.morphism import protocol as inheriting
from archive.trainer.morphism.feasibility import operations_between
from archive.trainer.storage import weights_store
from archive.trainer.storage.timeouts import Places
from archive.trainer.tasks.base import Task
from archive.trainer.tasks.protocol import Protocol
from archive.trainer.trial.job import Job

if TYPE_CHECKING:
    from torch import Tensor

    from archive.api import Archive

log = logging.getLogger("archive.trainer")

Weights = Mapping[str, "Tensor"]
"""By the names of `Network.state_dict`."""

ELSEWHERE = "they are at no place of this trainer's (--weights-from)"

_CALIBRATED = 512
"""Training inputs that new normalisations are calibrated on."""

_PLACES = Places()
"""Which places have not answered this process lately."""


def inherited(archive: Archive, job: Job, places: Sequence[Path | str]) -> Job:
    """Return a job with what its network can begin with; as it is where that is nothing, or no network inherits.

    Args:
        archive: Where ancestors are looked for.
        job: Of a trial.
        places: Folders and fsspec URLs whose weights may be read; see `find`.

    Raises:
        StoreError: The archive cannot be asked.
    """
    if job.protocol.inherited_epochs is None:
        return job
    found = find(archive, job.architecture, job.task, job.protocol, job.seed, places)
    if found is None:
        return job
    beginning, record = found
    beginning = replace(beginning, epochs=job.epochs)
    protocol = inheriting.shortened(job.protocol)
    epochs = None if job.epochs is None else min(job.epochs, protocol.epochs)
    seed = inheriting.seed_of(job.seed, job.architecture.key)
    return replace(job, protocol=protocol, epochs=epochs, seed=seed, initial=beginning, inherited=record)


def without(job: Job) -> Job:
    """Return the job of a network whose weights to begin with are not to be had: it is trained like any other."""
    if not isinstance(job.initial, Beginning):
        return replace(job, initial=None, inherited={})
    whole = job.initial
    return replace(job, protocol=whole.protocol, epochs=whole.epochs, seed=whole.seed, initial=None, inherited={})


@dataclass(frozen=True)
class Beginning:
    """Weights that a trial begins with; called in its process, it returns them.

    Attributes:
        checkpoint: The ancestor's weights.
        architecture: The network that inherits.
        task: What it learns.
        protocol: By which rules.
        seed: Of the study.
        epochs: What a network that inherits nothing is to be trained to; None means all.
    """

    checkpoint: Checkpoint
    architecture: Architecture
    task: Task
    protocol: Protocol
    seed: int
    epochs: int | None = None

    def __call__(self) -> Weights:
        """Return the weights, by the names of `Network.state_dict`.

        Raises:
            CheckpointError: They cannot be read, or do not fit any more.
        """
        from archive.trainer.storage import weights_file

        saved = weights_file.load(self.checkpoint)
        try:
            return begin(saved.architecture, saved.weights, self.architecture, self.task, self.protocol, self.seed)
        except InvalidArchitectureError as error:
            raise CheckpointError(str(error)) from error
        except (KeyError, IndexError, RuntimeError) as error:
            raise CheckpointError(f"the weights of {self.checkpoint.uri} do not fit its network: {error}") from error


def begin(
    parent: Architecture,
    learned: Weights,
    child: Architecture,
    task: Task,
    protocol: Protocol,
    seed: int,
) -> Weights:
    """Return weights, in the canonical order of the child's layers, with which it computes what its parent does.

    New normalisations are calibrated on the first training inputs.

    Raises:
        InvalidArchitectureError: The child cannot compute what the parent does.
    """
    import torch

    from archive.trainer.morphism import transfer

    built = transfer.Built.of(task, protocol)
    found = transfer.inherit(parent, learned, child.canonical, built, seed=seed)
    if not found.identities:
        return found.weights
    network = built.network(child.canonical, seed)
    network.load_state_dict(found.weights)
    transfer.calibrate(network, found.identities, torch.from_numpy(task.load(protocol).train.inputs[:_CALIBRATED]))
    return network.state_dict()


def find(
    archive: Archive,
    architecture: Architecture,
    task: Task,
    protocol: Protocol,
    seed: int,
    places: Sequence[Path | str],
) -> tuple[Beginning, dict[str, Any]] | None:
    """Return what a network can begin with and what is to go on record of it; None where there is nothing.

    What is found is reserved, so that nobody collects it meanwhile, and the archive notes that the one network was
    morphed into the other.

    Args:
        archive: Where ancestors are looked for.
        architecture: The network.
        task: What it learns.
        protocol: By which rules.
        seed: Of the study.
        places: Folders and fsspec URLs whose weights may be read. The archive may name weights anywhere: no other
            place is asked, nor told that it was asked for.

    Raises:
        StoreError: The archive cannot be asked.
    """
    protocols = [protocol.name, protocol.name.removesuffix(inheriting.SUFFIX)]
    maximise = task.direction == "maximise"
    for ancestor in archive.lineage.with_weights(architecture.key, task.name, protocols, maximise=maximise):
        if not any(weights_store.is_kept_at(ancestor.checkpoint, place) for place in places):
            log.info("not begun with weights=%s reason=%r", ancestor.checkpoint.uri, ELSEWHERE)
            continue
        parent = archive.architectures.get(ancestor.architecture)
        try:
            operations = operations_between(parent, architecture.canonical, task.input_shape)
        except InvalidArchitectureError:
            continue
        if _at_hand(ancestor) and archive.lineage.reserve(ancestor.checkpoint):
            archive.architectures.record_morph(parent, architecture, operations)
            beginning = Beginning(ancestor.checkpoint, architecture, task, protocol, seed)
            return beginning, _on_record(ancestor, operations)
    return None


def _at_hand(ancestor: Ancestor) -> bool:
    uri = ancestor.checkpoint.uri
    try:
        if weights_store.local_folder(uri) is not None:
            return weights_store.exists(uri)
    except ArchiveError:
        return False
    return _PLACES.ask(weights_store.root_of(uri), lambda: weights_store.exists(uri))


def _on_record(ancestor: Ancestor, operations: tuple[str, ...]) -> dict[str, Any]:
    return {
        "architecture": ancestor.architecture,
        "evaluation": ancestor.evaluation,
        "protocol": ancestor.protocol,
        "hops": ancestor.hops,
        "operations": list(operations),
        "uri": ancestor.checkpoint.uri,
        "sha256": ancestor.checkpoint.sha256,
    }
