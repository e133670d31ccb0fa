"""Every saved query on each server, compared with plain Python over the same evaluations."""

from __future__ import annotations

import itertools
import math
import re
import statistics

import numpy as np
import pytest

from archive.database.read_only import require_read_only
from archive.database.user_query import run_query
from archive.errors import QueryError, UnknownNameError, UsageError
from archive.plots.data import tradeoff as plots_of
from archive.queries import catalogue, saved
from archive.store.evaluations import Evaluations, TaskProtocol
from archive.store.records import Result
from tests.support.stores import Repeat, Suggestion, answer, cells, study

COUNT = 24
CONV = "nor_conv_3x3"
SKIP = "skip_connect"


def rows(answer):
    return [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]


@pytest.fixture
def networks():
    return [*cells(160)[:: 160 // COUNT]][:COUNT]


@pytest.fixture
def table(archive, networks):
    """External results on the task `table`: networks with a value and a latency, one of them
    NaN."""
    rng = np.random.default_rng(0)
    archive.architectures.add(networks)
    values = rng.uniform(0, 1, COUNT).tolist()
    latencies = rng.integers(1, 9, COUNT).tolist()
    values[3] = math.nan
    results = [
        (f"t/{at}", network.key, Result(value, {"latency_ms": latency}, seconds=10.0, epochs=2))
        for at, (network, value, latency) in enumerate(
            zip(networks, values, latencies, strict=True)
        )
    ]
    Evaluations(archive.connection, archive.architectures).add("table", "table/1", results)
    return [row for row in zip(networks, values, latencies, strict=True) if not math.isnan(row[1])]


def evaluate(archive, name, *steps, **settings):
    """Add evaluations to a study: agent, suggestion, value, numbers that the agent knew of this and
    other studies."""
    archive.studies.create(study(name, **settings))
    for agent, suggestion, value, known in steps:
        id_ = archive.proposals.register_agent(agent, {}, "1")
        archive.proposals.create(name, id_, [suggestion], basis={"observations": known})
        claim = archive.proposals.claim("trainer", study=name, lease_seconds=1000)
        archive.proposals.complete(claim.id, claim.token, Result(value, seconds=100.0))


@pytest.mark.every_server
def test_best_per_operation(archive, table):
    found = rows(archive.named("best-per-operation", task="table"))
    operations = {layer.op for network, _, _ in table for layer in network.layers} - {"ip", "op"}
    assert {row["operation"] for row in found} == operations
    for row in found:
        holding = [
            (v, n.key) for n, v, _ in table if row["operation"] in {layer.op for layer in n.layers}
        ]
        assert (row["best"], row["architecture"]) == max(holding)
        assert row["mean"] == pytest.approx(statistics.mean(value for value, _ in holding))
        assert row["networks"] == row["evaluations"] == len(holding)

    assert [row["best"] for row in found] == sorted((row["best"] for row in found), reverse=True)
    lowest = rows(archive.named("best-per-operation", task="table", minimise=True))
    assert (
        min(row["best"] for row in lowest)
        == lowest[0]["best"]
        == min(value for _, value, _ in table)
    )


@pytest.mark.every_server
@pytest.mark.parametrize("direction", ["maximise", "minimise"])
def test_the_best_value_follows_the_direction_of_the_studies(archive, networks, direction):
    values = [0.5, 0.25, 0.75, 0.125]
    steps = [
        ("random", Suggestion(network), value, {})
        for network, value in zip(networks, values, strict=False)
    ]
    evaluate(archive, "one", *steps, direction=direction)
    # A task of the other direction is ranked separately.
    other = "minimise" if direction == "maximise" else "maximise"
    evaluate(archive, "two", *steps, direction=other, task="other", protocol="other/1")
    minimise = {"digits": direction == "minimise", "other": other == "minimise"}
    for name, given in (("best-per-operation", {}), ("frontier", {"cost": "mass"})):
        query = catalogue.get(name)
        for task in ("digits", "other"):
            whole = {
                "protocol": None,
                "objective": None,
                **given,
                "task": task,
                "minimise": minimise[task],
            }
            asked = archive.named(name, task=task, **given).rows
            assert asked == archive.named(name, task=task, minimise=minimise[task], **given).rows
            assert (
                asked != archive.named(name, task=task, minimise=not minimise[task], **given).rows
            )
            # The text and the answer from columns agree.
            assert asked == connection_rows(archive, query, whole)
            assert asked == connection_rows(archive, query, {**whole, "minimise": None})

    every = rows(archive.named("best-per-operation"))
    assert every == rows(archive.named("best-per-operation", task="digits")) + rows(
        archive.named("best-per-operation", task="other")
    )


def connection_rows(archive, query, values):
    return archive.query(query.cypher, values).rows


def test_without_a_direction_larger_is_better(archive, table, networks):
    highest = max(value for _, value, _ in table)
    lowest = min(value for _, value, _ in table)
    assert rows(archive.named("best-per-operation", task="table"))[0]["best"] == highest
    # Imported results where smaller is better.
    name = "errors"
    results = [(f"e/{network.key}", network.key, Result(value)) for network, value, _ in table]
    Evaluations(archive.connection, archive.architectures).add(
        name, "table/2", results, direction="minimise"
    )
    assert rows(archive.named("best-per-operation", task=name))[0]["best"] == lowest
    assert rows(archive.named("frontier", task=name, cost="mass"))[-1]["value"] == lowest
    # Studies that disagree determine no direction.
    for at, direction in enumerate(("minimise", "maximise")):
        step = ("random", Suggestion(networks[at]), float(at), {})
        evaluate(archive, direction, step, direction=direction)
        assert rows(archive.named("best-per-operation", task="digits"))[0]["best"] == at


def has_motif(network):
    ops = [layer.op for layer in network.layers]
    edges = set(network.edges)
    inner = range(len(ops))
    return any(
        (b, c) in edges and (c, d) in edges and (d, a) in edges and ops[c] == ops[d] == CONV
        and ((b, a) in edges or any((b, s) in edges and (s, a) in edges and ops[s] == SKIP for s in inner))
        for b, c, d, a in itertools.product(inner, repeat=4)
    )  # fmt: skip


@pytest.mark.every_server
def test_motif(archive):
    pool = cells(900)
    with_it = [network for network in pool if has_motif(network)][:6]
    without = [network for network in pool if not has_motif(network)][:9]
    archive.architectures.add([*with_it, *without])
    values = {network.key: 0.1 * at for at, network in enumerate([*with_it, *without])}
    results = [(f"t/{key}", key, Result(value)) for key, value in values.items()]
    Evaluations(archive.connection, archive.architectures).add("table", "table/1", results)
    found = rows(archive.named("motif"))
    assert [row["motif"] for row in found] == [True, False]
    for row, group in zip(found, (with_it, without), strict=True):
        own = [values[network.key] for network in group]
        assert (row["networks"], row["evaluations"]) == (len(group), len(group))
        assert row["mean"] == pytest.approx(statistics.mean(own))
        assert row["std"] == pytest.approx(statistics.stdev(own))
        assert (row["lowest"], row["highest"]) == (min(own), max(own))

    (everything,) = rows(archive.named("motif", operations=["nothing"]))
    assert (everything["motif"], everything["networks"]) == (False, 15)


@pytest.mark.every_server
@pytest.mark.parametrize(("direction", "sign"), [("maximise", 1), ("minimise", -1)])
def test_lineage_and_operators(archive, networks, direction, sign):
    a, b, c, d, e = networks[:5]
    evaluate(
        archive,
        "one",
        ("random", Suggestion(a), sign * 0.25, {}),
        ("evolution", Suggestion(b, parent=a, operations=("swap",)), sign * 0.5, {"one": "0"}),
        (
            "evolution",
            Suggestion(c, parent=b, operations=("swap", "add")),
            sign * 0.375,
            {"one": "0-1"},
        ),
        ("evolution", Suggestion(d, parent=c, operations=("add",)), sign * 0.875, {"one": "0-2"}),
        ("evolution", Suggestion(e, parent=b, operations=("drop",)), sign * 0.75, {"one": "0-3"}),
        direction=direction,
    )
    # Another study reached the same network on another path, which is not in this lineage.
    evaluate(
        archive, "two", ("random", Suggestion(d, parent=networks[9], operations=("jump",)), 0.1, {})
    )
    found = rows(archive.named("lineage", study="one"))
    assert [row["architecture"] for row in found] == [a.key, b.key, c.key, d.key]
    assert [row["operations"] for row in found] == [[], ["swap"], ["swap", "add"], ["add"]]
    assert [row["gain"] for row in found] == [None, 0.25, -0.125, 0.5]
    assert [row["value"] for row in found] == [sign * value for value in (0.25, 0.5, 0.375, 0.875)]
    assert [row["proposal"] for row in found] == [0, 1, 2, 3]
    gains = {row["operation"]: row for row in rows(archive.named("operators", study="one"))}
    assert {name: row["uses"] for name, row in gains.items()} == {"swap": 2, "add": 2, "drop": 1}
    assert gains["add"]["mean_gain"] == pytest.approx((0.5 - 0.125) / 2)
    assert (gains["swap"]["largest_gain"], gains["swap"]["improved"]) == (0.25, 1)


PARTIAL = "MATCH (e:Evaluation) WHERE e.value > 0.6 SET e.partial = true"
BOUND = "MATCH (s:Study) SET s.constrained = ['latency_ms'], s.operators = ['<='], s.bounds = [2.0]"
SLOW = (
    "MATCH (e:Evaluation) SET e.metric_latency_ms = CASE WHEN e.value > 0.6 THEN 3.0 ELSE 2.0 END"
)


@pytest.fixture
def predicted(archive, networks):
    """A study of four networks in a line of descent, with predictions; every second value is above
    0.6."""
    steps = []
    for at, value in enumerate((0.25, 0.75, 0.5, 0.875)):
        parent = networks[at - 1] if at else None
        suggestion = Suggestion(
            networks[at], mean=0.5, std=0.125, parent=parent, operations=("swap",) if at else ()
        )
        steps.append(("gp", suggestion, value, {}))

    evaluate(archive, "one", *steps)


def both(archive, name, **given):
    """Return the rows of a saved query, which those of its text must equal."""
    query = catalogue.get(name)
    values = {each.name: given.get(each.name, each.default) for each in query.parameters.values()}
    asked = archive.named(name, **given).rows
    assert asked == connection_rows(archive, query, values)
    return asked


def test_partial_results_take_no_part(archive, predicted):
    questions = {
        "best-per-operation": {}, "motif": {}, "frontier": {"task": "digits", "cost": "mass"},
        "calibration": {}, "operators": {},
    }  # fmt: skip
    archive.query(PARTIAL, write=True)
    found = {name: both(archive, name, **given) for name, given in questions.items()}
    archive.query("MATCH (e:Evaluation) WHERE e.partial DETACH DELETE e", write=True)
    assert found == {name: both(archive, name, **given) for name, given in questions.items()}
    assert found["calibration"][0][2] == 2 and found["frontier"]


@pytest.mark.parametrize("change", [PARTIAL, SLOW])
def test_the_lineage_is_that_of_a_whole_result_that_meets_the_constraints(
    archive, predicted, change
):
    archive.query(BOUND, write=True)
    archive.query("MATCH (e:Evaluation) SET e.metric_latency_ms = 1.0", write=True)
    assert len(both(archive, "lineage", study="one")) == 4
    archive.query(change, write=True)
    steps = both(archive, "lineage", study="one")
    assert [row[1] for row in steps] == [0, 1, 2]
    # A whole training has no gain over a part of one.
    assert [row[6] for row in steps] == [None, *([None] * 2 if change is PARTIAL else [0.5, -0.25])]
    archive.query(
        "MATCH (e:Evaluation) SET e.partial = true, e.metric_latency_ms = 3.0", write=True
    )
    assert [row[1] for row in both(archive, "lineage", study="one")] == [0, 1, 2, 3]


@pytest.mark.parametrize("latency", ["null", "1.0 / 0.0", "0.0 / 0.0"])
def test_the_lineage_is_that_of_a_result_with_all_objectives(archive, predicted, latency):
    objectives = (
        "s.objectives = ['accuracy', 'latency_ms'], s.directions = ['maximise', 'minimise']"
    )
    archive.query(f"MATCH (s:Study) SET {objectives}", write=True)
    archive.query("MATCH (e:Evaluation) SET e.metric_latency_ms = 1.0", write=True)
    assert [row[1] for row in both(archive, "lineage", study="one")] == [0, 1, 2, 3]
    archive.query(
        f"MATCH (e:Evaluation) WHERE e.value > 0.8 SET e.metric_latency_ms = {latency}", write=True
    )
    best = archive.studies.snapshot("one").incumbent
    assert [row[1] for row in both(archive, "lineage", study="one")] == [0, best.number] == [0, 1]
    archive.query("MATCH (e:Evaluation) REMOVE e.metric_latency_ms", write=True)
    assert [row[1] for row in both(archive, "lineage", study="one")] == [0, 1, 2, 3]


def test_results_that_violate_the_constraints_are_not_on_the_frontier(archive, predicted, networks):
    given = {"task": "digits", "cost": "mass"}
    whole = both(archive, "frontier", **given)
    archive.query(SLOW, write=True)
    assert both(archive, "frontier", **given) == whole
    archive.query(BOUND, write=True)
    limited = both(archive, "frontier", **given)
    assert limited and all(row[3] <= 0.5 for row in limited)
    points = plots_of.value_and_cost(archive, "one", "mass")
    assert [row[3] for row in limited] == points.value[points.front].tolist()
    # Imported results belong to no study, and have no constraints.
    imported = [("i/1", networks[0].key, Result(2.0))]
    Evaluations(archive.connection, archive.architectures).add("digits", "digits/1", imported)
    assert both(archive, "frontier", **given)[-1][3] == 2.0
    archive.query("MATCH (e:Evaluation) REMOVE e.metric_latency_ms", write=True)
    assert [row[3] for row in both(archive, "frontier", **given)] == [2.0]


def test_a_reused_result_is_not_the_cheapest_training(archive, networks):
    archive.studies.create(study("one"))
    agent = archive.proposals.register_agent("random", {}, "1")
    results = [
        Result(0.5, seconds=20.0),
        Result(0.75, seconds=30.0),
        Result(0.9, seconds=0.0, answered_from="x#00000"),
    ]
    answer(
        archive,
        "one",
        agent,
        [(Suggestion(each), one) for each, one in zip(networks, results, strict=False)],
    )
    found = both(archive, "frontier", task="digits", cost="seconds")
    assert [row[3:] for row in found] == [(0.5, 20.0), (0.75, 30.0)]
    points = plots_of.value_and_cost(archive, "one", "seconds")
    assert points.value[points.front].tolist() == [0.5, 0.75]
    assert both(archive, "frontier", task="digits", cost="mass")[-1][3] == 0.9


def test_studies_of_different_objectives_on_one_task_are_separate(archive, networks):
    values = {"accuracy": [0.5, 0.25, 0.75, 0.125], "params": [3000.0, 1000.0, 4000.0, 2000.0]}
    for objective, direction in (("params", "minimise"), ("accuracy", "maximise")):
        steps = [
            ("random", Suggestion(network), value, {})
            for network, value in zip(networks, values[objective], strict=False)
        ]
        evaluate(archive, objective, *steps, objective=objective, direction=direction)

    questions = {
        "best-per-operation": {},
        "motif": {},
        "frontier": {"task": "digits", "cost": "mass"},
    }
    for name, given in questions.items():
        answer = archive.named(name, **given)
        at = answer.columns.index("objective")
        assert both(archive, name, **given) == both(
            archive, name, **given, objective="accuracy"
        ) + both(archive, name, **given, objective="params")
        assert [*dict.fromkeys(row[at] for row in answer.rows)] == ["accuracy", "params"]

    best = {row["objective"]: row for row in reversed(rows(archive.named("best-per-operation")))}
    assert (best["accuracy"]["best"], best["params"]["best"]) == (0.75, 1000.0)
    front = {
        row["objective"]: row["value"]
        for row in rows(archive.named("frontier", task="digits", cost="mass"))
    }
    assert front == {"accuracy": 0.75, "params": 1000.0}
    for name, given in questions.items():
        with pytest.raises(
            UnknownNameError,
            match=r"unknown objective.* 'accurcy': did you mean "
            r"accuracy",
        ):
            archive.named(name, **given, objective="accurcy")

    # Imported results belong to the only objective; of two, to neither.
    Evaluations(archive.connection, archive.architectures).add(
        "digits", "digits/1", [("i/1", networks[0].key, Result(9.0))]
    )
    assert {row["highest"]: row["objective"] for row in rows(archive.named("motif"))}[9.0] is None
    for name, given in questions.items():
        assert both(archive, name, **given)

    archive.query(
        "MATCH (p:Proposal {study: 'params'})-[:RESULTED_IN]->(e) DETACH DELETE p, e", write=True
    )
    archive.query("MATCH (s:Study {name: 'params'}) DETACH DELETE s", write=True)
    assert {row["objective"] for row in rows(archive.named("motif"))} == {"accuracy"}
    assert (
        max(row["best"] for row in rows(archive.named("best-per-operation", objective="accuracy")))
        == 9.0
    )


@pytest.mark.every_server
def test_the_lineage_of_a_network_without_parents(archive, networks):
    evaluate(archive, "one", ("random", Suggestion(networks[0]), 0.5, {}))
    (only,) = rows(archive.named("lineage", study="one"))
    assert (only["step"], only["architecture"], only["gain"]) == (0, networks[0].key, None)


@pytest.mark.every_server
def test_contributions(archive, networks):
    evaluate(
        archive,
        "one",
        ("random", Suggestion(networks[0]), 0.25, {}),
        ("nasbot", Suggestion(networks[1]), 0.5, {"one": "0"}),
        ("nasbot", Suggestion(networks[2]), 0.75, {"one": "0-1"}),
        ("random", Suggestion(networks[3]), 0.875, {"one": "0,2"}),
    )
    evaluate(
        archive,
        "two",
        ("nasbot", Suggestion(networks[4]), 0.5, {"two": "", "one": "0-999999999", "gone": "0"}),
    )
    found = {
        (row["study"], row["agent"][:6], row["used"][:6]): row
        for row in rows(archive.named("contributions"))
    }
    assert {
        names: (row["proposals"], row["points"], row["mean_points"]) for names, row in found.items()
    } == {
        ("one", "nasbot", "random"): (2, 1, 1.0),
        ("one", "nasbot", "nasbot"): (1, 1, 1.0),
        ("one", "random", "random"): (1, 1, 1.0),
        ("one", "random", "nasbot"): (1, 1, 1.0),
        ("two", "nasbot", "random"): (1, 2, 2.0),
        ("two", "nasbot", "nasbot"): (1, 2, 2.0),
    }
    assert found["two", "nasbot", "random"]["best_point"] == 0.875
    assert {row["study"] for row in rows(archive.named("contributions", study="two"))} == {"two"}
    # No value is the best one of two directions.
    evaluate(
        archive,
        "error",
        ("random", Suggestion(networks[3]), 0.1, {}),
        direction="minimise",
        task="other",
    )
    evaluate(
        archive, "three", ("nasbot", Suggestion(networks[4]), 0.5, {"error": "0", "one": "0-1"})
    )
    found = {
        row["used"][:6]: row["best_point"]
        for row in rows(archive.named("contributions", study="three"))
    }
    assert found == {"random": None, "nasbot": 0.5}


@pytest.mark.every_server
def test_duplicates(archive, networks):
    evaluate(
        archive, "one", *(("random", Suggestion(network), 0.5, {}) for network in networks[:3])
    )
    evaluate(
        archive, "two", *(("random", Suggestion(network), 0.5, {}) for network in networks[2:4])
    )
    archive.studies.create(study("three"))
    agent = archive.proposals.register_agent("random", {}, "1")
    known = Result(0.5, seconds=0.0, answered_from="one#00001")
    answer(archive, "three", agent, [(Suggestion(networks[1]), known)], after=0)
    archive.proposals.create("three", agent, [Suggestion(networks[5])])
    (row,) = rows(archive.named("duplicates"))
    assert (row["proposals"], row["networks"], row["in_several_studies"]) == (7, 5, 2)
    assert (row["answered"], row["seconds_saved"], row["trained_again"]) == (1, 100.0, 1)


@pytest.mark.every_server
def test_network_costs(archive, networks):
    costs = {"params": 5, "flops": 7, "latency_ms": 0.5, "latency_iqr_ms": 0.25, "latency_batch": 1}
    archive.studies.create(study("costs", direction="minimise"))
    agent = archive.proposals.register_agent("random", {}, "1")
    made = archive.proposals.create("costs", agent, [Suggestion(each) for each in networks[:3]])
    for value, metrics, hardware in (
        (0.5, costs, "A"),
        (0.25, {**costs, "params": 6}, "B"),
        (1.0, {}, None),
    ):
        claim = archive.proposals.claim("trainer", study="costs")
        archive.proposals.complete(
            claim.id, claim.token, Result(value, metrics, device="cpu", hardware=hardware)
        )

    found = rows(archive.named("network-costs", study="costs"))
    assert {type(found[0][name]) for name in ("params", "flops", "latency_batch")} == {int}
    assert [(row["number"], row["value"], row["params"]) for row in found] == [
        (1, 0.25, 6),
        (0, 0.5, 5),
        (2, 1.0, None),
    ]
    assert (
        found[1].items()
        >= {**costs, "architecture": made[0].architecture_key, "hardware": "A"}.items()
    )
    (only,) = rows(archive.named("network-costs", study="costs", hardware="B"))
    assert only == found[0]
    answer(archive, "costs", agent, [(Suggestion(networks[3]), Result(math.nan))])
    assert [row["number"] for row in rows(archive.named("network-costs", study="costs"))] == [
        1,
        0,
        2,
        3,
    ]


@pytest.mark.every_server
@pytest.mark.parametrize(("direction", "sign"), [("maximise", 1), ("minimise", -1)])
def test_calibration(archive, networks, direction, sign):
    errors = [0.05, -0.15, 0.25, 0.0]
    std = 0.125
    steps = [
        ("gp", Suggestion(network, mean=0.5 - error, std=std), sign * 0.5, {})
        for network, error in zip(networks, errors, strict=False)
    ]
    evaluate(
        archive, "one", *steps, ("random", Suggestion(networks[9]), 0.5, {}), direction=direction
    )
    (row,) = rows(archive.named("calibration"))
    assert row["predictions"] == 4
    assert row["bias"] == pytest.approx(statistics.mean(errors))
    assert row["rmse"] == pytest.approx(math.sqrt(statistics.mean(error**2 for error in errors)))
    assert (row["mean_std"], row["within_1_std"], row["within_2_std"]) == (std, 0.5, 1.0)


@pytest.mark.every_server
def test_cost(archive, table, networks):
    evaluate(
        archive, "one", *(("random", Suggestion(network), 0.5, {}) for network in networks[:2])
    )
    found = {(row["task"], row["study"]): row for row in rows(archive.named("cost"))}
    assert found.keys() == {("digits", "one"), ("table", None)}
    assert (found["digits", "one"]["evaluations"], found["digits", "one"]["seconds"]) == (2, 200.0)
    assert found["table", None]["hours"] == pytest.approx(COUNT * 10 / 3600)
    assert found["table", None]["epochs"] == 2 * COUNT


@pytest.mark.parametrize("imported", [False, True])
def test_the_cost_leaves_reused_results_out(archive, networks, imported):
    evaluate(
        archive, "one", *(("random", Suggestion(network), 0.5, {}) for network in networks[:2])
    )
    archive.studies.create(study("two"))
    agent = archive.proposals.register_agent("random", {}, "1")
    outcomes = [
        Result(0.5, epochs=3, seconds=0.0, answered_from="one#00001"),
        Result(0.75, epochs=5, seconds=30.0),
    ]
    answer(
        archive,
        "two",
        agent,
        [(Suggestion(networks[at + 1]), one) for at, one in enumerate(outcomes)],
    )
    answer(
        archive,
        "one",
        agent,
        [(Suggestion(networks[3]), Result(0.75, epochs=5, answered_from="two#00001"))],
    )
    if imported:  # the text answers instead of columns
        Evaluations(archive.connection, archive.architectures).add(
            "digits", "digits/1", [("i/1", networks[4].key, Result(0.5, seconds=7.0, epochs=1))]
        )

    # Earlier releases took any seconds; a duration that is none hides no other.
    bad = [-3.0, math.inf, -math.inf, math.nan, None]
    steps = [("random", Suggestion(network), 0.5, {}) for network in networks[5 : 5 + len(bad)]]
    evaluate(archive, "bad", *steps, ("random", Suggestion(networks[12]), 0.5, {}))
    rewrite = "UNWIND $rows AS row MATCH (e:Evaluation {id: row[0]}) SET e.seconds = row[1]"
    rewritten = [[f"bad#{number:05d}", seconds] for number, seconds in enumerate(bad)]
    run_query(archive.connection, rewrite, {"rows": rewritten}, write=True)
    found = {row[2]: row[3:5] + row[6:] for row in both(archive, "cost")}
    assert found.pop(None, (1, 7.0, 7.0, 1, 0)) == (1, 7.0, 7.0, 1, 0)
    assert found == {
        "one": (2, 200.0, 100.0, 0, 0), "two": (1, 30.0, 30.0, 5, 0), "bad": (6, 100.0, 100.0, 0, 5)
    }  # fmt: skip


def test_the_gain_of_an_operation_counts_each_child_once(archive, networks):
    a, b = networks[:2]
    steps = [("random", Repeat(a), value, {}) for value in (0.25, 0.5, 0.75)]  # with three seeds
    child = Repeat(b, parent=a, operations=("swap",))
    evaluate(archive, "one", *steps, *(("evolution", child, value, {}) for value in (0.75, 1.0)))
    ((_, operation, uses, mean, largest, improved),) = archive.named("operators").rows
    assert (operation, uses, improved) == ("swap", 1, 1)
    assert mean == largest == pytest.approx(0.875 - 0.5)


@pytest.mark.every_server
def test_stale_workers(archive, connection, networks):
    evaluate(archive, "one", ("random", Suggestion(networks[0]), 0.5, {}))
    archive.proposals.create(
        "one", archive.proposals.register_agent("random", {}, "1"), [Suggestion(networks[1])]
    )
    claim = archive.proposals.claim("silent", study="one", lease_seconds=1000)
    archive.proposals.register_worker("idle", "host")
    assert archive.named("stale-workers").rows == []
    run_query(connection, "MATCH (w:Worker) SET w.heartbeat = w.heartbeat - 200000", write=True)
    (row,) = rows(archive.named("stale-workers"))
    assert (row["worker"], row["proposal"]) == ("silent", claim.id)
    assert 200 <= row["silent_seconds"] < 500
    assert 600 < row["lease_seconds"] <= 1000
    assert archive.named("stale-workers", seconds=1000).rows == []


@pytest.mark.every_server
@pytest.mark.parametrize("minimise", [False, True])
def test_frontier(archive, table, minimise):
    better = (lambda a, b: a < b) if minimise else (lambda a, b: a > b)
    expected = sorted(
        (cost, value, network.key)
        for network, value, cost in table
        if not any(
            (c <= cost and better(v, value)) or (c < cost and (better(v, value) or v == value))
            for _, v, c in table
        )
    )
    found = rows(archive.named("frontier", task="table", cost="latency_ms", minimise=minimise))
    assert [(row["cost"], row["value"], row["architecture"]) for row in found] == expected
    by_mass = rows(archive.named("frontier", task="table", cost="mass", minimise=minimise))
    assert [row["cost"] for row in by_mass] == sorted(row["cost"] for row in by_mass) != []
    assert archive.named("frontier", task="table", cost="nothing").rows == []


@pytest.mark.parametrize("imported", [False, True])
def test_a_cost_that_is_no_number_is_not_on_the_frontier(archive, networks, imported):
    results = [
        Result(value, {"loss": loss}) for value, loss in ((0.5, 1.0), (0.9, math.nan), (0.7, 2.0))
    ]
    archive.studies.create(study("one"))
    agent = archive.proposals.register_agent("random", {}, "1")
    answer(
        archive,
        "one",
        agent,
        [(Suggestion(each), one) for each, one in zip(networks, results, strict=False)],
    )
    if imported:
        archive.architectures.add(networks[3:4])
        worse = [("digits/1/worse", networks[3].key, Result(0.1, {"loss": math.nan}))]
        Evaluations(archive.connection, archive.architectures).add("digits", "digits/1", worse)

    found = rows(archive.named("frontier", task="digits", cost="loss"))
    assert [(row["value"], row["cost"]) for row in found] == [(0.5, 1.0), (0.7, 2.0)]


def test_a_frontier_without_points_says_why(archive, table):
    why = saved.why_empty(archive.connection, "frontier", {"task": "table", "cost": "flops"})
    assert why == (
        f"none of the {COUNT} results has flops; they have epochs, latency_ms, mass, seconds"
    )
    archive.studies.create(study("empty"))
    assert archive.named("frontier", task="digits").rows == []
    why = saved.why_empty(archive.connection, "frontier", {"task": "digits"})
    assert why == "the task 'digits' has no results yet"
    why = saved.why_empty(
        archive.connection, "frontier", {"task": "digits", "protocol": "digits/1"}
    )
    assert why == "the task 'digits' has no results under digits/1 yet"
    assert (
        saved.why_empty(archive.connection, "frontier", {"task": "table", "cost": "mass"}) is None
    )
    assert saved.why_empty(archive.connection, "motif", {"task": "digits"}) is None


def test_an_answer_without_rows_has_its_columns(archive, networks):
    archive.studies.create(study("one"))
    empty = {name: archive.named(name, **named_of(name)) for name in catalogue.names()}
    assert not any(answer.rows for answer in empty.values())
    evaluate(
        archive, "two", ("random", Suggestion(networks[0], mean=0.5, std=0.5), 0.5, {"two": "0"})
    )
    child = Suggestion(networks[1], parent=networks[0], operations=("swap",), mean=0.5, std=0.5)
    evaluate(archive, "two", ("random", child, 0.5, {"two": "0"}))
    archive.proposals.create(
        "two", archive.proposals.register_agent("random", {}, "1"), [Suggestion(networks[2])]
    )
    archive.proposals.claim("silent", study="two", lease_seconds=1000)
    publish(archive, networks[:1])
    for name, before in empty.items():
        late = {"seconds": -1} if name == "stale-workers" else {}
        full = archive.named(name, **{**named_of(name, "two"), **late})
        assert full.rows, name
        assert before.columns == full.columns, name


def named_of(name, study_name="one"):
    given = {"study": study_name, "task": "digits", "cost": "mass", "device": "gpu", "least": 1}
    return {each: given[each] for each in catalogue.get(name).parameters if each in given}


def publish(archive, networks, recipes=("a", "b"), pretraining=""):
    """Add published results of networks on `digits`, and their speeds on a device.

    The later networks and recipes are better, and the later networks slower.
    """
    archive.architectures.add(networks)
    places = {}
    rows = []
    for number, network in enumerate(networks):
        about = {"model": f"net{number}", "family": "resnet", "source": "package 1"}
        place = places.setdefault("", TaskProtocol("inference", "package/gpu@32", "maximise"))
        speed = 100.0 / (number + 1)
        metrics = {"samples_per_second": speed, "latency_ms": 1000 / speed}
        result = Result(speed, metrics, provenance=about)
        rows.append((f"inference/{number}", network.key, place, result))
        for better, recipe in enumerate(recipes):
            protocol = f"package/{recipe}@32"
            place = places.setdefault(recipe, TaskProtocol("digits", protocol, "maximise"))
            model = {**about, "model": f"net{number}.{recipe}"}
            if pretraining:
                model["pretraining"] = pretraining

            result = Result(number + better / 10, provenance=model)
            rows.append((f"digits/{recipe}/{pretraining}{number}", network.key, place, result))

    evaluations = Evaluations(archive.connection, archive.architectures)
    evaluations.add_many(list(places.values()), rows)


@pytest.mark.every_server
def test_published_networks_by_speed_recipe_and_family(archive, networks):
    first, second, third = networks[:3]
    publish(archive, [first, second, third])
    publish(archive, [first], recipes=("c",), pretraining="more")
    front = rows(archive.named("speed-frontier", task="digits", device="gpu", pretraining=False))
    assert [(row["model"], row["value"], row["latency_ms"]) for row in front] == [
        ("net0.b", 0.1, 10.0),
        ("net1.b", 1.1, 20.0),
        ("net2.b", 2.1, pytest.approx(30.0)),
    ]
    assert archive.named("speed-frontier", task="digits", device="other").rows == []

    gains = rows(archive.named("recipe-gains", task="digits", least=2))
    assert [row["gain"] for row in gains] == pytest.approx([0.1, 0.1, 0.1])
    assert {(row["worst_recipe"], row["best_recipe"]) for row in gains} == {
        ("package/a", "package/b")
    }
    assert archive.named("recipe-gains", task="digits", least=3).rows == []

    (family,) = rows(archive.named("families", task="digits"))
    assert (family["family"], family["networks"], family["results"]) == ("resnet", 3, 7)
    assert (family["model"], family["first_year"]) == ("net2.b", 2015)


def test_the_pages_of_an_answer_make_the_whole(archive, table):
    whole = archive.named("best-per-operation", task="table").rows
    pages = [
        saved.run(archive.connection, "best-per-operation", {"task": "table"}, limit=2, skip=skip)
        for skip in range(0, len(whole), 2)
    ]
    assert [row for page in pages for row in page.rows] == whole
    assert [page.truncated for page in pages] == [
        skip + 2 < len(whole) for skip in range(0, len(whole), 2)
    ]
    evaluate(
        archive,
        "one",
        *(("random", Suggestion(network), 0.5, {"one": "0"}) for network, _, _ in table[:3]),
    )
    page = saved.run(archive.connection, "contributions", {}, limit=1, skip=0)
    assert (len(page.rows), page.truncated) == (1, False)
    assert saved.run(archive.connection, "contributions", {}, limit=5, skip=1).rows == []
    with pytest.raises(QueryError, match="skip must be >= 0, got -1"):
        archive.query("RETURN 1", skip=-1)


def test_every_query_says_what_it_answers_and_only_reads():
    assert {
        "best-per-operation",
        "motif",
        "lineage",
        "contributions",
        "duplicates",
        "calibration",
        "cost",
    } < {*catalogue.names()}
    for name in catalogue.names():
        query = catalogue.get(name)
        require_read_only(query.cypher)
        assert query.summary.endswith(".")
        assert all(parameter.help for parameter in query.parameters.values())
        body = "\n".join(line for line in query.cypher.splitlines() if not line.startswith("//"))
        assert all(f"${parameter}" in body for parameter in query.parameters)


def test_mistakes(archive):
    with pytest.raises(
        UnknownNameError, match="unknown saved query 'linage': did you mean lineage"
    ):
        archive.named("linage")

    with pytest.raises(
        UsageError, match=r"lineage needs the parameter 'study': Name of the study\."
    ):
        archive.named("lineage")

    with pytest.raises(UsageError, match="frontier needs the parameter 'task'"):
        archive.named("frontier", task=None)

    with pytest.raises(
        UnknownNameError, match="the saved query cost has no parameter 'tsk': did you mean task"
    ):
        archive.named("cost", tsk="digits")

    for parameters in ({"operations": 5}, {"skips": None}, {"skips": ["skip_connect", 1]}):
        with pytest.raises(
            UsageError, match=f"{next(iter(parameters))!r} must be a list of texts, got"
        ):
            archive.named("motif", **parameters)

    with pytest.raises(UsageError, match="'cost' must be text, got 7"):
        archive.named("frontier", task="digits", cost=7)

    for value in ("False", "no", 0, []):
        with pytest.raises(
            UsageError, match=f"'minimise' must be true or false, got {re.escape(repr(value))}"
        ):
            archive.named("best-per-operation", minimise=value)

    archive.studies.create(study("digits"))
    for name in ("calibration", "contributions", "lineage"):
        with pytest.raises(UnknownNameError, match="unknown study 'digit': did you mean digits"):
            archive.named(name, study="digit")

        assert archive.named(name, study="digits").rows == []

    for name in ("best-per-operation", "cost", "duplicates", "frontier", "motif"):
        with pytest.raises(UnknownNameError, match="unknown task 'digit': did you mean digits"):
            archive.named(name, task="digit")

        assert archive.named(name, task="digits").rows == []

    with pytest.raises(
        UnknownNameError,
        match=r"unknown protocol of the task 'digits' "
        r"'digits/2': did you mean digi",
    ):
        archive.named("motif", task="digits", protocol="digits/2")

    with pytest.raises(UnknownNameError, match="unknown protocol 'digits/2'"):
        archive.named("motif", protocol="digits/2")


def test_names_may_look_like_numbers(archive):
    archive.studies.create(study("7", task="8", protocol="9"))
    assert (
        archive.named("lineage", study=7).rows
        == archive.named("motif", task=8, protocol=9).rows
        == []
    )
    with pytest.raises(UnknownNameError, match="unknown study '6'"):
        archive.named("lineage", study=6)
