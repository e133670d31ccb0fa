"""Viewers of the benchmark: their requests are those of a page, and the rate leaves out both ends
of a search."""

from __future__ import annotations

import threading

import pytest

from archive.store.records import Result
from tests.benchmarks.dashboard import searches
from tests.benchmarks.dashboard.page import serving
from tests.benchmarks.dashboard.viewers import Viewer
from tests.support import wait_until
from tests.support.stores import cells, propose


@pytest.mark.whole
def test_a_viewer_follows_a_study(archive):
    propose(archive, cells(2))
    with serving(archive) as server:
        viewer = Viewer(server.access.port, server.access.token, "study")
        thread = threading.Thread(target=viewer.run)
        thread.start()
        assert viewer.opened.wait(30)
        # The page, its points, the table, the curves and the lineage.
        wait_until(lambda: viewer.received.requests == 5)
        claim = archive.proposals.claim("trainer", study="study")
        archive.proposals.complete(claim.id, claim.token, Result(0.5))
        wait_until(lambda: viewer.received.news >= 1 and viewer.received.requests >= 6)
        viewer.stop()
        thread.join(10)
        assert not thread.is_alive()


def test_the_rate_is_that_of_the_middle():
    # A slow start, 80 events at ten a second, and a slow end.
    ends = [*range(0, 50_000, 5000), *range(60_000, 68_000, 100), *range(70_000, 120_000, 5000)]
    assert searches.middle_rate(ends) == pytest.approx(10.0, rel=0.3)


def test_a_trend_is_no_change():
    # Turns in the order alone, watched, watched, alone: rates fall by ten a turn, and watching
    # costs ten percent.
    rates = [100.0 - 10 * turn for turn in range(8)]
    watched = [0.9 * rates[turn] for turn in (1, 2, 5, 6)]
    assert searches.change([rates[turn] for turn in (0, 3, 4, 7)], watched) == pytest.approx(-10.0)


@pytest.mark.whole
@pytest.mark.lasts(60)
def test_searches_alone_and_watched_are_compared():
    figures = {figure.name: figure for figure in searches.measure(2, 2, 2, 100)}
    assert figures["the same with 2 viewers, median"].reference == pytest.approx(
        figures["turn 1, alone"].value
    )
    assert figures["messages with results that a viewer got, in the last turn"].value > 0
