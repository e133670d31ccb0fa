"""What is learned: a data set, what is asked of it, and how good an answer is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from archive.errors import UnknownNameError, UsageError
from archive.trainer.morphism import protocol as inheriting
from archive.trainer.tasks.protocol import Protocol

if TYPE_CHECKING:
    from archive.spaces.base import Space
    from archive.trainer.datasets.tensors import Splits


@dataclass(frozen=True, slots=True)
class Task:
    """A data set, what is asked of it, and how good an answer is.

    Attributes:
        name: Under which studies name it.
        summary: One line for people.
        kind: `classification` or `regression`.
        metric: `accuracy` (share of inputs classified rightly, in [0, 1]) or `mse` (of the standardised target: a
            constant predictor scores about 1).
        direction: `maximise` or `minimise` the metric.
        input_shape: (channels, height, width) or (features,) of one input.
        outputs: Number of classes; 1 in a regression.
        spaces: Names of the search spaces whose networks suit it, the default first.
        protocols: The rules it can be trained by, the default first.
        loader: Returns the splits under a protocol.
        fetch: Sees to it that the files of a protocol are here, or says what is missing; None where none is needed.
        title: Short name; none where `name` is short.
    """

    name: str
    summary: str
    kind: Literal["classification", "regression"]
    metric: Literal["accuracy", "mse"]
    direction: Literal["maximise", "minimise"]
    input_shape: tuple[int, ...]
    outputs: int
    spaces: tuple[str, ...]
    protocols: tuple[Protocol, ...]
    loader: Callable[[Protocol], Splits]
    fetch: Callable[[Protocol], object] | None = None
    title: str = ""

    @property
    def objective(self) -> str:
        """Name of the metric that is an evaluation's value."""
        return f"valid_{self.metric}"

    @property
    def label(self) -> str:
        """Short name, for names of studies."""
        return self.title or self.name

    def protocol(self, name: str | None = None) -> Protocol:
        """Return the protocol of this name, or the task's default; each is there as `NAME+morph` as well.

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

    def load(self, protocol: Protocol | None = None) -> Splits:
        """Read the data and split it, the same way every time.

        Returns:
            Training, validation and test inputs with their targets, as float32 and int64 arrays.
        """
        return self.loader(protocol or self.protocols[0])
