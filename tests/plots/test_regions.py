"""Regions of a map: which networks are a group, and names that say no more than what is shared."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from archive.plots.data.network_map import profiles_of
from archive.plots.data.regions import (
    SHARED,
    TELLING,
    find_clusters,
    name_regions,
    shared_traits,
    traits_of,
)

OPERATIONS = ("conv3", "relu", "max_pool")


def code(operations):
    layers = ["ip", *operations, "op"]
    return json.dumps([layers, [[at, at + 1] for at in range(len(layers) - 1)]])


def traits(networks):
    return traits_of(*profiles_of([code(each) for each in networks]))


def blobs(*sizes):
    draws = np.random.default_rng(0)
    return np.concatenate(
        [draws.normal(20 * number, 0.5, (size, 2)) for number, size in enumerate(sizes)]
    )


def test_dense_groups_are_found_and_few_networks_are_none():
    clusters = find_clusters(blobs(20, 30))
    assert len(set(clusters[:20]) - {-1}) == len(set(clusters[20:]) - {-1}) == 1
    assert clusters.max() == 1
    assert set(find_clusters(blobs(4))) == {-1}
    assert find_clusters(np.zeros((0, 2))).tolist() == []


NETWORKS = st.lists(
    st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=4), min_size=2, max_size=12
)


def has(network, name):
    if name.startswith("no "):
        return not has(network, name.removeprefix("no "))
    words = [each.replace("_", " ") for each in network]
    if name.startswith("mostly "):
        return words.count(name.removeprefix("mostly ")) > len(words) / 2
    if "→" in name:
        return tuple(name.split(" → ")) in set(pairwise(words))
    return name in words


@given(NETWORKS, st.data())
def test_shared_traits_are_those_of_the_networks(networks, data):
    inside = data.draw(st.lists(st.sampled_from(range(len(networks))), unique=True))
    others = [each for at, each in enumerate(networks) if at not in inside]
    for trait in shared_traits(traits(networks), np.array(inside, np.int64)):
        share = np.mean([has(networks[at], trait.name) for at in inside])
        assert abs(trait.inside - share) < 0.006 and share >= SHARED
        outside = np.mean([has(each, trait.name) for each in others])
        assert abs(trait.outside - outside) < 0.006 and share - outside >= TELLING - 1e-9


def test_a_group_has_the_name_of_what_only_it_has():
    networks = [["conv3", "relu"]] * 10 + [["max_pool", "relu"]] * 10
    places, clusters = np.zeros((20, 2)), np.repeat([0, 1], 10)
    found = traits(networks)
    assert [region.name for region in name_regions(places, clusters, found)] == [
        "conv3",
        "max pool",
    ]
    # A family of the whole map names nothing; one of a group does.
    families = ["resnet"] * 12 + [""] * 8
    names = [region.name for region in name_regions(places, clusters, found, families)]
    assert names == ["conv3", "max pool"]
    families = ["resnet"] * 3 + [""] * 17
    assert name_regions(places, clusters, found, families)[0].name == "conv3"
    more = name_regions(
        np.zeros((60, 2)),
        np.repeat([0, 1], [10, 50]),
        traits([*networks, *[["relu"]] * 40]),
        ["vision_transformer"] * 10 + [""] * 50,
    )
    assert "vision transformer" in [region.name for region in more]
    # Networks that are alike have nothing that tells one group from the other.
    assert name_regions(places, clusters, traits([["relu"]] * 20)) == []
