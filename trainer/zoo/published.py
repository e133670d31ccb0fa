"""Published networks with their results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from archive.errors import UnknownNameError
from archive.queries.published_recipes import OWN_DATA, data_of
from archive.store.evaluations import TaskProtocol
from archive.store.records import Result


@dataclass(frozen=True)
class PublishedResult:
    """One published result of a model.

    Attributes:
        place: Task and protocol.
        model: Name of the model at its source, `resnet50.a1_in1k`.
        result: The result with its provenance, without the family.
        params: Number of parameters that the source gives, in millions; None where it gives none.
        tolerance: Largest difference by rounding, in millions.
    """

    place: TaskProtocol
    model: str
    result: Result
    params: float | None = None
    tolerance: float = 0.0

    @property
    def id(self) -> str:
        """Id of the evaluation."""
        return f"{self.place.task}/{self.place.protocol}/{self.model}"

    def suits(self, params: int | None) -> bool:
        """Return whether a network has the number of parameters of the measured model."""
        if self.params is None or params is None:
            return True

        return abs(params / 1e6 - self.params) <= self.tolerance + 1e-9

    def of_family(self, family: str) -> Result:
        """Return the result with the family of its model."""
        named = {"model": self.model, "family": family, **self.result.provenance}
        return replace(self.result, provenance=named)


@dataclass(frozen=True)
class PublishedNetwork:
    """A network of a zoo: every recipe that trained it has results.

    Attributes:
        name: Name of the architecture, `resnet50`.
        reference: Name of the model to build, `resnet50.a1_in1k`.
        results: Its results.
        size: Its parameters in millions, if known: small networks come first.
    """

    name: str
    reference: str
    results: tuple[PublishedResult, ...]
    size: float = 0.0


def select(networks: Iterable[PublishedNetwork], patterns: Iterable[str]) -> list[PublishedNetwork]:
    """Return the networks that match a pattern, with the results of the matching models.

    A pattern is of the name of an architecture, which selects all its models, or of a model:
    `resnet*`, `*.a1_in1k`.

    Raises:
        UnknownNameError: A pattern matches nothing.
    """
    every = list(networks)
    patterns = list(patterns)
    if not patterns:
        return every

    for pattern in patterns:
        if not any(_matching(network, [pattern]).results for network in every):
            names = [network.name for network in every]
            raise UnknownNameError("model", pattern, names, "* stands for any characters")

    matching = (_matching(network, patterns) for network in every)
    return [network for network in matching if network.results]


def _matching(network: PublishedNetwork, patterns: Iterable[str]) -> PublishedNetwork:
    patterns = list(patterns)
    if any(fnmatchcase(network.name, pattern) for pattern in patterns):
        return network

    results = []
    for result in network.results:
        if any(fnmatchcase(result.model, pattern) for pattern in patterns):
            results.append(result)

    return replace(network, results=tuple(results))


def pretraining_of(recipe: str) -> dict[str, str]:
    """Return the data that a recipe names before ImageNet-1k, as a part of the provenance.

    >>> pretraining_of("clip_laion2b_augreg_ft_in12k_in1k")
    {'pretraining': 'laion2b+in12k'}
    >>> pretraining_of("a1_in1k")
    {}
    """
    words = recipe.lower().split("_")
    if OWN_DATA in words:
        words = words[: len(words) - 1 - words[::-1].index(OWN_DATA)]

    data = data_of(words)
    return {"pretraining": "+".join(data)} if data else {}
