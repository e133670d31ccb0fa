"""Counters in the graph: the least that a transaction can write and read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def count(transaction: Any) -> dict[str, Any]:
    """Return the number of counters, and the sum of their values."""
    counted: dict[str, Any] = (
        transaction.run("MATCH (c:Counter) RETURN count(c) AS n, sum(c.value) AS total")
        .single()
        .data()
    )
    return counted


def add_once(key: str) -> Callable[[Any], None]:
    """Return work that stores the counter of a key with the value 1, however often it runs."""

    def work(transaction: Any) -> None:
        transaction.run("MERGE (c:Counter {key: $key}) SET c.value = 1", key=key).consume()

    return work
