"""What the names of metrics say: units of objectives."""

from __future__ import annotations

from archive.store.metric_names import STANDARDISED, units_of
from archive.store.records import Objective
from tests.support.stores import study


def test_units_of_all_objectives_are_named():
    settings = {"protocol": "diabetes/1", "objective": "valid_mse", "direction": "minimise"}
    further = (Objective("params", "minimise"), Objective("test_mse", "minimise"))
    assert units_of(study(**settings)) == f"valid_mse is {STANDARDISED}"
    assert units_of(study(**settings, further=further)) == (
        f"valid_mse is {STANDARDISED}; test_mse is {STANDARDISED}"
    )
    assert units_of(study()) is None
