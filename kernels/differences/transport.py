"""The transport plan of OTMANN: the mass matched between layers, and its cost.

Notation as in `archive.kernels.distances.otmann`. An optimal Z is read from the solver's spanning
tree. It splits the distance into label penalties <Z, M>, structural costs nu_str <Z, C_str>, and
the mass that is left unmatched.

A picture shows one partner for each layer. Layers are paired by descending amount of mass between
them, and a layer that has a partner is skipped. Then equal layers without mass are paired in their
order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive.architecture.graph import Architecture
from archive.errors import NumericalError
from archive.kernels.differences.base import Change, Difference, DifferencePart, words
from archive.kernels.distances.otmann import OTMANN, LayersWithMass, OtmannBatch

Floats = NDArray[np.float64]

_ROUNDING = 1e-12
"""Mass below this share of both networks is a rounding error."""


class _Flow(NamedTuple):
    """Mass on one arc of the plan, with its cost.

    Attributes:
        row: Position among the first network's layers with mass; None for mass that stays
            unmatched.
        column: Position among the second network's layers with mass; None for mass that stays
            unmatched.
        mass: The mass.
        label: Label penalty of a unit of mass; 1 where it stays unmatched.
        structure: Structural cost of a unit of mass, C_str.
    """

    row: int | None
    column: int | None
    mass: float
    label: float
    structure: float


def transport_difference(
    first: Architecture, second: Architecture, distance: OTMANN, component: str
) -> Difference:
    """Return the transport plan of two networks of one space.

    Args:
        first: A network.
        second: The network that it is compared with.
        distance: OTMANN with any settings.
        component: Its unnormalised component.

    Raises:
        NumericalError: The solver did not converge.
    """
    nu = distance.nu_str[distance.components.index(component)]
    networks = (distance.prepare(first), distance.prepare(second))
    places = (distance.order(first), distance.order(second))
    parts = []
    least = _ROUNDING * (networks[0].total + networks[1].total)
    for flow in _flows(networks, distance, nu):
        if flow.mass <= least:
            continue

        u = None if flow.row is None else int(places[0][flow.row])
        v = None if flow.column is None else int(places[1][flow.column])
        parts.append(_part(first, second, u, v, flow.mass, flow.label, nu * flow.structure))

    parts.sort(key=lambda part: (part.first or (len(first.layers),), part.second))
    return Difference(
        "otmann", component, first, second, tuple(parts), _pairs(first, second, parts)
    )


def _flows(
    networks: tuple[LayersWithMass, LayersWithMass], distance: OTMANN, nu: float
) -> Iterator[_Flow]:
    """Solve the transport of two networks, and yield the arcs of the plan, block by block."""
    from archive.kernels.distances import transport
    from archive.kernels.distances.transport import slopes_of, workspace

    batch = OtmannBatch(networks, distance.penalties_of(networks[0].space), np.array([nu]))
    widest = int(np.diff(batch.blocks, axis=1).max())
    arcs, tree = workspace(widest, widest)
    slopes = slopes_of(batch.places)
    offset = len(networks[0].masses)
    for block in range(batch.blocks.shape[1] - 1):
        start, stop = batch.blocks[0, block : block + 2].tolist()
        begin, end = batch.blocks[1, block : block + 2].tolist()
        rows = stop - start
        columns = end - begin
        count = transport.list_arcs(
            start, stop, begin, end, batch.labels, batch.places, slopes, batch.penalties, nu, arcs
        )
        transport.plant_star(batch.masses, start, stop, begin, end, tree)
        if count and not transport.optimise(rows, columns, count, nu, arcs, tree):
            raise NumericalError("the transport of the two networks did not converge")

        for x in range(rows + columns):
            arc = int(tree.arc[x])
            mass = float(tree.flow[x])
            if arc < 0 and x < rows:
                yield _Flow(start + x, None, mass, 1.0, 0.0)
            elif arc < 0:
                yield _Flow(None, begin + x - rows - offset, mass, 1.0, 0.0)
            else:
                row = start + int(arcs.tail[arc])
                column = begin + int(arcs.head[arc]) - rows - offset
                yield _Flow(row, column, mass, float(arcs.label[arc]), float(arcs.structure[arc]))


def _part(
    first: Architecture,
    second: Architecture,
    u: int | None,
    v: int | None,
    amount: float,
    label: float,
    position: float,
) -> DifferencePart:
    if u is None or v is None:
        first_end = () if u is None else (u,)
        second_end = () if v is None else (v,)
        change: Change = "inserted" if u is None else "removed"
        return DifferencePart(
            "mass", change, first_end, second_end, amount, "unmatched computation costs 1", amount
        )

    reasons = []
    if label:
        reasons.append(f"{words(first.layers[u])} → {words(second.layers[v])}: penalty {label:.3g}")

    if position:
        reasons.append(f"another place: {position:.3g}")

    same = first.layers[u] == second.layers[v]
    return DifferencePart(
        "mass",
        "matched" if same else "changed",
        (u,),
        (v,),
        amount * (label + position),
        ", ".join(reasons) + (" a unit of computation" if reasons else ""),
        amount,
    )


def _pairs(
    first: Architecture, second: Architecture, parts: list[DifferencePart]
) -> tuple[tuple[int | None, int | None], ...]:
    """Return the pairs of layers; a layer without a partner is paired with None."""
    partner: dict[int, int] = {0: 0, len(first.layers) - 1: len(second.layers) - 1}
    taken = set(partner.values())
    matched = [part for part in parts if part.first and part.second]
    for part in sorted(matched, key=lambda part: (-part.amount, part.first, part.second)):
        (u,), (v,) = part.first, part.second
        if u not in partner and v not in taken:
            partner[u] = v
            taken.add(v)

    _pair_layers_without_mass(first, second, parts, partner, taken)
    pairs: list[tuple[int | None, int | None]] = []
    for u in range(len(first.layers)):
        pairs.append((u, partner.get(u)))

    for v in range(len(second.layers)):
        if v not in taken:
            pairs.append((None, v))

    return tuple(pairs)


def _pair_layers_without_mass(
    first: Architecture,
    second: Architecture,
    parts: list[DifferencePart],
    partner: dict[int, int],
    taken: set[int],
) -> None:
    """Pair equal layers without mass, in their order: the plan does not contain them."""
    paired = set(partner)
    received = set(taken)
    for part in parts:
        paired.update(part.first)
        received.update(part.second)

    for u, layer in enumerate(first.layers):
        if u in paired:
            continue

        for v, other in enumerate(second.layers):
            if other == layer and v not in received:
                partner[u] = v
                taken.add(v)
                received.add(v)
                break
