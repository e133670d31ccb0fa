"""Validators of values in a dump: both servers can store them, this release can read them.

A file may be hostile. Each function returns whether a value, read from JSON, is of one kind; none
of them raises.
"""

from __future__ import annotations

import json
import math
import re
from itertools import chain
from typing import Any

from archive.constraints import OPERATORS
from archive.errors import UsageError
from archive.rungs import Rungs

CLAIM_OWN = frozenset(["at", "token"])
"""Properties of a claim that are not exported with it: its time is a field, and its token is a
secret."""

_MOST_NESTED = 50
_MOST_NAME = 500
_LARGEST = 2**63
_MOST_NUMBERS = 1_000_000
_RANGES = re.compile(r"(\d{1,9}(-\d{1,9})?(,\d{1,9}(-\d{1,9})?)*)?")


def is_text(value: Any) -> bool:
    """Whether a value is text that a database can hold."""
    if not isinstance(value, str):
        return False

    try:
        value.encode()
    except UnicodeEncodeError:
        return False

    return True


def is_name(value: Any) -> bool:
    """Whether a value is a nonempty name."""
    return is_text(value) and 0 < len(value) <= _MOST_NAME


def is_direction(value: Any) -> bool:
    """Whether a value is a direction of optimisation."""
    return value in ("maximise", "minimise")


def is_directions(value: Any) -> bool:
    """Whether a value is a list of directions, one for each objective of a study."""
    return isinstance(value, list) and all(map(is_direction, value))


def is_operators(value: Any) -> bool:
    """Whether a value is a list of comparisons, one for each constraint of a study."""
    return isinstance(value, list) and all(operator in OPERATORS for operator in value)


def is_bounds(value: Any) -> bool:
    """Whether a value is a list of finite numbers, one for each constraint of a study."""
    # Earlier releases stored the whole numbers of a program as such. Neo4j cannot store a list of
    # both types.
    return is_wholes(value) or (isinstance(value, list) and all(map(_is_finite_float, value)))


def _is_finite_float(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number that a database can hold."""
    return isinstance(value, int) and not isinstance(value, bool) and -_LARGEST <= value < _LARGEST


def is_real(value: Any) -> bool:
    """Whether a value is a number, NaN and infinities included."""
    return isinstance(value, float) or is_whole(value)


def is_settings(value: Any) -> bool:
    """Whether a value is the text of a JSON object of reasonable depth."""
    if not is_text(value):
        return False

    try:
        settings = json.loads(value)
    except (ValueError, RecursionError):
        return False

    return isinstance(settings, dict) and _depth(settings) <= _MOST_NESTED


def is_study_settings(value: Any) -> bool:
    """Whether a value is the text of a study's configuration, with valid rungs if any."""
    if not is_settings(value):
        return False

    try:
        Rungs.of(json.loads(value))
    except UsageError:
        return False

    return True


def is_basis(value: Any) -> bool:
    """Whether a value is the text of a proposal's basis: numbers of proposals, by study."""
    if not is_settings(value):
        return False

    basis = json.loads(value)
    observed = basis.get("observations")
    partial = basis.get("partial", {})
    if not is_map(partial) or not all(map(is_map, partial.values())):
        return False

    for lengths in partial.values():
        if not all(map(str.isdecimal, lengths)):
            return False

    limits = {"wanted": _MOST_NUMBERS, "stream": 2**32}
    for name, most in limits.items():
        number = basis.get(name)
        if is_whole(number) and not 0 <= number <= most:
            return False

    numbers = [
        basis.get("pending"),
        basis.get("failed"),
        *(observed.values() if is_map(observed) else [observed]),
    ]
    for lengths in partial.values():
        for text in lengths.values():
            numbers.append(text)

    return _are_numbers([text for text in numbers if isinstance(text, str)])


def _are_numbers(texts: list[str]) -> bool:
    """Return whether each string lists ranges of numbers, with a bounded total count."""
    if not all(map(_RANGES.fullmatch, texts)):
        return False

    ends = []
    for text in texts:
        for part in text.split(","):
            if part:
                ends.append(part.partition("-"))

    sizes = [int(last or first) - int(first) + 1 for first, _, last in ends]
    return all(size > 0 for size in sizes) and sum(sizes) <= _MOST_NUMBERS


def _depth(value: Any) -> int:
    depth = 0
    level = [value]
    while level:
        depth += 1
        inner = []
        for item in level:
            if isinstance(item, dict | list):
                inner.append(item.values() if isinstance(item, dict) else item)

        level = list(chain.from_iterable(inner))

    return depth


def is_key(value: Any) -> bool:
    """Whether a value has the form of an architecture's key."""
    return isinstance(value, str) and len(value) == 32 and not set(value) - set("0123456789abcdef")


def is_property(value: Any) -> bool:
    """Whether both servers can store a value as a property."""
    if isinstance(value, list):
        return any(all(map(check, value)) for check in (is_whole, is_real, is_text, is_truth))

    return is_real(value) or is_text(value) or is_truth(value)


def is_truth(value: Any) -> bool:
    """Whether a value is true or false."""
    return isinstance(value, bool)


def is_reals(value: Any) -> bool:
    """Whether a value is a list of numbers."""
    return isinstance(value, list) and all(map(is_real, value))


def is_wholes(value: Any) -> bool:
    """Whether a value is a list of whole numbers."""
    return isinstance(value, list) and all(map(is_whole, value))


def is_texts(value: Any) -> bool:
    """Whether a value is a list of texts."""
    return isinstance(value, list) and all(map(is_text, value))


def is_claims(value: Any) -> bool:
    """Whether a value is a list of claims of a proposal: worker, time, further properties."""
    listed = isinstance(value, list) and all(
        isinstance(item, list) and len(item) == 3 for item in value
    )
    return listed and all(
        is_name(worker) and is_whole(time) and _is_claim(about) for worker, time, about in value
    )


def _is_claim(about: Any) -> bool:
    return is_map(about) and all(
        is_name(name) and name not in CLAIM_OWN and is_property(value)
        for name, value in about.items()
    )


def is_weights(value: Any) -> bool:
    """Whether a value is the address of weights, or None."""
    return value is None or (
        isinstance(value, dict)
        and value.keys() == {"uri", "sha256", "bytes"}
        and is_name(value["uri"])
        and is_text(value["sha256"])
        and is_whole(value["bytes"])
    )


def is_distances(value: Any) -> bool:
    """Whether a value is kinds of distance with their values, by key."""
    return isinstance(value, dict) and all(
        is_key(key)
        and isinstance(kinds, dict)
        and all(is_name(k) and is_distance(v) for k, v in kinds.items())
        for key, kinds in value.items()
    )


def is_distance(value: Any) -> bool:
    """Whether a value is a distance, with components or without."""
    return is_real(value) or is_reals(value)


def is_map(value: Any) -> bool:
    """Whether a value is an object."""
    return isinstance(value, dict)


def is_study(value: Any) -> bool:
    """Whether a value is the name of a study."""
    return is_name(value) and "#" not in value
