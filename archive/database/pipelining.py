"""Pipelined BEGIN: it is sent with the first statement, which saves a round trip of each transaction.

    by itself      BEGIN ──> SUCCESS      RUN, PULL ──> rows      COMMIT ──> SUCCESS
    pipelined      BEGIN, RUN, PULL ──> SUCCESS, rows             COMMIT ──> SUCCESS

The driver does this in `Driver.execute_query`, whose transaction has one statement. It has no public option for
transactions of several statements: `Session.execute_read`, `Session.execute_write` and `Session.begin_transaction` wait
for the answer to BEGIN (neo4j 6.1 to 6.3, `TransactionBase._begin`). The auto-commit transactions of `Session.run` have
one statement, too, and are not atomic on ArcadeDB. This module, and no other, therefore sets the internal attribute
that `execute_query` sets. With a driver that lacks the attribute, each transaction takes one more round trip.
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
