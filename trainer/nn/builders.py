"""Builders of networks by the name of the space, among them `mlp` and `cnn`.

`archive.trainer.nn.base` tells how a package adds one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError, SettingsError
from archive.registry import Registry
from archive.trainer.nn.base import Builder, KnowsCosts, KnowsFurtherCosts, check_image
from archive.trainer.protocols.networks import NetworkForm

if TYPE_CHECKING:
    from torch import nn

    from archive.trainer.nn.costs import Costs


registry = Registry(
    "builder",
    "archive.builders",
    {
        "cnn": "archive.trainer.nn.builders:CnnBuilder",
        "darts": "archive.trainer.nn.cells:DartsBuilder",
        "decoder": "archive.trainer.nn.decoders.builder:DecoderBuilder",
        "mlp": "archive.trainer.nn.builders:MlpBuilder",
        "nasbench101": "archive.trainer.nn.cells:NasBench101Builder",
        "nasbench201": "archive.trainer.nn.cells:NasBench201Builder",
        "nasnet": "archive.trainer.nn.cells:NasNetBuilder",
        "torch": "archive.trainer.nn.aten.builder:TorchBuilder",
    },
)


def names() -> tuple[str, ...]:
    """Return the sorted names of the spaces that have a builder."""
    return registry.names()


def get(space: str) -> Builder:
    """Return the builder of a space.

    Raises:
        InvalidArchitectureError: The space has none.
        SettingsError: Another package's builder cannot be loaded or made, or is none.
    """
    if space not in names():
        raise InvalidArchitectureError(
            f"the trainer builds networks of {', '.join(names())}, got {space}"
        )

    kind = registry.load(space)
    if not (isinstance(kind, type) and issubclass(kind, Builder)):
        raise SettingsError(
            f"the builder {space!r} of {registry.package(space)} must be a subclass of Builder, "
            f"got {kind!r}"
        )

    return registry.make(space, Builder)  # type: ignore[type-abstract]


def build(architecture: Architecture, form: NetworkForm, seed: int = 0) -> nn.Module:
    """Return the network of an architecture; see `Builder.build`.

    Torch's generators are as before the call.

    Raises:
        InvalidArchitectureError: The space has no builder, or the architecture cannot have the
            form.
        UsageError: An option of the form has an invalid value.
    """
    import torch

    builder = get(architecture.space)
    builder.accept(form)
    with torch.random.fork_rng(devices=()):
        # `manual_seed` of the module would seed the GPUs, too.
        torch.default_generator.manual_seed(seed)
        return builder.build(architecture, form, seed)


def costs(architecture: Architecture, form: NetworkForm) -> Costs:
    """Return the costs of a network; it is built only if its builder does not know them.

    Raises:
        InvalidArchitectureError: The space has no builder, or the architecture cannot have the
            form.
        UsageError: An option of the form has an invalid value.
    """
    from archive.trainer.nn.costs import measure

    builder = get(architecture.space)
    builder.accept(form)
    if isinstance(builder, KnowsCosts):
        return builder.costs(architecture, form)

    return measure(build(architecture.canonical, form), form.input_shape)


def names_of_further_costs(space: str, form: NetworkForm) -> tuple[str, ...]:
    """Return the names of the further costs of networks of a space; empty without a builder."""
    if space not in names():
        return ()

    builder = get(space)
    fits = isinstance(builder, KnowsFurtherCosts) and form.kind in builder.kinds
    return builder.further if fits else ()


def further_costs(architecture: Architecture, form: NetworkForm) -> dict[str, float]:
    """Return the further costs of a network by name; empty where its builder knows none.

    Raises:
        InvalidArchitectureError: The space has no builder, or the architecture cannot have the
            form.
        UsageError: An option of the form has an invalid value.
    """
    builder = get(architecture.space)
    builder.accept(form)
    if not isinstance(builder, KnowsFurtherCosts):
        return {}

    return dict(builder.further_costs(architecture, form))


@final
class MlpBuilder(Builder):
    """Builds perceptrons; images enter as vectors."""

    def check(self, form: NetworkForm) -> None:
        """Accept every form."""

    def build(self, architecture: Architecture, form: NetworkForm, seed: int) -> nn.Module:
        """See `Builder.build`."""
        return _network(architecture, form, seed)


@final
class CnnBuilder(Builder):
    """Builds convolutional networks that end in softmax layers."""

    def check(self, form: NetworkForm) -> None:
        """Accept a classification of images."""
        check_image("cnn", form)
        if form.kind == "regression":
            raise InvalidArchitectureError("a cnn decides by softmax, which gives no regression")

    def build(self, architecture: Architecture, form: NetworkForm, seed: int) -> nn.Module:
        """See `Builder.build`."""
        return _network(architecture, form, seed)


def _network(architecture: Architecture, form: NetworkForm, seed: int) -> nn.Module:
    from archive.trainer.nn.layers import Network

    return Network(architecture, form, seed=seed)
