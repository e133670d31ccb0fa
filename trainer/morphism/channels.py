"""What each channel of a grown network carries of the network it grew from, and where its weights come from.

Every channel of the child has a value in the parent's words, or none:

    value            meaning
    (u, j)           channel j of the parent's layer u
    (kind, value)    that value after a pool of this kind
    (+, value)       its positive part, (-, value): its negative part, both as a relu gives them
    None             something new, which nothing that is kept may depend on

A layer that continues another one takes, for each value that it needs, the weights of the parent, shared out among the
channels that carry this value; all other channels get zeros. Where a value is there as its two parts only, one gets
the weights and the other one their negative. A new layer hands channels on as they are. This is done from the input
to the output; it fails where a value that is needed is not there, and then the child cannot be what the parent was.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from archive.errors import InvalidArchitectureError
from archive.trainer.morphism.demand import Demand, demands, token_of
from archive.trainer.morphism.match import Matching, Sized, can_be_negative, passed

Value = Any
"""Hashable; see the table above."""


@dataclass(frozen=True)
class Columns:
    """Where the weights for each entering channel come from, entry by entry.

    Attributes:
        into: Positions among the channels that enter the child's layer; those not named get zeros.
        out_of: For each, the position among the channels that enter the parent's.
        sign: For each, 1 or -1.
        group: For each, a number that those share which share one weight out among them.
        folds: Lists of parent's positions that carry one value, whose weights add up at the first.
    """

    into: list[int] = field(default_factory=list)
    out_of: list[int] = field(default_factory=list)
    sign: list[int] = field(default_factory=list)
    group: list[int] = field(default_factory=list)
    folds: list[list[int]] = field(default_factory=list)


@dataclass(frozen=True)
class Continued:
    """A layer of the child that continues one of the parent.

    Attributes:
        layer: Position u in the parent.
        units: Which unit of u each unit is a copy of; None for a new one.
        inner: The same for the units between the two convolutions of a residual block.
        columns: Of its weights.
        identity: Whether the parent's block adds its input as it is, where the child's projects it.
    """

    layer: int
    units: list[int | None]
    inner: list[int]
    columns: Columns
    identity: bool = False


@dataclass(frozen=True)
class Handing:
    """A new layer that hands channels on: for each unit, what it adds up, as (entering channel, 1 or -1)."""

    sums: list[list[tuple[int, int]]]


Part = Continued | Handing | None
"""None: a layer without weights, or one with nothing to hand on."""


def plan(matching: Matching) -> list[Part]:
    """Return where the weights of each layer of the child come from.

    Raises:
        InvalidArchitectureError: With these layers continued, the child cannot be what its parent is.
    """
    return _Plan(matching).parts


class _Plan:
    def __init__(self, matching: Matching) -> None:
        self.matching, self.parent, self.child = matching, matching.parent, matching.child
        self.of_parent = _values_of(self.parent)
        self.values: list[list[Value]] = []
        self.parts: list[Part] = []
        self.demands = demands(matching)
        for v, u in enumerate(matching.of):
            part, made = self._planned(v, u)
            self.parts.append(part)
            self.values.append(made)

    def _planned(self, v: int, u: int | None) -> tuple[Part, list[Value]]:
        if v == 0:
            return None, self.of_parent[0]
        if self.child.groups[v] == "output":
            return None, []
        entering = [value for p in self.child.architecture.parents[v] for value in self.values[p]]
        if u is not None:
            return self._continued(v, u, entering)
        if self.child.groups[v] == "pool":
            return None, [self._passed(v, value)[0] for value in entering]
        return self._new(v, entering)

    def _continued(self, v: int, u: int, entering: list[Value]) -> tuple[Part, list[Value]]:
        needed = [value for p in self.parent.architecture.parents[u] for value in self.of_parent[p]]
        columns = _columns(needed, entering, v)
        old, new = self.parent.architecture.layers[u], self.child.architecture.layers[v]
        if new.units is None or old.units is None:
            return Continued(u, [], [], columns), []
        units: list[int | None] = [k % old.units for k in range(new.units)]
        identity = self.child.residual(v) and not self.parent.projects(u)
        if identity and not self.child.projects(v):
            units = _aligned(needed, entering, v)
        inner = [k % old.units for k in range(new.units)] if self.child.residual(v) else []
        made: list[Value] = [None if j is None else (u, j) for j in units]
        if new.op == "crelu":
            made += [None if j is None else (u, old.units + j) for j in units]
        return Continued(u, units, inner, columns, identity and self.child.projects(v)), made

    def _new(self, v: int, entering: list[Value]) -> tuple[Part, list[Value]]:
        """Hand on what enters, in its order; where there are too few units, first what is needed most."""
        op, units = self.child.architecture.layers[v].op, self.child.architecture.layers[v].units or 0
        sums = _joined(entering) if op == "crelu" else [(value, [(k, 1)]) for k, value in enumerate(entering)]
        handed = [self._passed(v, value) for value, _ in sums]
        if all(value is None for made in handed for value in made):
            return None, [None] * self.child.widths[v]
        as_it_is = self.child.residual(v) and not self.child.projects(v)
        chosen = list(range(units)) if as_it_is else _chosen(handed, units, self.demands[v])
        # All first values, then, of a crelu, all second ones.
        made = [handed[k][at] for at in range(len(handed[0])) for k in chosen]
        return Handing([sums[k][1] for k in chosen]), made

    def _passed(self, v: int, value: Value) -> tuple[Value, ...]:
        if value is None:
            return (None, None) if self.child.architecture.layers[v].op == "crelu" else (None,)
        return passed(self.child, v, value, can_be_negative(self.parent, value))


def _values_of(parent: Sized) -> list[list[Value]]:
    """Return the values of the channels that each layer of the parent emits."""
    found: list[list[Value]] = []
    for u, layer in enumerate(parent.architecture.layers):
        if parent.groups[u] == "pool":
            entering = [value for p in parent.architecture.parents[u] for value in found[p]]
            found.append([(layer.op, value) for value in entering])
        else:
            found.append([(u, j) for j in range(parent.widths[u])])
    return found


def _columns(needed: Sequence[Value], entering: Sequence[Value], v: int) -> Columns:
    """Share what is needed out among what enters.

    Raises:
        InvalidArchitectureError: Something that is needed does not enter.
    """
    there, wanted = _positions(entering), _positions(needed)
    columns = Columns()
    for value, sources in wanted.items():
        signed = _carriers(there, value, v)
        one_by_one = all(len(carriers) == len(sources) for _, carriers in signed)
        if len(sources) > 1 and not one_by_one:
            columns.folds.append(sources)
        for sign, carriers in signed:
            first = len(columns.group)
            for at, carrier in enumerate(carriers):
                columns.into.append(carrier)
                columns.out_of.append(sources[at if one_by_one else 0])
                columns.sign.append(sign)
                columns.group.append(first + at if one_by_one else first)
    return columns


def _carriers(there: dict[Value, list[int]], value: Value, v: int) -> list[tuple[int, list[int]]]:
    if value in there:
        return [(1, there[value])]
    parts = [("+", value), ("-", value)]
    if all(part in there for part in parts):
        return [(1, there[parts[0]]), (-1, there[parts[1]])]
    raise InvalidArchitectureError("what the layer needs of its parent's values does not reach it", v)


def _positions(values: Iterable[Value]) -> dict[Value, list[int]]:
    found: dict[Value, list[int]] = defaultdict(list)
    for at, value in enumerate(values):
        if value is not None:
            found[value].append(at)
    return dict(found)


def _aligned(needed: Sequence[Value], entering: Sequence[Value], v: int) -> list[int | None]:
    """Return the units of a residual block that adds its input as it is: each must be of the channel it is added to.

    Raises:
        InvalidArchitectureError: A unit of the parent's would be lost.
    """
    units: list[int | None] = [None] * len(entering)
    there = _positions(entering)
    for value, sources in _positions(needed).items():
        carriers = there.get(value, [])
        if len(carriers) < len(sources):
            raise InvalidArchitectureError("the block adds what enters as it is, which is not what its parent adds", v)
        for at, carrier in enumerate(carriers):
            units[carrier] = sources[at % len(sources)]
    return units


def _joined(entering: Sequence[Value]) -> list[tuple[Value, list[tuple[int, int]]]]:
    """Return what a crelu can take up, with the sums that give it: a value, not its two parts, where both enter."""
    there = _positions(entering)
    found: list[tuple[Value, list[tuple[int, int]]]] = []
    for k, value in enumerate(entering):
        sign, of = value if value is not None and value[0] in ("+", "-") else ("", None)
        parts = [there.get((part, of)) for part in "+-"] if sign else [None]
        if None in parts:
            found.append((value, [(k, 1)]))
        elif sign == "+":
            plus, minus = there["+", of], there["-", of]
            found.append((of, [(k, 1), (minus[plus.index(k) % len(minus)], -1)]))
    return found


def _chosen(handed: Sequence[tuple[Value, ...]], units: int, demand: Demand) -> list[int]:
    """Return which of what enters each unit of a new layer hands on."""
    useful = [k for k, made in enumerate(handed) if any(value is not None for value in made)]
    if units < len(useful):
        first = {handed[k]: k for k in reversed(useful)}.values()
        useful = sorted(sorted(first, key=lambda k: (-_urgency(handed[k], demand), k))[:units])
    return [useful[k % len(useful)] for k in range(units)]


def _urgency(made: tuple[Value, ...], demand: Demand) -> int:
    tokens = [token_of(value) for value in made if value is not None]
    return max(2 * (token in demand.vital) + (token in demand.wanted) for token in tokens)
