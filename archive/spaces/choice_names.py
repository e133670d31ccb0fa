"""Names behind the labels of the space `choices`, to tell whether the networks of two studies are
the same.

A label is the number of an option (`archive.architecture.choice_operations`); the settings of a
space name the options. Two spaces with other options may therefore have networks of one key that
are different networks. Networks of all other spaces say themselves what they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from archive.architecture.choice_operations import chain_label, set_label

CHAIN = "chain"
SET = "set"

NASBENCH_MACRO: Mapping[str, Sequence[str]] = MappingProxyType(
    {f"layer {u}": ("0", "1", "2") for u in range(1, 9)}
)
"""The decisions of NAS-Bench-Macro, those of the space without settings."""


def option_labels(options: Sequence[Sequence[str]], form: str) -> tuple[tuple[str, ...], ...]:
    """Return the labels of the options of each decision."""
    if form == SET:
        return tuple(
            tuple(set_label(d, at) for at in range(len(one))) for d, one in enumerate(options, 1)
        )

    shared = list(dict.fromkeys(option for one in options for option in one))
    return tuple(tuple(chain_label(shared.index(option)) for option in one) for one in options)


def conflict(
    space: str, config: Mapping[str, Any], other: Mapping[str, Any]
) -> tuple[str, str] | None:
    """Return what the settings of two spaces of one name call the first label that they name
    differently.

    Args:
        space: Name of both spaces.
        config: Settings of the one.
        other: Settings of the other.

    Returns:
        The two names; None where each network is the same one in both spaces. A chain and a set
        have no network in common.
    """
    if space != "choices" or config == other:
        return None

    own = _names(config)
    others = _names(other)
    if own.keys().isdisjoint(others):
        return f"a {config.get('form', CHAIN)}", f"a {other.get('form', CHAIN)}"

    return next(
        ((name, others[label]) for label, name in own.items() if others.get(label, name) != name),
        None,
    )


def _names(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the name of each label: that of the option, which a set has after that of its
    decision.
    """
    decisions = config.get("decisions") or NASBENCH_MACRO
    form = config.get("form", CHAIN)
    pairs = list(decisions.items() if isinstance(decisions, Mapping) else decisions)
    labels = option_labels([options for _, options in pairs], form)
    return {
        label: repr(option) if form == CHAIN else f"{name} {option!r}"
        for (name, options), of_decision in zip(pairs, labels, strict=True)
        for label, option in zip(of_decision, options, strict=True)
    }
