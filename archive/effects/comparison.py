"""Comparisons of networks, and of trainings, that differ in one edit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from archive.effects.columns import Column
from archive.effects.edits import Edit
from archive.effects.estimate import Floats
from archive.effects.networks import NetworkEdits
from archive.effects.pairs import Integers
from archive.effects.recipes import Recipe, change_of_recipe


@dataclass(frozen=True, eq=False)
class Comparisons:
    """Comparisons of one edit under one protocol, or between two.

    Attributes:
        edit: The edit.
        before: Column of the values before it.
        after: Column of the values after it; the same one for networks under one protocol.
        first: (n,) positions of the networks before the edit.
        second: (n,) positions of the networks after it; the same ones for trainings.
        differences: (n,) differences of values, or of their logarithms.
        where: n places of the edit; empty for trainings.
    """

    edit: Edit
    before: Column
    after: Column
    first: Integers
    second: Integers
    differences: Floats
    where: tuple[str, ...] = ()


def compare(edits: NetworkEdits, columns: Sequence[Column]) -> list[Comparisons]:
    """Return the comparisons of networks of one space and of their trainings.

    Networks for inputs of two sizes are compared where each is measured at its size, and a training
    at another size with one at the network's size.
    """
    comparisons: list[Comparisons] = []
    everything = np.arange(len(edits.edit))
    for column in columns:
        comparisons += _networks(edits, everything, column, column)

    return [*comparisons, *_sizes(edits, columns), *_trainings(edits, columns)]


def _networks(
    edits: NetworkEdits, pairs: Integers, before: Column, after: Column
) -> list[Comparisons]:
    """Return the comparisons of the networks of some pairs."""
    differences = after.values[edits.after[pairs]] - before.values[edits.before[pairs]]
    usable = np.isfinite(differences)
    pairs = pairs[usable]
    differences = differences[usable]
    kinds = edits.edit[pairs]
    comparisons = []
    for kind in np.unique(kinds).tolist():
        of_kind = kinds == kind
        selected = pairs[of_kind]
        comparisons.append(
            Comparisons(
                edits.edits[kind],
                before,
                after,
                edits.before[selected],
                edits.after[selected],
                differences[of_kind],
                tuple(edits.where[pair] for pair in selected.tolist()),
            )
        )

    return comparisons


def _sizes(edits: NetworkEdits, columns: Sequence[Column]) -> list[Comparisons]:
    """Return the comparisons of networks for inputs of two sizes."""
    sized = [index for index, edit in enumerate(edits.edits) if edit.name == "input size"]
    pairs = np.flatnonzero(np.isin(edits.edit, sized))
    groups: dict[tuple[str, Recipe], list[Column]] = {}
    for column in columns:
        if len(pairs) and column.recipe.size is not None:
            groups.setdefault((column.task, column.recipe.without_size()), []).append(column)

    comparisons: list[Comparisons] = []
    for group in groups.values():
        group.sort(key=lambda column: column.recipe.size or 0)
        for smaller, larger in combinations(group, 2):
            fits = edits.sides[edits.before[pairs]] == smaller.recipe.size
            fits &= edits.sides[edits.after[pairs]] == larger.recipe.size
            comparisons += _networks(edits, pairs[fits], smaller, larger)

    return comparisons


def _trainings(edits: NetworkEdits, columns: Sequence[Column]) -> list[Comparisons]:
    """Return the comparisons of trainings of one network with one change of the recipe."""
    groups: dict[tuple[str, str], list[Column]] = {}
    for column in columns:
        groups.setdefault((column.task, column.under), []).append(column)

    comparisons = []
    for group in groups.values():
        exists = np.isfinite(np.stack([column.values for column in group]))
        shared = exists.astype(np.float32) @ exists.T.astype(np.float32)
        for first, second in np.argwhere(np.triu(shared, 1)).tolist():
            changed = change_of_recipe(group[first].recipe, group[second].recipe)
            if changed is None:
                continue

            edit, reverse = changed
            before, after = group[first], group[second]
            if reverse:
                before, after = after, before

            usable = exists[first] & exists[second]
            if edit.name == "input size":
                usable &= edits.sides == (after if before.recipe.tuned else before).recipe.size

            networks = np.flatnonzero(usable)
            differences = after.values[networks] - before.values[networks]
            comparisons.append(Comparisons(edit, before, after, networks, networks, differences))

    return comparisons
