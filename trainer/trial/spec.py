"""Specification of a trial: everything that its process receives from the daemon.

The daemon builds it without loading torch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archive.architecture.graph import Architecture
from archive.store.records import Claim, Direction
from archive.trainer.morphism import inherited_weights
from archive.trainer.morphism.inherited_weights import InheritedWeights
from archive.trainer.protocols.base import TrainingProtocol, inherited_seed, shorten
from archive.trainer.recipes.checkpoint import CHECKPOINT_SECONDS
from archive.trainer.recipes.loading import ModelSource
from archive.trainer.recipes.registry import DEFAULT_SOURCE
from archive.trainer.recipes.source import RecipeSource
from archive.trainer.tasks.base import Task
from archive.trainer.trial.costs import LatencyOptions
from archive.trainer.trial.ranks import Ranks

if TYPE_CHECKING:
    from torch import Tensor

    from archive.api import Archive


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """Specification of a trial.

    Attributes:
        architecture: The network.
        task: Task to learn.
        protocol: Training protocol.
        seed: Seed of the weights and the batches.
        device: Device in torch's notation.
        visible: Value of CUDA_VISIBLE_DEVICES in the trial's process, by which it sees its own GPU
            alone; None leaves it as it is.
        threads: Number of CPU threads; None leaves it to torch, which follows OMP_NUM_THREADS.
        weights_folder: Location of the trained weights: a folder, or an fsspec URL.
        metadata: Saved with the weights, as JSON values.
        hyperparameters: Training settings of the proposal (`archive.trainer.fit.hyperparameters`).
        parameters: The same as the tree that a recipe gets; None for the hyperparameters as they are.
        recipe: The recipe, found on this machine.
        model: Function that builds the network of a configuration of parameters, found on this
            machine; None for none.
        objective: Name of the metric that is the result's value; the task's if None.
        direction: Whether larger or smaller values of it are better; the task's if None.
        proposal: Id of the proposal, which names its checkpoint.
        run: Identity of the proposal's run; empty without one. A deleted study may have had a
            proposal with the same id; its checkpoint is not resumed.
        checkpoint_folder: Folder or fsspec URL of the checkpoints
            (`archive.trainer.storage.checkpoints`), shared by all workers that may resume the
            trial; None keeps none.
        checkpoint_seconds: Least time between two checkpoints.
        epochs: Train up to this epoch of the protocol's and keep the checkpoint, for a promotion;
            None trains all.
        initial: Returns the initial weights, by the names of the module's `state_dict`. It is
            called in the trial's process, unless a checkpoint is resumed. If it raises
            WeightsError, the trial starts from its seed.
        inherited: Record of `initial` in the evaluation, as JSON values.
        seconds: Time limit, after which the trial is killed; None for no limit.
        scratch: Folder of temporary files, which is deleted after the trial; None creates one at
            first use.
        scratch_bytes: Limit of the files in it; None for no limit.
        memory_bytes: Limit of the memory of all its processes; None for no limit.
        log: File of the trial's output (`archive.trainer.trial.log`); None leaves the output where
            the daemon's goes.
        precision: `auto`, `float32`, `bf16` or `tf32` (`archive.trainer.fit.precision`).
        latency: How the network's latency is measured after the training.
        slots: Number of trials that the daemon may run at the same time.
        ranks: The processes of the trial, one by default, and the position of one among them.
    """

    architecture: Architecture
    task: Task
    protocol: TrainingProtocol
    seed: int
    device: str
    threads: int | None
    weights_folder: Path | str
    metadata: dict[str, Any] = field(default_factory=dict)
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] | None = None
    recipe: RecipeSource = DEFAULT_SOURCE
    objective: str | None = None
    direction: Direction | None = None
    proposal: str = ""
    checkpoint_folder: Path | str | None = None
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    epochs: int | None = None
    initial: Callable[[], Mapping[str, Tensor]] | None = None
    inherited: Mapping[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    scratch: Path | None = None
    scratch_bytes: int | None = None
    memory_bytes: int | None = None
    log: Path | None = None
    precision: str = "auto"
    latency: LatencyOptions = field(default_factory=LatencyOptions)
    slots: int = 1
    run: str = ""
    visible: str | None = None
    model: ModelSource | None = None
    ranks: Ranks = field(default_factory=Ranks)


def with_inherited_weights(
    archive: Archive, spec: TrialSpec, locations: Sequence[Path | str]
) -> TrialSpec:
    """Return a specification with the weights of an ancestor (`archive.trainer.protocols.base`).

    It is unchanged without an ancestor, or if networks do not inherit under the protocol.

    Args:
        archive: The store of ancestors.
        spec: Specification of a trial.
        locations: Folders and fsspec URLs of readable weights; see `find_ancestor`.

    Raises:
        StoreError: The store cannot be read.
    """
    if spec.protocol.inherited_epochs is None:
        return spec

    match = inherited_weights.find_ancestor(
        archive,
        spec.architecture,
        spec.task,
        spec.protocol,
        spec.seed,
        locations,
        maximise=(spec.direction or spec.task.direction) == "maximise",
    )
    if match is None:
        return spec

    weights, record = match
    weights = replace(weights, epochs=spec.epochs)
    protocol = shorten(spec.protocol)
    epochs = None if spec.epochs is None else min(spec.epochs, protocol.epochs)
    seed = inherited_seed(spec.seed, spec.architecture.key)
    return replace(
        spec, protocol=protocol, epochs=epochs, seed=seed, initial=weights, inherited=record
    )


def run_of(claim: Claim) -> str:
    """Return the identity of a proposal's run: 16 hexadecimal digits."""
    # Studies of one name may exist in several archives, or one after the other: the time of
    # creation differs.
    identity = f"{claim.id}@{claim.proposal.created}"
    return hashlib.sha256(identity.encode()).hexdigest()[:16]


def without_inherited_weights(spec: TrialSpec) -> TrialSpec:
    """Return the specification for training from the seed, if inherited weights fail to load."""
    alone = replace(spec, initial=None, inherited={})
    weights = spec.initial
    if not isinstance(weights, InheritedWeights):
        return alone

    return replace(alone, protocol=weights.protocol, epochs=weights.epochs, seed=weights.seed)
