"""Check of an ancestor's weights before they are inherited: a recipe may save other tensors than
its network has.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from archive.architecture.graph import Architecture
from archive.errors import WeightsError
from archive.trainer.nn import builders
from archive.trainer.protocols.networks import NetworkForm

_SHOWN = 3


def check(
    uri: str, architecture: Architecture, weights: Mapping[str, Tensor], form: NetworkForm
) -> None:
    """Check that weights have the tensors of their network, with finite numbers; further tensors do
    not matter.

    Args:
        uri: Address of the weights, for the error.
        architecture: The network, in the order of layers that names the weights.
        weights: Tensors by name.
        form: Form of the network.

    Raises:
        WeightsError: A tensor is missing, has another shape, or has NaN or infinity.
    """
    tensors = builders.build(architecture, form).state_dict()
    # Counters of batches are no weights: nothing depends on them.
    needed = {name: tensor for name, tensor in tensors.items() if tensor.is_floating_point()}
    if missing := [name for name in needed if name not in weights]:
        unexpected = [name for name in weights if name not in tensors]
        further = f"; unexpected: {_listed(unexpected)}" if unexpected else ""
        raise WeightsError(
            f"the weights of {uri} do not fit its network: missing: {_listed(missing)}{further}"
        )

    for name, tensor in needed.items():
        if weights[name].shape != tensor.shape:
            raise WeightsError(
                f"the weights of {uri} do not fit its network: {name} must have the shape "
                f"{tuple(tensor.shape)}, "
                f"got {tuple(weights[name].shape)}"
            )

    if infinite := [name for name in needed if not torch.isfinite(weights[name].float()).all()]:
        raise WeightsError(
            f"the weights of {uri} are not finite: NaN or infinity in {_listed(infinite)}"
        )


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
