"""Pareto set and hypervolume of means over replicates, against a recomputation after every
evaluation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.constraints import parse
from archive.objectives.pareto import hypervolume, volumes
from archive.queries.pareto import pareto_set
from archive.store.ranking import averaged
from archive.store.records import Objective, Result, State, Study
from archive.store.snapshots import ProposalView, Snapshot
from tests.support.stores import Repeat, Suggestion, cells, study

LOSS = Objective("loss", "minimise")


def view(number, network, value, loss=0.0, function=None, **settings):
    metrics = {"accuracy": value, "loss": loss, **settings.pop("metrics", {})}
    keys = network, function or network
    return ProposalView(
        f"s#{number}", number, State.COMPLETE, *keys, value=value, metrics=metrics, **settings
    )


def snapshot(*views, **settings):
    about = Study("s", "t", "t/1", "nasbench201", further=(LOSS,), **settings)
    return Snapshot(about, views, {}, None)


def test_replicates_are_one_point_at_their_mean():
    found = pareto_set(
        snapshot(view(0, "a", 0.9, 2.0), view(1, "b", 0.7, 1.0), view(2, "a", 0.5, 1.0))
    )
    # The lucky 0.9 is no result: b equals the mean of 0.7, and has the smaller loss.
    assert [one.number for one in found.proposals] == [1]
    assert (found.values, found.evaluations, found.reference) == (((0.7, 1.0),), (1,), (0.7, 1.5))
    assert [number for number, _ in found.history] == [0, 1, 2]
    several = pareto_set(
        snapshot(view(0, "a", 0.9, 2.0), view(1, "b", 0.4, 1.0), view(2, "a", 0.5, 2.0))
    )
    assert [one.number for one in several.proposals] == [0, 1]
    assert (several.values, several.evaluations) == (((0.7, 2.0), (0.4, 1.0)), (2, 1))


def test_networks_of_one_function_are_replicates():
    found = pareto_set(
        snapshot(view(0, "a", 0.9, 2.0, "f"), view(1, "b", 0.5, 2.0, "f"), view(2, "c", 0.6, 3.0))
    )
    assert [
        (one.architecture_key, values)
        for one, values in zip(found.proposals, found.values, strict=True)
    ] == [("a", (0.7, 2.0))]


def test_the_hypervolume_decreases_with_a_lucky_mean():
    found = pareto_set(
        snapshot(view(0, "a", 0.2, 3.0), view(1, "b", 0.8, 1.0), view(2, "b", 0.4, 1.0)), (0.0, 3.0)
    )
    assert [volume for _, volume in found.history] == pytest.approx([0.0, 1.6, 1.2])
    assert found.hypervolume == found.history[-1][1]


def test_other_hyperparameters_are_another_network():
    views = view(0, "a", 0.9), view(1, "a", 0.5, hyperparameters={"rate": 0.1})
    assert pareto_set(snapshot(*views)).values == ((0.9, 0.0),)
    assert len({key for key, _ in averaged(views)}) == 2


def test_replicates_meet_a_constraint_by_their_mean():
    latencies = (4.0, 8.0, 4.5)
    views = [
        view(at, "a" if at < 2 else "b", 0.9 - 0.1 * at, metrics={"latency_ms": each})
        for at, each in enumerate(latencies)
    ]
    found = pareto_set(snapshot(*views, constraints=(parse("latency_ms<=5"),)))
    assert [one.number for one in found.proposals] == [2]
    # The first evaluation met the bound; with the second one its network does not.
    assert [number for number, _ in found.history] == [0, 1, 2]
    assert found.left_out == 0


def test_a_diverged_replicate_is_left_out_of_the_mean():
    (_, _), (_, mean) = averaged([view(0, "a", math.nan, math.inf), view(1, "a", 0.4, 2.0)])
    assert (mean.value, mean.metrics["loss"], mean.number) == (0.4, 2.0, 0)
    (_, _), (_, none) = averaged([view(0, "a", math.nan), view(1, "a", math.nan)])
    assert math.isnan(none.value)


def test_equal_replicates_keep_their_value_exactly():
    third = 0.1 + 0.2
    *_, (_, mean) = averaged([view(at, "a", third) for at in range(3)])
    assert mean.value == third


rows = st.tuples(
    st.sampled_from("abc"), st.none() | st.tuples(*[st.sampled_from([0.0, 0.25, 0.5, 1.0])] * 2)
)


@given(st.lists(rows, max_size=12))
def test_volumes_are_those_of_the_latest_rows_after_every_evaluation(evaluations):
    stages = [((name, ""), None if row is None else np.array(row)) for name, row in evaluations]
    reached = volumes(stages, np.full(2, -0.5))
    for at, volume in enumerate(reached):
        latest = dict(stages[: at + 1])
        known = [row for row in latest.values() if row is not None]
        if stages[at][1] is None and dict(stages[:at]).get(stages[at][0]) is None:
            assert volume is None
        else:
            assert volume == pytest.approx(
                hypervolume(np.array(known).reshape(-1, 2), np.full(2, -0.5))
            )


def test_a_snapshot_tells_replicates_from_other_hyperparameters(archive):
    archive.studies.create(study(objective="accuracy", further=(LOSS,)))
    agent = archive.proposals.register_agent("random", {}, "1")
    (network,) = cells(1)
    suggestions = [
        Suggestion(network),
        Repeat(network),
        Repeat(network, hyperparameters={"rate": 0.1}),
    ]
    outcomes = [Result(value, {"accuracy": value, "loss": 1.0}) for value in (0.9, 0.5, 0.6)]
    archive.proposals.create("study", agent, suggestions, outcomes=outcomes)
    found = archive.studies.snapshot("study")
    assert [one.hyperparameters for one in found.proposals] == [{}, {}, {"rate": 0.1}]
    pareto = pareto_set(found)
    assert [one.number for one in pareto.proposals] == [0]
    assert (pareto.values, pareto.evaluations) == (((0.7, 1.0),), (2,))
