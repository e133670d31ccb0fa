"""The spanning tree that is a basis of `transport`'s network simplex: hang nodes on it, move parts of it, compiled.

numba compiles these functions into those of `transport` and looks at that file alone to see whether what it has
cached is out of date: after an edit here, touch it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive.kernels.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Tree(NamedTuple):
    """A spanning tree of one block's nodes, each `(capacity,)`: rows, then columns, then the root.

    `arc[x]` joins x to `parent[x]` and carries `flow[x]`; -1 is the arc that leaves mass unmatched. The children of a
    node are a doubly linked list: `child[x]` is the first, `after` and `before` its siblings.
    """

    parent: Integers
    arc: Integers
    depth: Integers
    child: Integers
    after: Integers
    before: Integers
    stack: Integers
    flow: Floats
    potential: Floats


@compiled
def attach(x: int, parent: int, arc: int, tree: Tree) -> None:
    """Hang a node under another, as the first of its children."""
    first = tree.child[parent]
    tree.parent[x] = parent
    tree.arc[x] = arc
    tree.before[x] = -1
    tree.after[x] = first
    tree.child[parent] = x
    if first != -1:
        tree.before[first] = x


@compiled
def graft(x: int, under: int, arc: int, leaving: int, flow: float, tree: Tree) -> None:
    """Cut `leaving` off its parent, make x the top of what came off, and hang it under another node."""
    while True:
        parent, old_arc, old_flow = tree.parent[x], tree.arc[x], tree.flow[x]
        _detach(x, tree)
        attach(x, under, arc, tree)
        tree.flow[x] = flow
        if x == leaving:
            return
        x, under, arc, flow = parent, x, old_arc, old_flow


@compiled
def refresh(top: int, gains: Floats, tree: Tree) -> None:
    """Recompute depth and potential below a node from its parent's, without recursion."""
    tree.stack[0] = top
    size = 1
    while size:
        size -= 1
        x = tree.stack[size]
        parent, arc = tree.parent[x], tree.arc[x]
        if parent != -1:
            tree.depth[x] = tree.depth[parent] + 1
            gain = gains[arc] if arc >= 0 else 0.0
            tree.potential[x] = gain - tree.potential[parent]
        child = tree.child[x]
        while child != -1:
            tree.stack[size] = child
            size += 1
            child = tree.after[child]


@compiled
def _detach(x: int, tree: Tree) -> None:
    before, after = tree.before[x], tree.after[x]
    if before == -1:
        tree.child[tree.parent[x]] = after
    else:
        tree.after[before] = after
    if after != -1:
        tree.before[after] = before
