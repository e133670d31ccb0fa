"""Configurations as arrays of codes agree with configurations one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from archive import space
from archive.parameters.batches import CodeBatches
from tests.parameters.test_parameter_space import SEARCH, spaces
from tests.support import examples
from tests.support.strategies import generators


def assert_configurations(search: space.Space, codes: np.ndarray) -> None:
    """Codes are those of the configurations that they stand for, which the space accepts."""
    for row in codes:
        configuration = search.decode(row)
        assert search.check(configuration) == configuration
        np.testing.assert_allclose(search.encode([configuration])[0], row, atol=1e-9)


@given(search=spaces(), rng=generators())
@examples(0.5)
def test_draws_and_variations_are_codes_of_configurations(
    search: space.Space, rng: np.random.Generator
) -> None:
    batches = CodeBatches(search)
    drawn = batches.sample(12, rng)
    assert drawn.shape == (12, len(search))
    assert_configurations(search, drawn)
    assert_configurations(search, batches.vary(drawn, rng))


def test_constraints_and_nested_conditions_hold() -> None:
    batches = CodeBatches(SEARCH)
    rng = np.random.default_rng(0)
    drawn = batches.sample(200, rng)
    assert_configurations(SEARCH, drawn)
    varied = batches.vary(drawn, rng, scale=0.1)
    assert_configurations(SEARCH, varied)
    changed = [not np.array_equal(a, b, equal_nan=True) for a, b in zip(drawn, varied, strict=True)]
    assert sum(changed) > 100


def test_every_value_is_as_likely_as_by_single_draws() -> None:
    search = space.Space(
        n=space.integer(1, 4),
        log=space.integer(1, 64, log=True),
        c=["a", "b", "c"],
        size=space.ordinal(["s", "m", "l"]),
        step=space.integer(0, 10, step=4),
        tenth=space.real(0, 0.35, step=0.1),
        x=space.real(2, 3),
    )
    rng = np.random.default_rng(0)
    rows = [search.decode(row) for row in CodeBatches(search).sample(4000, rng)]
    singles = [search.sample(rng) for _ in range(4000)]
    for name in ("n", "c", "size", "step", "tenth"):
        for value in {row[name] for row in singles}:
            share = np.mean([row[name] == value for row in rows])
            expected = np.mean([row[name] == value for row in singles])
            assert share == pytest.approx(expected, abs=0.04), (name, value)

    assert np.median([row["log"] for row in rows]) == pytest.approx(8, abs=1)
    assert np.mean([row["x"] for row in rows]) == pytest.approx(2.5, abs=0.02)


def test_where_few_draws_meet_the_constraints_they_are_found_all_the_same() -> None:
    tight = space.Space(
        {f"x{number}": space.integer(1, 60) for number in range(4)},
        constraints=["x0 + x1 + x2 + x3 <= 8"],
    )
    drawn = CodeBatches(tight).sample(5, np.random.default_rng(0))
    assert drawn.shape == (5, 4)
    assert_configurations(tight, drawn)
