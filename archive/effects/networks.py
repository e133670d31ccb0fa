"""Edits between the networks of an archive: pairs of networks with the one change between them.

Traits and changes follow from the graphs and are kept in a file (`archive.cache`): outlines of a
thousand networks take ten seconds. Values of named decisions are read each time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from archive import cache
from archive.architecture.aten.wiring import read_input
from archive.architecture.outline.changes import changes
from archive.architecture.outline.outline import outline
from archive.effects.edits import Edit, edit_of
from archive.effects.pairs import Integers, NetworkPairs, Traits, TraitTable, pairs_of, table_of
from archive.effects.traits import EDGES, OUTLINED, groups_of, traits_of
from archive.errors import InvalidArchitectureError
from archive.queries.results_by_task import configurations_of_space

if TYPE_CHECKING:
    from archive.api import Archive
    from archive.architecture.graph import Architecture

KIND = "effects"
"""Kind of the cached files."""

COMBINED: Mapping[tuple[str, ...], str] = {("shortcut", "stem"): "stem D"}
"""Names of changes that are one edit with a name."""

Row = tuple[str, str, Any, Any]
"""Name, place, and values before and after of a change."""


@dataclass(frozen=True, eq=False)
class NetworkEdits:
    """Pairs of networks of one space that differ in one edit.

    Attributes:
        edits: The edits, each once.
        edit: (p,) position of the edit of each pair.
        before: (p,) positions of the networks before it.
        after: (p,) positions of the networks after it.
        where: p texts: the part of the network that differs.
        sides: (n,) side of the input of each network; 0 where it has none.
    """

    edits: list[Edit]
    edit: Integers
    before: Integers
    after: Integers
    where: list[str]
    sides: Integers

    def select(self, kept: NDArray[np.bool_]) -> NetworkEdits:
        """Return some of the pairs, by one truth value each."""
        pairs = np.flatnonzero(kept)
        where = [self.where[pair] for pair in pairs.tolist()]
        return replace(
            self,
            edit=self.edit[pairs],
            before=self.before[pairs],
            after=self.after[pairs],
            where=where,
        )


def edits_of(
    archive: Archive,
    space: str,
    keys: Sequence[str],
    notify: Callable[[str], None] | None = None,
) -> NetworkEdits:
    """Return the edits between networks of a space.

    Args:
        archive: The archive.
        space: Name of the space.
        keys: Keys of the networks; positions in the result are positions here.
        notify: Called with a message before a slow step.
    """
    store = EditStore(archive, space, notify)
    traits = store.traits(keys)
    table = table_of(traits)
    pairs = pairs_of(table, groups_of(space, table.names))
    sides = np.array([_side(of_network.get("input", "")) for of_network in traits], np.int64)
    if space == OUTLINED:
        return _of_outlines(pairs, store.changes(keys, pairs), sides)

    return _of_traits(table, pairs, sides, named=bool(store.named))


def _side(text: str) -> int:
    """Return the last side of the images in `3x224x224 128:int64`; 0 for another text."""
    try:
        shapes = [read_input(part).shape for part in text.split(" ")]
    except InvalidArchitectureError:
        return 0

    largest = max(shapes, key=len)
    return largest[-1] if largest else 0


class EditStore:
    """Traits and changes of the networks of one space, with a file.

    Args:
        archive: The archive.
        space: Name of the space.
        notify: Called with a message before a slow step.

    Attributes:
        named: Values of the named decisions of networks by key; other networks have none.
    """

    def __init__(
        self, archive: Archive, space: str, notify: Callable[[str], None] | None = None
    ) -> None:
        """Read the file, if there is one."""
        self._archive = archive
        self._space = space
        self._notify = notify
        self._home = archive.connection.settings.home
        arrays = cache.read(KIND, space, self._home) or {}
        content = {name: json.loads(array.tobytes()) for name, array in arrays.items()}
        self._traits: dict[str, Traits] = content.get("traits", {})
        self._changes: dict[str, list[Row]] = content.get("changes", {})
        self.named = configurations_of_space(archive.connection, space)

    def traits(self, keys: Sequence[str]) -> list[Traits]:
        """Return the traits of networks."""
        missing = [key for key in keys if key not in self._traits and key not in self.named]
        if missing:
            if len(missing) > cache.WORTH and self._notify is not None:
                self._notify(f"reading the properties of {len(missing)} networks, once")

            for key, network in self._archive.architectures.get_many(missing).items():
                self._traits[key] = traits_of(network)

            self._save()

        return [self.named.get(key) or self._traits[key] for key in keys]

    def changes(self, keys: Sequence[str], pairs: NetworkPairs) -> list[list[Row]]:
        """Return the changes of the outlines of pairs of networks."""
        names = []
        for first, second in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True):
            names.append(f"{keys[first]} {keys[second]}")

        missing = [name for name in names if name not in self._changes]
        if missing:
            networks = self._archive.architectures.get_many(sorted(set(" ".join(missing).split())))
            for name in missing:
                first_key, second_key = name.split()
                self._changes[name] = _changes(networks[first_key], networks[second_key])

            self._save()

        return [self._changes[name] for name in names]

    def _save(self) -> None:
        arrays = {}
        for name, content in (("traits", self._traits), ("changes", self._changes)):
            arrays[name] = np.frombuffer(json.dumps(content).encode(), np.uint8)

        cache.write(KIND, self._space, arrays, self._home)


def _changes(first: Architecture, second: Architecture) -> list[Row]:
    rows = []
    for change in changes(outline(first), outline(second)):
        rows.append((change.name, change.where, change.before, change.after))

    return rows


def _of_outlines(
    pairs: NetworkPairs, changes_of: Sequence[Sequence[Row]], sides: Integers
) -> NetworkEdits:
    places: dict[Edit, int] = {}
    rows: list[tuple[int, int, int]] = []
    where = []
    ends = zip(pairs.first.tolist(), pairs.second.tolist(), changes_of, strict=True)
    for first, second, changed in ends:
        single = _one_edit(changed)
        if single is None:
            continue

        edit, reverse, part = single
        before, after = (second, first) if reverse else (first, second)
        rows.append((places.setdefault(edit, len(places)), before, after))
        where.append(part)

    edits, before_of, after_of = np.array(rows, np.int64).reshape(-1, 3).T
    return NetworkEdits(list(places), edits, before_of, after_of, where, sides)


def _one_edit(changed: Sequence[Row]) -> tuple[Edit, bool, str] | None:
    """Return the edit of changes, whether it is reversed, and its place; None for several edits."""
    if len(changed) == 1:
        name, where, before, after = changed[0]
        # A difference without a name is none, and values that both lack say nothing.
        if name == "other" or before == after:
            return None

        return *edit_of(name, before or None, after or None), where

    combined = COMBINED.get(tuple(sorted(row[0] for row in changed)))
    if combined is None:
        return None

    pooled = [["avg pool" in str(value) for value in row[2:]] for row in changed]
    reverse = any(before and not after for before, after in pooled)
    if not reverse and not any(after and not before for before, after in pooled):
        return None

    return Edit(combined, "", "added"), reverse, "network"


def _of_traits(
    table: TraitTable, pairs: NetworkPairs, sides: Integers, *, named: bool
) -> NetworkEdits:
    """Return the edits of networks whose traits are texts; there may be 100,000s of pairs."""
    if not len(pairs.first):
        return NetworkEdits([], pairs.first, pairs.first, pairs.second, [], sides)

    old = table.codes[pairs.first]
    new = table.codes[pairs.second]
    column = np.argmax(old != new, axis=1)
    rows = np.arange(len(column))
    cases = np.stack([column, old[rows, column], new[rows, column]], axis=1)
    distinct, case = np.unique(cases, axis=0, return_inverse=True)
    case = case.reshape(-1)

    places: dict[Edit, int] = {}
    edit_of_case = []
    reversed_case = []
    for trait, before, after in distinct.tolist():
        values = (table.values[before] or None, table.values[after] or None)
        edit, reverse = edit_of(_name(table.names[trait], named=named), *values)
        edit_of_case.append(places.setdefault(edit, len(places)))
        reversed_case.append(reverse)

    reverse_of = np.array(reversed_case, np.bool_)[case]
    before_of = np.where(reverse_of, pairs.second, pairs.first)
    after_of = np.where(reverse_of, pairs.first, pairs.second)
    where = [table.names[trait] for trait in column.tolist()]
    edits = np.array(edit_of_case, np.int64)[case]
    return NetworkEdits(list(places), edits, before_of, after_of, where, sides)


def _name(trait: str, *, named: bool) -> str:
    """Return the name of a trait's changes: slots and layers have operations."""
    return trait if named or trait == EDGES else "operation"
