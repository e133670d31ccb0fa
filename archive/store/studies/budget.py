"""Budgets without a limit: those of studies whose caller decides when they end."""

from __future__ import annotations

UNBOUNDED = 1_000_000
"""Least budget that stands for no limit."""


def described(budget: int) -> str:
    """Return a budget in words: `100`, or `no limit`."""
    return "no limit" if budget >= UNBOUNDED else str(budget)
