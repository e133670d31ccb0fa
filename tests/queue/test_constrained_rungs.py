"""Promotions under measured constraints: networks that meet them come first, on each server and
after a dump."""

from __future__ import annotations

import math

import pytest

from archive.constraints import parse
from archive.database.user_query import run_query
from archive.exchange import dump, load
from archive.queue.updates import Completion
from archive.rungs import Rungs
from archive.store.records import Result, State
from tests.conftest import wipe
from tests.support.stores import cells, propose

RUNGS = Rungs((2, 6, 18), 3)


def limited(archive, *bounds):
    """Propose ten networks in a study with rungs and constraints."""
    config = {"rungs": RUNGS.as_config()}
    propose(
        archive,
        cells(10),
        config=config,
        objective="valid_accuracy",
        constraints=tuple(map(parse, bounds)),
    )


def measures(archive, value, latency=None, *, early=False):
    """Report the result of the next claim at its rung, with a latency; returns the number of the
    proposal."""
    held = archive.proposals.claim("w", study="study", lease_seconds=600.0)
    rung = held.proposal.rung
    metrics = {} if latency is None else {"latency_ms": latency}
    paused = rung < 2 and not early
    told = Result(value, {"valid_accuracy": value, **metrics}, epochs=RUNGS.epochs[rung])
    assert archive.proposals.settle([Completion(held.id, held.token, told, paused, rung)]) == [True]
    return held.proposal.number


def promoted(archive):
    return [one.number for one in archive.proposals.list("study", [State.WAITING]) if one.rung]


CONSTRAINED = (
    "MATCH (p:Proposal) WHERE p.rung_values IS NOT NULL RETURN p.number, "
    "p.rung_constrained ORDER BY p.number"
)


def constrained(archive):
    return {number: values for number, values in archive.query(CONSTRAINED).rows}


@pytest.mark.every_server
def test_a_network_that_violates_a_measured_constraint_is_not_promoted_before_one_that_meets_it(
    archive,
):
    limited(archive, "latency_ms<=5")
    for value, latency in ((0.9, 9.0), (0.5, 4.0), (0.8, None)):
        measures(archive, value, latency)

    assert promoted(archive) == [1]
    known = constrained(archive)
    assert (known[0], known[1], math.isnan(known[2][0])) == ([9.0], [4.0], True)
    # Measured again after six epochs it violates the bound; at the first rung it met it, and was
    # promoted.
    assert measures(archive, 0.6, 5.5) == 1
    for value, latency in ((0.7, 6.0), (0.95, 7.0), (0.99, 8.0)):
        measures(archive, value, latency)

    # The second place of six is that of the smallest violation.
    assert promoted(archive) == [3]
    assert constrained(archive)[1] == [4.0, 5.5]


def test_a_training_that_ends_by_itself_has_its_quantities_at_all_rungs_above(archive):
    limited(archive, "latency_ms<=5", "valid_accuracy>=0.6")
    measures(archive, 0.9, 4.0, early=True)
    assert constrained(archive)[0] == [4.0, 0.9] * 3
    for value, latency in ((0.95, 6.0), (0.5, 4.0)):
        measures(archive, value, latency)

    # The best of three at the first rung is whole already; that there are better values changes
    # nothing.
    assert not [one for one in archive.proposals.list("study", [State.WAITING]) if one.rung]


def test_promotions_under_constraints_go_on_after_a_dump(archive, connection, tmp_path):
    limited(archive, "latency_ms<=5")
    for value, latency in ((0.9, 9.0), (0.8, None)):
        measures(archive, value, latency)

    before = archive.query(CONSTRAINED).rows
    dump.dump(connection, tmp_path / "file")
    wipe(connection)
    load.load(connection, tmp_path / "file")
    assert repr(archive.query(CONSTRAINED).rows) == repr(before)
    measures(archive, 0.5, 4.0)
    assert promoted(archive) == [2]


def test_rungs_of_an_earlier_release_count_as_unknown_quantities(archive, connection):
    limited(archive, "latency_ms<=5")
    for value, latency in ((0.9, 4.0), (0.6, 4.0)):
        measures(archive, value, latency)

    run_query(connection, "MATCH (p:Proposal) SET p.rung_constrained = null", write=True)
    measures(archive, 0.5, 5.5)
    assert promoted(archive) == [2]
