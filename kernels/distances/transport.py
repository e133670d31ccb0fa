"""Exact partial transport between the layers of many pairs of networks, compiled.

    max over Z >= 0   sum_ij Z_ij w_ij     with   sum_j Z_ij <= a_i,  sum_i Z_ij <= b_j,     w_ij = 2 - c_ij

is program (3) of the NASBOT paper: leaving a unit of mass unmatched costs 1 on each side, so
matching at cost c saves 2 - c, and a pair of layers with c >= 2 is never worth matching. Labels of
different families cost infinitely much, so the program falls apart into one small independent
program for each family ("block").

| symbol  | meaning                                            | shape                  |
|---------|----------------------------------------------------|------------------------|
| masses  | lm(u) > 0, sorted by block, networks end to end    | (layers,)              |
| labels  | row of the layer's label in `penalties`            | (layers,)              |
| places  | scaled path lengths: C_str = L1 distance           | (layers, f)            |
| slopes  | lengths from the input minus lengths to the output | (layers,)              |
| blocks  | where each block of each network begins            | (networks, blocks + 1) |
| c       | label penalty + nu_str * C_str                     | one an arc, per nu_str |
| u, v    | potentials; w_ij = u_i + v_j on the tree's arcs    | one a layer            |

The solver is the primal network simplex on a bipartite graph with a root: an arc from each row to
the root and from the root to each column, of gain 0, carries the unmatched mass, so the star of
those arcs is a feasible start. A basis is a spanning tree; it stays feasible when only the costs
change, hence the next nu_str starts where the last one ended. The largest nu_str is first: few arcs
have a gain then, and the mass is matched in few pivots. Trees stay strongly feasible (Cunningham
1976: an arc without flow points to the root), so that degenerate pivots cannot cycle. Masses are
only added and subtracted: integers stay exact. The tree's functions are in this file because
numba's cache compares one file only (`archive.kernels.compiled`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from archive.errors import NumericalError
from archive.kernels.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TOLERANCE = 1e-12
"""Largest gain per unit of mass outside an optimal basis.

Potentials are sums of gains, each at most 2, along paths in the tree: rounding stays below. The
loss is at most TOLERANCE times the mass matched."""
PRICED = 64
"""Arcs priced before the best of them enters the basis; more of them where there are MANY, because
a poor choice costs pivots."""
MANY = 4096
ROUNDING = 1e-13
"""Share of the two networks' mass below which a distance is a rounding error of subtracted
masses."""


class SpanningTree(NamedTuple):
    """Spanning tree of one block's nodes: rows, then columns, then the root.

    Each field is `(capacity,)`.

    `arc[x]` joins x to `parent[x]` and carries `flow[x]`; -1 is the arc that leaves mass unmatched.
    The children of a node are a doubly linked list: `child[x]` is the first, `after` and `before`
    its siblings.
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


class Arcs(NamedTuple):
    """Arcs of a block that can have a gain, each `(capacity,)`; `head` is numbered after rows."""

    tail: Integers
    head: Integers
    label: Floats
    structure: Floats
    gain: Floats


@compiled
def solve_pairs(
    pairs: Integers, masses: Floats, labels: Integers, places: Floats, slopes: Floats, blocks: Integers,
    penalties: Floats, nu_str: Floats, arcs: Arcs, tree: SpanningTree, out: Floats,
) -> int:  # fmt: skip
    """Write the distance of each pair at each nu_str.

    Return the first pair that did not converge, else -1.

    Args, besides those in the table above:
        pairs: (q, 2) positions in `blocks` of the two networks.
        penalties: (labels, labels), infinite between families.
        nu_str: (k,) ascending.
        arcs: Buffers (`transport_batch.workspace`); one thread at a time may use them.
        tree: Buffers, as `arcs`.
        out: (k, q), written.
    """
    for q in range(pairs.shape[0]):
        first = pairs[q, 0]
        second = pairs[q, 1]
        out[:, q] = 0.0
        for block in range(blocks.shape[1] - 1):
            start = blocks[first, block]
            stop = blocks[first, block + 1]
            begin = blocks[second, block]
            end = blocks[second, block + 1]
            count = list_arcs(
                start, stop, begin, end, labels, places, slopes, penalties, nu_str[0], arcs
            )
            plant_star(masses, start, stop, begin, end, tree)
            for k in range(nu_str.shape[0] - 1, -1, -1):
                if count and not optimise(stop - start, end - begin, count, nu_str[k], arcs, tree):
                    return q

                out[k, q] += _cost(stop - start + end - begin, nu_str[k], arcs, tree)

        total = 0.0
        for network in pairs[q]:
            for u in range(blocks[network, 0], blocks[network, -1]):
                total += masses[u]

        for k in range(nu_str.shape[0]):
            if out[k, q] < ROUNDING * total:
                out[k, q] = 0.0

    return -1


@compiled
def list_arcs(
    start: int, stop: int, begin: int, end: int,
    labels: Integers, places: Floats, slopes: Floats, costs: Floats, nu: float, arcs: Arcs,
) -> int:  # fmt: skip
    """List the arcs with a gain at the least nu_str: no other arc has one at a larger nu_str.

    Return their number.

    An L1 distance is at least the difference of two sums with any signs. Slopes differ most along a
    network: one subtraction rules out most pairs of layers.
    """
    count = 0
    for i in range(start, stop):
        for j in range(begin, end):
            label = costs[labels[i], labels[j]]
            # Reduced by a tolerance, because the sums are rounded in another order than the
            # distance.
            if label + nu * (abs(slopes[i] - slopes[j]) * (1.0 - 1e-9) - 1e-9) >= 2.0:
                continue

            structure = 0.0
            for f in range(places.shape[1]):
                structure += abs(places[i, f] - places[j, f])

            if label + nu * structure < 2.0:
                arcs.tail[count] = i - start
                arcs.head[count] = j - begin + stop - start
                arcs.label[count] = label
                arcs.structure[count] = structure
                count += 1

    return count


@compiled
def plant_star(
    masses: Floats, start: int, stop: int, begin: int, end: int, tree: SpanningTree
) -> None:
    """Set the first basis, in which all mass is unmatched: every node is a child of the root."""
    rows = stop - start
    nodes = stop - start + end - begin
    tree.parent[nodes] = tree.child[nodes] = -1
    tree.depth[nodes] = 0
    tree.potential[nodes] = 0.0
    for x in range(nodes):
        tree.child[x] = -1
        tree.flow[x] = masses[start + x] if x < rows else masses[begin + x - rows]
        _attach(x, nodes, -1, tree)
        tree.depth[x] = 1
        tree.potential[x] = 0.0


@compiled
def optimise(
    rows: int, columns: int, count: int, nu: float, arcs: Arcs, tree: SpanningTree
) -> bool:
    """Pivot until no arc has a gain; return False when the number of pivots exceeds its limit."""
    root = rows + columns
    for e in range(count):
        arcs.gain[e] = 2.0 - arcs.label[e] - nu * arcs.structure[e]

    _refresh(root, arcs.gain, tree)
    cursor = 0
    for _ in range(1000 + 200 * root + count):
        entering, tail, head = _entering(rows, root, count, cursor, arcs, tree)
        if entering == -2:
            return True

        cursor = max(entering, 0)
        _pivot(entering, tail, head, rows, arcs, tree)

    return False


@compiled
def _entering(
    rows: int, root: int, count: int, cursor: int, arcs: Arcs, tree: SpanningTree
) -> tuple[int, int, int]:
    """Return an arc with a gain, its tail and its head, from the root's and a block of others."""
    potential = tree.potential
    best = TOLERANCE
    entering = -2
    tail = root
    head = root
    for x in range(root):
        if -potential[x] > best and tree.arc[x] != -1:
            best = -potential[x]
            entering = -1
            tail, head = (x, root) if x < rows else (root, x)

    priced = PRICED if count < MANY else int(4 * np.sqrt(count))
    e = cursor
    left = priced
    for _ in range(count):
        gain = arcs.gain[e] - potential[arcs.tail[e]] - potential[arcs.head[e]]
        if gain > best and tree.arc[arcs.tail[e]] != e and tree.arc[arcs.head[e]] != e:
            best = gain
            entering = e
            tail = arcs.tail[e]
            head = arcs.head[e]

        e = e + 1 if e + 1 < count else 0
        left -= 1
        if left == 0:
            if entering != -2:
                break

            left = priced

    return entering, tail, head


@compiled
def _pivot(entering: int, tail: int, head: int, rows: int, arcs: Arcs, tree: SpanningTree) -> None:
    """Add an arc to the tree, push mass along its cycle, and remove the blocking arc.

    Along the cycle, in the direction of the entering arc, rows on the tail's side and columns on
    the head's side send the mass to their parent, the others receive it. Of several blocking arcs,
    the last one counted from the apex
    leaves: this keeps the tree strongly feasible.
    """
    x = tail
    y = head
    leaving = -1
    from_tail = True
    while x != y:
        if tree.depth[x] >= tree.depth[y]:
            if x < rows and (leaving == -1 or tree.flow[x] < tree.flow[leaving]):
                leaving = x
                from_tail = True

            x = tree.parent[x]
        else:
            y = tree.parent[y]

    apex = x
    y = head
    while y != apex:
        if y >= rows and (leaving == -1 or tree.flow[y] <= tree.flow[leaving]):
            leaving = y
            from_tail = False

        y = tree.parent[y]

    amount = tree.flow[leaving]
    x = tail
    y = head
    while x != apex:
        tree.flow[x] += -amount if x < rows else amount
        x = tree.parent[x]

    while y != apex:
        tree.flow[y] += amount if y < rows else -amount
        y = tree.parent[y]

    top, parent = (tail, head) if from_tail else (head, tail)
    _graft(top, parent, entering, leaving, amount, tree)
    _refresh(top, arcs.gain, tree)


@compiled
def _cost(nodes: int, nu: float, arcs: Arcs, tree: SpanningTree) -> float:
    """Return the cost of the matching, unmatched mass included, as a sum of non-negative terms.

    The alternative, total mass minus gain, cancels to noise for near-identical networks.
    """
    cost = 0.0
    for x in range(nodes):
        arc = tree.arc[x]
        cost += tree.flow[x] * (arcs.label[arc] + nu * arcs.structure[arc] if arc >= 0 else 1.0)

    return cost


@compiled
def _attach(x: int, parent: int, arc: int, tree: SpanningTree) -> None:
    """Make a node the first child of another."""
    first = tree.child[parent]
    tree.parent[x] = parent
    tree.arc[x] = arc
    tree.before[x] = -1
    tree.after[x] = first
    tree.child[parent] = x
    if first != -1:
        tree.before[first] = x


@compiled
def _graft(x: int, under: int, arc: int, leaving: int, flow: float, tree: SpanningTree) -> None:
    """Cut the subtree of `leaving` off, make x its root, and make x a child of another node."""
    while True:
        parent = tree.parent[x]
        old_arc = tree.arc[x]
        old_flow = tree.flow[x]
        _detach(x, tree)
        _attach(x, under, arc, tree)
        tree.flow[x] = flow
        if x == leaving:
            return

        x, under, arc, flow = parent, x, old_arc, old_flow


@compiled
def _refresh(top: int, gains: Floats, tree: SpanningTree) -> None:
    """Recompute depth and potential of a subtree from the parent of its root, without recursion."""
    tree.stack[0] = top
    size = 1
    while size:
        size -= 1
        x = tree.stack[size]
        parent = tree.parent[x]
        arc = tree.arc[x]
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
def _detach(x: int, tree: SpanningTree) -> None:
    before = tree.before[x]
    after = tree.after[x]
    if before == -1:
        tree.child[tree.parent[x]] = after
    else:
        tree.after[before] = after

    if after != -1:
        tree.before[after] = before


def solve(
    pairs: Integers,
    masses: Floats,
    labels: Integers,
    places: Floats,
    blocks: Integers,
    penalties: Floats,
    nu_str: Floats,
) -> Floats:
    """Return the distance of each pair at each nu_str.

    Args:
        pairs: (q, 2) positions in `blocks` of the two networks.
        masses: (layers,) float64, none of them 0; networks end to end, layers sorted by block.
        labels: (layers,) int64, rows of `penalties`.
        places: (layers, f) float64, scaled path lengths.
        blocks: (networks, blocks + 1) int64, where each block of each network begins.
        penalties: (labels, labels) float64, infinite between families.
        nu_str: (k,) float64, ascending.

    Returns:
        (k, q) float64.

    Raises:
        NumericalError: The simplex of a pair did not converge.
    """
    out = np.empty((len(nu_str), len(pairs)))
    widest = int(np.diff(blocks, axis=1).max())
    arcs, tree = workspace(widest, widest)
    slopes = slopes_of(places)
    failed = solve_pairs(
        np.ascontiguousarray(pairs),
        masses,
        labels,
        places,
        slopes,
        blocks,
        penalties,
        nu_str,
        arcs,
        tree,
        out,
    )
    if failed >= 0:
        raise NumericalError(f"the transport of pair {tuple(pairs[failed])} did not converge")

    return out


def slopes_of(places: Floats) -> Floats:
    """Return each layer's lengths from the input minus its lengths to the output, (layers,)."""
    half = places.shape[1] // 2
    slopes: Floats = places[:, :half].sum(axis=1) - places[:, half:].sum(axis=1)
    return slopes


def workspace(rows: int, columns: int) -> tuple[Arcs, SpanningTree]:
    """Return buffers for blocks of at most this many rows and columns.

    One thread at a time may use them.
    """
    arcs = max(rows * columns, 1)
    nodes = rows + columns + 1
    ends = np.empty((2, arcs), np.int64)
    costs = np.empty((3, arcs))
    links = np.empty((7, nodes), np.int64)
    values = np.empty((2, nodes))
    return Arcs(*ends, *costs), SpanningTree(*links, *values)
