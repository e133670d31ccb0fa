"""Types of the ask/tell interface, and validation of user input."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from typing import TYPE_CHECKING, Any

from archive.architecture.graph import Architecture
from archive.architecture.texts import from_text, is_text
from archive.errors import UnknownNameError, UsageError
from archive.store.properties import EPOCH
from archive.store.records import Proposal
from archive.values import as_float, check_length, in_line, shown, storable

if TYPE_CHECKING:
    from archive.store.architectures import Architectures
    from archive.store.records import Evaluation, Objective


MOST_STEP = 2**53 - 1
"""Largest step: floats tell the integers up to it apart."""

Told = float | Sequence[float] | Mapping[str, float]
"""A value, or the values of several objectives, in their order or by name; arrays and tensors stand
for their lists."""


@dataclass(frozen=True)
class LeasedProposal:
    """A proposal leased to this process for evaluation.

    Attributes:
        proposal: The proposal, with the agent's acquisition value and hyperparameters.
        architecture: The network.
        token: Token of the lease.
        parameters: Values of the network's decisions by name, a tree as of `ParameterSpace.nested`.
            Empty where the decisions of the space have no names.
    """

    proposal: Proposal
    architecture: Architecture
    token: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The proposal's id."""
        return self.proposal.id


class Batch(list[LeasedProposal]):
    """The proposals that one call of `ask` returns, by number.

    Args:
        asked: The leased proposals.
        answered: See the attribute.

    Attributes:
        answered: Evaluations that the same call added to the study, by number: proposals for which
            the archive had results from other studies. They count towards the budget.
    """

    def __init__(
        self, asked: Iterable[LeasedProposal] = (), answered: Iterable[Evaluation] = ()
    ) -> None:
        """Keep both."""
        super().__init__(asked)
        self.answered = tuple(answered)


@dataclass(frozen=True)
class EnqueuedArchitecture:
    """A network enqueued by a user or a program.

    Attributes:
        architecture: The network.
        priority: Larger priorities come first.
        motivation: Reason for the proposal.
        inspired_by: Keys of the networks that it goes back to.
        parent: The network that it is a change of.
        operations: Changes that make it of the parent.
        hyperparameters: Training settings that belong to the proposal.
        mean: Score that the model of the study predicts, larger is better; None without one.
        std: Standard deviation of the prediction.
    """

    architecture: Architecture
    priority: float = 0.0
    motivation: str | None = None
    inspired_by: tuple[str, ...] = ()
    parent: Architecture | None = None
    operations: tuple[str, ...] = ()
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    mean: float | None = None
    std: float | None = None

    def __post_init__(self) -> None:
        """Keep a motivation that a server can hold."""
        if self.motivation is not None:
            object.__setattr__(self, "motivation", storable(self.motivation))


def network(text_or_network: Any, architectures: Architectures) -> Architecture:
    """Return the network that a user names, in any form that the command line accepts.

    Args:
        text_or_network: The network, its text (`archive.architecture.texts`), or its key or the
            beginning of that.
        architectures: Where keys are looked up.

    Raises:
        CodecError: The text is not a graph.
        InvalidArchitectureError: The graph is not a network.
        UsageError: It is none of these.
    """
    if isinstance(text_or_network, Architecture):
        return text_or_network

    text = text_or_network.strip() if isinstance(text_or_network, str) else ""
    if is_text(text):
        return from_text(text)

    try:
        if text:
            return architectures.get(architectures.find(text))
    except UnknownNameError:
        pass  # the error below lists all accepted forms

    raise UsageError(
        "a network is an Architecture, its JSON text, its NAS-Bench-201 string, its genotype or "
        "a key of the archive, "
        f"got {shown(text_or_network)}"
    )


def real(value: Any, what: str) -> float:
    """Return a value as a float.

    Raises:
        UsageError: It is not a number.
    """
    number = as_float(value)
    if number is None:
        raise UsageError(f"{in_line(what)} must be a number, got {shown(value)}")

    return number


def extend(
    curve: Mapping[int, dict[str, float]], step: Any, metrics: Mapping[str, float]
) -> dict[int, dict[str, float]]:
    """Return the metrics of each step of a training, with the metrics of one step added.

    Raises:
        UsageError: The step is no integer from 0 to `MOST_STEP`, or there is no metric, or one with
            the name `epoch`.
    """
    number = _step(step)
    values = numbers_of(metrics)
    if not values or EPOCH in values:
        raise UsageError(
            f"a step needs metrics with names other than {EPOCH}, got {shown(sorted(values))}"
        )

    return {**curve, number: {**curve.get(number, {}), **values}}


def _step(step: Any) -> int:
    try:
        number = -1 if isinstance(step, bool) else index(step)
    except Exception:
        number = -1

    if not 0 <= number <= MOST_STEP:
        raise UsageError(f"step must be an integer >= 0 and < 2^53, got {shown(step)}")

    return number


def numbers_of(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return metrics by name as floats.

    Raises:
        UsageError: It is no mapping, a value is not a number, or a name is no text, empty, blank at
            an end or longer than `values.MOST_NAME`.
    """
    if not isinstance(metrics, Mapping):
        raise UsageError(f"metrics must be a mapping of names to numbers, got {shown(metrics)}")

    for name in metrics:
        if not isinstance(name, str) or not name or name != name.strip():
            raise UsageError(
                f"a metric needs a name, a text without a blank at an end, got {shown(name)}"
            )

        check_length("the name of a metric", name)

    return {name: real(value, name) for name, value in metrics.items()}


def values_of(
    result: Told, objectives: Sequence[Objective], metrics: Mapping[str, float]
) -> dict[str, float]:
    """Return the value of each objective of a study by name, in their order.

    Where one is not finite, the training has no result, and others may be missing.

    Args:
        result: The value of the only objective; of several, a value for each in their order, or by
            name.
        objectives: Objectives of the study.
        metrics: Further metrics that were told or are known, in which objectives may be.

    Raises:
        UsageError: An objective has no value although the others are finite, a value is not a
            number, or a name is no objective.
    """
    names = [objective.name for objective in objectives]
    listed = ", ".join(map(in_line, names))
    # Of an array of NumPy or a tensor, the list or the number.
    plain: Any = result.tolist() if hasattr(result, "tolist") else result
    if isinstance(plain, Mapping):
        unknown = [name for name in plain if name not in names]
        by_name: Mapping[str, Any] = {**metrics, **plain}
        if unknown:
            raise UsageError(
                f"the values told must be of {listed}, got {', '.join(map(shown, unknown))}"
            )
    elif isinstance(plain, Sequence) and not isinstance(plain, str):
        if len(plain) != len(names):
            raise UsageError(
                f"the values told must be those of {listed}, in this order, got {len(plain)}"
            )

        by_name = dict(zip(names, plain, strict=True))
    else:
        by_name = {**metrics, names[0]: plain}

    values = {}
    for name in names:
        if name in by_name:
            values[name] = real(by_name[name], "value" if len(names) == 1 else name)

    missing = [name for name in names if name not in values]
    if missing and all(map(math.isfinite, values.values())):
        raise UsageError(
            f"a result needs a value of each objective, {listed}; there is none of "
            f"{in_line(missing[0])}"
        )

    return values


def lists(curve: Mapping[int, Mapping[str, float]]) -> dict[str, list[float]]:
    """Return the metrics of each step as the lists of a curve, `epoch` among them.

    NaN where a step lacks a metric.
    """
    steps = sorted(curve)
    if not steps:
        return {}

    columns = {EPOCH: [float(step) for step in steps]}
    for name in sorted(set().union(*curve.values())):
        columns[name] = [curve[step].get(name, math.nan) for step in steps]

    return columns
