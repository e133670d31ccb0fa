"""Ask and tell under constraints: known costs of the caller, told quantities, the best result,
mistakes."""

from __future__ import annotations

import numpy as np
import pytest

from archive import agents, spaces
from archive.agents.base import Observation
from archive.agents.constraints.slacks import StudyConstraints
from archive.agents.objectives.goals import Goals
from archive.agents.replay import recheck
from archive.constraints import parse
from archive.errors import (
    InfeasibleError,
    InvalidArchitectureError,
    SearchError,
    StudyConflictError,
    UsageError,
)
from archive.spaces.constrained import ConstrainedSpace
from archive.store.records import Objective
from archive.trainer.tasks import known_costs, registry
from tests.support.stores import cells

COSTS = {"layers": lambda networks: [float(len(each.layers)) for each in networks]}
LIMITS = ["layers<=6", "latency_ms<5"]


def opened(archive, name="mine", **settings):
    return agents.study(
        archive, name, "nasbench201", objective="accuracy", costs=COSTS, seed=1, **settings
    )


def test_known_costs_restrict_what_is_asked_and_other_quantities_are_told(archive):
    study = opened(archive, constraints=LIMITS)
    first, second = study.ask("random", 2)
    assert all(len(each.architecture.layers) <= 6 for each in (first, second))
    with pytest.raises(
        UsageError, match="a value of each constrained metric; there is none of latency_ms"
    ):
        study.tell(first, 0.9)

    assert study.tell(first, {"accuracy": 0.9, "latency_ms": 7.0})
    assert study.best() is None
    assert study.tell(second, 0.2, metrics={"latency_ms": 3.0})
    assert study.best().value == 0.2
    # Known costs that were not told are computed.
    assert study.best().metrics == {
        "accuracy": 0.2,
        "latency_ms": 3.0,
        "layers": float(len(second.architecture.layers)),
    }
    large = next(each for each in study.space.whole.members() if len(each.layers) == 8)
    with pytest.raises(InvalidArchitectureError, match="does not meet layers<=6: its layers is 8"):
        study.enqueue(large)

    assert study.tell(large, 0.99, metrics={"latency_ms": 1.0})
    assert study.best().value == 0.2
    assert agents.study(archive, "mine", costs=COSTS).space == study.space
    with pytest.raises(
        StudyConflictError, match="with the constraints layers<=6, latency_ms<5, got latency_ms<5"
    ):
        agents.study(archive, "mine", constraints=LIMITS[1:])

    with pytest.raises(UsageError, match=r"make it with the space of the study, study\.space"):
        study.ask(agents.get("random", study.space.whole))

    with pytest.raises(InfeasibleError, match="meets layers<=1"):
        opened(archive, "none", constraints=["layers<=1"])

    assert archive.studies.names() == ["mine"]


def test_a_training_without_a_result_needs_no_further_values(archive):
    study = agents.study(
        archive,
        "mine",
        "nasbench201",
        objective=["accuracy", "mass:minimise"],
        constraints="latency_ms<5",
    )
    for asked, told, words in zip(
        study.ask("random", 3),
        (float("nan"), {"mass": float("inf")}, [float("-inf"), 3.0]),
        (
            "the value of accuracy is nan",
            "the value of mass is inf",
            "the value of accuracy is -inf",
        ),
        strict=True,
    ):
        assert not study.tell(asked, told)
        assert archive.proposals.get(asked.id).reason == words

    with pytest.raises(SearchError, match=r"the last reason: the value of accuracy is nan$"):
        study.run(lambda network: float("nan"), budget=3, agent="random")


def test_a_whole_search_meets_constraints_and_can_be_replayed(archive):
    study = opened(archive, constraints=LIMITS)

    def evaluate(network):
        return {"accuracy": len(network.edges), "latency_ms": 4.0 if network.key < "b" else 6.0}

    best = study.run(
        evaluate, budget=7, agent=agents.get("gp", study.space, n_initial=4, candidates="mutations")
    )
    results = study.evaluations()
    assert len(results) == 7 and all(each.metrics["layers"] <= 6 for each in results)
    assert best.value == max(each.value for each in results if each.metrics["latency_ms"] < 5)
    assert recheck(archive, "mine", COSTS).differing == ()


def test_an_objective_with_a_known_cost_need_not_be_told(archive):
    study = agents.study(
        archive, "two", "nasbench201", objective=["accuracy", "layers:minimise"], costs=COSTS
    )
    alone, named, beside = study.ask("random", 3)
    sizes = [float(len(each.architecture.layers)) for each in (alone, named, beside)]
    assert study.tell(alone, 0.5)
    assert study.tell(named, {"accuracy": 0.6, "layers": np.float32(sizes[1])})
    assert study.tell(beside.id, 0.7, metrics={"layers": sizes[2]})
    assert [each.metrics["layers"] for each in study.evaluations()] == sizes
    study.run(lambda network: {"accuracy": len(network.edges)}, budget=5, agent="nsga2")
    assert len(study.evaluations()) == 5
    # Without the function, the value is told.
    with pytest.raises(UsageError, match="there is none of layers"):
        agents.study(archive, "two").tell(cells(1)[0], 0.5)


@pytest.mark.parametrize(
    "settings", [{"objective": ["accuracy", "layers:minimise"]}, {"constraints": "layers<=8"}]
)
def test_a_told_value_may_not_contradict_a_known_cost(archive, settings):
    study = agents.study(
        archive, "mine", "nasbench201", **{"objective": "accuracy", **settings}, costs=COSTS
    )
    (asked,) = study.ask("random")
    size = len(asked.architecture.layers)
    with pytest.raises(
        UsageError, match=f"layers is a known cost, {size} for this network, got {size + 1}"
    ):
        study.tell(asked, {"accuracy": 0.5, "layers": size + 1})

    assert study.tell(asked, {"accuracy": 0.5, "layers": size})


def test_a_cost_that_the_function_does_not_know_is_told(archive):
    costs = {"layers": lambda networks: [np.nan] * len(networks)}
    study = agents.study(
        archive, "two", "nasbench201", objective=["accuracy", "layers:minimise"], costs=costs
    )
    with pytest.raises(UsageError, match="there is none of layers"):
        study.tell(cells(1)[0], 0.5)

    assert study.tell(cells(1)[0], (0.5, 3.0))
    assert study.pareto_set().values == ((0.5, 3.0),)


def test_costs_with_a_slip_in_the_name_are_refused(archive):
    for settings in ({"constraints": "layer<=6"}, {"objective": ["accuracy", "layer:minimise"]}):
        with pytest.raises(
            UsageError,
            match=r"costs has a function of 'layers', which is "
            r"neither .* it has .*layer$",
        ):
            agents.study(archive, "new", "nasbench201", **settings, costs=COSTS)

    assert archive.studies.names() == []
    # Those of a task are more than a study needs.
    costs = {**known_costs.of_task(registry.get("digits"), "digits/1"), **COSTS}
    study = agents.study(archive, "new", "nasbench201", constraints="layers<=6", costs=costs)
    assert study.record.constraints == (parse("layers<=6"),)
    assert agents.study(archive, "new", constraints=["layers<=6"]).record == study.record


def test_a_known_cost_is_never_asked_about_no_network(archive):
    # Functions of arrays fail without a row.
    costs = {
        "layers": lambda networks: (
            np.stack([[len(each.layers), 1.0] for each in networks]) @ [1.0, 0.0]
        )
    }
    study = agents.study(archive, "mine", "nasbench201", constraints=["layers<=6"], costs=costs)
    study.run(lambda network: len(network.edges), budget=2, agent="evolution")
    assert all(each.metrics["layers"] <= 6 for each in study.evaluations())


@pytest.mark.parametrize(
    "cost",
    [
        lambda some: [float(len(some[0].layers))],
        lambda _: 7.0,
        lambda some: ["few"] * len(some),
        lambda _: None,
    ],
)
def test_a_known_cost_is_one_number_for_each_network(cost):
    message = (
        "known cost layers is a function of several networks, and must return one number "
        "for each: for 3 it ret"
    )
    networks = cells(3)
    goals = Goals((Objective("accuracy"), Objective("layers", "minimise")), {"layers": cost})
    with pytest.raises(UsageError, match=message):
        goals.known_scores(networks)

    constraint = parse("layers<=6")
    with pytest.raises(UsageError, match=message):
        ConstrainedSpace(spaces.get("nasbench201"), [constraint], {"layers": cost}).violations(
            networks
        )

    seen = [Observation(each, 0.5, each.key) for each in networks]
    with pytest.raises(UsageError, match=message):
        StudyConstraints((constraint,), {"layers": cost}).violations(seen)
