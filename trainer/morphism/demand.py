"""Demand on each layer of a child network: the values that it must pass through if it cannot pass
all.

A new layer passes its input through, but may have fewer units than input channels, after a skip
into it or a wider layer before it. It may drop values that no later layer needs, but none that a
later layer receives on no other path.

    required   tokens (`archive.trainer.morphism.match`) that some layer needs and receives through this one alone
    useful     tokens that some layer needs
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from archive.trainer.morphism.match import (
    Matching,
    Token,
    can_be_negative,
    emitted,
    passed,
    possible,
)


@dataclass
class Demand:
    """The demand on one layer of the child.

    Attributes:
        required: Tokens that it must pass through.
        useful: Tokens that it should pass through, the required ones among them.
    """

    required: set[Token] = field(default_factory=set)
    useful: set[Token] = field(default_factory=set)


def demands(matching: Matching) -> list[Demand]:
    """Return the demand on each layer of the child, computed from the output to the input."""
    child = matching.child.architecture
    tokens = possible(matching)
    result = [Demand() for _ in child.layers]
    for v in reversed(range(1, len(child.layers))):
        needs = _needs(matching, v, set().union(*(tokens[p] for p in child.parents[v])), result[v])
        for p in child.parents[v]:
            elsewhere = set().union(*(tokens[other] for other in child.parents[v] if other != p))
            elsewhere |= _parts(elsewhere)
            result[p].useful |= needs.useful & tokens[p]
            result[p].required |= (needs.required & tokens[p]) - elsewhere

    return result


def token_of(value: Any) -> Token:
    """Return the token of the layer that a channel's value belongs to."""
    what, of = value
    return (what, token_of(of)) if isinstance(what, str) else what


def _needs(matching: Matching, v: int, entering: set[Token], demand: Demand) -> Demand:
    """Return the tokens that a layer needs of its input: for its own weights, or to meet the demand
    on it.
    """
    u = matching.of[v]
    if u is not None:
        own = emitted(matching.parent)
        tokens = set().union(*(own[p] for p in matching.parent.architecture.parents[u]))
        return Demand(tokens | _parts(tokens), tokens | _parts(tokens))

    needs = Demand()
    for token in entering:
        made = set(passed(matching.child, v, token, can_be_negative(matching.parent, token)))
        if made & demand.useful:
            needs.useful.add(token)

        if made & demand.required:
            needs.required.add(token)

    return needs


def _parts(tokens: set[Token]) -> set[Token]:
    return {(sign, token) for token in tokens for sign in "+-"}
