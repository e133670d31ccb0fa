"""The graph of modules, and the chain of parts between its cuts.

| symbol | meaning                                                                         |
|--------|---------------------------------------------------------------------------------|
| trunk  | modules with a layer with weights before them, or in them, on a path            |
| cut    | module of the trunk that every path of the trunk passes                         |
| part   | modules of the trunk behind one cut, up to and with the next                    |

Values that are computed from the input without weights, such as masks, are no part of the trunk:
they may lead to every block, and would leave no cut.
"""

from __future__ import annotations

import heapq

from archive.architecture.outline.modules import NetworkModule, Recognition
from archive.architecture.outline.wiring import Wiring


class ModuleGraph:
    """The graph of a network's modules.

    Attributes:
        wiring: The network.
        modules: Its modules in topological order; every layer is in one.
        parents: For each module those that it reads, ascending.
        children: For each module those that read it, ascending.
        trunk: Whether each module is part of the trunk.
    """

    def __init__(self, state: Recognition) -> None:
        """Order the modules, and give each layer without a module to one."""
        self.wiring = state.wiring
        self.modules = _in_order(state)
        owner = _owners(self.wiring, self.modules)
        self.parents: list[list[int]] = []
        self.children: list[list[int]] = [[] for _ in self.modules]
        self.trunk: list[bool] = []
        for number, parents in enumerate(_parents(self.wiring, self.modules, owner)):
            self.parents.append(sorted(parents))
            for parent in parents:
                self.children[parent].append(number)

            weighted = self.modules[number].weighted
            self.trunk.append(weighted or any(self.trunk[parent] for parent in parents))

        if not any(self.trunk[:-1]):
            self.trunk = [True] * len(self.trunk)

        _adopt(self.wiring, self.modules, owner)

    def trunk_parents(self, number: int) -> list[int]:
        """Return the modules of the trunk that a module reads."""
        return [parent for parent in self.parents[number] if self.trunk[parent]]

    def parts(self) -> list[list[int]]:
        """Return the parts of the trunk in order, each with its cut at the end."""
        members = [number for number, inside in enumerate(self.trunk) if inside]
        starts = [number for number in members if not self.trunk_parents(number)]
        reach = max(starts, default=0)
        parts: list[list[int]] = []
        part: list[int] = []
        for number in members:
            part.append(number)
            if reach <= number:
                parts.append(part)
                part = []

            reach = max([reach, *self.children[number]])

        if part:
            parts.append(part)

        return parts


def _in_order(state: Recognition) -> list[NetworkModule]:
    """Return the modules in topological order; those on a cycle are taken apart."""
    modules = list(state.modules)
    while True:
        owner = _owners(state.wiring, modules)
        order = _topological_order(_parents(state.wiring, modules, owner), modules)
        if len(order) == len(modules):
            return [modules[number] for number in order]

        cyclic = set(range(len(modules))).difference(order)
        largest = max(cyclic, key=lambda number: len(modules[number].layers))
        apart = []
        for u in modules[largest].layers:
            apart.append(NetworkModule(state.wiring.layers[u].op, (u,), u))

        modules[largest : largest + 1] = apart


def _owners(wiring: Wiring, modules: list[NetworkModule]) -> list[int | None]:
    """Return the module of each layer."""
    owner: list[int | None] = [None] * len(wiring.layers)
    for number, module in enumerate(modules):
        for u in module.layers:
            owner[u] = number

    return owner


def _parents(
    wiring: Wiring, modules: list[NetworkModule], owner: list[int | None]
) -> list[set[int]]:
    """Return the modules that each module reads on a path from the input."""
    parents: list[set[int]] = [set() for _ in modules]
    for number, module in enumerate(modules):
        for u in module.layers:
            for parent in wiring.paths(u):
                source = owner[parent]
                if source is not None and source != number and wiring.on_path[u]:
                    parents[number].add(source)

    return parents


def _topological_order(parents: list[set[int]], modules: list[NetworkModule]) -> list[int]:
    """Return the numbers of the modules that are on no cycle, near the order of their ends."""
    waiting = list(map(len, parents))
    children: list[list[int]] = [[] for _ in modules]
    for number, sources in enumerate(parents):
        for source in sources:
            children[source].append(number)

    ready = [(modules[number].end, number) for number, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        _, number = heapq.heappop(ready)
        order.append(number)
        for child in children[number]:
            waiting[child] -= 1
            if not waiting[child]:
                heapq.heappush(ready, (modules[child].end, child))

    return order


def _adopt(wiring: Wiring, modules: list[NetworkModule], owner: list[int | None]) -> None:
    """Give each layer without a module to the first module that uses it."""
    extra: dict[int, list[int]] = {}
    for u in reversed(range(len(wiring.layers))):
        if owner[u] is not None:
            continue

        # A layer of training alone is used by a layer that chooses by mode.
        users = wiring.architecture.children[u]
        numbers = [number for user in users if (number := owner[user]) is not None]
        owner[u] = min(numbers, default=len(modules) - 1)
        extra.setdefault(owner[u] or 0, []).append(u)

    for number, layers in extra.items():
        module = modules[number]
        module.layers = tuple(sorted((*module.layers, *layers)))
