"""Network morphism of trained weights: a grown network computes what the network it grew from has learned.

Jin, Song, Hu: Efficient Neural Architecture Search with Network Morphism (2018). Chen, Goodfellow, Shlens: Net2Net
(2016). Wei, Wang, Rui, Chen: Network Morphism (2016).

    found = inherit(parent, weights, child, Built.of(task, protocol))
    network.load_state_dict(found.weights)          # outputs are the parent's, before any training

| the child has         | it starts as                                                                             |
|-----------------------|------------------------------------------------------------------------------------------|
| a layer in between    | the identity; a crelu after activations that may be negative, which keeps both signs     |
| more units in a layer | copies of its units in turn; what they feed shares its weights out among the copies      |
| a residual block      | zeros in its second convolution (with normalisation: in the factor behind it)            |
| a further edge        | zeros for the channels that are new where it ends, also behind pools: the effective area |
| a path of its own     | weights as drawn, ignored where the path ends                                            |
| a copy of a path      | copies of its layers                                                                     |

Nothing has to be told of the operations: layers are matched (`archive.trainer.morphism.match`), then channels
(`archive.trainer.morphism.channels`). So any number of operations is one step, and networks that an evolutionary
mutation made larger inherit, too.

The shares are random, and differ between the units that they go to, so copies have different gradients and grow apart
from the first step on. Net2Net adds noise for that, which changes the function; `noise` does so if it is asked for.

What cannot be kept is in `archive.trainer.morphism.feasibility`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from archive.architecture.graph import Architecture
from archive.trainer.morphism.feasibility import planned
from archive.trainer.morphism.tensors import Sources, filled
from archive.trainer.nn.network import Network

if TYPE_CHECKING:
    from archive.trainer.tasks.registry import Protocol, Task


@dataclass(frozen=True)
class Built:
    """How networks are built: what parent and child have in common.

    Attributes:
        input_shape: (channels, height, width) or (features,) of one input.
        outputs: Number of classes; 1 in a regression.
        kind: `classification` or `regression`.
        normalise: Whether batch normalisation stands before each activation.
    """

    input_shape: tuple[int, ...]
    outputs: int
    kind: str
    normalise: bool

    @classmethod
    def of(cls, task: Task, protocol: Protocol) -> Built:
        """Return what a task and a protocol say of it."""
        return cls(task.input_shape, task.outputs, task.kind, protocol.normalisation == "batch")

    def network(self, architecture: Architecture, seed: int = 0) -> Network:
        """Build a network with weights drawn from a seed."""
        return Network(architecture, self.input_shape, self.outputs, self.kind, normalise=self.normalise, seed=seed)


@dataclass(frozen=True)
class Inherited:
    """Weights for a child.

    Attributes:
        weights: All of its tensors, as `Network` names them, in the precision of the parent's.
        operations: What leads from the parent to the child, in words, with positions in the child.
        identities: Names of the normalisations that are to change nothing; see `calibrate`.
    """

    weights: dict[str, Tensor]
    operations: tuple[str, ...]
    identities: tuple[str, ...]


def inherit(
    parent: Architecture,
    weights: Mapping[str, Tensor],
    child: Architecture,
    built: Built,
    *,
    seed: int = 0,
    noise: float = 0.0,
) -> Inherited:
    """Return weights with which a child computes what its parent does.

    Args:
        parent: In the order of layers that its weights are named by.
        weights: As `Network` names them.
        child: In the order of layers that the result is to be named by.
        built: How both are built.
        seed: Of the weights that nothing determines, and of the shares of copies.
        noise: Standard deviation, relative to that of a layer's weights, of what is added to the weights of copied
            units and of new layers. The function is then the parent's but for the noise.

    Raises:
        InvalidArchitectureError: The child cannot compute what the parent does, as far as the search sees.
    """
    matching, parts = planned(parent, child, built.input_shape)
    drawn = {name: tensor.detach() for name, tensor in built.network(child, seed).state_dict().items()}
    generator = torch.Generator().manual_seed(seed)
    made, identities = filled(Sources(matching, parts, weights, drawn), generator, noise)
    return Inherited(made, matching.operations, tuple(identities))


@torch.no_grad()
def calibrate(network: Network, identities: Sequence[str], inputs: Tensor) -> None:
    """Let normalisations that change nothing in evaluation change next to nothing in training, too.

    In training a normalisation uses the mean and the deviation of its batch, which would undo what went before. Here
    its running statistics become those of the inputs, and its factor and its offset take them back: what it computes
    in evaluation is what it was.

    Args:
        network: With the weights of `inherit`; changed in place.
        identities: Of `Inherited`.
        inputs: (n, *input_shape) training inputs, some hundred.
    """
    was = network.training
    modules = dict(network.named_modules())
    hooks = [modules[name].register_forward_pre_hook(_take_back) for name in identities]
    try:
        network.eval()(inputs)
    finally:
        for hook in hooks:
            hook.remove()
        network.train(was)


def _take_back(norm: nn.Module, entering: tuple[Tensor, ...]) -> None:
    assert isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d)
    values = entering[0].transpose(0, 1).flatten(1)
    mean, variance = values.mean(dim=1), values.var(dim=1, correction=0)
    for name, tensor in (("running_mean", mean), ("running_var", variance)):
        norm.get_buffer(name).copy_(tensor)
    norm.weight.copy_((variance + norm.eps).sqrt())
    norm.bias.copy_(mean)
