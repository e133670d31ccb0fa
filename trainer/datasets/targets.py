"""Targets of users' files: classes or values, by one rule for all forms of files.

| target                                                                    | kind    |
|---------------------------------------------------------------------------|---------|
| text, booleans                                                            | classes |
| whole numbers, as integers or as floats, of at most `MOST_CLASSES` values | classes |
| integers of images                                                        | classes |
| other numbers                                                             | values  |

Labels are compared exactly: integers above 2^53, which a float does not tell apart, are different
classes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal, DecimalException
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from archive.values import decimal

Kind = Literal["classes", "values"]

MOST_CLASSES = 20
"""Largest number of different whole numbers that still count as classes."""

Labels = dict[str, Any]
"""Label of each distinct text: an exact number, or the text."""


def kind_of_array(targets: NDArray[Any], *, of_images: bool) -> Kind:
    """Return the kind of an array of finite numbers, text or booleans; objects are integers."""
    if targets.dtype.kind in "bU" or (of_images and targets.dtype.kind in "uiO"):
        return "classes"

    whole = targets.dtype.kind != "f" or bool((targets == np.round(targets)).all())
    return "classes" if whole and len(np.unique(targets)) <= MOST_CLASSES else "values"


def kind_of_labels(labels: Labels | None) -> Kind:
    """Return the kind of the targets with these labels; None stands for numbers not finite."""
    if labels is None:
        return "values"

    distinct = set(labels.values())
    if any(isinstance(label, str) for label in distinct):
        return "classes"

    whole = all(label == label.to_integral_value() for label in distinct)
    return "classes" if whole and len(distinct) <= MOST_CLASSES else "values"


def labels_of(texts: Sequence[str]) -> Labels | None:
    """Return the label of each distinct text.

    Returns:
        The exact numbers if all are finite numbers, else the texts; None if all are numbers, and
        some not finite.
    """
    numbers: Labels = {}
    finite = True
    for text in set(texts):
        try:
            number = decimal(text)
        except ValueError:
            return dict(zip(texts, texts, strict=True))

        finite = finite and math.isfinite(number)
        numbers[text] = _exact(text, number)

    return numbers if finite else None


def classes_of_texts(texts: Sequence[str], labels: Labels | None) -> NDArray[np.int64]:
    """Return the number of the class of each text, in the order of the labels."""
    named: Mapping[str, Any] = dict(zip(texts, texts, strict=True)) if labels is None else labels
    ordered = sorted(set(named.values()))
    classes = {label: number for number, label in enumerate(ordered)}
    return np.array([classes[named[text]] for text in texts], np.int64)


def classes_of_array(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of the class of each label, in the order of the sorted labels."""
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def join(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the targets of parts in one array; integers with and without a sign stay exact."""
    kinds = {part.dtype.kind for part in parts}
    # NumPy would make floats of them.
    mixed = kinds == {"u", "i"}
    return np.concatenate(parts, dtype=object if mixed else None)


def _exact(text: str, number: float) -> Decimal:
    try:
        return Decimal(text.strip())
    except DecimalException:
        # Its exponent has too many digits, so that the number is 0.
        return Decimal(number) if math.isfinite(number) else Decimal(0)
