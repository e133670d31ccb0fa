"""Matching of a child network's layers with its parent's, from the two graphs alone.

symbol   meaning                                                       here
u        layer of the parent                                           position
v        layer of the child                                            position
psi(v)   the layer that v continues; None if v is new                  `Matching.of[v]`
token    output of a layer, expressed by the parent's layers           u, or (`avg-pool`, token), …

A layer continues u if it has u's operation and stride, at least u's units, and at least the inputs
of u. Pools have no weights and continue nothing: they turn tokens into tokens of pooled images. A
new layer passes its input through where it can be the identity (`pass_token`). Several layers may
continue one, after the duplication of a path.

The matching determines the destination of weights (`archive.trainer.morphism.transfer`) and, read
as a list, the operations from one network to the other. The search is depth first, layer by layer;
all layers of the parent must be continued, which leaves few choices. The sizes of images, which
decide whether a residual block projects its input, are inferred from the input.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from archive.architecture.graph import Architecture
from archive.architecture.operations import vocabulary

Token = Any
"""Hashable: a position in the parent, or a pair of an operation on a token and the token."""

NEVER_NEGATIVE = frozenset({"relu", "crelu", "logistic", "softplus", "fc"})
"""Operations whose outputs are never negative, beside the operations of the group `conv`."""

_VISITS = 20_000
"""Most layers that one search visits."""


class SizedNetwork:
    """A network with its sizes for a shape of inputs.

    Args:
        architecture: Architecture of the space `cnn` or `mlp`.
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
        """Output channels or features of each layer; decisions and output have their input's."""
        widths: list[int] = []
        for u, layer in enumerate(self.architecture.layers):
            if self.groups[u] == "input":
                widths.append(
                    math.prod(self.input_shape[:1] if self.words.images else self.input_shape)
                )
            elif layer.units is None:
                widths.append(sum(widths[p] for p in self.architecture.parents[u]))
            else:
                widths.append(2 * layer.units if layer.op == "crelu" else layer.units)

        return widths

    @cached_property
    def inner(self) -> list[int]:
        """Layers that continue a layer, or can be continued: all but inputs, outputs and pools."""
        inner: list[int] = []
        for u, group in enumerate(self.groups):
            if group not in ("input", "output", "pool"):
                inner.append(u)

        return inner

    def entering(self, u: int) -> int:
        """Return the number of input channels or features of a layer."""
        return sum(self.widths[p] for p in self.architecture.parents[u])

    def sides(self, level: int | None) -> tuple[int, ...]:
        """Return height and width of an image after this many halvings; none for a vector."""
        if not self.words.images or level is None:
            return ()

        return tuple(-(-side // 2**level) for side in self.input_shape[1:])

    def pixels(self, u: int) -> int:
        """Return the number of pixels of each input channel of a layer; 1 for a vector."""
        level = (
            self.architecture.levels[self.architecture.parents[u][0]] if self.words.images else None
        )
        return math.prod(self.sides(level))

    def projects(self, u: int) -> bool:
        """Return whether a residual block has a 1 x 1 convolution in place of the identity."""
        levels = self.architecture.levels
        layer = self.architecture.layers[u]
        before = levels[self.architecture.parents[u][0]]
        after = levels[u]
        return self.entering(u) != layer.units or self.sides(before) != self.sides(after)

    def residual(self, u: int) -> bool:
        """Return whether a layer is a residual block."""
        return self.words[self.architecture.layers[u].op].residual


@dataclass(frozen=True)
class Matching:
    """The layers of a parent in a child.

    Attributes:
        parent: The parent with its sizes.
        child: The child with its sizes.
        of: Position in the parent of the layer that each layer of the child continues; None for new
            layers and pools.
    """

    parent: SizedNetwork
    child: SizedNetwork
    of: tuple[int | None, ...]

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations from the parent to the child, in words, with positions in the child."""
        return tuple(_describe(self))


def matchings(
    parent: SizedNetwork, child: SizedNetwork, visits: int = _VISITS
) -> Iterator[Matching]:
    """Yield the matchings of a child with a parent, the most direct first.

    Args:
        parent: Network of the same space as the child.
        child: Network with the same input.
        visits: Largest number of visited layers, after which the search ends.
    """
    if (
        parent.architecture.space != child.architecture.space
        or parent.input_shape != child.input_shape
    ):
        return

    yield from _MatchingSearch(parent, child, visits).run()


def pass_token(
    sized: SizedNetwork, v: int, entering: Token, negative: bool
) -> tuple[Token | None, ...]:
    """Return the outputs of a new layer for one token of its input, one for each output channel.

    Args:
        sized: The child.
        v: The new layer.
        entering: The token.
        negative: Whether its values may be negative.
    """
    layer = sized.architecture.layers[v]
    group = sized.groups[v]
    if group == "pool":
        return ((layer.op, entering),)

    if layer.stride != 1 or (group == "fc" and sized.pixels(v) != 1):
        return (None,)

    if layer.op == "crelu":
        return (("+", entering), ("-", entering)) if negative else (entering, None)

    if group == "conv" or layer.op in ("relu", "fc"):
        return (("+", entering) if negative else entering,)

    # Both are the identity on values that are not negative, and useless for others.
    return (entering if layer.op in ("leaky-relu", "elu") and not negative else None,)


def can_be_negative(parent: SizedNetwork, token: Token) -> bool:
    """Return whether a token, of whole layers or of single channels, may have negative values."""
    while isinstance(token, tuple) and isinstance(token[0], str):
        if token[0] in "+-":
            return False

        token = token[1]

    u = token[0] if isinstance(token, tuple) else token
    return parent.groups[u] != "conv" and parent.architecture.layers[u].op not in NEVER_NEGATIVE


def emit_tokens(sized: SizedNetwork) -> list[frozenset[Token]]:
    """Return the tokens of each layer by its own positions; a pool has the tokens it pools."""
    tokens: list[frozenset[Token]] = []
    for u, layer in enumerate(sized.architecture.layers):
        if sized.groups[u] == "pool":
            entering = entering_tokens(sized, u, tokens)
            tokens.append(frozenset((layer.op, token) for token in entering))
        else:
            tokens.append(frozenset((u,)))

    return tokens


def entering_tokens(
    sized: SizedNetwork, u: int, tokens: Sequence[frozenset[Token]]
) -> frozenset[Token]:
    """Return the tokens of all inputs of a layer, from the tokens of each layer."""
    return frozenset().union(*(tokens[p] for p in sized.architecture.parents[u]))


class _MatchingSearch:
    """Depth-first search over the child's layers, in their order.

    Attributes:
        left: Number of visits that are left.
        needed: Tokens that each layer of the parent needs.
        inner: Layers of the parent that must be continued.
        after: For each layer of the child, the number of layers from it on that can continue one.
        of: The matching so far, as `Matching.of`.
        tokens: Tokens of the child's layers so far.
    """

    def __init__(self, parent: SizedNetwork, child: SizedNetwork, visits: int) -> None:
        self.parent = parent
        self.child = child
        self.left = visits
        numbers = emit_tokens(parent)
        self.needed = [entering_tokens(parent, u, numbers) for u in range(len(numbers))]
        self.inner = set(parent.inner)
        child_layers = len(child.groups)
        self.after = [0] * (child_layers + 1)
        for v in child.inner:
            for before in range(v + 1):
                self.after[before] += 1

        self.of: list[int | None] = [None] * child_layers
        self.tokens: list[frozenset[Token]] = [frozenset()] * child_layers

    def run(self) -> Iterator[Matching]:
        """Yield matchings."""
        self.of[0], self.tokens[0] = 0, frozenset((0,))
        yield from self._from(1)

    def _from(self, v: int) -> Iterator[Matching]:
        self.left -= 1
        open_ = self.inner.difference(self.of[:v])
        if self.left < 0 or len(open_) > self.after[v]:
            return

        if self.child.groups[v] == "output":
            if self._decides_alike():
                yield Matching(self.parent, self.child, tuple(self.of))

            return

        for choice in self._choices(v, open_):
            self.of[v] = choice
            self.tokens[v] = _emitted(self.parent, self.child, v, choice, self.tokens)
            yield from self._from(v + 1)

        self.of[v] = None

    def _choices(self, v: int, open_: set[int]) -> list[int | None]:
        if self.child.groups[v] == "pool":
            return [None]

        candidates: list[int] = []
        for u in sorted(self.inner):
            if self._continues(v, u):
                candidates.append(u)

        units = self.child.architecture.layers[v].units

        def directness(u: int) -> tuple[bool, bool, int]:
            return u not in open_, self.parent.architecture.layers[u].units != units, u

        candidates.sort(key=directness)
        return [*candidates] if self.child.groups[v] == "decision" else [*candidates, None]

    def _continues(self, v: int, u: int) -> bool:
        old = self.parent.architecture.layers[u]
        new = self.child.architecture.layers[v]
        if (old.op, old.stride) != (new.op, new.stride) or (new.units or 0) < (old.units or 0):
            return False

        present = entering_tokens(self.child, v, self.tokens)
        for token in self.needed[u]:
            if token not in present and not present >= {("+", token), ("-", token)}:
                return False

        # An identity can become a projection, but not vice versa.
        return not self.child.residual(v) or self.child.projects(v) or not self.parent.projects(u)

    def _decides_alike(self) -> bool:
        """Return whether the mean of the decisions is kept: each is present, and equally often."""
        counts: set[int] = set()
        for u, group in enumerate(self.parent.groups):
            if group == "decision":
                counts.add(self.of.count(u))

        return len(counts) == 1 and 0 not in counts


def _describe(matching: Matching) -> Iterator[str]:
    child = matching.child
    for v, (layer, u) in enumerate(zip(child.architecture.layers, matching.of, strict=True)):
        if u is not None:
            old = matching.parent.architecture.layers[u]
            if matching.of.index(u) < v:
                yield f"duplicate {v} {layer.op}"

            if old.units != layer.units:
                yield f"widen {v} {old.units}->{layer.units}"

            for p in _skips(matching, v, u):
                yield f"skip_concat {p}->{v}"

        elif child.groups[v] not in ("pool", "output"):
            yield f"{'skip_add' if child.residual(v) else 'deepen'} {v} {layer.op}/{layer.units}"


def _skips(matching: Matching, v: int, u: int) -> Iterator[int]:
    """Yield the inputs of a layer that carry nothing of the layer that it continues."""
    needed = entering_tokens(matching.parent, u, emit_tokens(matching.parent))
    needed |= set(product("+-", needed))
    present = possible(matching)
    for p in matching.child.architecture.parents[v]:
        if not present[p] & needed:
            yield p


def possible(matching: Matching) -> list[frozenset[Token]]:
    """Return the tokens that each layer of the child emits if it has enough units."""
    tokens: list[frozenset[Token]] = []
    for v, u in enumerate(matching.of):
        tokens.append(_emitted(matching.parent, matching.child, v, u, tokens))

    return tokens


def _emitted(
    parent: SizedNetwork,
    child: SizedNetwork,
    v: int,
    u: int | None,
    tokens: Sequence[frozenset[Token]],
) -> frozenset[Token]:
    """Return the tokens that a layer emits, which continues a layer `u` or passes its input."""
    if u is not None:
        return frozenset((u,))

    passed: set[Token | None] = set()
    for token in entering_tokens(child, v, tokens):
        passed.update(pass_token(child, v, token, can_be_negative(parent, token)))

    return frozenset(passed - {None})
