"""The Arc kernel on configurations: the paper's formulas, both of its invariances, and
semi-definiteness."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from archive.kernels.covariance.arc import ArcKernel
from archive.parameters.declaration import choice, integer, real
from archive.parameters.domains import Choice
from archive.parameters.parameter_space import ParameterSpace
from tests.benchmarks.kernels.perceptrons import perceptrons

# Two layers' worth of the paper's example, with a choice and a parameter two conditions deep.
SPACE = ParameterSpace(
    depth=integer(1, 3),
    x1=real(-1.0, 3.0),
    x2=real(1e-4, 1.0, log=True, when="depth >= 2"),
    optimiser=choice(("sgd", "adam", "rmsprop")),
    momentum=real(0.0, 1.0, when="optimiser in ['sgd', 'rmsprop']"),
    nesterov=choice((True, False), when="momentum >= 0.5 and depth >= 2"),
)
D = len(SPACE.parameters)
CHOICES = SPACE.option_counts
KERNEL = ArcKernel(range(D), CHOICES)
seeds = st.integers(0, 2**32 - 1)


def configurations(seed: int, count: int) -> list[dict]:
    rng = np.random.default_rng(seed)
    return [SPACE.sample(rng) for _ in range(count)]


def parameters(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed + 1)
    return rng.uniform(0.1, 3.0, D), rng.uniform(0.01, 1.0, D)


def by_the_paper(first: dict, second: dict, omega: np.ndarray, rho: np.ndarray) -> float:
    """The pseudo-metric, case by case and without arrays."""
    one = SPACE.existing(first)
    two = SPACE.existing(second)
    total = 0.0
    for parameter, w, r in zip(SPACE.parameters, omega, rho, strict=True):
        name = parameter.name
        if (name in one) != (name in two):
            total += w**2
        elif name in one:
            domain = parameter.domain
            if isinstance(domain, Choice):
                t = 0.5 * (one[name] != two[name])
            else:
                scale = math.log if domain.log else float
                t = (scale(one[name]) - scale(two[name])) / (scale(domain.high) - scale(domain.low))

            total += (w * math.sqrt(2) * math.sqrt(1 - math.cos(math.pi * r * t))) ** 2

    return math.sqrt(total)


def covariances(
    theta: np.ndarray, first: list[dict], second: list[dict] | None = None
) -> np.ndarray:
    rows, columns = (
        None if one is None else KERNEL.prepare(SPACE.encode(one)) for one in (first, second)
    )
    return KERNEL.value(theta, rows, columns)


@given(seeds)
def test_covariance_is_matern_at_the_papers_distance(seed):
    sample = configurations(seed, 6)
    (omega, rho) = parameters(seed)
    d = np.array([[by_the_paper(x, y, omega, rho) for y in sample] for x in sample])
    s = np.sqrt(5.0) * d
    expected = 1.3 * (1 + s + s**2 / 3) * np.exp(-s)
    theta = np.log([1.3, *omega, *rho])
    np.testing.assert_allclose(covariances(theta, sample), expected, rtol=1e-6)
    np.testing.assert_allclose(covariances(theta, sample[:2], sample), expected[:2], rtol=1e-6)
    prepared = KERNEL.prepare(SPACE.encode(sample))
    np.testing.assert_allclose(KERNEL.prior(theta, prepared), expected.diagonal(), rtol=1e-12)


def with_ghosts(sample: list[dict], seed: int) -> list[dict]:
    """The configurations, with values for every parameter that they do not have."""
    rng = np.random.default_rng(seed)
    return [{**{p.name: p.domain.sample(rng) for p in SPACE.parameters}, **one} for one in sample]


@given(seeds)
def test_first_invariance_values_that_neither_has_do_not_matter(seed):
    one, two = ({"depth": 1, "x1": x, "optimiser": "adam"} for x in (0.25, 2.0))
    theta = np.log([1.3, *np.concatenate(parameters(seed))])
    ghosts = covariances(theta, with_ghosts([one], seed), with_ghosts([two], seed + 1))
    np.testing.assert_array_equal(ghosts, covariances(theta, [one], [two]))


@given(seeds)
def test_second_invariance_the_value_that_one_has_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    shallow = {"depth": 1, "x1": 0.25, "optimiser": "adam"}
    deep = {"depth": 2, "x1": 2.0, "optimiser": "adam"}
    theta = np.log([1.3, *np.concatenate(parameters(seed))])
    values = [
        covariances(theta, [{**shallow, "x2": hidden}], [{**deep, "x2": shown}])
        for hidden, shown in rng.uniform(1e-4, 1.0, (5, 2))
    ]
    np.testing.assert_allclose(values, values[:1] * 5, rtol=1e-12)
    # It is the presence that counts, whatever the value, and nothing else differs but x1 and depth.
    both = covariances(theta, [{**shallow, "depth": 2, "x2": 0.1}], [{**deep, "x2": 0.1}])
    assert both[0, 0] > values[0][0, 0]


@given(seed=seeds)
def test_positive_semi_definite_at_every_corner_of_the_bounds(seed):
    low, high = KERNEL.bounds.T
    theta = np.where(np.random.default_rng(seed).random(len(low)) < 0.5, low, high)
    K = covariances(theta, configurations(seed, 15))
    assert np.linalg.eigvalsh(K)[0] >= -1e-10 * K[0, 0]


def test_choices_are_equally_far_apart():
    one = {"depth": 1, "x1": 0.0, "optimiser": "adam"}
    others = [{**one, "optimiser": name, "momentum": 0.5} for name in ("sgd", "rmsprop")]
    theta = KERNEL.bounds.mean(axis=1)
    covariance = covariances(theta, [one], others)[0]
    assert covariance[0] == covariance[1] < np.exp(theta[0])


def test_the_paper_s_space_and_its_size():
    space = perceptrons()
    rng = np.random.default_rng(0)
    assert len(space.parameters) == 1 + 23
    depths = set()
    for _ in range(60):
        one = space.sample(rng)
        depths.add(one["depth"])
        assert sum(name.startswith("units") for name in one) == one["depth"]
        assert space.existing(one) == one

    assert depths == set(range(6))
