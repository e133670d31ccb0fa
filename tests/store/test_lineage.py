"""Lineages on each server: ancestors, and the weights to inherit from them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from archive.errors import UnknownNameError
from archive.store.lineage import HOPS
from archive.store.records import Result, Weights
from tests.support.stores import Suggestion, cells, count, propose, study


def saved(name: str) -> Weights:
    return Weights(f"file:///weights/{name}", name * 8, 10)


def train(archive, network, value, name="study", weights=None, **settings):
    """Propose a network in a study, and complete it with a value and, if given, weights."""
    (proposal,) = propose(archive, [network], name, **settings)
    claim = archive.proposals.claim("w", study=name)
    archive.proposals.complete(claim.id, claim.token, Result(value, weights=weights))
    return proposal.id


def grow(archive, *networks, operations=("deepen",)):
    for parent, child in pairwise(networks):
        archive.architectures.record_morph(parent, child, operations)


def nearest(archive, network, protocols=("digits/1",), **options):
    found = archive.lineage.with_weights(network.key, "digits", protocols, limit=1, **options)
    return (
        (found[0].architecture, found[0].hops, found[0].evaluation, found[0].weights)
        if found
        else None
    )


def test_a_proposal_notes_what_its_network_came_from(archive):
    parent, child = cells(2)
    archive.studies.create(study())
    agent = archive.proposals.register_agent("morphism", {}, "1")
    archive.proposals.create(
        "study", agent, [Suggestion(child, parent=parent, operations=("deepen", "widen"))]
    )
    (descent,) = archive.lineage.of(child.key)
    assert (descent.parent, descent.child, descent.operations) == (
        parent.key,
        child.key,
        ("deepen", "widen"),
    )
    assert archive.lineage.of(parent.key) == []
    assert archive.lineage.of(child.key[:12]) == [descent]


def test_what_the_archive_has_not_has_no_lineage(archive):
    archive.architectures.add([cells(1)[0]])
    with pytest.raises(
        UnknownNameError, match="unknown architecture 'zz': no network has a key that begins so"
    ):
        archive.lineage.of("zz")


def test_a_lineage_goes_back_generation_by_generation_and_survives_circles(archive):
    a, b, c, d = cells(4)
    grow(archive, a, b, c)
    grow(archive, d, c)
    grow(archive, c, a)
    steps = [(step.parent, step.child) for step in archive.lineage.of(c.key)]
    assert {steps[0], steps[1]} == {(b.key, c.key), (d.key, c.key)}
    assert steps[2:] == [(a.key, b.key), (c.key, a.key)]
    assert len(archive.lineage.of(c.key, hops=1)) == 2


def test_the_nearest_ancestor_with_weights_is_found_over_those_without(archive):
    a, b, c, d = cells(4)
    grow(archive, a, b, c, d)
    id_ = train(archive, a, 0.5, "old", saved("a"))
    train(archive, c, 0.9, "none")
    assert nearest(archive, d) == (a.key, 3, id_, saved("a"))
    id_ = train(archive, b, 0.1, "new", saved("b"))
    assert nearest(archive, d) == (b.key, 2, id_, saved("b"))
    assert nearest(archive, a) is None


def test_of_equally_near_ones_the_best_comes_first(archive):
    a, b, child = cells(3)
    grow(archive, a, child)
    grow(archive, b, child)
    low = train(archive, a, 0.1, "one", saved("a"))
    high = train(archive, b, 0.9, "two", saved("b"))
    again = train(archive, a, 0.5, "three", saved("c"))
    found = archive.lineage.with_weights(child.key, "digits", ["digits/1"])
    assert [one.evaluation for one in found] == [high, again, low]
    assert nearest(archive, child, maximise=False)[2] == low
    assert len(archive.lineage.with_weights(child.key, "digits", ["digits/1"], limit=2)) == 2


def test_only_weights_of_the_task_under_these_protocols_count(archive):
    a, child = cells(2)
    grow(archive, a, child)
    train(archive, a, 0.5, "one", saved("a"), task="fashion-mnist", protocol="digits/1")
    train(archive, a, 0.5, "two", saved("b"), protocol="digits/2")
    assert nearest(archive, child) is None
    assert nearest(archive, child, protocols=("digits/1", "digits/2"))[3] == saved("b")


def test_ways_beyond_the_bound_are_not_followed(archive):
    line = cells(HOPS + 2)
    grow(archive, *line)
    train(archive, line[0], 0.5, weights=saved("a"))
    assert nearest(archive, line[-1]) is None
    assert nearest(archive, line[-2])[1] == HOPS


def test_an_architecture_is_not_its_own_ancestor(archive):
    a, b = cells(2)
    grow(archive, a, b, a)
    train(archive, a, 0.5, weights=saved("a"))
    assert nearest(archive, a) is None
    assert nearest(archive, b)[1] == 1


def test_the_first_note_of_a_pair_stays(archive):
    a, b = cells(2)
    grow(archive, a, b)
    grow(archive, a, b, operations=("widen",))
    (descent,) = archive.lineage.of(b.key)
    assert descent.operations == ("deepen",)
    assert count(archive.connection, "()-[:MORPHED_INTO]->()") == 1


def test_only_existing_weights_can_be_reserved(archive):
    (a,) = cells(1)
    train(archive, a, 0.5, weights=saved("a"))
    assert archive.lineage.reserve(saved("a"))
    assert not archive.lineage.reserve(saved("b"))
