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


BELOW = {"a": ("y",), "b": ("z",), "c": ()}


def _rng():
    return np.random.default_rng(0)


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


def test_information_is_the_trace_of_products_of_derivatives(parameters):
    embedding = ArcEmbedding(parameters)
    phi = phi_of(embedding)
    observed = data(parameters)

    def covariance(point):
        factor = np.tril(process.condition(embedding, point, observed).factor)
        return factor @ factor.T

    solved = []
    for index in range(len(phi)):
        step = np.zeros_like(phi)
        step[index] = 1e-5
        derivative = (covariance(phi + step) - covariance(phi - step)) / 2e-5
        solved.append(np.linalg.solve(covariance(phi), derivative))

    information = process.information(embedding, observed, phi)
    for row, first in enumerate(solved):
        for column, second in enumerate(solved):
            expected = 0.5 * np.trace(first @ second)
            assert information[row, column] == pytest.approx(expected, abs=1e-5)


def test_draws_vary_what_no_evaluation_tells(parameters):
    embedding = ArcEmbedding(parameters)
    rng = np.random.default_rng(0)
    codes = CodeBatches(parameters).sample(400, rng)
    with_y = codes[~np.isnan(codes[:, 2])][:40]
    observed = process.CodedScores(with_y, np.sin(6.0 * with_y[:, 1]), np.ones(40))
    deviations = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        best, *drawn = process.fit(embedding, observed, noisy=False, rng=rng)
        deviations += [model.phi - best.phi for model in drawn]

    spread = np.std(deviations, axis=0)
    # Coordinate 0 of theta is the weight of x, the last but one weight of z, that none has.
    of_x, of_z = 0, 3
    assert spread[of_x] < 0.4 * spread[of_z]


def test_many_configurations_have_no_draws(parameters):
    observed = data(parameters, 400)
    assert len(process.fit(ArcEmbedding(parameters), observed, noisy=True, rng=_rng())) == 1


def test_a_branch_learns_from_the_length_scales_of_others(parameters):
    embedding = ArcEmbedding(parameters)
    covariance = np.linalg.inv(embedding.precision)
    of_x, of_y, of_z = 0, 2, 3
    assert covariance[of_y, of_z] > 0.0
    assert covariance[of_x, of_y] == pytest.approx(0.0)
    assert np.sqrt(np.diagonal(covariance)) == pytest.approx(embedding.stds)


@pytest.mark.parametrize(("first", "second"), [("a", "a"), ("a", "b"), ("b", "b"), ("b", "c")])
def test_distances_are_sums_over_parameters(parameters, first, second):
    embedding = ArcEmbedding(parameters)
    theta = phi_of(embedding)[:-2]
    s_x, s_kind, omega_y, omega_z = np.exp(theta[:4])
    rho_y, rho_z = np.exp(theta[4:])
    rows = []
    for kind, x, y, z in ((first, 0.2, 0.1, "p"), (second, 0.7, 0.6, "q")):
        values = {"kind": kind, "x": x, "y": y, "z": z}
        rows.append({name: values[name] for name in ("kind", "x", *BELOW[kind])})

    expected = (s_x * 0.5) ** 2 + s_kind**2 * (first != second)
    for name, omega, rho in (("y", omega_y, rho_y), ("z", omega_z, rho_z)):
        exists = [name in row for row in rows]
        if all(exists):
            # Both parameters are half a range apart: t = 1/2.
            expected += 2.0 * omega**2 * (1.0 - np.cos(np.pi * rho / 2.0))
        elif any(exists):
            expected += omega**2

    embedded = embedding.embed(theta, parameters.encode(rows))
    assert np.square(embedded[0] - embedded[1]).sum() == pytest.approx(expected)


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
