"""Round trips of a transaction, with the driver's switch and without it."""

from __future__ import annotations

import logging
from itertools import groupby

import pytest

from archive.database import pipelining


@pytest.fixture
def round_trips(connection, caplog):
    """Runs a read of two statements, and returns its result with the number of waits for the server."""
    connection.ping()

    def count():
        caplog.clear()
        with caplog.at_level(logging.DEBUG, "neo4j.io"):
            result = connection.read(lambda tx: [tx.run("RETURN $n AS n", n=n).single()["n"] for n in (1, 2)])
        sides = [side for record in caplog.records for side in ("C: ", "S: ") if f"  {side}" in record.getMessage()]
        return result, sum(side == "S: " for side, _ in groupby(sides))

    return count


@pytest.mark.dialect
def test_begin_travels_with_the_first_statement(round_trips, monkeypatch):
    result, pipelined = round_trips()
    monkeypatch.setattr(pipelining, "SWITCH", "_of_another_release")
    assert round_trips() == (result, pipelined + 1)
    assert (result, pipelined) == ([1, 2], 3)
