"""Channels of a child network: the parent's values that they carry, and their weights' source.

symbol   meaning
u, v     layers of the parent and of the child; v continues u, or is new
j, k     an output channel (unit) of u and of v
p        a layer whose output enters u or v

Every channel of the child has a value, expressed by the parent's channels, or none:

    value            meaning
    (u, j)           channel j of the parent's layer u
    (kind, value)    that value after a pool of this kind
    (+, value)       its positive part, (-, value): its negative part, both from a relu
    None             a new value, on which no kept value may depend

A layer that continues one of the parent takes the parent's weights for each value that it needs,
divided among the channels that carry this value; all other channels get zeros. If a value is
present only as its two parts, one gets the weights and the other one their negative. A new layer
passes channels through. The plan is made from the input to the output. It fails where a needed
value does not arrive: the child then cannot keep the parent's function.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain, cycle, islice, product
from typing import Any

from archive.errors import InvalidArchitectureError
from archive.trainer.morphism.match import (
    Matching,
    SizedNetwork,
    Token,
    can_be_negative,
    emit_tokens,
    entering_tokens,
    pass_token,
    possible,
)

Value = Any
"""Hashable; see the table above."""


@dataclass(frozen=True)
class ColumnSources:
    """Source of the weights for each input channel of a layer, entry by entry.

    Attributes:
        into: Positions among the input channels of the child's layer; all others get zeros.
        out_of: For each entry, the position among the input channels of the parent's layer.
        sign: For each entry, 1 or -1.
        group: For each entry, the number of its group; a group divides one weight among its
            entries.
        merged: Lists of the parent's positions that carry one value, whose weights are summed at
            the first.
    """

    into: list[int] = field(default_factory=list)
    out_of: list[int] = field(default_factory=list)
    sign: list[int] = field(default_factory=list)
    group: list[int] = field(default_factory=list)
    merged: list[list[int]] = field(default_factory=list)


@dataclass(frozen=True)
class ContinuedLayer:
    """A layer of the child that continues one of the parent.

    Attributes:
        layer: Position u in the parent.
        units: For each unit, the unit of u that it copies; None for a new one.
        inner: The same for the units between the two convolutions of a residual block.
        columns: Source of its weights by input channel.
        identity: Whether the parent's block adds its input unchanged while the child's block
            projects it.
    """

    layer: int
    units: list[int | None]
    inner: list[int]
    columns: ColumnSources
    identity: bool = False


@dataclass(frozen=True)
class PassThrough:
    """A new layer that passes channels through: for each unit, (input channel, 1 or -1) terms."""

    sums: list[list[tuple[int, int]]]


LayerPlan = ContinuedLayer | PassThrough | None
"""None: a layer without weights, or one with nothing to pass through."""


def plan(matching: Matching) -> list[LayerPlan]:
    """Return the source of each child layer's weights.

    Raises:
        InvalidArchitectureError: With this matching, the child cannot keep the parent's function.
    """
    return _Planner(matching).parts


class _Planner:
    """The plan of a matching, made layer by layer.

    Attributes:
        of_parent: Values of the output channels of the parent's layers.
        values: Values of the output channels of the child's layers so far.
        parts: Plan of the child's layers so far.
        demands: Values that each layer of the child must pass through.
    """

    def __init__(self, matching: Matching) -> None:
        self.matching = matching
        self.parent = matching.parent
        self.child = matching.child
        self.of_parent = _values_of(self.parent)
        self.values: list[list[Value]] = []
        self.parts: list[LayerPlan] = []
        self.demands = demands(matching)
        for v, u in enumerate(matching.of):
            part, made = self._plan(v, u)
            self.parts.append(part)
            self.values.append(made)

    def _plan(self, v: int, u: int | None) -> tuple[LayerPlan, list[Value]]:
        """Return the plan of a layer, and the values of its output channels."""
        if v == 0:
            return None, self.of_parent[0]

        if self.child.groups[v] == "output":
            return None, []

        entering = _entering_values(self.child, v, self.values)
        if u is not None:
            return self._continue(v, u, entering)

        if self.child.groups[v] == "pool":
            return None, [self._pass_value(v, value)[0] for value in entering]

        return self._new(v, entering)

    def _continue(self, v: int, u: int, entering: list[Value]) -> tuple[LayerPlan, list[Value]]:
        needed = _entering_values(self.parent, u, self.of_parent)
        columns = _columns(needed, entering, v)
        old = self.parent.architecture.layers[u]
        new = self.child.architecture.layers[v]
        if new.units is None or old.units is None:
            return ContinuedLayer(u, [], [], columns), []

        copied = list(islice(cycle(range(old.units)), new.units))
        units: list[int | None] = list(copied)
        identity = self.child.residual(v) and not self.parent.projects(u)
        if identity and not self.child.projects(v):
            units = _align(needed, entering, v)

        inner = copied if self.child.residual(v) else []
        made: list[Value] = []
        for first in (0, old.units) if new.op == "crelu" else (0,):
            for j in units:
                made.append(None if j is None else (u, first + j))

        return ContinuedLayer(u, units, inner, columns, identity and self.child.projects(v)), made

    def _new(self, v: int, entering: list[Value]) -> tuple[LayerPlan, list[Value]]:
        """Pass input channels through in order; with too few units, the most needed first."""
        op = self.child.architecture.layers[v].op
        units = self.child.architecture.layers[v].units or 0
        sums = _join(entering, with_parts=op == "crelu")
        emitted = [self._pass_value(v, value) for value, _ in sums]
        if {None}.issuperset(chain.from_iterable(emitted)):
            return None, [None] * self.child.widths[v]

        unprojected = self.child.residual(v) and not self.child.projects(v)
        indices = list(range(units)) if unprojected else _choose(emitted, units, self.demands[v])
        # All first values; for a crelu, then all second ones.
        made = []
        for index in range(len(emitted[0])):
            for k in indices:
                made.append(emitted[k][index])

        return PassThrough([sums[k][1] for k in indices]), made

    def _pass_value(self, v: int, value: Value) -> tuple[Value, ...]:
        if value is None:
            return (None, None) if self.child.architecture.layers[v].op == "crelu" else (None,)

        return pass_token(self.child, v, value, can_be_negative(self.parent, value))


def _values_of(parent: SizedNetwork) -> list[list[Value]]:
    """Return the values of the output channels of each layer of the parent."""
    values: list[list[Value]] = []
    for u, layer in enumerate(parent.architecture.layers):
        if parent.groups[u] == "pool":
            entering = _entering_values(parent, u, values)
            values.append(list(product([layer.op], entering)))
        else:
            values.append(list(product([u], range(parent.widths[u]))))

    return values


def _entering_values(sized: SizedNetwork, u: int, values: Sequence[Sequence[Value]]) -> list[Value]:
    """Return the values of all input channels of a layer, in order."""
    entering: list[Value] = []
    for p in sized.architecture.parents[u]:
        entering += values[p]

    return entering


def _columns(needed: Sequence[Value], entering: Sequence[Value], v: int) -> ColumnSources:
    """Divide the weights of the needed values among the input channels.

    Raises:
        InvalidArchitectureError: A needed value does not arrive.
    """
    present = _positions(entering)
    columns = ColumnSources()
    for value, sources in _positions(needed).items():
        signed = _carriers(present, value, v)
        one_by_one = all(len(carriers) == len(sources) for _, carriers in signed)
        if len(sources) > 1 and not one_by_one:
            columns.merged.append(sources)

        for sign, carriers in signed:
            first = len(columns.group)
            for index, carrier in enumerate(carriers):
                columns.into.append(carrier)
                columns.out_of.append(sources[index if one_by_one else 0])
                columns.sign.append(sign)
                columns.group.append(first + index if one_by_one else first)

    return columns


def _carriers(present: dict[Value, list[int]], value: Value, v: int) -> list[tuple[int, list[int]]]:
    """Return the input channels of a value, with the sign 1, or of its two parts, with 1, -1."""
    if value in present:
        return [(1, present[value])]

    if ("+", value) in present and ("-", value) in present:
        return [(1, present["+", value]), (-1, present["-", value])]

    raise InvalidArchitectureError(
        "a value of the parent that the layer needs does not reach it", v
    )


def _positions(values: Iterable[Value]) -> dict[Value, list[int]]:
    """Return the channels of each value, without new values."""
    positions: dict[Value, list[int]] = defaultdict(list)
    for index, value in enumerate(values):
        if value is not None:
            positions[value].append(index)

    return dict(positions)


def _align(needed: Sequence[Value], entering: Sequence[Value], v: int) -> list[int | None]:
    """Return the units of a residual block without projection, aligned with the added channels.

    Raises:
        InvalidArchitectureError: A unit of the parent would be lost.
    """
    units: list[int | None] = [None] * len(entering)
    present = _positions(entering)
    for value, sources in _positions(needed).items():
        carriers = present.get(value, [])
        if len(carriers) < len(sources):
            raise InvalidArchitectureError(
                "the block adds its input unprojected, which differs from its parent's", v
            )

        for index, carrier in enumerate(carriers):
            units[carrier] = sources[index % len(sources)]

    return units


def _join(entering: Sequence[Value], with_parts: bool) -> list[tuple[Value, list[tuple[int, int]]]]:
    """Return the values that a layer can pass, with their terms.

    A crelu joins the two parts of a value.
    """
    present = _positions(entering)
    joined: list[tuple[Value, list[tuple[int, int]]]] = []
    for k, value in enumerate(entering):
        sign, of = value if value is not None and value[0] in ("+", "-") else ("", None)
        plus = present.get(("+", of))
        minus = present.get(("-", of))
        if not with_parts or not sign or plus is None or minus is None:
            joined.append((value, [(k, 1)]))
        elif sign == "+":
            joined.append((of, [(k, 1), (minus[plus.index(k) % len(minus)], -1)]))

    return joined


def _choose(emitted: Sequence[tuple[Value, ...]], units: int, demand: Demand) -> list[int]:
    """Return the input that each unit of a new layer passes through."""
    useful: list[int] = []
    for k, made in enumerate(emitted):
        if set(made) != {None}:
            useful.append(k)

    if units < len(useful):
        first = {emitted[k]: k for k in reversed(useful)}.values()
        useful = sorted(sorted(first, key=lambda k: (-_urgency(emitted[k], demand), k))[:units])

    return list(islice(cycle(useful), units))


def _urgency(made: tuple[Value, ...], demand: Demand) -> int:
    """Return a value's urgency: 3 if the layer must pass it, 1 if a later one needs it, else 0."""
    urgency = 0
    for value in made:
        if value is not None:
            token = token_of(value)
            urgency = max(urgency, 2 * (token in demand.required) + (token in demand.useful))

    return urgency


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
        needs = _needs(matching, v, entering_tokens(matching.child, v, tokens), result[v])
        for p in child.parents[v]:
            elsewhere: set[Token] = set()
            for other in child.parents[v]:
                if other != p:
                    elsewhere |= tokens[other]

            elsewhere |= _parts(elsewhere)
            result[p].useful |= needs.useful & tokens[p]
            result[p].required |= (needs.required & tokens[p]) - elsewhere

    return result


def token_of(value: Any) -> Token:
    """Return the token of the layer that a channel's value belongs to."""
    what, of = value
    return (what, token_of(of)) if isinstance(what, str) else what


def _needs(matching: Matching, v: int, entering: Set[Token], demand: Demand) -> Demand:
    """Return the tokens that a layer needs of its input, for its weights or later layers."""
    u = matching.of[v]
    if u is not None:
        tokens = set(entering_tokens(matching.parent, u, emit_tokens(matching.parent)))
        return Demand(tokens | _parts(tokens), tokens | _parts(tokens))

    needs = Demand()
    for token in entering:
        made = set(pass_token(matching.child, v, token, can_be_negative(matching.parent, token)))
        if made & demand.useful:
            needs.useful.add(token)

        if made & demand.required:
            needs.required.add(token)

    return needs


def _parts(tokens: set[Token]) -> set[Token]:
    return set(product("+-", tokens))
