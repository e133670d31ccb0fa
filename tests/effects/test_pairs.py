"""The index of traits: the pairs that a comparison of all pairs finds."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from archive.effects.pairs import pairs_of, table_of

NAMES = ("width", "depth", "norm", "stem")
TRAITS = st.lists(
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from("abc"), max_size=4), max_size=14
)


def by_hand(traits, groups):
    found = set()
    for first, second in combinations(range(len(traits)), 2):
        unlike = {name for name in NAMES if traits[first].get(name) != traits[second].get(name)}
        if unlike and any(unlike <= set(group) for group in groups):
            found.add((first, second))

    return found


@given(TRAITS)
def test_pairs_differ_in_one_group_of_traits(traits):
    groups = [["width", "depth"], ["depth", "norm"], ["stem"]]
    pairs = pairs_of(table_of(traits), groups)
    found = list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
    assert len(found) == len(set(found))
    assert set(found) == by_hand(traits, groups)
