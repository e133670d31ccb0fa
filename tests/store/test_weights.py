"""Addresses of weights on each server."""

from __future__ import annotations

import pytest

from archive.store.properties import UNSAVED_WEIGHTS
from archive.store.records import Result, Weights
from tests.support.stores import cells, evaluate, propose


def complete(archive, name, **settings):
    claim = archive.proposals.claim("w", study=name)
    archive.proposals.complete(claim.id, claim.token, Result(0.5, **settings))
    return claim.id


def test_weights_are_found_by_evaluation_and_architecture(archive):
    (network,) = cells(1)
    saved = {}
    for name in ("one", "two"):
        propose(archive, [network], name)
        weights = Weights(f"file:///{name}", name * 8, 10)
        saved[complete(archive, name, weights=weights)] = weights

    for evaluation, weights in saved.items():
        assert archive.weights.of_evaluation(evaluation) == weights


def test_an_evaluation_without_weights(archive):
    (proposal,) = evaluate(archive, [0.5])
    assert archive.weights.of_evaluation(proposal.id) is None
    assert archive.weights.of_evaluation("study#00077") is None


@pytest.mark.every_server
def test_two_evaluations_may_share_one_file(archive):
    shared = Weights("file:///same", "cd" * 32, 10)
    evaluations = []
    for name in ("one", "two"):
        propose(archive, cells(1), name)
        evaluations.append(complete(archive, name, weights=shared))

    assert [archive.weights.of_evaluation(evaluation) for evaluation in evaluations] == [
        shared,
        shared,
    ]


def test_the_reason_of_weights_that_could_not_be_saved(archive):
    saved, unsaved = propose(archive, cells(2))
    for _ in (saved, unsaved):
        claim = archive.proposals.claim("trainer", study="study")
        environment = {UNSAVED_WEIGHTS: "the disk is full"} if claim.id == unsaved.id else {}
        archive.proposals.complete(claim.id, claim.token, Result(0.5, environment=environment))

    assert archive.weights.unsaved(saved.id) is None
    assert archive.weights.unsaved(unsaved.id) == "the disk is full"
    assert archive.weights.unsaved("study#00099") is None
