"""The trained network of an evaluation.

    evaluation ──> address of its weights ──> file, verified by its SHA-256 ──> tensors ┐
        └────────> architecture, task, protocol ──> builder of the space ──> module <───┘

The database names addresses of weights. A file is read only from the locations of the archive's own
weights, and those that the caller adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from archive.errors import ArchiveError, SettingsError, UsageError, WeightsError
from archive.store.records import Evaluation, Weights
from archive.trainer.nn import builders
from archive.trainer.protocols.networks import NetworkForm
from archive.trainer.storage import weights_store
from archive.trainer.tasks import registry, tabular
from archive.trainer.tasks.base import Task
from archive.trainer.tasks.file_access import FileAccess

if TYPE_CHECKING:
    from torch import nn

    from archive.api import Archive
    from archive.trainer.datasets.splits import Scaling
    from archive.trainer.storage.weights_file import SavedWeights


@dataclass(frozen=True)
class TrainedWeights:
    """The verified weights of an evaluation.

    Attributes:
        evaluation: The evaluation.
        file: Address, digest and size of the file.
        content: The file, of safetensors.
    """

    evaluation: Evaluation
    file: Weights
    content: bytes

    def parsed(self) -> SavedWeights:
        """Return the tensors by name, on the CPU, and what the trial wrote beside them.

        Raises:
            WeightsError: The file holds no weights, or weights of another architecture.
        """
        from archive.trainer.storage import weights_file

        saved = weights_file.parse(self.file.uri, self.content)
        if saved.architecture.key != self.evaluation.architecture.key:
            raise WeightsError(
                f"the weights {self.file.uri} belong to the architecture {saved.architecture.key}, "
                f"those of {self.evaluation.id} to {self.evaluation.architecture.key}"
            )

        return saved


@dataclass(frozen=True)
class TrainedNetwork:
    """The trained network of an evaluation.

    Attributes:
        evaluation: The evaluation.
        form: Input and output of the network.
        module: The network on the CPU, in evaluation mode. It maps standardised inputs (n,
            *form.input_shape) to logits of the classes (n, form.outputs), or to standardised
            predictions (n, 1).
        scaling: How inputs and targets are standardised; None where the task's data are not on this
            machine.
    """

    evaluation: Evaluation
    form: NetworkForm
    module: nn.Module
    scaling: Scaling | None


@dataclass(frozen=True)
class ModelInput:
    """The input of an exported model.

    Attributes:
        shape: Its dimensions; the first one is `batch`.
        dtype: Type of its numbers.
        scaling: How raw data become inputs.
    """

    shape: list[str | int]
    dtype: str
    scaling: str


@dataclass(frozen=True)
class ModelOutput:
    """The output of an exported model.

    Attributes:
        shape: Its dimensions; the first one is `batch`.
        meaning: What its numbers are.
    """

    shape: list[str | int]
    meaning: str


@dataclass(frozen=True)
class ModelSummary:
    """What a user of an exported model must know.

    Attributes:
        evaluation: Id of the evaluation that has the weights.
        architecture: Key of the architecture.
        space: Name of its space.
        task: Name of the task.
        protocol: Name of the training protocol.
        value: The objective.
        input: The input; None for weights alone.
        output: The output; None for weights alone.
        scaling: Standardisation of the data; None where it is not known here.
    """

    evaluation: str
    architecture: str
    space: str
    task: str
    protocol: str
    value: float
    input: ModelInput | None = None
    output: ModelOutput | None = None
    scaling: Scaling | None = None


def weights(
    archive: Archive, evaluation: str, weights_from: Sequence[str | Path] = ()
) -> TrainedWeights:
    """Return the verified weights of an evaluation, or of the evaluation that it repeats.

    Args:
        archive: The archive.
        evaluation: Id of the evaluation, `STUDY#NUMBER`.
        weights_from: Folders and fsspec URLs whose weights may be read, beside the archive's own.

    Raises:
        UnknownNameError: There is no such evaluation.
        UsageError: None of its weights were kept.
        SettingsError: They are at a location that may not be read.
        WeightsError: The file is missing, cut off or altered.
    """
    record = archive.studies.evaluation(evaluation)
    saved = archive.weights.of_evaluation(record.id)
    if saved is None and record.answered_from is not None:
        record = archive.studies.evaluation(record.answered_from)
        saved = archive.weights.of_evaluation(record.id)

    if saved is None:
        raise UsageError(
            f"no weights of the evaluation {evaluation!r} are kept: {_why_none(record)}"
        )

    settings = archive.connection.settings
    locations = (settings.place_of_weights, settings.home / "weights", *weights_from)
    if not any(weights_store.is_stored_at(saved, location) for location in locations):
        root = weights_store.root_of(saved.uri)
        raise SettingsError(
            f"the weights of {evaluation} are at {saved.uri}, outside of this archive's weights: "
            f"allow their location with --weights-from {root}, or weights_from=[{root!r}] in Python"
        )

    return TrainedWeights(record, saved, weights_store.read(saved))


def network(
    archive: Archive, evaluation: str, weights_from: Sequence[str | Path] = ()
) -> TrainedNetwork:
    """Return the trained network of an evaluation; arguments and errors as for `weights`.

    Raises:
        InvalidArchitectureError: Its space has no builder on this machine.
        UnknownNameError: Its task or its protocol is not known on this machine.
        WeightsError: The weights do not fit the network that the builder builds.
    """
    trained = weights(archive, evaluation, weights_from)
    record = trained.evaluation
    saved = trained.parsed()
    architecture = record.architecture.canonical
    form = _form(archive, record, saved)
    module = builders.build(architecture, form)
    try:
        module.load_state_dict(saved.weights)
    except RuntimeError as error:
        why = "; ".join(line.strip() for line in str(error).splitlines()[1:3])
        raise WeightsError(
            f"the weights of {evaluation} are not of the network that the builder of "
            f"{architecture.space} builds, as where a recipe built its own ({why:.120}…): "
            "load them into its network, from a .safetensors file"
        ) from error

    return TrainedNetwork(
        record, form, module.eval().requires_grad_(False), _scaling(archive, record)
    )


def module(archive: Archive, evaluation: str, weights_from: Sequence[str | Path] = ()) -> nn.Module:
    """Return the module of `network`; `Archive.module` calls it."""
    return network(archive, evaluation, weights_from).module


def _form(archive: Archive, record: Evaluation, saved: SavedWeights) -> NetworkForm:
    form = saved.metadata.get("form")
    if form is not None:
        return NetworkForm(**{**form, "input_shape": tuple(form["input_shape"])})

    # Weights of a release that did not write it.
    task = _task(archive, record)
    return task.form(task.protocol(record.protocol))


def _scaling(archive: Archive, record: Evaluation) -> Scaling | None:
    try:
        task = _task(archive, record)
        return None if task.scaling is None else task.scaling(task.protocol(record.protocol))
    except ArchiveError:
        # The task or its data may be on the trainer's machine alone.
        return None


def _task(archive: Archive, record: Evaluation) -> Task:
    if record.study is None:
        raise UsageError(f"the evaluation {record.id!r} was imported")

    # The path of a task on a file comes from the database.
    access = FileAccess.of(archive.connection.settings.home)
    task = registry.of_study(archive.studies.get(record.study), access)
    if not isinstance(task, Task):
        raise UsageError(
            f"the evaluation {record.id!r} is of the table {task.name}, which trains no network"
        )

    return task


def _why_none(record: Evaluation) -> str:
    if record.study is None:
        return "it was imported"

    if record.device == tabular.DEVICE:
        return "its result is that of a table, and no network was trained"

    if record.partial:
        return "its training paused at a rung, and its state is with the trainer"

    return (
        "the trial saved none, or archive db gc has deleted them; "
        "archive search --retrain trains the network again"
    )


def summary(record: Evaluation) -> ModelSummary:
    """Return the summary of an evaluation, for a file of its weights alone."""
    return ModelSummary(
        evaluation=record.id,
        architecture=record.architecture.key,
        space=record.architecture.space,
        task=record.task,
        protocol=record.protocol,
        value=record.value,
    )


def describe(trained: TrainedNetwork) -> ModelSummary:
    """Return what a user of an exported model must know."""
    form = trained.form
    output = (
        "logits of the classes" if form.kind == "classification" else "standardised predictions"
    )
    return replace(
        summary(trained.evaluation),
        input=ModelInput(["batch", *form.input_shape], "float32", "(raw - mean) / deviation"),
        output=ModelOutput(["batch", form.outputs], output),
        scaling=trained.scaling,
    )
