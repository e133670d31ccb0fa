"""PyTorch models as architectures of the space `torch`.

    imported = import_model(torchvision.models.resnet18(), [Input((3, 224, 224))])
    imported.architecture, imported.params

`factories` makes the model from MODULE:FACTORY, `exporting` reduces it to operations of the
vocabulary, `conversion` makes layers of these. `onnx_graphs` makes the model from a file instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor, nn

from archive import spaces
from archive.architecture.aten import blocks
from archive.architecture.aten.vocabulary import NAME
from archive.architecture.aten.wiring import Input
from archive.architecture.graph import Architecture
from archive.errors import ArchiveError, InvalidArchitectureError, UsageError, first_line
from archive.trainer.intake import checking
from archive.trainer.intake.conversion import convert
from archive.trainer.intake.exporting import export
from archive.trainer.intake.onnx_graphs.module import OnnxModule
from archive.trainer.nn import costs
from archive.trainer.nn.aten import network


@dataclass(frozen=True)
class ImportedModel:
    """A model as an architecture.

    Attributes:
        architecture: The architecture.
        params: Number of trained numbers of the model.
        flops: Multiply-adds of one input (`archive.trainer.nn.costs`); None for a model of several
            inputs, or of indices.
        names: Name in the model of each tensor, by the position of its layer in the canonical form,
            without folding, and its attribute (`shape` of a `parameter`).
        notes: Differences of the network from the model, a line each.
    """

    architecture: Architecture
    params: int
    flops: int | None
    names: Mapping[tuple[int, str], str]
    notes: tuple[str, ...] = ()

    def state_dict(self, model: nn.Module) -> dict[str, Tensor]:
        """Return the state of the model by the names of the architecture's network."""
        layers = blocks.unfold(self.architecture).canonical.layers
        state = model.state_dict()
        renamed: dict[str, Tensor] = {}
        for (position, name), model_name in self.names.items():
            renamed[network.tensor_name(layers[position], position, name)] = state[model_name]

        return renamed


def import_model(model: nn.Module, inputs: Sequence[Input], *, fold: bool = False) -> ImportedModel:
    """Return the architecture of a model in evaluation mode.

    Operations of the training mode alone, such as dropout or stochastic depth, are part of it. The
    notes name the exceptions.

    Args:
        model: The model; numbers that are not float32 become so.
        inputs: Its inputs in the order of `forward`, all with the batch as a further first side.
        fold: Whether to fold repeated blocks.

    Raises:
        UsageError: The model cannot be exported, or has a part that no architecture can have.
    """
    if not inputs:
        raise UsageError("a model needs the shape of an input, as in 3x224x224")

    try:
        imported = _import(model, inputs)
    except ArchiveError:
        raise
    except RecursionError as error:
        raise UsageError(
            f"{type(model).__name__} is nested too deeply: a module contains or calls itself "
            "without an end, or its blocks are better in one nn.Sequential"
        ) from error
    except Exception as error:
        raise UsageError(
            f"{type(model).__name__} cannot be imported: {type(error).__name__}: "
            f"{first_line(error, 200)}"
        ) from error

    return replace(imported, architecture=blocks.fold(imported.architecture)) if fold else imported


def _import(model: nn.Module, inputs: Sequence[Input]) -> ImportedModel:
    _check_depth(model)
    program, notes = export(model.float(), inputs, inference=isinstance(model, OnnxModule))
    architecture, names = convert(program, inputs)
    try:
        spaces.get(NAME).validate(architecture)
    except InvalidArchitectureError as error:
        raise UsageError(
            f"{type(model).__name__} gives no network of the space {NAME}: {error}"
        ) from error

    positions = {old: new for new, old in enumerate(architecture.canonical_order)}
    canonical_names: dict[tuple[int, str], str] = {}
    for (old, name), model_name in names.items():
        canonical_names[positions[old], name] = model_name

    imported = ImportedModel(
        architecture,
        costs.params(model),
        _flops(architecture, inputs),
        canonical_names,
        notes,
    )
    return replace(imported, notes=(*notes, *_differences(imported, model, inputs)))


def _check_depth(model: nn.Module) -> None:
    """Refuse a model with more modules than an architecture has layers, before it is traced."""
    count = 0
    for module in model.modules():
        if not module._modules:
            count += 1

    if count > blocks.MOST_LAYERS - 2:
        raise UsageError(
            f"{type(model).__name__} has {count} layers, and an architecture has at most "
            f"{blocks.MOST_LAYERS}: import one of its blocks, or build it with fewer"
        )


def _flops(architecture: Architecture, inputs: Sequence[Input]) -> int | None:
    if len(inputs) > 1 or inputs[0].dtype != "float32":
        return None

    try:
        # The network takes a batch of any size; a model from a file may take one size alone.
        return costs.flops(network.without_weights(architecture), inputs[0].shape)
    except (RuntimeError, TypeError, ValueError, NotImplementedError):
        # A batch of one is too small for a network that normalises by the batch, and not all can
        # run without values.
        return None


def _differences(imported: ImportedModel, model: nn.Module, inputs: Sequence[Input]) -> list[str]:
    """Return the differences of the network from the model in training.

    A model without values is not compared.

    Raises:
        UsageError: It computes other outputs in evaluation mode.
    """
    for tensor in (*model.parameters(), *model.buffers()):
        if tensor.is_meta:
            return []

    if (imported.flops or 0) > checking.MOST_MULTIPLICATIONS:
        return []

    layers = imported.architecture.canonical.layers
    names: dict[str, str] = {}
    for (position, name), model_name in imported.names.items():
        names[network.tensor_name(layers[position], position, name)] = model_name

    again = network.rebuilt(imported.architecture)
    again.load_state_dict(imported.state_dict(model))
    share, lines = checking.differences(model, again, names, inputs, flops=imported.flops or 0)
    if share > checking.MOST_DIFFERENCE:
        raise UsageError(
            f"the network of {type(model).__name__} would compute other outputs than the model, "
            f"by {share:.2g} of the largest: it has an operation that cannot be imported"
        )

    # Differences that a note names need no measurement.
    return [] if imported.notes or isinstance(model, OnnxModule) else lines
