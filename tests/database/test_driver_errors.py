"""Which of the driver's errors pass by themselves."""

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
def test_what_another_transaction_took_away_is_tried_again(error, passing):
    assert driver_errors.is_passing(error) is passing
