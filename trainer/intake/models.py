"""PyTorch models as architectures of the space `torch`.

    imported = import_model(torchvision.models.resnet18(), [Input((3, 224, 224))])
    imported.architecture, imported.params

`factories` makes the model from MODULE:FACTORY, `exporting` reduces it to operations of the vocabulary, `conversion`
makes layers of these. `onnx_graphs` makes the model from a file instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from archive import spaces
from archive.architecture.aten import folding
from archive.architecture.aten.folding import unfold
from archive.architecture.aten.vocabulary import NAME
from archive.architecture.aten.wiring import Input
from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError, UsageError
from archive.trainer.intake.conversion import converted
from archive.trainer.intake.exporting import exported
from archive.trainer.nn import costs
from archive.trainer.nn.aten import network


@dataclass(frozen=True)
class ImportedModel:
    """A model as an architecture.

    Attributes:
        architecture: The architecture.
        params: Number of trained numbers of the model.
        flops: Multiply-adds of one input (`archive.trainer.nn.costs`); None for a model of several inputs, or of
            indices.
        names: Name in the model of each tensor, by the position of its layer in the canonical form, without folding,
            and its attribute (`shape` of a `parameter`).
    """

    architecture: Architecture
    params: int
    flops: int | None
    names: Mapping[tuple[int, str], str]

    def state_dict(self, model: nn.Module) -> dict[str, Tensor]:
        """Return the state of the model by the names of the network that is built from the architecture."""
        layers, state = unfold(self.architecture).canonical.layers, model.state_dict()
        return {network.tensor_name(layers[at], at, name): state[full] for (at, name), full in self.names.items()}


def import_model(model: nn.Module, inputs: Sequence[Input], *, fold: bool = False) -> ImportedModel:
    """Return the architecture of a model in evaluation mode.

    What a module does in training alone by a branch of its own, such as stochastic depth, is not part of it. Batch
    normalisation and dropout are, and behave in a rebuilt model as the mode says.

    Args:
        model: The model; numbers that are not float32 become so.
        inputs: Its inputs in the order of `forward`, all with the batch as a further first side.
        fold: Whether to fold repeated blocks.

    Raises:
        UsageError: The model cannot be exported, or has what an architecture cannot have.
    """
    if not inputs:
        raise UsageError("a model needs the shape of an input, as in 3x224x224")
    architecture, names = converted(exported(model.float(), inputs), inputs)
    try:
        spaces.get(NAME).validate(architecture)
    except InvalidArchitectureError as error:
        raise UsageError(f"{type(model).__name__} gives no network of the space {NAME}: {error}") from error
    position = {old: new for new, old in enumerate(architecture.canonical_order)}
    counted = len(inputs) == 1 and inputs[0].dtype == "float32"
    return ImportedModel(
        folding.fold(architecture) if fold else architecture,
        costs.params(model),
        # Of the network, which takes a batch of any size: the model may take that of its file alone.
        costs.flops(network.without_weights(architecture), inputs[0].shape) if counted else None,
        {(position[at], name): full for (at, name), full in names.items()},
    )
