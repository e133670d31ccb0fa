"""What a run changes of another one: values, and the network that it trained.

Changes of source files are written beside the run when it is delivered (`Proposal.changed`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archive.store.architectures import Architectures
from archive.values import setting_text

if TYPE_CHECKING:
    from archive.architecture.graph import Architecture
    from archive.database.connection import Connection

NOT_GIVEN = frozenset(["program", "code", "run", "network_key"])
"""Values that tell which program, network or row of a table it was; files tell what changes in a
program, and layers what changes in a network."""

_OUTLINED = "torch"
_MOST = 8
"""Most changes of a network that are named."""


@dataclass(frozen=True)
class ValueChange:
    """A value that differs between two runs.

    Attributes:
        name: Its name.
        first: In the first run; null where it is absent.
        second: In the second run; null where it is absent.
    """

    name: str
    first: Any
    second: Any

    def __str__(self) -> str:
        """Return the change as a line: `lr 0.1 -> 0.3`."""
        before = "absent" if self.first is None else setting_text(self.first)
        after = "absent" if self.second is None else setting_text(self.second)
        return f"{self.name} {before} -> {after}"


def value_changes(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[ValueChange]:
    """Return the values that differ, in the order of their names in the two."""
    changes = []
    for name in dict.fromkeys([*first, *second]):
        if first.get(name) != second.get(name):
            changes.append(ValueChange(name, first.get(name), second.get(name)))

    return changes


def network_changes(
    connection: Connection, pairs: Iterable[tuple[str, str]]
) -> dict[tuple[str, str], list[str]]:
    """Return in words what differs between networks.

    Args:
        connection: Connection to the archive.
        pairs: Keys of two networks each.
    """
    different = sorted({pair for pair in pairs if pair[0] != pair[1]})
    keys = {key for pair in different for key in pair}
    if not keys:
        return {}

    networks = Architectures(connection).get_many(sorted(keys))
    words = {}
    for first, second in different:
        words[first, second] = describe_network_change(networks[first], networks[second])

    return words


def describe_network_change(first: Architecture, second: Architecture) -> list[str]:
    """Return in words what differs between two networks; empty where they compute the same."""
    if first.functional_key == second.functional_key:
        return []

    if first.space == second.space == _OUTLINED:
        from archive.architecture.outline.changes import changes
        from archive.architecture.outline.outline import outline

        named = [str(change) for change in changes(outline(first), outline(second))]
        return named[:_MOST]

    return _layer_changes(first, second)


def _layer_changes(first: Architecture, second: Architecture) -> list[str]:
    """Return which layers one network has more often than the other one."""
    before = Counter(layer.op for layer in first.functional.layers)
    after = Counter(layer.op for layer in second.functional.layers)
    words = []
    for op in sorted({*before, *after}):
        number = after[op] - before[op]
        if number:
            side = "more" if number > 0 else "fewer"
            words.append(f"{abs(number)} {op} {side}")

    return words[:_MOST] or ["other connections"]
