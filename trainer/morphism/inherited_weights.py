"""Inherited weights: an ancestor's weights, found by the daemon, adapted in the trial.

    in the daemon, without torch:
    find_ancestor ── lineage ──> nearest ancestor with usable weights ──> InheritedWeights

    in the trial:
    InheritedWeights() ── weights file ──> the ancestor's weights ──> the network's weights

`archive.trainer.protocols.base` has the rules.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archive.architecture.graph import Architecture
from archive.errors import ArchiveError, InvalidArchitectureError, WeightsError
from archive.store.lineage import Ancestor
from archive.store.protocol_names import ProtocolName
from archive.store.records import Weights
from archive.trainer.morphism.feasibility import operations_between
from archive.trainer.nn import builders
from archive.trainer.protocols.base import TrainingProtocol
from archive.trainer.protocols.networks import NetworkForm
from archive.trainer.storage import weights_store
from archive.trainer.storage.locations import local_folder
from archive.trainer.storage.timeouts import CircuitBreaker
from archive.trainer.tasks.base import Task

if TYPE_CHECKING:
    from torch import Tensor

    from archive.api import Archive


log = logging.getLogger("archive.trainer")

StateDict = Mapping[str, "Tensor"]
"""Tensors by the names of the module's `state_dict`."""

ELSEWHERE = "they are at no location of this trainer (--weights-from)"

_CALIBRATION_INPUTS = 512
"""Number of training inputs that calibrate new normalisations."""

_BREAKER = CircuitBreaker()
"""Locations that have not answered this process lately."""


@dataclass(frozen=True)
class InheritedWeights:
    """Initial weights of a trial from an ancestor; a call in the trial's process returns them.

    Attributes:
        weights: Address and digest of the ancestor's weights.
        architecture: The network that inherits.
        task: Task to learn.
        protocol: Training protocol.
        seed: Seed of the study.
        epochs: Number of epochs of the network without inherited weights; None means all.
    """

    weights: Weights
    architecture: Architecture
    task: Task
    protocol: TrainingProtocol
    seed: int
    epochs: int | None = None

    def __call__(self) -> StateDict:
        """Return the weights, by the names of the module's `state_dict`.

        Raises:
            WeightsError: They cannot be read, do not fit, or are not finite.
        """
        from archive.trainer.storage import weights_file

        saved = weights_file.load(self.weights)
        try:
            check(
                self.weights.uri, saved.architecture, saved.weights, self.task.form(self.protocol)
            )
            return adapt(
                saved.architecture,
                saved.weights,
                self.architecture,
                self.task,
                self.protocol,
                self.seed,
            )
        except InvalidArchitectureError as error:
            raise WeightsError(str(error)) from error
        except (KeyError, IndexError, RuntimeError) as error:
            raise WeightsError(
                f"the weights of {self.weights.uri} do not fit its network: {error}"
            ) from error


def adapt(
    parent: Architecture,
    learned: StateDict,
    child: Architecture,
    task: Task,
    protocol: TrainingProtocol,
    seed: int,
) -> StateDict:
    """Return weights, in the canonical order of layers, that give a child its parent's function.

    New normalisations are calibrated on the first training inputs.

    Raises:
        InvalidArchitectureError: The child cannot keep the parent's function.
    """
    import torch

    from archive.trainer.morphism import transfer

    form = task.form(protocol)
    transferred = transfer.inherit(parent, learned, child.canonical, form, seed=seed)
    if not transferred.identities:
        return transferred.weights

    network = builders.build(child.canonical, form, seed)
    network.load_state_dict(transferred.weights)
    inputs = torch.from_numpy(task.load(protocol).train.inputs[:_CALIBRATION_INPUTS])
    transfer.calibrate(network, transferred.identities, inputs)
    return network.state_dict()


def find_ancestor(
    archive: Archive,
    architecture: Architecture,
    task: Task,
    protocol: TrainingProtocol,
    seed: int,
    locations: Sequence[Path | str],
    *,
    maximise: bool | None = None,
) -> tuple[InheritedWeights, dict[str, Any]] | None:
    """Return a network's inheritable weights and their record; None without an ancestor.

    The weights are reserved, so that no collection deletes them meanwhile, and the store records
    that the ancestor was morphed into the network.

    Args:
        archive: The store of ancestors.
        architecture: The network.
        task: Task to learn.
        protocol: Training protocol.
        seed: Seed of the study.
        locations: Folders and fsspec URLs whose weights may be read. The database may contain any
            address: no other location is contacted.
        maximise: Whether larger values of the study's objective are better; the task's direction if
            None.

    Raises:
        StoreError: The store cannot be used.
    """
    protocols = [protocol.name, str(replace(ProtocolName.parse(protocol.name), morph=False))]
    if maximise is None:
        maximise = task.direction == "maximise"

    for ancestor in archive.lineage.with_weights(
        architecture.key, task.name, protocols, maximise=maximise
    ):
        if not any(
            weights_store.is_stored_at(ancestor.weights, location) for location in locations
        ):
            log.info("weights not inherited uri=%s reason=%r", ancestor.weights.uri, ELSEWHERE)
            continue

        parent = archive.architectures.get(ancestor.architecture)
        try:
            operations = operations_between(parent, architecture.canonical, task.input_shape)
        except InvalidArchitectureError:
            continue

        if _exists(ancestor) and archive.lineage.reserve(ancestor.weights):
            archive.architectures.record_morph(parent, architecture, operations)
            weights = InheritedWeights(ancestor.weights, architecture, task, protocol, seed)
            return weights, _record_of(ancestor, operations)

    return None


def _exists(ancestor: Ancestor) -> bool:
    uri = ancestor.weights.uri
    try:
        if local_folder(uri) is not None:
            return weights_store.exists(uri)
    except ArchiveError:
        return False

    return _BREAKER.call(weights_store.root_of(uri), lambda: weights_store.exists(uri))


def _record_of(ancestor: Ancestor, operations: tuple[str, ...]) -> dict[str, Any]:
    return {
        "architecture": ancestor.architecture,
        "evaluation": ancestor.evaluation,
        "protocol": ancestor.protocol,
        "hops": ancestor.hops,
        "operations": list(operations),
        "uri": ancestor.weights.uri,
        "sha256": ancestor.weights.sha256,
    }


_SHOWN = 3


def check(
    uri: str, architecture: Architecture, weights: Mapping[str, Tensor], form: NetworkForm
) -> None:
    """Check that weights have all tensors of their network, with finite numbers.

    Args:
        uri: Address of the weights, for the error.
        architecture: The network, in the order of layers that names the weights.
        weights: Tensors by name.
        form: Form of the network.

    Raises:
        WeightsError: A tensor is missing, has another shape, or has NaN or infinity.
    """
    import torch

    tensors = builders.build(architecture, form).state_dict()
    # Counters of batches are no weights: nothing depends on them.
    needed = {name: tensor for name, tensor in tensors.items() if tensor.is_floating_point()}
    if missing := [name for name in needed if name not in weights]:
        unexpected = [name for name in weights if name not in tensors]
        further = f"; unexpected: {_list(unexpected)}" if unexpected else ""
        raise WeightsError(
            f"the weights of {uri} do not fit its network: missing: {_list(missing)}{further}"
        )

    for name, tensor in needed.items():
        if weights[name].shape != tensor.shape:
            raise WeightsError(
                f"the weights of {uri} do not fit its network: {name} must have "
                f"the shape {tuple(tensor.shape)}, got {tuple(weights[name].shape)}"
            )

    infinite: list[str] = []
    for name in needed:
        if not torch.isfinite(weights[name].float()).all():
            infinite.append(name)

    if infinite:
        raise WeightsError(
            f"the weights of {uri} are not finite: NaN or infinity in {_list(infinite)}"
        )


def _list(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
