"""Genotypes that tests share: random ones, and isomorphic forms of a genotype by its definition."""

from __future__ import annotations

import random
from functools import cache
from itertools import permutations

from hypothesis import strategies as st

from archive.architecture.genotypes.genotype import RULES, Genotype

SPACES = tuple(RULES)


@st.composite
def cell(draw, rules, zeros):
    primitives = [name for name in rules.primitives if zeros or name != "none"]
    choices = []
    for node in range(2, 2 + rules.nodes):
        pair = draw(st.sampled_from(rules.sources(node)))
        operations = [draw(st.sampled_from(primitives)) for _ in pair]
        choices += draw(st.permutations(list(zip(operations, pair, strict=True))))

    return tuple(choices), rules.outputs(choices)


@st.composite
def genotypes(draw, space="darts", zeros=True):
    rules = RULES[space]
    return Genotype(*draw(cell(rules, zeros)), *draw(cell(rules, zeros)))


def renumbered(choices, concat, order):
    """The same cell with node `order[i]` in place i; None where a node would read a later one."""
    place = {0: 0, 1: 1, **{2 + old: 2 + new for new, old in enumerate(order)}}
    moved = []
    for new, old in enumerate(order):
        for operation, state in choices[2 * old : 2 * old + 2]:
            if place[state] >= 2 + new:
                return None

            moved.append((operation, place[state]))

    return tuple(moved), tuple(sorted(place[state] for state in concat))


@cache
def forms(choices, concat):
    """All isomorphic forms of a cell, the pairs of each node sorted: by trying every order of the
    nodes."""
    found = set()
    for order in permutations(range(len(choices) // 2)):
        form = renumbered(choices, concat, order)
        if form is not None:
            moved, joined = form
            pairs = [tuple(sorted(moved[at : at + 2])) for at in range(0, len(moved), 2)]
            found.add((tuple(pairs), joined))

    return frozenset(found)


def identity(genotype):
    """What two genotypes share if and only if they are isomorphic."""
    return min(forms(genotype.normal, genotype.normal_concat)), min(
        forms(genotype.reduce, genotype.reduce_concat)
    )


def disguised(genotype, seed):
    """An isomorphic genotype: nodes in another order, the pairs of a node exchanged."""
    shuffle = random.Random(seed)
    cells = []
    for choices, concat in (
        (genotype.normal, genotype.normal_concat),
        (genotype.reduce, genotype.reduce_concat),
    ):
        orders = list(permutations(range(len(choices) // 2)))
        shuffle.shuffle(orders)
        moved, joined = next(
            form for order in orders if (form := renumbered(choices, concat, order)) is not None
        )
        pairs = [list(moved[at : at + 2]) for at in range(0, len(moved), 2)]
        for pair in pairs:
            shuffle.shuffle(pair)

        cells += [tuple(choice for pair in pairs for choice in pair), joined]

    return Genotype(*cells)
