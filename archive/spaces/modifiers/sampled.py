"""NASBOT's mutation operator: k random modifiers with random choices (appendix B.2).

A choice that gives no member of the space is rejected and another one is drawn. Decisions that the
paper leaves open:

    modifier         each of the nine with the same probability; if one has no legal choice, another
    end of a path    a path to duplicate ends after each layer with probability 0.2, as in the
                     authors' released code
    stride, pooling  if both are possible, a new label keeps the image size with probability 0.95;
                     halving it half the time would end with images of one pixel. The released code
                     does nearly the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from archive.architecture.graph import Architecture, Edge
from archive.errors import InvalidArchitectureError
from archive.spaces.base import Mutation
from archive.spaces.modifiers import apply
from archive.spaces.modifiers.choices import (
    branching,
    can_skip,
    every,
    longest_copy,
    removable,
    resizable,
    resizable_runs,
    swaps,
    wedgeable,
    wedges,
)

if TYPE_CHECKING:
    from archive.spaces.layerwise import Limits


T = TypeVar("T")
Check = Callable[[Architecture], None]
Draw = Callable[[Architecture, "Limits", np.random.Generator], Architecture | None]

# Probability of 1, 2, … 5 steps in one mutation.
STEP_PROBABILITIES = (0.5, 0.25, 0.125, 0.075, 0.05)

_KEEP_IMAGE = 0.95
_END_PATH = 0.2
_DRAWS = 5
_SKIP_DRAWS = 40


def mutate(
    architecture: Architecture, limits: Limits, check: Check, rng: np.random.Generator
) -> Mutation:
    """Apply a random number of random modifiers.

    Args:
        architecture: A member.
        limits: Limits of the space, which exclude choices before they are tried.
        check: Function that raises `InvalidArchitectureError` for an architecture that is no
            member.
        rng: Source of every choice.
    """
    return steps(architecture, number_of_steps(rng), limits, check, rng)


def number_of_steps(rng: np.random.Generator) -> int:
    """Draw the number of steps of a mutation."""
    left = rng.random()
    for k, probability in enumerate(STEP_PROBABILITIES, start=1):
        left -= probability
        if left < 0:
            return k

    return len(STEP_PROBABILITIES)


def steps(
    architecture: Architecture, number: int, limits: Limits, check: Check, rng: np.random.Generator
) -> Mutation:
    """Apply this many random modifiers, fewer if no legal one is left.

    The operations describe a walk that visits no network twice: steps that lead back are
    omitted. A walk that has returned to its start takes one more step.
    """
    walk = [architecture]
    names = list[str]()
    taken = 0
    while taken < number or (taken and not names):
        step = _step(walk[-1], limits, check, rng)
        if step is None:
            break

        taken += 1
        child, name = step
        position = _position(child, walk)
        walk = [*walk[:position], child]
        names = [*names, name][:position]

    return Mutation(walk[-1], tuple(names))


def _position(network: Architecture, walk: Sequence[Architecture]) -> int:
    """Return the position of a network in a walk, or the walk's length if it is absent."""
    size = len(network.layers), len(network.edges)
    for position, step in enumerate(walk):
        # Layers and edges are cheaper to compare than keys, and most networks differ in them.
        if (len(step.layers), len(step.edges)) == size and Counter(step.layers) == Counter(
            network.layers
        ):
            if step.key == network.key:
                return position

    return len(walk)


def _step(
    architecture: Architecture, limits: Limits, check: Check, rng: np.random.Generator
) -> tuple[Architecture, str] | None:
    names = list(DRAWS)
    while names:
        name = names.pop(_below(len(names), rng))
        child = _legal(DRAWS[name], architecture, limits, check, rng)
        if child is not None:
            return child, name

    # Random draws found no legal step. Near the limits of a narrow space, few of very many steps
    # are legal.
    for name, child in every(architecture, limits):
        if _is_legal(child, check):
            return child, name

    return None


def _legal(
    draw: Draw, architecture: Architecture, limits: Limits, check: Check, rng: np.random.Generator
) -> Architecture | None:
    for _ in range(_DRAWS):
        try:
            child = draw(architecture, limits, rng)
        except InvalidArchitectureError:
            continue

        if child is None:
            return None

        if _is_legal(child, check):
            return child

    return None


def _is_legal(child: Architecture, check: Check) -> bool:
    try:
        check(child)
    except InvalidArchitectureError:
        return False

    return True


def _resize(
    architecture: Architecture,
    limits: Limits,
    rng: np.random.Generator,
    *,
    modifier: Callable[[Architecture, Any], Architecture],
    candidates: Callable[[Architecture, Limits, int], Sequence[Any]],
    sign: int,
) -> Architecture | None:
    """Change the units of one of the candidates: of a layer, or of a run of layers."""
    layers = candidates(architecture, limits, sign)
    return modifier(architecture, _pick(layers, rng)) if layers else None


def _dup_path(
    architecture: Architecture, limits: Limits, rng: np.random.Generator
) -> Architecture | None:
    longest = longest_copy(architecture, limits)
    starts = branching(architecture, limits)
    if longest < 1 or not starts:
        return None

    start = _pick(starts, rng)
    path = [start, _pick(architecture.children[start], rng)]
    while len(path) < longest + 2 and architecture.children[path[-1]]:
        path.append(_pick(architecture.children[path[-1]], rng))
        if rng.random() < _END_PATH:
            break

    return apply.dup_path(architecture, path)


def _remove_layer(
    architecture: Architecture, limits: Limits, rng: np.random.Generator
) -> Architecture | None:
    del limits
    layers = removable(architecture)
    if not layers:
        return None

    layer = _pick(layers, rng)
    return apply.remove_layer(architecture, layer, _reconnection(architecture, layer, rng))


def _reconnection(architecture: Architecture, layer: int, rng: np.random.Generator) -> list[Edge]:
    orphaned_parents, orphaned_children = apply.orphans(architecture, layer)
    parents = list(_shuffle(orphaned_parents, rng))
    children = list(_shuffle(orphaned_children, rng))
    edges = []
    while parents or children:
        tail = parents.pop() if parents else _pick(architecture.parents[layer], rng)
        head = children.pop() if children else _pick(architecture.children[layer], rng)
        edges.append((tail, head))

    return edges


def _skip(
    architecture: Architecture, limits: Limits, rng: np.random.Generator
) -> Architecture | None:
    last = len(architecture.layers) - 1
    # Rejection sampling of pairs is uniform over legal ones, as a list of all n^2 would be, and
    # faster.
    for _ in range(_SKIP_DRAWS):
        tail = _below(last, rng)
        head = _below(last, rng)
        if tail < head and can_skip(architecture, limits, tail, head):
            return apply.skip(architecture, tail, head)

    return None


def _swap_label(
    architecture: Architecture, limits: Limits, rng: np.random.Generator
) -> Architecture | None:
    for layer in _shuffle(range(1, len(architecture.layers) - 1), rng):
        same, other = swaps(architecture, layer)
        if same or other:
            op = _pick_label(same, other, rng)
            return apply.swap_label(
                architecture, layer, op, default_units=limits.clip(apply.DEFAULT_UNITS)
            )

    return None


def _wedge_layer(
    architecture: Architecture, limits: Limits, rng: np.random.Generator
) -> Architecture | None:
    if len(architecture.layers) >= limits.max_layers or len(architecture.edges) >= limits.max_edges:
        return None

    edge = _pick(wedgeable(architecture), rng)
    op, stride = _pick_label(*wedges(architecture, edge), rng)
    return apply.wedge_layer(
        architecture, edge, op, stride=stride, default_units=limits.clip(apply.DEFAULT_UNITS)
    )


DRAWS: dict[str, Draw] = {
    "inc_single": partial(_resize, modifier=apply.inc_single, candidates=resizable, sign=+1),
    "dec_single": partial(_resize, modifier=apply.dec_single, candidates=resizable, sign=-1),
    "inc_en_masse": partial(
        _resize, modifier=apply.inc_en_masse, candidates=resizable_runs, sign=+1
    ),
    "dec_en_masse": partial(
        _resize, modifier=apply.dec_en_masse, candidates=resizable_runs, sign=-1
    ),
    "dup_path": _dup_path,
    "remove_layer": _remove_layer,
    "skip": _skip,
    "swap_label": _swap_label,
    "wedge_layer": _wedge_layer,
}


def _pick_label(same: Sequence[T], other: Sequence[T], rng: np.random.Generator) -> T:
    if not other or (same and rng.random() < _KEEP_IMAGE):
        return _pick(same, rng)

    return _pick(other, rng)


def _pick(items: Sequence[T], rng: np.random.Generator) -> T:
    return items[_below(len(items), rng)]


def _below(n: int, rng: np.random.Generator) -> int:
    # Five times as fast as Generator.integers, and as uniform for any n that occurs here.
    return int(rng.random() * n)


def _shuffle(items: Sequence[T], rng: np.random.Generator) -> Iterator[T]:
    left = list(items)
    while left:
        yield left.pop(_below(len(left), rng))
