"""Vocabulary `choices`: the options of categorical decisions, in a chain or in a set.

A layer is one decision, its label the option taken. In a chain, the layers follow each other and
share their options, as the layers of a network share operations: `o2` is the third option at every
place. In a set, the layers stand side by side between input and output, and each decision has its
own labels: `d3.2` is the third option of the third decision.

Labels are numbers, because kernels know a network by its vocabulary alone: indices of labels are
stored, and must be those of every process and every space of decisions. The names are in the
space's settings (`archive.spaces.choices`).
"""

from __future__ import annotations

import re

from archive.architecture.operations import Operation, define

MOST_DECISIONS = 32
"""Most decisions of a space."""

MOST_OPTIONS = 16
"""Most options of a decision; of all decisions together in a chain."""

_SET = re.compile(r"d([1-9]\d*)\.(\d+)", re.ASCII)


def chain_label(option: int) -> str:
    """Return the label of an option in a chain, counted from 0."""
    return f"o{option}"


def set_label(decision: int, option: int) -> str:
    """Return the label of an option in a set: the decision is counted from 1, the option from 0."""
    return f"d{decision}.{option}"


def parsed(label: str) -> tuple[int | None, int]:
    """Return the decision of a label, None for one of a chain, and the option."""
    match = _SET.fullmatch(label)
    return (int(match[1]), int(match[2])) if match else (None, int(label[1:]))


CHOICES = define(
    "choices",
    [
        *(Operation(chain_label(option), "cell") for option in range(MOST_OPTIONS)),
        *(
            Operation(set_label(decision, option), "cell")
            for decision in range(1, MOST_DECISIONS + 1)
            for option in range(MOST_OPTIONS)
        ),
    ],
)
