"""The Gaussian process on codes: derivatives, invariances, densities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from archive import space
from archive.agents.configurations import process
from archive.agents.configurations.embedding import ArcEmbedding
from archive.parameters.batches import CodeBatches


@pytest.fixture
def parameters():
    return space.Space(
        kind=space.choice(["a", "b", "c"]),
        x=space.real(0.0, 1.0),
        y=space.real(0.0, 1.0, when="kind == 'a'"),
        z=space.choice(["p", "q"], when="kind == 'b'"),
    )


def data(parameters, count=12):
    rng = np.random.default_rng(0)
    codes = CodeBatches(parameters).sample(count, rng)
    return process.CodedScores(codes, rng.standard_normal(count), np.ones(count))


def phi_of(embedding):
    start = np.concatenate([embedding.centre, [0.1, -2.0]])
    return start + 0.2 * np.random.default_rng(1).standard_normal(len(start))


def test_slopes_are_derivatives(parameters):
    embedding = ArcEmbedding(parameters)
    phi = phi_of(embedding)
    _, slope = process.log_likelihood_with_slope(embedding, data(parameters), phi)
    for index in range(len(phi)):
        step = np.zeros_like(phi)
        step[index] = 1e-5
        above, _ = process.log_likelihood_with_slope(embedding, data(parameters), phi + step)
        below, _ = process.log_likelihood_with_slope(embedding, data(parameters), phi - step)
        assert slope[index] == pytest.approx((above - below) / 2e-5, abs=1e-6)


def test_a_lacking_parameter_counts_a_constant(parameters):
    embedding = ArcEmbedding(parameters)
    with_y = parameters.encode([{"kind": "a", "x": 0.5, "y": y} for y in (0.0, 0.4, 1.0)])
    without = parameters.encode([{"kind": "c", "x": 0.5}])
    embedded = embedding.embed(phi_of(embedding)[:-2], np.vstack([with_y, without]))
    apart = np.square(embedded[:3] - embedded[3]).sum(axis=1)
    assert apart == pytest.approx(np.full(3, apart[0]))


def test_densities_are_of_the_process_without_the_observation(parameters):
    embedding = ArcEmbedding(parameters)
    phi = phi_of(embedding)
    observed = data(parameters)
    densities = process.condition(embedding, phi, observed).loo_log_densities()
    for index in range(len(observed.values)):
        others = np.delete(np.arange(len(observed.values)), index)
        rest = process.condition(embedding, phi, observed.take(others))
        mean, variance = rest.predict(observed.codes[[index]])
        std = np.sqrt(variance[0] + np.exp(phi[-1]))
        expected = norm.logpdf(observed.values[index], mean[0], std)
        assert densities[index] == pytest.approx(expected, abs=1e-4)


def test_replicates_are_averaged():
    codes = np.array([[0.0], [1.0], [0.0]])
    merged = process.without_replicates(codes, np.array([1.0, 2.0, 3.0]))
    assert merged.values.tolist() == [2.0, 2.0]
    assert merged.counts.tolist() == [2.0, 1.0]
