"""Memory and time of proposals on a table of all 423,624 cells of NAS-Bench-101.

The values are made up.

    python docs/scripts/large_table.py write cells.csv.gz
    python docs/scripts/large_table.py propose cells.csv.gz --agent portfolio --evaluations 60

The first command enumerates the cells: upper triangular matrices of at most nine edges, all of
whose vertices lie on a path from input to output, one of each class under relabelling of the inner
vertices, with the labels likewise. The first use of the table reads and caches it, in a minute;
measure the second.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from archive import agents, spaces
from archive.agents.base import History, Observation

OPERATIONS = ("conv3x3-bn-relu", "conv1x1-bn-relu", "maxpool3x3")
MOST_VERTICES = 7
MOST_EDGES = 9


def cells(n: int) -> Iterator[tuple[str, str]]:
    """Yield matrix (row by row) and labels of every cell of n vertices.

    There is one of each isomorphism class.
    """
    permutations = [(0, *inner, n - 1) for inner in itertools.permutations(range(1, n - 1))]
    labels = np.array(list(itertools.product(range(3), repeat=n - 2)), np.int64).reshape(
        3 ** (n - 2), n - 2
    )
    powers = 3 ** np.arange(n - 2)
    for matrix in _matrices(n, permutations):
        # Labelled matrices are equal when a permutation that keeps the matrix maps the labels.
        kept = [each for each in permutations if (matrix[np.ix_(each, each)] == matrix).all()]
        codes = np.min([labels[:, [at - 1 for at in each[1:-1]]] @ powers for each in kept], axis=0)
        text = "".join("01"[int(edge)] for edge in matrix.ravel())
        for at in np.unique(codes, return_index=True)[1]:
            yield text, "|".join(["input", *(OPERATIONS[label] for label in labels[at]), "output"])


def _matrices(n: int, permutations: list[tuple[int, ...]]) -> np.ndarray:
    """Return one matrix of each class: (classes, n, n) bool."""
    edges = list(itertools.combinations(range(n), 2))
    codes = np.arange(2 ** len(edges))
    counts = sum((codes >> bit) & 1 for bit in range(len(edges)))
    codes = codes[counts <= MOST_EDGES]
    matrices = np.zeros((len(codes), n, n), bool)
    for bit, (u, v) in enumerate(edges):
        matrices[:, u, v] = (codes >> bit) & 1

    connected = np.ones(len(codes), bool)
    for v in range(1, n):
        connected &= matrices[:, :v, v].any(axis=1) & matrices[:, n - 1 - v, n - v :].any(axis=1)

    matrices = matrices[connected]
    weights = (1 << np.arange(n * n)).reshape(n, n)
    least = np.full(len(matrices), np.iinfo(np.int64).max)
    for each in permutations:
        permuted = sum(
            matrices[:, each[u], each[v]] * weights[u, v]
            for u in range(n)
            for v in range(n)
            if u != v
        )
        least = np.minimum(least, permuted)

    return matrices[np.unique(least, return_index=True)[1]]


def write(path: Path) -> None:
    """Write the table; values rise with the number of 3x3 convolutions, and have noise."""
    rng = np.random.default_rng(0)
    count = 0
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write("n_vertices,adjacency_rowmajor,ops,value\n")
        for n in range(2, MOST_VERTICES + 1):
            for matrix, labels in cells(n):
                value = 0.8 + 0.02 * labels.count("conv3x3") + 0.01 * rng.standard_normal()
                file.write(f"{n},{matrix},{labels},{value:.5f}\n")
                count += 1

    print(f"{count:,} cells")


def propose(path: Path, kind: str, evaluations: int, proposals: int = 5) -> None:
    """Propose after random evaluations, and print seconds of each call and memory."""
    space = spaces.get("nasbench101", table=str(path.absolute()))
    members = space.members() or ()
    rng = np.random.default_rng(0)
    print(f"{len(members):,} networks, {_peak():.0f} MB")
    begin = time.process_time()
    agent = agents.get(kind, space)
    seen: list[Observation] = []
    print(f"the agent is ready after {time.process_time() - begin:.2f} s of processor time")
    for at in rng.choice(len(members), evaluations + proposals, replace=False):
        score = (
            sum(layer.op == OPERATIONS[0] for layer in members[at].layers)
            + 0.5 * rng.standard_normal()
        )
        seen.append(Observation(members[at], score, f"search#{len(seen):05d}"))

    for n in range(evaluations, evaluations + proposals):
        begin = time.process_time()
        agent.propose(History(tuple(seen[:n])), 1, np.random.default_rng(n))
        print(
            f"after {n} evaluations: {time.process_time() - begin:.2f} s of processor time, "
            f"peak {_peak():.0f} MB"
        )


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def main() -> None:
    """Write the table, or propose on it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["write", "propose"])
    parser.add_argument("path", type=Path)
    parser.add_argument("--agent", default="portfolio")
    parser.add_argument("--evaluations", type=int, default=60)
    asked = parser.parse_args()
    if asked.what == "write":
        write(asked.path)
    else:
        propose(asked.path, asked.agent, asked.evaluations)


if __name__ == "__main__":
    main()
