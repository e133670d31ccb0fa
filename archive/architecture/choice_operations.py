"""Vocabulary `choices`: the options of categorical decisions, in a chain or in a set.

A layer is one decision, its label the option taken. In a chain, the layers follow each other and
share their options, as the layers of a network share operations: `o2` is the third option at every
place. In a set, the layers stand side by side between input and output, and each decision has
separate labels: `d3.2` is the third option of the third decision.

Labels are numbers, because kernels know a network by its vocabulary alone: indices of labels are
stored, and must be equal in every process and every space of decisions. The settings of a space
(`archive.spaces.choices`) name the options. Two spaces with other options may therefore have
networks of one key that are different networks; `conflict` finds them. The labels of all other
vocabularies identify an operation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from archive.architecture.operations import Operation, define
from archive.values import setting_text

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture

NAME = "choices"

MOST_DECISIONS = 32
"""Most decisions of a space."""

MOST_OPTIONS = 16
"""Most options of a decision; of all decisions together in a chain."""

CHAIN = "chain"
SET = "set"

NASBENCH_MACRO: Mapping[str, Sequence[str]] = MappingProxyType(
    {f"layer {u}": ("0", "1", "2") for u in range(1, 9)}
)
"""The decisions of NAS-Bench-Macro, the default of the space."""

_SET = re.compile(r"d([1-9]\d*)\.(\d+)", re.ASCII)


def chain_label(option: int) -> str:
    """Return the label of an option in a chain, counted from 0."""
    return f"o{option}"


def set_label(decision: int, option: int) -> str:
    """Return the label of an option in a set: the decision is counted from 1, the option from 0."""
    return f"d{decision}.{option}"


def parse_label(label: str) -> tuple[int | None, int]:
    """Return the decision, None in a chain, and the option of a label."""
    match = _SET.fullmatch(label)
    return (int(match[1]), int(match[2])) if match else (None, int(label[1:]))


def decision_labels(architecture: Architecture, values: Mapping[str, Any]) -> dict[int, str]:
    """Return the layers of a network of choices in a reader's words, by position: `act = gelu`.

    Args:
        architecture: The network; empty for one of another space.
        values: Its decisions by name, in the order of the space.
    """
    if architecture.space != NAME or len(values) != len(architecture.layers) - 2:
        return {}

    # In a chain, the order of layers is the order of decisions.
    positions = list(range(1, len(architecture.layers) - 1))
    positions.sort(key=lambda position: parse_label(architecture.layers[position].op)[0] or 0)
    labels = {}
    for position, (name, value) in zip(positions, values.items(), strict=True):
        labels[position] = f"{name} = {setting_text(value)}"

    return labels


def _operations() -> Iterator[Operation]:
    for option in range(MOST_OPTIONS):
        yield Operation(chain_label(option), "cell")

    for decision in range(1, MOST_DECISIONS + 1):
        for option in range(MOST_OPTIONS):
            yield Operation(set_label(decision, option), "cell")


CHOICES = define(NAME, _operations())


def option_labels(options: Sequence[Sequence[str]], form: str) -> tuple[tuple[str, ...], ...]:
    """Return the labels of the options of each decision."""
    labels: list[tuple[str, ...]] = []
    if form == SET:
        for decision, names in enumerate(options, 1):
            labels.append(tuple(map(partial(set_label, decision), range(len(names)))))
    else:
        shared = list(dict.fromkeys(chain.from_iterable(options)))
        for names in options:
            labels.append(tuple(chain_label(shared.index(name)) for name in names))

    return tuple(labels)


def conflict(
    space: str, config: Mapping[str, Any], other: Mapping[str, Any]
) -> tuple[str, str] | None:
    """Return the names that two spaces give to the first label that they name differently.

    Args:
        space: Name of both spaces.
        config: Settings of the first space.
        other: Settings of the second space.

    Returns:
        The two names; None where a network is the same in both spaces. A chain and a set have no
        network in common.
    """
    if space != "choices" or config == other:
        return None

    names = _names_of_labels(config)
    others = _names_of_labels(other)
    if names.keys().isdisjoint(others):
        return f"a {config.get('form', CHAIN)}", f"a {other.get('form', CHAIN)}"

    for label, name in names.items():
        if others.get(label, name) != name:
            return name, others[label]

    return None


def _names_of_labels(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the option behind each label, after the name of its decision in a set."""
    decisions = dict(config.get("decisions") or NASBENCH_MACRO)
    form = config.get("form", CHAIN)
    names: dict[str, str] = {}
    labels_of = option_labels(list(decisions.values()), form)
    for (decision, options), labels in zip(decisions.items(), labels_of, strict=True):
        for label, option in zip(labels, options, strict=True):
            names[label] = repr(option) if form == CHAIN else f"{decision} {option!r}"

    return names
