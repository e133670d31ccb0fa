"""Configurations as trees: what a model or a training takes, and flat names for everything else.

flat     {"depth": 2, "stage_1_op": "skip", "stage_2_op": "conv3"}
tree     {"depth": 2, "stage": [{"op": "skip"}, {"op": "conv3"}]}
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from archive.errors import UnknownNameError
from archive.parameters.declaration import Declaration, Group
from archive.parameters.domains import Value
from archive.parameters.leaves import Configuration, Parameter


def nest(
    declared: Mapping[str, Declaration | Group],
    parameters: Iterable[Parameter],
    configuration: Configuration,
) -> dict[str, Any]:
    """Return the tree of a configuration, its names in the order of the declaration.

    Args:
        declared: The declaration.
        parameters: Its leaves.
        configuration: Values by flat name; missing parameters are missing in the tree.
    """
    values = []
    for parameter in parameters:
        if parameter.name in configuration:
            values.append((parameter.path, configuration[parameter.name]))

    tree = tree_of(repeated_groups(declared), values)
    return {name: tree[name] for name in declared if name in tree}


def repeated_groups(declared: Mapping[str, Declaration | Group]) -> list[str]:
    """Return the names of the repeated groups that are in no other group."""
    names = []
    for name, entry in declared.items():
        if isinstance(entry, Group) and entry.count is not None:
            names.append(name)

    return names


def counts_of(declared: Mapping[str, Declaration | Group]) -> dict[str, str]:
    """Return the parameter that says how often a group is repeated, by the group's name."""
    counts = {}
    for name, entry in declared.items():
        if isinstance(entry, Group) and isinstance(entry.count, str):
            counts[name] = entry.count

    return counts


def tree_of(
    repeated: Iterable[str], values: Iterable[tuple[Sequence[str | int], Value]]
) -> dict[str, Any]:
    """Return the tree of values with their paths.

    Args:
        repeated: Names of repeated groups, which are lists even where they have no repetition.
        values: Paths (`archive.parameters.leaves.Parameter.path`) with values, the repetitions of a
            group in their order.
    """
    tree: dict[str, Any] = {name: [] for name in repeated}
    for path, value in values:
        _put(tree, path, value)

    return tree


def flatten_tree(names: Collection[str], tree: Mapping[str, Any]) -> dict[str, Value]:
    """Return the values of a tree by flat name.

    Args:
        names: The flat names.
        tree: A tree, or values by flat name already.

    Raises:
        UnknownNameError: A part of the tree is no parameter and no group.
    """
    values: dict[str, Value] = {}
    for name, value in tree.items():
        if name in names:
            values[name] = value
        else:
            values |= _flatten_group(names, name, value)

    return values


def _flatten_group(names: Collection[str], name: str, value: Any) -> dict[str, Value]:
    """Return the values of a group, which is a dictionary or a list of dictionaries."""
    repetitions = {name: value}
    if isinstance(value, list | tuple):
        repetitions = {f"{name}_{number}": members for number, members in enumerate(value, 1)}

    values: dict[str, Value] = {}
    for prefix, members in repetitions.items():
        if not isinstance(members, Mapping):
            raise UnknownNameError("parameter", prefix, names)

        values |= flatten_tree(
            names, {f"{prefix}_{member}": inner for member, inner in members.items()}
        )

    return values


def _put(tree: dict[str, Any], path: Sequence[str | int], value: Value) -> None:
    """Put a value into nested dictionaries and lists."""
    node: Any = tree
    for step, following in pairwise(path):
        fresh: Any = [] if isinstance(following, int) else {}
        if isinstance(step, int):
            while len(node) < step:
                node.append(fresh)

            node = node[step - 1]
        else:
            node = node.setdefault(step, fresh)

    node[path[-1]] = value
