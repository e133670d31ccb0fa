"""What is learned, and by which rules: tasks, their protocols and the registry of both.

A task is a data set with a metric. A protocol is every choice that a result depends on beside the architecture and
the seed, under a name that never changes its meaning: evaluations are comparable when task and protocol are. A changed
rule is a new protocol (`digits/2`), never another `digits/1`.

Naming tasks loads neither torch nor scikit-learn; `Task.load` does. A package adds a task by an entry point of the
group `archive.tasks` that loads to a `Task`. Tasks that a table answers instead of training are in
`archive.trainer.tabular`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from archive.errors import SettingsError, UnknownNameError, UsageError
from archive.registry import Registry
from archive.trainer.tabular import PREFIX, TabularTask, parse

if TYPE_CHECKING:
    from archive.spaces.base import Space
    from archive.trainer.data import Splits

registry = Registry(
    "task",
    "archive.tasks",
    {
        "diabetes": "archive.trainer.tasks:DIABETES",
        "digits": "archive.trainer.tasks:DIGITS",
        "nb101": "archive.trainer.tabular:NB101",
        "nb201-cifar10": "archive.trainer.tabular:NB201_CIFAR10",
        "nb201-cifar100": "archive.trainer.tabular:NB201_CIFAR100",
    },
)


@dataclass(frozen=True, slots=True)
class Protocol:
    """Every choice that a result depends on beside task, architecture and seed.

    Attributes:
        name: Under which evaluations record it.
        train: Number of training inputs.
        valid: Number of inputs that choose the best epoch, and whose metric is the evaluation's value.
        test: Number of inputs that are looked at once, with the weights of the best epoch.
        split: `stratified` (each class in its share) or `shuffled`.
        split_seed: Of the one split that all evaluations share.
        batch: Inputs in one step, but for a few less where the batches of an epoch are made equal.
        epochs: Most passes over the training inputs.
        patience: Epochs without a better validation metric after which training ends.
        optimiser: `adamw` or `sgd` (with momentum 0.9, Nesterov's form).
        learning_rate: Its peak.
        warmup: Share of the steps in which the learning rate rises linearly; it then falls along a cosine to zero.
        weight_decay: Decoupled in `adamw`, of weight matrices and kernels only.
        normalisation: `batch` or `none`; see `archive.trainer.operations`.
    """

    name: str
    train: int
    valid: int
    test: int
    split: Literal["stratified", "shuffled"]
    split_seed: int
    batch: int
    epochs: int
    patience: int
    optimiser: Literal["adamw", "sgd"]
    learning_rate: float
    warmup: float
    weight_decay: float
    normalisation: Literal["batch", "none"]

    def as_dict(self) -> dict[str, Any]:
        """Return the choices as plain values, to record or show."""
        return asdict(self)


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

    @property
    def objective(self) -> str:
        """Name of the metric that is an evaluation's value."""
        return f"valid_{self.metric}"

    @property
    def label(self) -> str:
        """Short name, for names of studies."""
        return self.name

    def protocol(self, name: str | None = None) -> Protocol:
        """Return the protocol of this name, or the task's default.

        Raises:
            UnknownNameError: The task has no such protocol.
        """
        if name is None:
            return self.protocols[0]
        for protocol in self.protocols:
            if protocol.name == name:
                return protocol
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


def names() -> tuple[str, ...]:
    """Return the names of all tasks but those of users' tables, sorted, loading none of them."""
    return registry.names()


def get(name: str) -> Task | TabularTask:
    """Return a task by its name, or by the path and column of a table: `table:PATH#COLUMN`.

    Raises:
        UnknownNameError: There is none of this name.
        SettingsError: Another package offers it, but what it offers is no task.
        UsageError: The table cannot be read, or has no such column.
    """
    if name.startswith(PREFIX):
        return parse(name)
    task = registry.load(name)
    if not isinstance(task, Task | TabularTask):
        raise SettingsError(f"the task {name!r} of another package must be a Task, got a {type(task).__name__}")
    return task


def _digits(protocol: Protocol) -> Splits:
    from archive.trainer import data

    return data.digits(protocol)


def _diabetes(protocol: Protocol) -> Splits:
    from archive.trainer import data

    return data.diabetes(protocol)


DIGITS = Task(
    name="digits",
    summary="handwritten digits, 1,797 images of 8 x 8 pixels in 10 classes (inside scikit-learn)",
    kind="classification",
    metric="accuracy",
    direction="maximise",
    input_shape=(1, 8, 8),
    outputs=10,
    spaces=("cnn", "mlp"),
    protocols=(
        Protocol(
            name="digits/1",
            train=1078,
            valid=359,
            test=360,
            split="stratified",
            split_seed=0,
            batch=64,
            epochs=16,
            patience=6,
            optimiser="sgd",
            learning_rate=0.03,
            warmup=0.3,
            weight_decay=5e-4,
            normalisation="batch",
        ),
    ),
    loader=_digits,
)

DIABETES = Task(
    name="diabetes",
    summary="progress of diabetes in 442 patients from 10 measurements (inside scikit-learn)",
    kind="regression",
    metric="mse",
    direction="minimise",
    input_shape=(10,),
    outputs=1,
    spaces=("mlp",),
    protocols=(
        Protocol(
            name="diabetes/1",
            train=265,
            valid=88,
            test=89,
            split="shuffled",
            split_seed=0,
            batch=32,
            epochs=60,
            patience=15,
            optimiser="adamw",
            learning_rate=1e-3,
            warmup=0.2,
            weight_decay=1e-2,
            normalisation="none",
        ),
    ),
    loader=_diabetes,
)
