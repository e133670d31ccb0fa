"""Numbers behind the plots, beside slow and obvious computations of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.architecture import compact
from archive.errors import UnknownNameError, UsageError
from archive.objectives import pareto
from archive.plots.data import (
    curves,
    gains,
    hyperparameters,
    network_map,
    predictions,
    progress,
    timeline,
    tradeoff,
)
from archive.plots.data.network_map import Plane, orient, place_all
from archive.plots.data.results import RecordedResults
from tests.support.stores import cells, study

VALUES = st.one_of(st.just(math.nan), st.integers(-4, 4).map(float))


def recorded(values, direction="maximise", partial=None, **columns):
    values = np.array(values, np.float64)
    n = len(values)
    partial = np.zeros(n, np.bool_) if partial is None else np.array(partial)
    created = np.arange(n, dtype=np.float64)
    feasible = np.ones(n, np.bool_)
    return RecordedResults(
        study(direction=direction), np.arange(n), values, partial, created, columns, feasible
    )


@given(st.lists(VALUES, max_size=12), st.sampled_from(["maximise", "minimise"]))
def test_the_best_so_far_is_the_best_of_each_beginning(values, direction):
    best = max if direction == "maximise" else min
    traced = progress.progress(recorded(values, direction))
    expected = []
    for end in range(1, len(values) + 1):
        known = [value for value in values[:end] if value == value]
        expected.append(best(known) if known else math.nan)

    np.testing.assert_array_equal(traced.best, expected)
    changes = [
        at for at, now in enumerate(expected) if now == now and (at == 0 or expected[at - 1] != now)
    ]
    assert traced.improvements.tolist() == changes


def test_reused_results_cost_nothing_and_partial_ones_are_no_best():
    results = recorded(
        [0.9, 0.5, 0.7, 0.6],
        partial=[True, False, False, False],
        seconds=[10.0, 20.0, 30.0, None],
        answered_from=[None, None, "other#00000", None],
    )
    traced = progress.progress(results, "seconds")
    assert traced.x.tolist() == [10.0, 30.0, 30.0, 30.0]
    np.testing.assert_array_equal(traced.best, [math.nan, 0.5, 0.7, 0.7])
    paused = progress.progress(recorded([0.2, 0.4], partial=[True, True]))
    # without a whole training, the paused ones are compared
    assert paused.best.tolist() == [0.2, 0.4]
    with pytest.raises(
        UsageError, match="no training of the study 'study' has a record of its epochs"
    ):
        progress.progress(recorded([1.0], epochs=[None], answered_from=[None]), "epochs")


POINTS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20)


@given(POINTS)
def test_the_front_is_what_nothing_dominates(points):
    costs, scores = (np.array([point[side] for point in points], np.float64) for side in (0, 1))
    found = [points[at] for at in pareto.find_front(costs, scores)]
    dominated = {
        one
        for one in points
        for other in points
        if other != one and other[0] <= one[0] and other[1] >= one[1]
    }
    assert found == sorted(set(points) - dominated)


def test_the_front_spans_the_studies_and_leaves_out_what_has_no_cost():
    first = recorded([3.0, 1.0, math.nan], "minimise", architecture=["a", "b", "c"])
    second = recorded([2.0, 5.0], "minimise", architecture=["d", "e"])
    costs = [np.array([1.0, 9.0, 1.0]), np.array([4.0, np.nan])]
    data = tradeoff.tradeoff([first, second], costs, "params")
    assert [data.architecture[at] for at in data.front] == ["a", "d", "b"]
    assert (data.missing, data.study.tolist(), data.value.tolist()) == (
        2,
        [0, 0, 1],
        [3.0, 1.0, 2.0],
    )
    assert tradeoff.on_front(data).all()
    with pytest.raises(UsageError, match="no result of 'study' has the cost 'watts'"):
        tradeoff.tradeoff([recorded([1.0], architecture=["a"])], [np.array([np.nan])], "watts")


def test_a_cost_is_the_first_number_on_record():
    columns = {"network_params": [5, None, None, None], "metric_params": [9.0, 7.0, True, "x"]}
    results = recorded([1.0] * 4, **columns, answered_from=[None] * 4)
    np.testing.assert_array_equal(
        tradeoff.cost_of(results, ["network_params", "metric_params"]),
        [5.0, 7.0, math.nan, math.nan],
    )
    reused = recorded(
        [1.0] * 3, seconds=[2.0, 0.0, None], epochs=[4, 4, 4], answered_from=[None, "s#00000", None]
    )
    np.testing.assert_array_equal(tradeoff.cost_of(reused, ["seconds"]), [2.0, math.nan, math.nan])
    np.testing.assert_array_equal(tradeoff.cost_of(reused, ["epochs"]), [4.0, 4.0, 4.0])


def test_curves_are_those_of_the_best_and_of_others_in_even_steps():
    results = recorded([1, 9, 3, 8, 5, 6, 7, 2, 4, 9], "maximise")
    assert curves.choice(results, best=2, others=3) == {
        0: "other",
        5: "other",
        8: "other",
        9: "best",
        1: "best",
    }
    # of equal values, the earlier one is better and on top
    assert list(curves.choice(results, 2, 3))[-1] == 1
    assert curves.choice(results, 20, 20).keys() == set(range(10))
    assert curves.evenly(1000, 3).tolist() == [0, 500, 999]


def test_curves_of_a_study_whose_objective_has_none():
    def metric(*names, asked=None, objective="accuracy"):
        results = recorded([1.0])
        object.__setattr__(results, "study", study(objective=objective))
        return curves._metric(results, asked, [{key: [1.0] for key in names}])

    assert metric("accuracy", "loss") == "accuracy"
    assert metric("train_loss", "valid_accuracy") == "valid_accuracy"
    assert metric("train_loss", "valid_loss", objective="value") == "valid_loss"
    assert metric("loss", "error", "epoch", objective="value") == "error"
    with pytest.raises(UnknownNameError, match="unknown metric of the curves 'accuracy'"):
        metric("loss", asked="accuracy")


def test_places_on_axes_are_linear_logarithmic_or_words():
    rate = hyperparameters.axis("rate", [1e-4, 1e-2, None, 1.0])
    assert rate.scaling == "logarithmic"
    np.testing.assert_allclose(rate.places, [0.0, 0.5, math.nan, 1.0])
    assert [label for _, label in rate.ticks] == ["0.0001", "0.001", "0.01", "0.1", "1"]
    depth = hyperparameters.axis("depth", [4, 6, 8, 6])
    assert (depth.scaling, depth.places.tolist()) == ("linear", [0.0, 0.5, 1.0, 0.5])
    words = hyperparameters.axis("optimiser", ["sgd", None, "adam", True])
    assert words.ticks == ((0.0, "True"), (0.5, "adam"), (1.0, "sgd"))
    np.testing.assert_array_equal(words.places, [1.0, math.nan, 0.5, 0.0])
    assert hyperparameters.axis("many", [str(at) for at in range(100)]).ticks[-1] == (1.0, "99")
    assert len(hyperparameters.axis("many", [str(at) for at in range(100)]).ticks) == 12
    assert hyperparameters.axis("one", [3, 3]).places.tolist() == [0.5, 0.5]


def test_the_best_are_drawn_last_and_the_others_in_even_steps_of_the_ranking():
    values = np.arange(100.0)
    rows = hyperparameters.chosen(recorded(values, "minimise"), 20)
    assert rows[-2:].tolist() == [1, 0]
    assert len(rows) == 20 and rows[0] == 99
    assert (np.diff(rows) < 0).all()


def test_predictions_are_in_the_unit_of_the_task_and_counted_by_interval():
    # Scores of a study that minimises have the opposite sign.
    errors = np.array([-3.0, -0.5, 0.0, 0.5])
    results = recorded(10.0 + errors, "minimise", mean=[-10.0] * 4, std=[1.0] * 4)
    data = predictions.predictions([results])
    assert data.predicted.tolist() == [10.0] * 4
    assert data.bias == pytest.approx(errors.mean())
    assert data.rmse == pytest.approx(math.sqrt((errors**2).mean()))
    assert data.coverage([0.0, 0.6827, 0.99, 0.9999, 1.0]).tolist() == [0.25, 0.75, 0.75, 1.0, 1.0]
    with pytest.raises(UsageError, match="the agent has no surrogate"):
        predictions.predictions([recorded([1.0], mean=[None], std=[None])])


def test_gains_are_counted_for_each_operation_and_raises_add_up():
    results = recorded([0.2, 0.5, 0.4, 0.8, math.nan], architecture=["a", "b", "c", "d", "e"])
    steps = [
        (1, "a", ["wider"]),
        (2, "b", ["wider", "skip", "skip"]),
        (3, "b", ["skip", "deeper"]),
        (3, "c", []),
        (0, "d", ["wider"]),  # the parent came later
        (4, "a", ["wider"]),  # without a number
        (1, "elsewhere", ["wider"]),
    ]
    found = gains.gains(results, steps)
    by_name = {one.operation: one for one in found.operations}
    assert found.steps == 4
    assert [one.operation for one in found.operations] == ["?", "deeper", "skip", "wider"]
    np.testing.assert_allclose(by_name["wider"].gains, [-0.1, 0.3])
    np.testing.assert_allclose(by_name["skip"].gains, [-0.1, 0.3])
    np.testing.assert_allclose(by_name["?"].gains, [0.4])
    assert by_name["wider"].improved == 1
    raised = {name: one.raised for name, one in by_name.items()}
    assert raised == pytest.approx({"wider": 0.3, "skip": 0.1, "deeper": 0.1, "?": 0.1})
    assert sum(raised.values()) == pytest.approx(0.8 - 0.2)
    fewer = gains.gains(recorded([0.2, 0.5], "minimise", architecture=["a", "b"]), steps[:1])
    assert fewer.operations[0].gains.tolist() == pytest.approx([-0.3])
    with pytest.raises(
        UsageError, match="its agent does not change known networks, or has not begun to"
    ):
        gains.gains(results, [(2, "elsewhere", ["wider"])])


def test_trials_of_one_worker_at_a_time_have_lanes_of_their_own():
    def claim(worker, number, begin, ended=None, told=None, state="COMPLETE", finished=None):
        return [worker, "study", number, f"key{number}", begin, ended, told, state, finished]

    rows = [
        claim("b", 5, 900, state="RUNNING"),
        claim("a", 0, 100, finished=300),
        claim("a", 1, 200, finished=500),
        claim("a", 2, 300, ended=400, told="lost", state="COMPLETE", finished=900),
        claim("a", 3, 350, ended=360, told="failed", state="WAITING"),
        claim("b", 2, 600, finished=900),
        claim("b", 4, 950, told=None, state="WAITING"),
    ]
    found = timeline.timeline(rows, now=1000)
    assert found.workers == {"a": 3, "b": 2}
    placed = {
        (one.worker, one.number): (one.lane, one.begin, one.end, one.outcome)
        for one in found.trials
    }
    assert placed == {
        ("a", 0): (0, 100, 300, "complete"),
        ("a", 1): (1, 200, 500, "complete"),
        ("a", 2): (0, 300, 400, "lost"),
        ("a", 3): (2, 350, 360, "failed"),
        ("b", 2): (0, 600, 900, "complete"),
        ("b", 5): (0, 900, 1000, "running"),
        ("b", 4): (1, 950, 950, "lost"),  # its end is not on record
    }
    assert found.extent == (100, 1000) and not found.cut
    latest = timeline.timeline(rows, now=1000, most=2)
    assert [one.number for one in latest.trials] == [5, 4] and latest.cut


def test_points_of_a_plane_keep_their_distances():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 2)) * [3.0, 1.0]
    between = np.linalg.norm(points[:, None] - points[None], axis=2)
    plane = Plane.fit(between[:6, :6])
    places = place_all(plane, 40, lambda rows: between[rows, :6])
    np.testing.assert_allclose(
        np.linalg.norm(places[:, None] - places[None], axis=2), between, atol=1e-9
    )
    assert plane.kept == pytest.approx(1.0)
    # a right angle
    corner = Plane.fit(np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]]))
    assert np.linalg.norm(
        corner.place(np.array([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0]])), axis=1
    ).shape == (2,)
    line = Plane.fit(np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0))))
    assert line.basis[1].tolist() == [0.0] * 4  # no second direction
    assert Plane.fit(np.zeros((1, 1))).place(np.zeros((3, 1))).tolist() == [[0.0, 0.0]] * 3


def test_larger_networks_lie_to_the_right_and_to_the_top():
    size = np.array([1.0, 2.0, 3.0])
    turned = orient(np.array([[3.0, 0.0], [2.0, 1.0], [1.0, 0.5]]), size)
    assert turned[:, 0].tolist() == [-3.0, -2.0, -1.0]
    assert (turned[:, 1] - turned[:, 1].mean()) @ size > 0
    assert orient(np.array([[-1.0, 0.0], [1.0, 0.0]]), np.ones(2))[:, 0].tolist() == [1.0, -1.0]


def test_profiles_count_operations_and_joined_pairs():
    plain = '[["ip",["conv3",16],["conv3",60,2],["fc",null,2],"op"],[[0,1],[1,2],[2,3],[3,4]]]'
    assert network_map.profile(plain) == {
        "ip@": 1, "conv3@4": 1, "conv3@6": 1, "fc@": 1, "op@": 1,
        "ip>conv3": 1, "conv3>conv3": 1, "conv3>fc": 1, "fc>op": 1,
    }  # fmt: skip
    whole = '[[["ip",null,1,{}],["relu",null,1,{}]],[0,1,1],[[0,1,0],[1,2,0]]]'
    assert network_map.profile(whole) == {"ip@": 1, "relu@": 2, "ip>relu": 1, "relu>relu": 1}
    dense = network_map.profiles_of([whole, plain, whole])[0].toarray()
    assert dense[0].tolist() == dense[2].tolist()
    assert dense[0][:2].tolist() == [1.0, math.sqrt(2.0)]


@pytest.mark.parametrize("distance", ["profile", "weisfeiler-lehman"])
def test_a_map_is_the_same_whatever_the_order_of_the_networks(distance):
    codes = {cell.key: compact.encode(cell.canonical) for cell in cells(30)}
    keys = list(codes)
    results = recorded([0.1, 0.3, 0.2, 0.4], architecture=[keys[3], keys[5], keys[3], keys[0]])
    one = network_map.of_codes("nasbench201", codes, [results], distance=distance, landmarks=10)
    two = network_map.of_codes(
        "nasbench201", dict(reversed(codes.items())), [results], distance=distance, landmarks=10
    )
    np.testing.assert_array_equal(one.places, two.places)
    assert list(one.architecture) == sorted(codes)
    (path,) = one.paths
    assert [one.architecture[at] for at in path.at] == [keys[3], keys[5], keys[3], keys[0]]
    assert [one.architecture[at] for at in path.incumbents] == [keys[3], keys[5], keys[0]]
    assert 0 < one.kept <= 1
