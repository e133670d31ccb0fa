"""What the layers of a grown network have to hand on, where they cannot hand on everything.

A new layer passes on what enters it, but it may have fewer units than there are channels: a skip was led into it, or
the layer before it was widened. What no layer behind it takes up may be left out; what reaches a layer that needs it
on no other way must not.

    vital    tokens (`archive.trainer.morphism.match`) that some layer needs, and gets through this one alone
    wanted   tokens that some layer needs
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from archive.trainer.morphism.match import Matching, Token, can_be_negative, emitted, passed, possible


@dataclass
class Demand:
    """What is asked of one layer of the child."""

    vital: set[Token] = field(default_factory=set)
    wanted: set[Token] = field(default_factory=set)


def demands(matching: Matching) -> list[Demand]:
    """Return what is asked of each layer of the child, found from the output to the input."""
    child = matching.child.architecture
    there = possible(matching)
    found = [Demand() for _ in child.layers]
    for v in reversed(range(1, len(child.layers))):
        needs = _needs(matching, v, set().union(*(there[p] for p in child.parents[v])), found[v])
        for p in child.parents[v]:
            elsewhere = set().union(*(there[other] for other in child.parents[v] if other != p))
            elsewhere |= _parts(elsewhere)
            found[p].wanted |= needs.wanted & there[p]
            found[p].vital |= (needs.vital & there[p]) - elsewhere
    return found


def token_of(value: Any) -> Token:
    """Return the token of the layer that a channel's value belongs to."""
    what, of = value
    return (what, token_of(of)) if isinstance(what, str) else what


def _needs(matching: Matching, v: int, entering: set[Token], asked: Demand) -> Demand:
    """Return what a layer needs of what enters it: for its own weights, or because it is asked for it."""
    u = matching.of[v]
    if u is not None:
        own = emitted(matching.parent)
        tokens = set().union(*(own[p] for p in matching.parent.architecture.parents[u]))
        return Demand(tokens | _parts(tokens), tokens | _parts(tokens))
    needs = Demand()
    for token in entering:
        made = set(passed(matching.child, v, token, can_be_negative(matching.parent, token)))
        if made & asked.wanted:
            needs.wanted.add(token)
        if made & asked.vital:
            needs.vital.add(token)
    return needs


def _parts(tokens: set[Token]) -> set[Token]:
    return {(sign, token) for token in tokens for sign in "+-"}
