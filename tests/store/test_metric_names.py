"""What the names of metrics say: units of objectives."""

from __future__ import annotations

from archive.store.metric_names import OWN_UNIT, STANDARDISED, own_unit_metric, unit_of, units_of
from archive.store.records import Objective
from tests.support.stores import study


def test_units_of_all_objectives_are_named():
    settings = {"protocol": "diabetes/1", "objective": "valid_mse", "direction": "minimise"}
    further = (Objective("params", "minimise"), Objective("test_mse", "minimise"))
    valid = f"valid_mse is {STANDARDISED} (valid_rmse is the error {OWN_UNIT})"
    test = f"test_mse is {STANDARDISED} (test_rmse is the error {OWN_UNIT})"
    assert units_of(study(**settings)) == valid
    assert units_of(study(**settings, further=further)) == f"{valid}; {test}"
    assert unit_of("csv/0123456789ab", "valid_rmse") == OWN_UNIT
    assert units_of(study()) is None


def test_the_metric_in_the_own_unit_stands_beside_the_standardised_one():
    settings = {"protocol": "diabetes/1", "direction": "minimise"}
    assert own_unit_metric(study(**settings, objective="valid_mse")) == "valid_rmse"
    assert own_unit_metric(study(**settings, objective="valid_rmse")) is None
    assert own_unit_metric(study(protocol="diabetes/1+recipe:mine", objective="valid_mse")) is None
