"""The task class: a data set, its target, its metric, and the protocols it is trained by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from archive.architecture.operations import vocabulary
from archive.errors import ArchiveError, InvalidArchitectureError, UnknownNameError, UsageError
from archive.store.protocol_names import ProtocolName
from archive.trainer.nn import builders
from archive.trainer.nn.base import LANGUAGE
from archive.trainer.protocols.base import TrainingProtocol, add_inheritance, sized
from archive.trainer.protocols.networks import NetworkForm

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture
    from archive.spaces.base import Space
    from archive.trainer.datasets.splits import Scaling, Splits


@dataclass(frozen=True, slots=True)
class Task:
    """A data set with its target, its metric and its protocols.

    Attributes:
        name: Name in studies.
        summary: One-line description.
        kind: `classification`, `regression`, or `language`: the next token is predicted.
        metric: `accuracy` (share of inputs classified rightly, in [0, 1]) or `mse` (of the
            standardised target: a constant predictor scores about 1), or `bits_per_byte` of text.
        direction: `maximise` or `minimise` the metric.
        input_shape: (channels, height, width), (features,) or (tokens,) of one input.
        outputs: Number of classes, or of different tokens; 1 in a regression.
        spaces: Names of the search spaces that suit it best, the default first; `suitable_spaces`
            has all.
        protocols: Its training protocols, the default first.
        loader: Returns the splits under a protocol.
        fetch: Downloads the files of a protocol, or raises an error that names what is missing;
            None if it needs none.
        title: Short name; empty if `name` is short.
        cells: Name of the default protocol of spaces of cells, with a small network around the
            cell; empty for the default of all spaces.
        scaling: Returns the scaling of the loaded data; None if it is not known.
    """

    name: str
    summary: str
    kind: Literal["classification", "regression", "language"]
    metric: Literal["accuracy", "mse", "bits_per_byte"]
    direction: Literal["maximise", "minimise"]
    input_shape: tuple[int, ...]
    outputs: int
    spaces: tuple[str, ...]
    protocols: tuple[TrainingProtocol, ...]
    loader: Callable[[TrainingProtocol], Splits]
    fetch: Callable[[TrainingProtocol], object] | None = None
    title: str = ""
    cells: str = ""
    scaling: Callable[[TrainingProtocol], Scaling] | None = None

    @property
    def objective(self) -> str:
        """Name of the metric that is an evaluation's value."""
        return f"valid_{self.metric}"

    @property
    def label(self) -> str:
        """Short name, used in names of studies."""
        return self.title or self.name

    def protocol(self, name: str | None = None, space: str = "") -> TrainingProtocol:
        """Return the protocol of this name, or a default.

        Each exists as `NAME+morph`, with each recipe and for each objective as well
        (`archive.store.protocol_names`).

        Args:
            name: Name of the protocol; None: the default.
            space: Name of the space that the default is for; empty: the task's.

        Raises:
            UnknownNameError: The task has no such protocol, or there is no such space.
        """
        if name is None:
            if not (self.cells and space and vocabulary(space).cells):
                return self.protocols[0]

            name = self.cells

        parts = ProtocolName.parse(name)
        # A default that is spelled out would be a second name for one meaning.
        by_name = {protocol.name: protocol for protocol in self.protocols}
        is_spelled = str(parts) == name and parts.objective != self.objective
        protocol = by_name.get(parts.base) or self._variant(parts.base)
        if not is_spelled or protocol is None:
            raise UnknownNameError(f"protocol of the task {self.name}", name, list(by_name))

        if parts.morph:
            protocol = add_inheritance(protocol)

        if protocol.name == name:
            return protocol

        return replace(protocol, name=name, recipe=parts.recipe)

    def protocol_of(
        self, architecture: Architecture, protocol: TrainingProtocol | None = None
    ) -> TrainingProtocol:
        """Return the protocol of one network: a budget in operations becomes a number of steps.

        Args:
            architecture: The network.
            protocol: Protocol; None: the default of its space.

        Raises:
            UsageError: The budget is too small for the network.
        """
        rules = protocol or self.protocol(space=architecture.space)
        if rules.flops is None:
            return rules

        return sized(rules, builders.costs(architecture.network, self.form(rules)).flops)

    def search_space(self, name: str | None = None) -> Space:
        """Return a space of suitable networks, by name or the task's default.

        Raises:
            UnknownNameError: There is no such space.
            UsageError: Its networks do not suit the task, or the trainer builds none.
        """
        from archive import spaces

        space = spaces.get(self.spaces[0] if name is None else name)
        try:
            builders.get(space.name).accept(self.form(space=space.name))
        except InvalidArchitectureError as error:
            reason = (
                f"task {self.name!r} has no networks in the space {space.name!r}: {error.reason}"
            )
            raise UsageError(f"{reason}; try {' or '.join(self.spaces)}") from None

        return space

    def suitable_spaces(self) -> tuple[str, ...]:
        """Return the names of all spaces with suitable networks, the default first."""
        others = sorted(set(builders.names()) - {*self.spaces})
        return (*self.spaces, *filter(self._suits, others))

    def form(self, protocol: TrainingProtocol | None = None, space: str = "") -> NetworkForm:
        """Return the form of networks under a protocol; None stands for the default of a space."""
        rules = protocol or self.protocol(space=space)
        normalise = rules.normalisation == "batch"
        return NetworkForm(self.input_shape, self.outputs, self.kind, normalise, rules.network)

    def load(self, protocol: TrainingProtocol | None = None) -> Splits:
        """Return the training, validation and test parts of the data, always the same ones.

        Raises:
            TrainingError: The loader returns something else.
        """
        from archive.trainer.datasets.splits import check_splits

        return check_splits(
            self.loader(protocol or self.protocols[0]),
            self.name,
            classification=self.kind == "classification",
            input_shape=self.input_shape,
            outputs=self.outputs,
            tokens=self.kind == LANGUAGE,
        )

    def _variant(self, name: str) -> TrainingProtocol | None:
        """Return a variant of the protocol of a text; None for no such name."""
        if self.kind != LANGUAGE:
            return None

        from archive.trainer.tasks.text_variants import variant

        return variant(self.protocols[0], name)

    def _suits(self, space: str) -> bool:
        try:
            self.search_space(space)
        except ArchiveError:
            # Also where another package's space or builder cannot be loaded.
            return False

        return True
