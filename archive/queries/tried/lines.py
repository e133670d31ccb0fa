"""The tree of runs: which run is a change of which other one, and the way to the best one.

    tree = RunLines({1: 0, 2: 1, 3: 1}, {0: 0.5, 1: 0.6, 2: 0.7, 3: 0.55})
    tree.line(0)        # [0, 1, 2]: from a run to the best one that came from it
    tree.sides(1)       # [3]: the other changes of it, the best first

A line is drawn without indentation, and its sides one step further: a tree of thousands of runs is as
deep as the number of times that a search left the way to its best run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping


class RunLines:
    """A forest of runs by number; a circle of parents is cut at its first run.

    Args:
        parents: Number of the parent of each run that has one.
        scores: Value of every run, larger is better; None without a result.

    Attributes:
        roots: Runs without a parent that others came from, the best tree first.
        lone: Number of runs that are no change of another one, and that no other one is a change of.
    """

    def __init__(self, parents: Mapping[int, int], scores: Mapping[int, float | None]) -> None:
        """Order the runs below each other."""
        self._scores: dict[int, float] = {}
        for number, score in scores.items():
            self._scores[number] = -math.inf if score is None or math.isnan(score) else score

        self._parents = {}
        self._children: dict[int, list[int]] = {}
        for number in sorted(self._scores):
            parent = parents.get(number)
            if parent in self._scores and parent != number:
                self._parents[number] = parent
                self._children.setdefault(parent, []).append(number)

        order = self._order()
        self._best = {number: (self._scores[number], -number) for number in order}
        self._sizes = dict.fromkeys(order, 1)
        for number in reversed(order):
            parent = self._parents.get(number)
            if parent is not None:
                self._best[parent] = max(self._best[parent], self._best[number])
                self._sizes[parent] += self._sizes[number]

        for children in self._children.values():
            children.sort(key=self._best.__getitem__, reverse=True)

        roots = [number for number in order if number not in self._parents]
        self.roots = [number for number in roots if self._sizes[number] > 1]
        self.roots.sort(key=self._best.__getitem__, reverse=True)
        self.lone = len(roots) - len(self.roots)

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self._scores)

    def __contains__(self, number: object) -> bool:
        """Return whether a run is in the tree."""
        return number in self._scores

    def parent(self, number: int) -> int | None:
        """Return the run that a run is a change of; None without one."""
        return self._parents.get(number)

    def children(self, number: int) -> list[int]:
        """Return the changes of a run, the one that led to the best run first."""
        return list(self._children.get(number, ()))

    def best(self, number: int) -> int:
        """Return the best run of those that came from a run, and of itself."""
        return -self._best[number][1]

    def size(self, number: int) -> int:
        """Return the number of runs that came from a run, with itself."""
        return self._sizes[number]

    def line(self, number: int) -> list[int]:
        """Return the way from a run to the best one that came from it."""
        goal = self.best(number)
        line = [goal]
        while line[-1] != number:
            line.append(self._parents[line[-1]])

        return line[::-1]

    def sides(self, number: int) -> list[int]:
        """Return the changes of a run that are not on the way to its best one, the best first."""
        children = self.children(number)
        return children if self.best(number) == number else children[1:]

    def _order(self) -> list[int]:
        """Return all runs, each behind its parent."""
        starts = [number for number in self._scores if number not in self._parents]
        order = self._below(starts)
        # What no start leads to is in a circle, or comes from one.
        left = set(self._scores).difference(order)
        for number in sorted(left):
            if number in left:
                cut = self._first_of_circle(number)
                self._children[self._parents.pop(cut)].remove(cut)
                reached = self._below([cut])
                left.difference_update(reached)
                order += reached

        return order

    def _below(self, starts: list[int]) -> list[int]:
        order = []
        stack = sorted(starts, reverse=True)
        while stack:
            number = stack.pop()
            order.append(number)
            stack += self._children.get(number, ())

        return order

    def _first_of_circle(self, number: int) -> int:
        seen: dict[int, int] = {}
        while number not in seen:
            seen[number] = len(seen)
            number = self._parents[number]

        circle = list(seen)[seen[number] :]
        return min(circle)
