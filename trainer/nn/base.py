"""Contract of a builder: an architecture of one space becomes a torch module.

    form = task.form(protocol)                  # input shape, outputs, options: `NetworkForm`
    builders.get("cnn").check(form)             # by the name of the space; loads no torch
    module = builders.build(architecture, form, seed=0)
    module(x)                                   # (n, *form.input_shape) -> (n, form.outputs)

A module may have some things more, which the default recipe uses where they are present:

| attribute or method | meaning                                                          |
|---------------------|------------------------------------------------------------------|
| `weighted`          | layers with weights; hyperparameters of layers follow its order  |
| `set_progress`      | called before each step with the finished share (`HasProgress`)  |
| `with_auxiliary`    | outputs of the network and of a second head (`HasAuxiliaryHead`) |
| `penalty`           | a term of its own in the loss of a training (`HasPenalty`)       |
| `count_flops`       | its operations by a definition (`CountsFlops`)                   |

A builder may count the costs of networks without building them (`KnowsCosts`), and know further
ones (`KnowsFurtherCosts`).

A package adds a builder for its space through an entry point of the group `archive.builders`: the
name of the space, and a subclass of `Builder` without arguments:

    [project.entry-points."archive.builders"]
    motifs = "some_package.builder:MotifBuilder"

The module of the class must not import torch at its top: a search checks before it starts whether
its networks can be built, and starts faster without. `build` has the imports.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from archive.architecture.graph import Architecture
from archive.errors import InvalidArchitectureError
from archive.trainer.protocols.networks import NetworkForm

if TYPE_CHECKING:
    from torch import Tensor, nn

    from archive.trainer.nn.costs import Costs


LANGUAGE = "language"
"""Kind of a task whose inputs are sequences of tokens, and whose targets the tokens that follow."""


class Builder(ABC):
    """Builds the networks of one space. It has no state.

    Attributes:
        kinds: Kinds of tasks that its networks can have.
        further: Names of the costs that `further_costs` returns.
    """

    kinds: tuple[str, ...] = ("classification", "regression")
    further: tuple[str, ...] = ()

    def accept(self, form: NetworkForm) -> None:
        """Check that networks of the space can have a form: its kind, and `check`.

        Raises:
            InvalidArchitectureError: They cannot; the message gives the reason.
            UsageError: An option has an invalid value.
        """
        if form.kind not in self.kinds:
            raise InvalidArchitectureError(
                f"its networks are for {' or '.join(self.kinds)} tasks, got a {form.kind} task"
            )

        self.check(form)

    @abstractmethod
    def check(self, form: NetworkForm) -> None:
        """Check that networks of the space can have a form; without torch.

        Raises:
            InvalidArchitectureError: They cannot; the message gives the reason.
            UsageError: An option has an invalid value.
        """

    @abstractmethod
    def build(self, architecture: Architecture, form: NetworkForm, seed: int) -> nn.Module:
        """Return the network of an architecture, on the CPU, in training mode.

        The module maps a batch (n, *form.input_shape) to (n, form.outputs): in a classification,
        logits (their softmax is the classes' probabilities); in a regression, predictions. With
        the kind `LANGUAGE` it maps tokens (n, length) int64 to the logits of the next token at each
        place, (n, length, form.outputs), of which each depends on the tokens up to its place. In
        evaluation mode an output depends on its own input alone. Any random numbers of the forward
        pass come from torch's default generators, which the default recipe seeds, and saves with
        its checkpoints. Layers are in the order of the architecture, so callers that want one
        network for all relabellings pass `architecture.canonical`.

        Args:
            architecture: Architecture of the builder's space; membership is not checked.
            form: Form that `check` accepts.
            seed: Seed of the initial weights, which depend on nothing else. `builders.build` seeds
                torch's default generator with it for the time of the call, so that modules of torch
                draw from it.

        Raises:
            InvalidArchitectureError: This architecture cannot have the form.
        """


@runtime_checkable
class HasAuxiliaryHead(Protocol):
    """A module with a second head: its loss is added to the loss of the outputs in training.

    Attributes:
        auxiliary: The head; its parameters are not counted as the network's.
        auxiliary_weight: Weight of its loss.
    """

    auxiliary: nn.Module
    auxiliary_weight: float

    def with_auxiliary(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the outputs and the auxiliary outputs, each (n, outputs)."""


@runtime_checkable
class HasProgress(Protocol):
    """A module with a forward pass that changes with the progress of its training."""

    def set_progress(self, share: float) -> None:
        """Set the share of the training that is done, in [0, 1), in place in the module's tensors.

        A GPU replays recorded steps (`archive.trainer.fit.step_graphs`), which see tensors alone.
        """


@runtime_checkable
class KnowsCosts(Protocol):
    """A builder that knows the costs of a network without building it."""

    def costs(self, architecture: Architecture, form: NetworkForm) -> Costs:
        """Return the costs that `archive.trainer.nn.costs.measure` returns of the built network.

        Networks that differ in the order of their layers have equal costs.
        """


@runtime_checkable
class HasPenalty(Protocol):
    """A module with a term of its own in the loss of a training, such as the balance of experts."""

    def penalty(self) -> Tensor | None:
        """Return the term for the last forward pass, () with a gradient; None for no term."""


@runtime_checkable
class HasHiddenMatrices(Protocol):
    """A module that names the matrices between its embedding and its head.

    Attributes:
        rate_factor: Factor of their learning rate, 1 at the base width.
    """

    rate_factor: float

    def hidden_matrices(self) -> list[Tensor]:
        """Return the matrices whose inputs grow in number with the width."""


@runtime_checkable
class HasCache(Protocol):
    """A module that reads sequences in several passes, as in generation."""

    def new_cache(self) -> Any:
        """Return a cache for sequences without tokens yet; `bytes()` returns its memory."""

    def extend(self, tokens: Tensor, cache: Any) -> Tensor:
        """Return the logits of further tokens (n, length, vocabulary), and add them to the cache."""


@runtime_checkable
class CountsFlops(Protocol):
    """A module that counts its operations by a definition, not by the calls of its pass."""

    def count_flops(self, input_shape: Sequence[int]) -> int:
        """Return the multiply-adds of one input."""


@runtime_checkable
class KnowsFurtherCosts(Protocol):
    """A builder whose networks have further costs, which are known without training.

    Attributes:
        further: Their names.
    """

    further: tuple[str, ...]

    def further_costs(self, architecture: Architecture, form: NetworkForm) -> Mapping[str, float]:
        """Return the costs by name; all are minimised."""


def weighted_layers(module: nn.Module) -> list[nn.Module]:
    """Return the layers of a network to which hyperparameters by layer belong.

    They are the module's `weighted`, or else all its submodules that own a matrix or a kernel, in
    the order of `modules`. A matrix that several layers share counts once: as the first of the
    layers, or as a trained tensor with these layers in its attribute `applied_in`. A trained tensor
    that is no layer's matrix, such as a table of positions, does not count.
    """
    return [layers[0] for layers in _by_weights(module)]


def applied_layers(module: nn.Module) -> list[list[nn.Module]]:
    """Return for each of `weighted_layers` the layers that apply its weights."""
    return [list(getattr(layers[0], "applied_in", layers)) for layers in _by_weights(module)]


def _by_weights(module: nn.Module) -> list[list[nn.Module]]:
    """Return each of `weighted_layers` with the later layers that share its matrix and add none."""
    from archive.trainer.nn.units import unit_weights

    weighted = getattr(module, "weighted", None)
    if isinstance(weighted, list):
        return [[layer] for layer in weighted]

    groups: list[list[nn.Module]] = []
    owner: dict[int, list[nn.Module]] = {}
    for part in module.modules():
        matrices = [id(weights.parameter) for weights in unit_weights(part, recurse=False)]
        layers = next((owner[matrix] for matrix in matrices if matrix in owner), [])
        if not owner.keys() >= set(matrices):
            layers = []
            groups.append(layers)

        if matrices:
            layers.append(part)

        for matrix in matrices:
            owner.setdefault(matrix, layers)

    return groups


def check_image(space: str, form: NetworkForm) -> None:
    """Check that the inputs are images.

    Raises:
        InvalidArchitectureError: They are vectors.
    """
    if not form.is_image:
        shape = form.input_shape
        raise InvalidArchitectureError(
            f"a network of {space} needs images, but an input has the shape {shape}"
        )
