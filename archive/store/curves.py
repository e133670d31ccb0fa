"""Curves of running trials: lists `curve_*` of a proposal, which reports extend.

    stored             a b c d e
    report from 4              E f g        stored afterwards: a b c d E f g

A report sends only the entries that the store may lack. Those from its begin on are replaced, so
that a repeated report, or one whose predecessor was stored without an answer, has the same effect.
A report that begins after the end of the stored lists leaves them unchanged; its sender then sends
the whole curve.

Both servers write a changed list as a whole, and yet an appended entry costs them less than a new
list. Milliseconds of a report of four metrics, with those of the server's processor, on a machine
with other work (2026-11-23, two cores):

| epochs | embedded: whole list | appended | Neo4j 5: whole list | appended |
|---|---|---|---|---|
| 100 | 17 (5) | 14 (3) | 16 (7) | 13 (6) |
| 1,000 | 23 (6) | 16 (5) | 26 (9) | 18 (7) |
| 10,000 | 103 (21) | 29 (10) | 120 (29) | 72 (31) |

Lists in parts would cost less beyond ten thousand epochs only, and every query for a curve would
have to join them.
"""

from __future__ import annotations

from collections.abc import Sequence


def reaches(node: str, begin: str, names: Sequence[str]) -> str:
    """Return the condition that the stored lists reach to the begin of a report.

    Args:
        node: Variable of the proposal.
        begin: Cypher expression for the number of entries before the report's first one.
        names: Names of the lists.
    """
    return " AND ".join(f"size(coalesce({node}.{quoted(name)}, [])) >= {begin}" for name in names)


def extended(node: str, begin: str, entries: str, names: Sequence[str]) -> str:
    """Return the assignments that extend the lists, for `SET`.

    Args:
        node: Variable of the proposal.
        begin: Cypher expression for the number of stored entries that stay.
        entries: Cypher expression for a map of the new entries by name.
        names: Names of the lists.
    """
    parts = (
        f"{node}.{name} = {node}.{name}[0..{begin}] + {entries}.{name}"
        for name in map(quoted, names)
    )
    return ", ".join(parts)


def quoted(name: str) -> str:
    """Return the name of a property in backticks: the name of a metric may be any text."""
    return "`" + name.replace("`", "``") + "`"
