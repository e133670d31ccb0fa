"""Network morphism of trained weights: a child network starts with the function that its parent has
learned.

Jin, Song, Hu: Efficient Neural Architecture Search with Network Morphism (2018). Chen, Goodfellow,
Shlens: Net2Net (2016). Wei, Wang, Rui, Chen: Network Morphism (2016).

    transferred = inherit(parent, weights, child, task.form(protocol))
    network.load_state_dict(transferred.weights)          # outputs are the parent's, before any training

| addition in the child | its initial weights                                                                      |
|-----------------------|------------------------------------------------------------------------------------------|
| a layer in between    | the identity; a crelu after activations that may be negative, which keeps both signs     |
| more units in a layer | copies of its units in turn; the next layers divide their weights among the copies       |
| a residual block      | zeros in its second convolution (with normalisation: in its factor)                      |
| a further edge        | zeros for the new channels at its end, also after pools: the effective area              |
| a new path            | drawn from the seed, with zeros where the path ends                                      |
| a copy of a path      | copies of its layers                                                                     |

The operations need not be known: layers are matched (`archive.trainer.morphism.match`), then
channels (`archive.trainer.morphism.channels`). Any number of operations is therefore one step, and
networks that an evolutionary mutation enlarged inherit, too.

The shares are random, and differ between the next layer's units, so that copies have different
gradients and diverge from the first step on. Net2Net adds noise for that, which changes the
function; `noise` does the same on request.

`archive.trainer.morphism.feasibility` lists what cannot be inherited.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from archive.architecture.graph import Architecture
from archive.trainer.morphism.feasibility import planned
from archive.trainer.morphism.tensors import TransferSources, filled
from archive.trainer.nn import builders
from archive.trainer.protocols.networks import NetworkForm


@dataclass(frozen=True)
class TransferredWeights:
    """Initial weights of a child.

    Attributes:
        weights: All of its tensors by the names of the network, in the precision of the parent's.
        operations: Operations from the parent to the child, in words, with positions in the child.
        identities: Names of the normalisations that must be the identity; see `calibrate`.
    """

    weights: dict[str, Tensor]
    operations: tuple[str, ...]
    identities: tuple[str, ...]


def inherit(
    parent: Architecture,
    weights: Mapping[str, Tensor],
    child: Architecture,
    form: NetworkForm,
    *,
    seed: int = 0,
    noise: float = 0.0,
) -> TransferredWeights:
    """Return weights with which a child has its parent's function.

    Args:
        parent: Architecture, in the order of layers that names its weights.
        weights: The parent's weights by the names of the network.
        child: Architecture, in the order of layers that names the result.
        form: Form of both networks.
        seed: Seed of the undetermined weights, and of the shares of copies.
        noise: Standard deviation, relative to that of a layer's weights, of noise on the weights of
            copied units and of new layers. The function is then the parent's up to the noise.

    Raises:
        InvalidArchitectureError: The search finds no way for the child to keep the parent's
            function.
    """
    matching, parts = planned(parent, child, form.input_shape)
    drawn = {
        name: tensor.detach()
        for name, tensor in builders.build(child, form, seed).state_dict().items()
    }
    generator = torch.Generator().manual_seed(seed)
    made, identities = filled(TransferSources(matching, parts, weights, drawn), generator, noise)
    return TransferredWeights(made, matching.operations, tuple(identities))


@torch.no_grad()
def calibrate(network: nn.Module, identities: Sequence[str], inputs: Tensor) -> None:
    """Calibrate normalisations that are the identity in evaluation to be nearly the identity in
    training, too.

    In training, a normalisation uses the mean and the deviation of its batch, which would change
    the function. Here its running statistics become those of the inputs, and its factor and offset
    invert them: in evaluation it stays the identity.

    Args:
        network: Network with the weights of `inherit`; changed in place.
        identities: Names from `TransferredWeights`.
        inputs: (n, *input_shape) training inputs, a few hundred.
    """
    was = network.training
    modules = dict(network.named_modules())
    hooks = [modules[name].register_forward_pre_hook(_recalibrate) for name in identities]
    try:
        network.eval()(inputs)
    finally:
        for hook in hooks:
            hook.remove()

        network.train(was)


def _recalibrate(norm: nn.Module, entering: tuple[Tensor, ...]) -> None:
    assert isinstance(norm, nn.BatchNorm1d | nn.BatchNorm2d)
    values = entering[0].transpose(0, 1).flatten(1)
    mean = values.mean(dim=1)
    variance = values.var(dim=1, correction=0)
    for name, tensor in (("running_mean", mean), ("running_var", variance)):
        norm.get_buffer(name).copy_(tensor)

    norm.weight.copy_((variance + norm.eps).sqrt())
    norm.bias.copy_(mean)
