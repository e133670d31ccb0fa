"""Which layers of a network are those of another one that it grew from: found from the two graphs alone.

symbol   meaning                                                           here
u        layer of the parent                                               position
v        layer of the child                                                position
psi(v)   the layer that v continues; None where v is new                   `Matching.of[v]`
token    what a layer emits, said in the parent's words                    u, or (`avg-pool`, token), …

A layer continues u when it has u's operation and stride, at least u's units, and is fed, among other things, with
everything that feeds u. Pools have no weights and continue nothing: they turn tokens into tokens of pooled images. A
new layer hands on what feeds it where it can be the identity (`passed`). Several layers may continue one: a path was
duplicated.

The matching says where weights go (`archive.trainer.morphism.transfer`), and, read as a list, which operations lead
from the one network to the other. It is searched for depth first, layer by layer; all layers of the parent have to be
continued, which leaves few choices. Image sides, which decide whether a residual block projects its input, come from
the input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from archive.architecture.graph import Architecture
from archive.architecture.operations import vocabulary

Token = Any
"""Hashable: a position in the parent, or a pair of what was done to a token and the token."""

NEVER_NEGATIVE = frozenset({"relu", "crelu", "logistic", "softplus", "fc"})
"""Operations outside the group `conv`, whose outputs are never negative either, that emit no negative number."""

_VISITS = 20_000


class Sized:
    """A network with the sizes that an input gives it.

    Args:
        architecture: Of the space `cnn` or `mlp`.
        input_shape: (channels, height, width) or (features,) of one input.
    """

    def __init__(self, architecture: Architecture, input_shape: Sequence[int]) -> None:
        """Infer the sizes."""
        self.architecture = architecture
        self.words = vocabulary(architecture.space)
        self.groups = [self.words[layer.op].group for layer in architecture.layers]
        self.input_shape = tuple(input_shape)

    @cached_property
    def widths(self) -> list[int]:
        """Channels or features that each layer emits; those that enter, for decisions and the output."""
        found: list[int] = []
        for u, layer in enumerate(self.architecture.layers):
            if self.groups[u] == "input":
                size = 1
                for side in self.input_shape[:1] if self.words.images else self.input_shape:
                    size *= side
                found.append(size)
            elif layer.units is None:
                found.append(sum(found[p] for p in self.architecture.parents[u]))
            else:
                found.append(2 * layer.units if layer.op == "crelu" else layer.units)
        return found

    def entering(self, u: int) -> int:
        """Return how many channels or features enter a layer."""
        return sum(self.widths[p] for p in self.architecture.parents[u])

    def sides(self, level: int | None) -> tuple[int, ...]:
        """Return height and width of an image that was halved so often; none for a vector."""
        if not self.words.images or level is None:
            return ()
        return tuple(-(-side // 2**level) for side in self.input_shape[1:])

    def pixels(self, u: int) -> int:
        """Return the pixels of each channel that enters a layer; 1 for a vector."""
        level = self.architecture.levels[self.architecture.parents[u][0]] if self.words.images else None
        found = 1
        for side in self.sides(level):
            found *= side
        return found

    def projects(self, u: int) -> bool:
        """Return whether a residual block has a 1 x 1 convolution in place of the identity."""
        levels, layer = self.architecture.levels, self.architecture.layers[u]
        before, after = levels[self.architecture.parents[u][0]], levels[u]
        return self.entering(u) != layer.units or self.sides(before) != self.sides(after)

    def residual(self, u: int) -> bool:
        """Return whether a layer is a residual block."""
        return self.words[self.architecture.layers[u].op].residual


@dataclass(frozen=True)
class Matching:
    """What becomes of a parent in a child.

    Attributes:
        parent: With its sizes.
        child: With its sizes.
        of: Position in the parent of the layer that each layer of the child continues; None for new layers and pools.
    """

    parent: Sized
    child: Sized
    of: tuple[int | None, ...]

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations that lead from the parent to the child, in words; positions are the child's."""
        return tuple(_described(self))


def matchings(parent: Sized, child: Sized, visits: int = _VISITS) -> Iterator[Matching]:
    """Yield ways to see the child as grown from the parent, the most direct first.

    Args:
        parent: Of the same space as the child.
        child: With the same input.
        visits: Most layers that are looked at; with more than that to try, the search ends.
    """
    if parent.architecture.space != child.architecture.space or parent.input_shape != child.input_shape:
        return
    yield from _Search(parent, child, visits).run()


def passed(sized: Sized, v: int, entering: Token, negative: bool) -> tuple[Token | None, ...]:
    """Return what a new layer makes of one token that enters it, as each of the channels that it makes of it.

    Args:
        sized: The child.
        v: The new layer.
        entering: What enters.
        negative: Whether it may be negative.
    """
    layer, group = sized.architecture.layers[v], sized.groups[v]
    if group == "pool":
        return ((layer.op, entering),)
    if layer.stride != 1 or (group == "fc" and sized.pixels(v) != 1):
        return (None,)
    if layer.op == "crelu":
        return (("+", entering), ("-", entering)) if negative else (entering, None)
    if group == "conv" or layer.op in ("relu", "fc"):
        return (("+", entering) if negative else entering,)
    # Both are the identity where nothing is negative, and nothing of use elsewhere.
    return (entering if layer.op in ("leaky-relu", "elu") and not negative else None,)


def can_be_negative(parent: Sized, token: Token) -> bool:
    """Return whether a token, of whole layers or of single channels, may hold negative numbers."""
    while isinstance(token, tuple) and isinstance(token[0], str):
        if token[0] in "+-":
            return False
        token = token[1]
    u = token[0] if isinstance(token, tuple) else token
    return parent.groups[u] != "conv" and parent.architecture.layers[u].op not in NEVER_NEGATIVE


def emitted(sized: Sized) -> list[frozenset[Token]]:
    """Return what each layer of a network emits, in its own words: itself, or what a pool makes of others."""
    found: list[frozenset[Token]] = []
    for u, layer in enumerate(sized.architecture.layers):
        if sized.groups[u] == "pool":
            entering = frozenset().union(*(found[p] for p in sized.architecture.parents[u]))
            found.append(frozenset((layer.op, token) for token in entering))
        else:
            found.append(frozenset((u,)))
    return found


class _Search:
    """Depth first over the child's layers, in their order."""

    def __init__(self, parent: Sized, child: Sized, visits: int) -> None:
        self.parent, self.child, self.left = parent, child, visits
        own = emitted(parent)
        self.needed = [frozenset().union(*(own[p] for p in parents)) for parents in parent.architecture.parents]
        self.inner = {u for u, group in enumerate(parent.groups) if group not in ("input", "output", "pool")}
        inner = [group not in ("input", "output", "pool") for group in child.groups]
        self.after = [sum(inner[v:]) for v in range(len(inner) + 1)]
        self.of: list[int | None] = [None] * len(inner)
        self.tokens: list[frozenset[Token]] = [frozenset()] * len(inner)

    def run(self) -> Iterator[Matching]:
        """Yield matchings."""
        self.of[0], self.tokens[0] = 0, frozenset((0,))
        yield from self._from(1)

    def _from(self, v: int) -> Iterator[Matching]:
        self.left -= 1
        open_ = self.inner - {u for u in self.of[:v] if u is not None}
        if self.left < 0 or len(open_) > self.after[v]:
            return
        if self.child.groups[v] == "output":
            if self._decides_alike():
                yield Matching(self.parent, self.child, tuple(self.of))
            return
        for choice in self._choices(v, open_):
            self.of[v] = choice
            self.tokens[v] = frozenset((choice,)) if choice is not None else self._handed_on(v)
            yield from self._from(v + 1)
        self.of[v] = None

    def _choices(self, v: int, open_: set[int]) -> list[int | None]:
        if self.child.groups[v] == "pool":
            return [None]
        found = [u for u in sorted(self.inner) if self._continues(v, u)]
        units = self.child.architecture.layers[v].units

        def directness(u: int) -> tuple[bool, bool, int]:
            return u not in open_, self.parent.architecture.layers[u].units != units, u

        found.sort(key=directness)
        return [*found] if self.child.groups[v] == "decision" else [*found, None]

    def _continues(self, v: int, u: int) -> bool:
        old, new = self.parent.architecture.layers[u], self.child.architecture.layers[v]
        if (old.op, old.stride) != (new.op, new.stride) or (new.units or 0) < (old.units or 0):
            return False
        there = self._entering(v)
        if not all(token in there or {("+", token), ("-", token)} <= there for token in self.needed[u]):
            return False
        # A projection cannot become the identity, the other way round it can.
        return not self.child.residual(v) or self.child.projects(v) or not self.parent.projects(u)

    def _entering(self, v: int) -> frozenset[Token]:
        return frozenset().union(*(self.tokens[p] for p in self.child.architecture.parents[v]))

    def _handed_on(self, v: int) -> frozenset[Token]:
        made = (passed(self.child, v, t, can_be_negative(self.parent, t)) for t in self._entering(v))
        return frozenset(token for tokens in made for token in tokens if token is not None)

    def _decides_alike(self) -> bool:
        """Return whether the decisions' mean is what it was: each is there, and equally often."""
        decisions = [u for u, group in enumerate(self.parent.groups) if group == "decision"]
        counts = {u: self.of.count(u) for u in decisions}
        return len(set(counts.values())) == 1 and 0 not in counts.values()


def _described(matching: Matching) -> Iterator[str]:
    child = matching.child
    for v, (layer, u) in enumerate(zip(child.architecture.layers, matching.of, strict=True)):
        if u is not None:
            old = matching.parent.architecture.layers[u]
            if matching.of.index(u) < v:
                yield f"duplicate {v} {layer.op}"
            if old.units != layer.units:
                yield f"widen {v} {old.units}->{layer.units}"
            yield from (f"skip_concat {p}->{v}" for p in _skips(matching, v, u))
        elif child.groups[v] not in ("pool", "output"):
            yield f"{'skip_add' if child.residual(v) else 'deepen'} {v} {layer.op}/{layer.units}"


def _skips(matching: Matching, v: int, u: int) -> Iterator[int]:
    """Yield what feeds a layer with nothing that feeds the one that it continues."""
    own, architecture = emitted(matching.parent), matching.parent.architecture
    needed = frozenset().union(*(own[p] for p in architecture.parents[u]))
    needed |= {(sign, token) for token in needed for sign in "+-"}
    there = possible(matching)
    yield from (p for p in matching.child.architecture.parents[v] if not there[p] & needed)


def possible(matching: Matching) -> list[frozenset[Token]]:
    """Return what each layer of the child emits if no unit is wanting."""
    found: list[frozenset[Token]] = []
    for v, u in enumerate(matching.of):
        if u is not None:
            found.append(frozenset((u,)))
            continue
        entering = frozenset().union(*(found[p] for p in matching.child.architecture.parents[v]))
        made = (passed(matching.child, v, token, can_be_negative(matching.parent, token)) for token in entering)
        found.append(frozenset(token for tokens in made for token in tokens if token is not None))
    return found
