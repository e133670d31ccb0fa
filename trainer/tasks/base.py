"""The task class: a data set, its target, its metric, and the protocols it is trained by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from archive.errors import UnknownNameError, UsageError
from archive.trainer.protocols import morph as inheriting
from archive.trainer.protocols.base import TrainingProtocol
from archive.trainer.protocols.networks import NetworkForm

if TYPE_CHECKING:
    from archive.spaces.base import Space
    from archive.trainer.datasets.splits import Splits


@dataclass(frozen=True, slots=True)
class Task:
    """A data set with its target, its metric and its protocols.

    Attributes:
        name: Name in studies.
        summary: One-line description.
        kind: `classification` or `regression`.
        metric: `accuracy` (share of inputs classified rightly, in [0, 1]) or `mse` (of the standardised target: a
            constant predictor scores about 1).
        direction: `maximise` or `minimise` the metric.
        input_shape: (channels, height, width) or (features,) of one input.
        outputs: Number of classes; 1 in a regression.
        spaces: Names of the search spaces whose networks suit it, the default first.
        protocols: Its training protocols, the default first.
        loader: Returns the splits under a protocol.
        fetch: Downloads the files of a protocol, or raises an error that names what is missing; None if it needs none.
        title: Short name; empty if `name` is short.
    """

    name: str
    summary: str
    kind: Literal["classification", "regression"]
    metric: Literal["accuracy", "mse"]
    direction: Literal["maximise", "minimise"]
    input_shape: tuple[int, ...]
    outputs: int
    spaces: tuple[str, ...]
    protocols: tuple[TrainingProtocol, ...]
    loader: Callable[[TrainingProtocol], Splits]
    fetch: Callable[[TrainingProtocol], object] | None = None
    title: str = ""

    @property
    def objective(self) -> str:
        """Name of the metric that is an evaluation's value."""
        return f"valid_{self.metric}"

    @property
    def label(self) -> str:
        """Short name, used in names of studies."""
        return self.title or self.name

    def protocol(self, name: str | None = None) -> TrainingProtocol:
        """Return the protocol of this name, or the task's default; each exists as `NAME+morph` as well.

        Raises:
            UnknownNameError: The task has no such protocol.
        """
        if name is None:
            return self.protocols[0]
        for protocol in self.protocols:
            if protocol.name == name:
                return protocol
            if protocol.name + inheriting.SUFFIX == name:
                return inheriting.extended(protocol)
        raise UnknownNameError(f"protocol of the task {self.name}", name, [p.name for p in self.protocols])

    def search_space(self, name: str | None = None) -> Space:
        """Return a space whose networks suit the task, by name or the task's default.

        Raises:
            UnknownNameError: There is no such space.
            UsageError: Its networks do not suit the task.
        """
        from archive import spaces

        space = spaces.get(self.spaces[0] if name is None else name)
        if space.name not in self.spaces:
            raise UsageError(
                f"task {self.name!r} has no networks in the space {space.name!r}: {' or '.join(self.spaces)}"
            )
        return space

    def form(self, protocol: TrainingProtocol | None = None) -> NetworkForm:
        """Return the form of the networks that are trained under a protocol."""
        rules = protocol or self.protocols[0]
        normalise = rules.normalisation == "batch"
        return NetworkForm(self.input_shape, self.outputs, self.kind, normalise, rules.network)

    def load(self, protocol: TrainingProtocol | None = None) -> Splits:
        """Return the training, validation and test parts of the data, always the same ones."""
        return self.loader(protocol or self.protocols[0])
