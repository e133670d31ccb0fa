"""The Arc kernel on configurations: the paper's formulas, both of its invariances, and
semi-definiteness."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.errors import SettingsError, UnknownNameError, UsageError
from archive.kernels.covariance.arc import ArcKernel
from archive.spaces.conditional import Categorical, Conditional, Real, When, perceptrons

# Two layers' worth of the paper's example, with a choice and a parameter two conditions deep.
SPACE = Conditional(
    [
        Real("depth", 1, 3, integer=True),
        Real("x1", -1.0, 3.0),
        Real("x2", 1e-4, 1.0, log=True, when=(When("depth", at_least=2),)),
        Categorical("optimiser", ("sgd", "adam", "rmsprop")),
        Real("momentum", 0.0, 1.0, when=(When("optimiser", one_of=("sgd", "rmsprop")),)),
        Categorical(
            "nesterov",
            (True, False),
            when=(When("momentum", at_least=0.5), When("depth", at_least=2)),
        ),
    ]
)
D = len(SPACE.parameters)
CHOICES = [len(one.choices) if isinstance(one, Categorical) else 0 for one in SPACE.parameters]
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
            if isinstance(parameter, Categorical):
                t = 0.5 * (one[name] != two[name])
            else:
                scale = math.log if parameter.log else float
                t = (scale(one[name]) - scale(two[name])) / (
                    scale(parameter.high) - scale(parameter.low)
                )

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
    return [{**{p.name: p.sample(rng) for p in SPACE.parameters}, **one} for one in sample]


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


@given(seeds)
def test_mutation_changes_one_parameter_and_what_hangs_on_it(seed):
    rng = np.random.default_rng(seed)
    parent = SPACE.sample(rng)
    child = SPACE.mutate(parent, rng)
    assert SPACE.existing(child) == child
    changed = [name for name in parent if name in child and parent[name] != child[name]]
    assert len(changed) <= 1
    if not changed:
        assert child == parent


def test_values_survive_the_scale_they_are_drawn_on():
    units = Real("units", 8, 1024, log=True, integer=True)
    rng = np.random.default_rng(3)
    drawn = [units.sample(rng) for _ in range(300)]
    assert all(isinstance(value, int) and 8 <= value <= 1024 for value in drawn)
    # Half of the draws on a log scale lie below the geometric mean.
    assert 120 < sum(value < 91 for value in drawn) < 180
    assert units.decode(units.encode(512)) == 512
    assert [units.decode(0.0), units.decode(1.0)] == [8, 1024]


def test_travels():
    again = pickle.loads(pickle.dumps(SPACE))
    assert again == SPACE
    assert hash(again) == hash(SPACE)
    assert again != perceptrons()


@pytest.mark.parametrize(
    ("configuration", "error", "reason"),
    [
        (
            {"depth": 1, "x1": 0.0},
            UsageError,
            "optimiser exists in this configuration and needs a value",
        ),
        (
            {"depth": 1, "x1": 5.0, "optimiser": "adam"},
            UsageError,
            r"x1 must be in \[-1, 3\], "
            r"got 5.0",
        ),
        ({"depth": 1, "x1": math.nan, "optimiser": "adam"}, UsageError, "x1 must be in"),
        (
            {"depth": 1.5, "x1": 0.0, "optimiser": "adam"},
            UsageError,
            "depth must be a whole number, got 1.5",
        ),
        ({"depth": "2", "x1": 0.0, "optimiser": "adam"}, UsageError, "depth must be in"),
        (
            {"depth": 1, "x1": 0.0, "optimiser": "lbfgs"},
            UsageError,
            "optimiser must be one of sgd, adam, rmsprop",
        ),
        (
            {"depht": 1, "x1": 0.0, "optimiser": "adam"},
            UnknownNameError,
            "unknown parameter 'depht': did you mean dep",
        ),
    ],
)
def test_configurations_that_are_none_are_refused(configuration, error, reason):
    with pytest.raises(error, match=reason):
        SPACE.encode([configuration])


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: Conditional([]), "parameters must be one or more"),
        (lambda: Conditional([Real("a", 0, 1), Real("a", 0, 1)]), "the parameter a is given twice"),
        (
            lambda: Conditional([Real("a", 0, 1, when=(When("b", at_least=1),))]),
            "a depends on b, which must be",
        ),
        (
            lambda: Conditional([Real("a", 0, 1, when=(When("a", at_least=1),))]),
            "a depends on a, which must be",
        ),
        (
            lambda: Conditional(
                [Categorical("c", ("x", "y")), Real("a", 0, 1, when=(When("c", at_least=1),))]
            ),
            "its choices have no order",
        ),
        (
            lambda: Conditional(
                [Categorical("c", ("x", "y")), Real("a", 0, 1, when=(When("c", one_of=("z",)),))]
            ),
            "depends on c = 'z', which is no choice",
        ),
        (lambda: Real("a", 1, 1), "a needs finite bounds low < high, got 1 and 1"),
        (lambda: Real("a", 0, 1, log=True), "needs low > 0, got 0"),
        (lambda: Real("a", 0, 1.5, integer=True), "a needs whole bounds"),
        (lambda: Categorical("c", ("x",)), "c needs two or more distinct choices"),
        (lambda: When("a"), "a condition needs at_least or one_of"),
        (lambda: perceptrons(0), "max_depth must be >= 1, got 0"),
    ],
)
def test_parameters_that_make_no_space_are_refused(call, reason):
    with pytest.raises(SettingsError, match=reason):
        call()
