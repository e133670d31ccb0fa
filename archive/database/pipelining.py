"""BEGIN that travels with the first statement: a transaction needs a round trip less.

    by itself      BEGIN ──> SUCCESS      RUN, PULL ──> rows      COMMIT ──> SUCCESS
    pipelined      BEGIN, RUN, PULL ──> SUCCESS, rows             COMMIT ──> SUCCESS

The driver does this in `Driver.execute_query`, whose transaction has one statement. It has no public option for
transactions of several statements: `Session.execute_read`, `Session.execute_write` and `Session.begin_transaction` wait
for the answer to BEGIN (neo4j 6.1 to 6.3, `TransactionBase._begin`). The auto-commit transactions of `Session.run` have
one statement, too, and are not atomic on ArcadeDB. So this module, and no other, sets the internal switch that
`execute_query` sets. A driver without it works, with a round trip more.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import neo4j

SWITCH = "_pipelined_begin"
"""Attribute of a session: a context in which its transactions begin with their first statement."""


def pipelined(session: neo4j.Session) -> AbstractContextManager[Any]:
    """Return the context in which a session's transactions begin with their first statement, if the driver has one."""
    switch = getattr(session, SWITCH, None)
    return switch if isinstance(switch, AbstractContextManager) else nullcontext()
