"""Transient errors of the driver."""

from __future__ import annotations

import pytest
from neo4j.exceptions import ClientError, DatabaseError, ServiceUnavailable

from archive.database import driver_errors


@pytest.mark.parametrize(
    ("error", "passing"),
    [
        (ServiceUnavailable("connection refused"), True),
        (DatabaseError("com.arcadedb.exception.RecordNotFoundException: Record #12:3 not found"), True),
        (DatabaseError("Record #1:204 not found"), True),
        (ClientError("Record not found in a user's own words"), False),
        (ClientError("Invalid input 'MATHC'"), False),
    ],
)
def test_records_removed_by_another_transaction_are_retried(error, passing):
    assert driver_errors.is_passing(error) is passing
