"""Builder of the space `decoder`: networks that predict the next token of a sequence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, final

from archive.architecture.decoders import costs as exact
from archive.architecture.decoders.design import Design, design_of
from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError
from archive.trainer.nn.base import LANGUAGE, Builder
from archive.trainer.protocols.networks import NetworkForm

if TYPE_CHECKING:
    from torch import nn

    from archive.trainer.nn.costs import Costs


@final
class DecoderBuilder(Builder):
    """Builds decoders; the input is a sequence of tokens, the outputs are logits at each place.

    | option    | meaning                                             | default |
    |-----------|-----------------------------------------------------|---------|
    | `balance` | weight of the loss that balances experts            | 0.01    |
    | `base_width` | width at which the learning rate is known, by which networks of other widths are scaled | no scaling |
    """

    kinds = (LANGUAGE,)
    further = ("flops_per_token", "kv_cache_bytes")

    def check(self, form: NetworkForm) -> None:
        """Accept sequences of tokens."""
        form.share("balance", 0.0)
        form.count("base_width", 1)

    def build(self, architecture: Architecture, form: NetworkForm, seed: int) -> nn.Module:
        """See `Builder.build`; the order of the layers has no influence."""
        from archive.trainer.nn.decoders.network import DecoderNetwork

        base_width = form.count("base_width", 1) if "base_width" in form.options else None
        balance = form.share("balance", 0.01)
        return DecoderNetwork(_fitting(architecture, form), balance, base_width)

    def costs(self, architecture: Architecture, form: NetworkForm) -> Costs:
        """See `KnowsCosts.costs`."""
        from archive.trainer.nn.costs import Costs

        _fitting(architecture, form)
        (length,) = form.input_shape
        flops = round(length * exact.flops_per_token(architecture, length))
        return Costs(exact.params(architecture), flops)

    def further_costs(self, architecture: Architecture, form: NetworkForm) -> Mapping[str, float]:
        """Return the multiply-adds of a token, and the cache at the length of a sequence."""
        _fitting(architecture, form)
        (length,) = form.input_shape
        return {
            "flops_per_token": exact.flops_per_token(architecture, length),
            "kv_cache_bytes": float(exact.kv_cache_bytes(architecture, length)),
        }


def _fitting(architecture: Architecture, form: NetworkForm) -> Design:
    """Return the design of a decoder that has the tokens of a form.

    Raises:
        InvalidArchitectureError: It has other tokens, or settings of published networks.
    """
    design = design_of(architecture)
    if further := design.further():
        raise InvalidArchitectureError(
            f"no module of decoders has {further[0]}: a published network is counted and compared, "
            "and trained only if it is a member of the space decoder"
        )

    if design.vocabulary != form.outputs:
        raise InvalidArchitectureError(
            f"the task has {form.outputs} tokens, the network {design.vocabulary}: "
            f"give the space the setting vocabulary={form.outputs}"
        )

    return design
