"""The space `choices`: categorical decisions in a chain or in a set.

| form    | the network of a member                       | equal names of two decisions' options |
|---------|-----------------------------------------------|---------------------------------------|
| `chain` | one layer per decision, fed by the one before | one operation at two places           |
| `set`   | one layer per decision, each between the ends | nothing in common                     |

A member takes one option of every decision. The default space is NAS-Bench-Macro (Su et
al., Prioritized Architecture Sampling with Monte-Carlo Tree Search, 2021): a chain of eight layers,
each an identity (0) or one of two inverted residuals (1 and 2), 3^8 = 6,561 networks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, product, starmap
from typing import Any, final

import numpy as np

from archive.architecture.choice_operations import (
    CHAIN,
    MOST_DECISIONS,
    MOST_OPTIONS,
    NASBENCH_MACRO,
    SET,
    option_labels,
    parse_label,
)
from archive.architecture.graph import Architecture, Layer
from archive.architecture.operations import INPUT, OUTPUT
from archive.errors import InvalidArchitectureError, SettingsError
from archive.spaces.base import Mutation, check_space
from archive.spaces.cell import CellSpace
from archive.spaces.decisions import Decision, Decisions, Vector

FORMS = (CHAIN, SET)

_MOST_LISTED = 20_000


@final
class Choices(CellSpace):
    """Categorical decisions in a chain or a set.

    Args:
        decisions: The options of each decision by its name, or pairs of a name and its options.
            None means the decisions of NAS-Bench-Macro.
        form: `chain` or `set`.
        **config: Refused.

    Attributes:
        options: The options of each decision, by name, in the order of the decisions.
        form: `chain` or `set`.

    Raises:
        SettingsError: The decisions are not names with two options or more each, there are too
            many, or there is no such form.
        UnknownNameError: There is another setting.
    """

    name = "choices"

    def __init__(self, decisions: Any = None, form: str = CHAIN, **config: Any) -> None:
        """Check the settings."""
        super().__init__(**config)
        if form not in FORMS:
            raise SettingsError(f"form must be chain or set, got {form!r}")

        self.form = form
        self.options = _check_decisions(NASBENCH_MACRO if decisions is None else decisions, form)
        self.vertices = len(self.options) + 2
        self._known = option_labels(list(self.options.values()), form)

    @property
    def config(self) -> dict[str, Any]:
        """The form, and the decisions as pairs: JSON objects may lose the order of their names."""
        decisions = [[name, list(options)] for name, options in self.options.items()]
        return {"decisions": decisions, "form": self.form}

    @property
    def size(self) -> int:
        """Number of members."""
        return math.prod(map(len, self.options.values()))

    @staticmethod
    def slots(architecture: Architecture) -> dict[str, str]:
        """Return the label of each decision, by its number from 1."""
        return {str(number): label for number, label in enumerate(_labels(architecture), 1)}

    def validate(self, architecture: Architecture) -> None:
        """Check that the architecture takes one option of each decision, in the form of the space.

        Raises:
            InvalidArchitectureError: It does not; the message gives the reason.
        """
        check_space(self.name, architecture)
        self.vector_of(architecture)

    def vector_of(self, architecture: Architecture) -> Vector:
        """Return the position of the option that each decision has.

        Raises:
            InvalidArchitectureError: The architecture is no member.
        """
        labels = _labels(architecture)
        if len(labels) != len(self.options):
            raise InvalidArchitectureError(
                f"the space has {len(self.options)} decisions, got {len(labels)}"
            )

        vector = []
        for name, label, labels_of_decision in zip(self.options, labels, self._known, strict=True):
            if label not in labels_of_decision:
                raise InvalidArchitectureError(
                    f"the decision {name!r} has no option with the label {label!r}"
                )

            vector.append(labels_of_decision.index(label))

        return tuple(vector)

    def named(self, architecture: Architecture) -> dict[str, str]:
        """Return the option that each decision has, by the names of both.

        Raises:
            InvalidArchitectureError: The architecture is no member.
        """
        vector = self.vector_of(architecture)
        names = {}
        for (name, options), option in zip(self.options.items(), vector, strict=True):
            names[name] = options[option]

        return names

    def of_names(self, names: Mapping[str, Any]) -> Architecture:
        """Return the network of named options, the inverse of `named`.

        Raises:
            InvalidArchitectureError: A decision is missing or unknown, or has no such option.
        """
        if names.keys() != self.options.keys():
            raise InvalidArchitectureError(
                f"the decisions are {', '.join(self.options)}, got {', '.join(names)}"
            )

        for name, option in names.items():
            if option not in self.options[name]:
                raise InvalidArchitectureError(f"the decision {name!r} has no option {option!r}")

        return self.built([options.index(names[name]) for name, options in self.options.items()])

    def built(self, vector: Sequence[int]) -> Architecture:
        """Return the network of a vector: the position of an option for each decision."""
        labels = [names[option] for names, option in zip(self._known, vector, strict=True)]
        edges = _edges(len(labels), self.form)
        return Architecture(self.name, [Layer(INPUT), *map(Layer, labels), Layer(OUTPUT)], edges)

    def members(self) -> Sequence[Architecture] | None:
        """Return every network, the last decision changing fastest; None for more than 20,000."""
        return _members(self) if self.size <= _MOST_LISTED else None

    def decisions(self) -> Decisions:
        """Return the decisions under their names."""
        return ChoiceDecisions(self)

    def sample(self, rng: np.random.Generator) -> Architecture:
        """Draw every option uniformly."""
        return self.built([int(rng.integers(len(options))) for options in self.options.values()])

    def mutate(self, architecture: Architecture, rng: np.random.Generator) -> Mutation:
        """Take another option in one decision, both drawn uniformly."""
        vector = list(self.vector_of(architecture))
        decision = int(rng.integers(len(vector)))
        count = len(self._known[decision])
        vector[decision] = (vector[decision] + 1 + int(rng.integers(count - 1))) % count
        return Mutation(self.built(vector), ("swap_label",))

    def neighbours(self, architecture: Architecture) -> Iterator[Mutation]:
        """Yield the members with another option in one decision."""
        vector = self.vector_of(architecture)
        for decision, options in enumerate(self.options.values()):
            for other in range(len(options)):
                if other != vector[decision]:
                    yield Mutation(
                        self.built([*vector[:decision], other, *vector[decision + 1 :]]),
                        ("swap_label",),
                    )


@final
class ChoiceDecisions(Decisions):
    """The decisions of a space `choices`; every vector describes a member.

    Args:
        choices: The space.
    """

    def __init__(self, choices: Choices) -> None:
        """Name the decisions as the space does."""
        super().__init__(choices)
        self._choices = choices
        self.decisions = tuple(starmap(Decision, choices.options.items()))

    def needed(self, prefix: Sequence[int]) -> bool:
        """Every decision exists."""
        return True

    def encode(self, architecture: Architecture) -> Vector | None:
        """Return the positions of the options taken."""
        return self._choices.vector_of(architecture) if self.space.contains(architecture) else None

    def build(self, vector: Vector) -> Architecture:
        """See `Decisions.build`."""
        return self._choices.built(vector)


def _labels(architecture: Architecture) -> list[str]:
    """Return the labels of the decisions in their order.

    Raises:
        InvalidArchitectureError: The layers form neither a chain nor a set.
    """
    inner = len(architecture.layers) - 2
    # The order of layers is topological, and a chain has one topological order.
    labels = [layer.op for layer in architecture.layers[1:-1]]
    labels.sort(key=_number)
    numbers = list(map(_number, labels))
    edges = set(architecture.edges)
    if inner and numbers == [0] * inner and edges == _edges(inner, CHAIN):
        return labels

    if inner and numbers == list(range(1, inner + 1)) and edges == _edges(inner, SET):
        return labels

    raise InvalidArchitectureError(
        "the layers must be a chain of options, or a set with one option of each decision"
    )


def _number(label: str) -> int:
    """Return the number of the decision of a label in a set; 0 in a chain."""
    return parse_label(label)[0] or 0


def _edges(decisions: int, form: str) -> set[tuple[int, int]]:
    """Return the edges of a network of so many decisions."""
    last = decisions + 1
    if form == CHAIN:
        return set(pairwise(range(last + 1)))

    return {*product([0], range(1, last)), *product(range(1, last), [last])}


@lru_cache(maxsize=4)
def _members(space: Choices) -> tuple[Architecture, ...]:
    positions = map(range, map(len, space.options.values()))
    return tuple(map(space.built, product(*positions)))


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2


def _check_decisions(decisions: Any, form: str) -> dict[str, tuple[str, ...]]:
    pairs = list(decisions.items()) if isinstance(decisions, Mapping) else decisions
    if not isinstance(pairs, list | tuple) or not all(map(_is_pair, pairs)):
        raise SettingsError(
            "decisions must give the options of each name, got "
            f"{json.dumps(pairs, default=str)[:80]}"
        )

    if not 1 <= len(pairs) <= MOST_DECISIONS:
        raise SettingsError(f"decisions must be 1 to {MOST_DECISIONS}, got {len(pairs)}")

    checked: dict[str, tuple[str, ...]] = {}
    for name, options in pairs:
        if not isinstance(name, str) or not name.strip() or name in checked:
            raise SettingsError(f"the name of a decision must be a text of its own, got {name!r}")

        checked[name] = _check_options(name, options)

    different = set[str]().union(*checked.values())
    if form == CHAIN and len(different) > MOST_OPTIONS:
        raise SettingsError(
            f"a chain must have at most {MOST_OPTIONS} different options, got {len(different)}"
        )

    return checked


def _check_options(name: str, options: Any) -> tuple[str, ...]:
    if isinstance(options, str) or not isinstance(options, Iterable):
        raise SettingsError(f"the options of {name!r} must be a list of texts, got {options!r}")

    texts = tuple(options)
    if not all(isinstance(text, str) for text in texts) or len(set(texts)) != len(texts):
        raise SettingsError(f"the options of {name!r} must be different texts, got {texts!r:.200}")

    if not all(map(str.strip, texts)):
        raise SettingsError(
            f"an option of {name!r} is empty, got {texts!r:.200}: write a name, such as none"
        )

    if not 2 <= len(texts) <= MOST_OPTIONS:
        raise SettingsError(
            f"the options of {name!r} must be 2 to {MOST_OPTIONS}, got {len(texts)}"
        )

    return texts
