"""The process: families left out as by fitting without them, transforms, and intervals."""

from __future__ import annotations

import numpy as np
import pytest

from archive.agents.prediction import process
from archive.agents.prediction.process import ResultInputs, ResultPairs, ResultProcess


def draw(count: int, seed: int = 0) -> tuple[ResultInputs, np.ndarray, np.ndarray]:
    """Return inputs, values that a feature, a word and noise make, and families."""
    rng = np.random.default_rng(seed)
    families = np.array([f"family {number}" for number in rng.integers(0, 12, count)])
    first = rng.standard_normal((count, 2))
    second = rng.standard_normal((count, 3))
    words = rng.integers(0, 2, (count, 2)).astype(float)
    inputs = ResultInputs(
        groups=(first, second),
        linear=first[:, :1],
        words=words,
        stems=np.array([f"protocol {word:g}" for word in words[:, 0]]),
        networks=np.array([f"network {number}" for number in range(count)]),
    )
    inner = 1.0 + 0.5 * first[:, 0] + 0.3 * words[:, 0] + 0.05 * rng.standard_normal(count)
    return inputs, inner, families


def test_a_family_left_out_is_predicted_as_without_it():
    inputs, values, families = draw(60)
    theta = process.DEFAULTS
    left_out = process.leave_out(ResultPairs(inputs, inputs), theta, values, families)
    for rows in process.rows_of(families):
        others = np.delete(np.arange(60), rows)
        pairs = ResultPairs(inputs.take(others), inputs.take(others))
        covariance = pairs.covariance(theta) + theta["noise"] * np.eye(len(others))
        across = ResultPairs(inputs.take(rows), inputs.take(others)).covariance(theta)
        prior = ResultPairs(inputs.take(rows), inputs.take(rows)).covariance(theta)
        variances = np.diag(prior - across @ np.linalg.solve(covariance, across.T))
        means = across @ np.linalg.solve(covariance, values[others])
        assert left_out.means[rows] == pytest.approx(means, abs=1e-6)
        assert left_out.stds[rows] ** 2 == pytest.approx(variances + theta["noise"], abs=1e-6)


@pytest.mark.parametrize(
    ("restore", "name"),
    [
        (np.exp, "logarithm"),
        (lambda inner: 100.0 / (1.0 + np.exp(-2.0 * inner)), "logit of 100"),
        (lambda inner: inner - 5.0, "identity"),
    ],
)
def test_the_transform_is_the_one_that_made_the_values(restore, name):
    inputs, inner, families = draw(150)
    fitted = process.fit(inputs, restore(3.0 * inner if name == "logarithm" else inner), families)
    assert fitted.transform == name


def test_intervals_hold_for_families_that_were_not_seen():
    inputs, inner, families = draw(300)
    seen = families < "family 5"
    train = np.flatnonzero(seen)
    fitted = process.fit(inputs.take(train), inner[train], families[train])
    predictor = ResultProcess(inputs.take(train), inner[train], fitted)
    values, low, high = predictor.predict(inputs.take(np.flatnonzero(~seen)))
    truth = inner[~seen]
    assert (low < values).all() and (values < high).all()
    assert 0.75 < np.mean((low <= truth) & (truth <= high)) <= 1.0
    assert np.corrcoef(values, truth)[0, 1] > 0.9


def test_the_interval_is_wider_far_from_all_results():
    inputs, inner, families = draw(100)
    predictor = ResultProcess(inputs, inner, process.fit(inputs, inner, families))
    near = inputs.take(np.arange(1))
    far = ResultInputs(
        tuple(group + 20.0 for group in near.groups),
        near.linear,
        near.words,
        np.array(["another"]),
        np.array(["another"]),
    )
    _, *close = predictor.predict(near)
    _, *wide = predictor.predict(far)
    assert (wide[1] - wide[0]).item() > 2.0 * (close[1] - close[0]).item()
    similarities = predictor.similarities(near)
    assert similarities.argmax() == 0
    assert similarities[0] == pytest.approx(1.0)


def test_equal_values_are_predicted_as_such():
    inputs, _, families = draw(40)
    values = np.full(40, 0.5)
    predictor = ResultProcess(inputs, values, process.fit(inputs, values, families))
    assert predictor.predict(inputs.take(np.arange(3)))[0] == pytest.approx(0.5)


@pytest.mark.parametrize("count", [1, 5, 19, 20, 200])
def test_quantiles_leave_their_share_outside(count):
    residuals = np.random.default_rng(0).permutation(np.arange(count, dtype=float))
    low, high = process.quantiles(residuals, 0.05)
    outside = np.sum((residuals < low) | (residuals > high))
    assert outside <= 0.1 * (count + 1)
    assert low == residuals.min() or outside > 0
