"""Values that rank the proposals of a study."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from archive.store.ranking import values_of
from archive.store.records import Objective

OBJECTIVES = (Objective("accuracy"), Objective("loss", "minimise"))


@pytest.mark.parametrize(
    ("value", "loss", "expected"),
    [
        (0.5, 2, (0.5, 2.0)),
        (None, 2.0, None),
        (0.5, None, None),
        (math.inf, 2.0, None),
        (0.5, math.nan, None),
    ],
)
def test_a_proposal_is_ranked_by_finite_values_of_all_objectives(value, loss, expected):
    view = SimpleNamespace(value=value, metrics={} if loss is None else {"loss": loss})
    assert values_of(view, OBJECTIVES) == expected
