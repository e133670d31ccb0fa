"""The portfolio: its members, its initial design, its units, its greedy proposals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from archive import spaces
from archive.agents.base import History, Observation, Pending, distinct
from archive.agents.bayesopt.portfolio import Portfolio
from archive.agents.bayesopt.portfolio_members import (
    OperationCounts,
    PowerExponentialARD,
    defaults,
    member_model,
)
from archive.agents.bayesopt.variance_reduction import alc_design
from archive.agents.constraints.slacks import StudyConstraints
from archive.agents.objectives.goals import Goals
from archive.constraints import parse
from archive.errors import UnknownNameError, UsageError
from archive.kernels.covariance.base import Exponential, exponential
from archive.store.records import Objective
from tests.support.gp_points import Differences, points
from tests.support.histories import grown, observed
from tests.support.listed import small_table
from tests.support.strategies import relabelled


def proposed(agent, history, n=1, seed=0):
    return agent.propose(history, n, np.random.default_rng(seed))


def keys(suggestions):
    return {one.architecture.functional_key for one in suggestions}


def cells(count, seed=0):
    space = spaces.get("nasbench101")
    rng = np.random.default_rng(seed)
    by_key = {}
    while len(by_key) < count:
        cell = space.sample(rng)
        by_key[cell.functional_key] = cell

    return space, list(by_key.values())


def test_powers_by_component():
    stack = np.random.default_rng(0).uniform(0.1, 2.0, (2, 4, 3))
    raised = PowerExponentialARD((2.0, 1.0))
    theta = np.array([0.3, -0.2, 0.5])
    expected = np.exp(0.3 - np.exp(-0.2) * stack[0] ** 2 - np.exp(0.5) * stack[1])
    before = stack.copy()
    np.testing.assert_allclose(raised.value(stack, theta), expected)
    np.testing.assert_array_equal(stack, before)
    assert raised.variance(theta) == pytest.approx(np.exp(0.3))
    # The bounds of beta follow the median of the distance raised to its power.
    np.testing.assert_allclose(raised.bounds(stack)[1], Exponential([0], 2.0).bounds(stack)[1])
    np.testing.assert_allclose(raised.bounds(stack)[2], Exponential([1], 1.0).bounds(stack)[1])


def test_ngrams_are_a_member_where_the_wiring_is_searched():
    with_ngrams = [
        name
        for name in ("nasbench101", "nasbench201", "darts", "mlp")
        if "ngrams" in defaults(spaces.get(name))
    ]
    assert with_ngrams == ["nasbench101", "mlp"]


def test_decisions_that_matter_are_told_from_others():
    """Of twelve decisions three have an effect, two of them together:

    40 of 4,096 networks tell most of it.
    """
    space = spaces.get(
        "choices", decisions={f"d{at}": ["no", "yes"] for at in range(12)}, form="set"
    )
    rng = np.random.default_rng(0)
    some = [space.members()[at] for at in rng.permutation(4096)[:440]]
    signs = 2.0 * np.array([space.vector_of(one) for one in some]) - 1.0
    scores = 3.0 * signs[:, 1] * signs[:, 5] + 2.0 * signs[:, 8]
    model = member_model("decisions", space)
    fitted = model.surrogate("standardise").fit(some[:40], scores[:40], rng)
    weights = fitted.thetas[0][2:14]
    assert {*np.argsort(weights)[-3:]} == {1, 5, 8}
    assert spearmanr(fitted.posterior(some[40:]).mean, scores[40:])[0] > 0.9
    alike = member_model("choices", space).surrogate("standardise").fit(some[:40], scores[:40], rng)
    assert spearmanr(alike.posterior(some[40:]).mean, scores[40:])[0] < 0.7


def test_decisions_are_no_member_where_they_would_slow_every_step(monkeypatch):
    space = spaces.get("choices", decisions={at: ["x", "y", "z"] for at in "abcd"})
    assert defaults(space) == ("subtrees", "choices", "patterns", "decisions")
    # 81 networks, an option and a rank of four decisions.
    monkeypatch.setattr("archive.agents.bayesopt.portfolio_members.MOST_COMPARED", 81 * 8 - 1)
    assert defaults(space) == ("subtrees", "choices", "patterns")


def test_members_of_every_space():
    small = spaces.get("choices", decisions={at: ["x", "y", "z"] for at in "abcd"})
    for space in (*map(spaces.get, ("nasbench201", "nasbench101", "mlp", "cnn")), small):
        rng = np.random.default_rng(0)
        for member in defaults(space):
            model = member_model(member, space)
            stack = model.pairwise.distances([space.sample(rng) for _ in range(5)]).stack
            theta = model.covariance.bounds(stack).mean(axis=1)
            gram = model.covariance.value(stack, theta)
            np.testing.assert_allclose(gram.diagonal(), model.covariance.variance(theta))
            assert (gram > 0.0).all()


def test_a_sum_likens_what_is_alike_in_one_thing():
    space, some = cells(6)
    product, total = (member_model(name, space) for name in ("features", "sums"))
    assert len(total.covariance.names) == 2 * (len(product.covariance.names) - 1)
    stack = np.array([[[9.0]], [[9.0]], [[0.0]]])
    alike = [
        one.covariance.value(stack, np.zeros(len(one.covariance.names)))[0, 0]
        / one.covariance.variance(np.zeros(len(one.covariance.names)))
        for one in (product, total)
    ]
    assert alike[0] < 1e-9
    assert alike[1] == pytest.approx(1.0 / 3.0, rel=1e-3)
    assert product.pairwise.distances(some).stack.shape == (3, 6, 6)


def test_operations_are_counted_whatever_their_order():
    _, (cell, *_) = cells(1)
    kernel = OperationCounts()
    (counts,) = kernel.features(cell)
    assert kernel.features(relabelled(cell, 1))[0] == counts
    live = [cell.layers[at].op for at in range(len(cell.layers))]
    assert all(counts[op] <= live.count(op) for op in counts if op in live)


def test_the_first_networks_tell_most():
    networks = points(60)
    covariance = exponential(3)
    chosen = alc_design(networks, [], 3, Differences(), covariance)
    gram = covariance.value(
        Differences().distances(networks).stack,
        covariance.bounds(Differences().distances(networks).stack).mean(axis=1),
    )
    noise = 0.01 * gram.diagonal().mean()

    def left(rows):
        inner = gram[np.ix_(rows, rows)] + noise * np.eye(len(rows))
        return (gram - gram[:, rows] @ np.linalg.solve(inner, gram[rows])).trace()

    for size in (1, 2, 3):
        others = [
            left([*chosen[: size - 1], at]) for at in range(60) if at not in chosen[: size - 1]
        ]
        assert left(chosen[:size]) == pytest.approx(min(others))

    # Known networks are excluded.
    (second,) = alc_design(networks, [networks[chosen[0]]], 1, Differences(), covariance)
    assert second == chosen[1]


def test_a_design_goes_on_where_it_was():
    space, _ = cells(1)
    agent = Portfolio(space, members=["subtrees"], n_design=4)
    first = proposed(agent, History(), 3)
    assert len(keys(first)) == 3
    assert all(one.acquisition is None for one in first)
    history = History(observed([one.architecture for one in first], [0.1, 0.2, 0.3]))
    fourth, fifth = proposed(agent, history, 2)
    assert fourth.acquisition is None
    assert fifth.acquisition is not None


def test_nothing_to_learn_from_while_all_are_on_their_way():
    space, some = cells(8)
    agent = Portfolio(space, members=["subtrees"], n_design=2)
    history = History(pending=tuple(Pending(one) for one in some))
    suggestions = proposed(agent, history, 3)
    assert len(keys(suggestions)) == 3
    assert not keys(suggestions) & history.known.keys()


def test_numbers_are_scores():
    space, some = cells(12)
    scores = np.array([len(cell.layers) + 0.1 * len(cell.edges) for cell in some])
    agent = Portfolio(space, members=["subtrees"], n_design=2)
    percent, share = (
        proposed(agent, History(observed(some, factor * scores)))[0] for factor in (100.0, 1.0)
    )
    assert percent.architecture == share.architecture
    assert percent.mean == pytest.approx(100.0 * share.mean, rel=1e-3)
    assert percent.std == pytest.approx(100.0 * share.std, rel=1e-3)
    assert percent.acquisition == pytest.approx(100.0 * share.acquisition, rel=1e-3)
    assert scores.min() - 3.0 * share.std < share.mean < scores.max() + 3.0 * share.std


def test_members_by_name():
    mlp = spaces.get("mlp")
    with pytest.raises(UnknownNameError, match="unknown member for the space mlp 'paths'"):
        Portfolio(mlp, members=["paths"])

    with pytest.raises(UsageError, match="n_design must be >= 0, got -1"):
        Portfolio(mlp, n_design=-1)

    portfolio = Portfolio(mlp, members=("subtrees",))
    assert (
        portfolio.config["members"]
        == Portfolio(mlp, members="subtrees").config["members"]
        == ["subtrees"]
    )
    assert keys(proposed(portfolio, grown(mlp, 12), 2)) - grown(mlp, 12).known.keys()


def test_a_batch_is_of_different_networks():
    space, some = cells(14)
    history = History(observed(some[:10], range(10)), tuple(Pending(one) for one in some[10:]))
    for rule in ("believer", "quality-kdpp"):
        suggestions = proposed(
            Portfolio(space, members=["subtrees"], n_design=2, batch_rule=rule), history, 4
        )
        assert len(keys(suggestions)) == 4
        assert not keys(suggestions) & history.known.keys()


def test_greed_when_patience_ends():
    space, some = cells(16, seed=3)
    settings = {"members": ["subtrees"], "n_design": 4, "candidates": "mutations"}
    impatient, patient = (Portfolio(space, **settings, patience=steps) for steps in (3, 0))
    greedy = Portfolio(space, **settings, patience=0, acquisition="ucb", kappa=0.0)
    # The best is the seventh: the third evaluation after it is due, and the sixth; all that were
    # proposed count.
    scores = [0.1, 0.5, 0.2, 0.3, 0.4, 0.1, 0.9, 0.2, 0.6, 0.7, 0.3]
    told_apart = set()
    for finished, pending, failed, due in (
        *((8, 0, 0, False), (9, 0, 0, True), (10, 0, 0, False), (11, 1, 0, True), (7, 5, 0, True)),
        *((9, 0, 1, False), (9, 0, 2, False), (10, 1, 1, True)),
    ):
        rest = some[finished + pending :]
        history = History(
            observed(some[:finished], scores[:finished]),
            tuple(Pending(one) for one in some[finished : finished + pending]),
            tuple(rest[:failed]),
        )
        best, promising = (keys(proposed(one, history)) for one in (greedy, patient))
        suggestions = proposed(impatient, history)
        assert keys(suggestions) == (best if due else promising), (finished, pending, failed)
        assert (suggestions[0].acquisition is None) == due and suggestions[0].mean is not None
        told_apart |= {due} if best != promising else set()

    assert told_apart == {False, True}


def test_greed_within_a_batch_and_not_within_the_design():
    space, some = cells(16)
    settings = {"members": ["subtrees"], "n_design": 10, "candidates": "mutations"}
    impatient = Portfolio(space, **settings, patience=4)
    # The best came first, but patience begins with the design's end: after it, of eight networks
    # two are due.
    scores = [0.9, *np.linspace(0.1, 0.6, 9)]
    history = History(observed(some[:10], scores))
    assert keys(proposed(impatient, history)) == keys(
        proposed(Portfolio(space, **settings, patience=0), history)
    )
    batch = proposed(impatient, history, 8)
    assert len(keys(batch)) == 8
    greedy = Portfolio(space, **settings, patience=0, acquisition="ucb", kappa=0.0)
    assert keys(batch[:2]) == keys(proposed(greedy, history, 2))
    with pytest.raises(UsageError, match="patience must be >= 0, got -1"):
        Portfolio(space, patience=-1)


def test_the_unit_of_one_objective_does_not_change_what_is_learnt_of_another():
    """The best score violates the constraint: a single objective is resolved near the best one that
    meets it."""
    options = ["a", "b", "c", "d"]
    space = spaces.get("choices", decisions={name: options for name in "xyz"}, form="set")
    networks = [space.members()[at] for at in range(0, 64, 4)]
    rng = np.random.default_rng(0)
    scores = rng.normal(size=16)
    losses = rng.normal(size=16)
    latencies = np.full(16, 30.0)
    latencies[np.argmax(scores)] = 50.0
    goals = Goals((Objective("accuracy"), Objective("loss", "minimise")))

    def history(shift):
        told = zip(observed(networks, scores + shift), losses, latencies, strict=True)
        return History(
            tuple(
                replace(seen, further=(-loss,), measured=(latency,)) for seen, loss, latency in told
            ),
            goals=goals,
            constraints=StudyConstraints((parse("latency_ms<=40"),)),
        )

    plain, shifted = (proposed(Portfolio(space), history(shift), 3) for shift in (0.0, 64.0))
    assert [one.architecture for one in plain] == [one.architecture for one in shifted]
    assert [one.acquisition for one in plain] == pytest.approx(
        [one.acquisition for one in shifted], rel=1e-3
    )


def test_an_initial_design_learns_nothing_from_networks_without_a_score(tmp_path):
    space = small_table(tmp_path)
    members = list({cell.functional_key: cell for cell in space.members()}.values())
    first, *others = members[:4]
    one = Observation(first, 0.5, "0")
    failed = History((one,), failed=tuple(others))
    unusable = History((one, *(Observation(cell, math.nan, cell.key) for cell in others)))
    agent = Portfolio(space)
    order = np.random.default_rng(0).permutation(len(space.members()))
    reference = distinct((space.members()[at] for at in order), failed.known)
    model = member_model("structure", space)
    given = [[one.functional for one in networks] for networks in (reference, [first], members[:4])]
    expected, misled = (
        [reference[at] for at in alc_design(given[0], known, 3, model.pairwise, model.covariance)]
        for known in given[1:]
    )
    assert expected != misled
    for history in (failed, unusable):
        assert [one.architecture for one in proposed(agent, history, 3)] == expected
