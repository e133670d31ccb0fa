"""Tables with a column of graphs: recurrent cells with their curves."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from archive.agents.nearest import similar
from archive.architecture.open_graphs.operation_graphs import read_graph
from archive.errors import UsageError
from archive.queries.runs import find_runs, runs_of_network
from archive.queries.tried.tree import read_tree
from archive.runs.history.table_columns import RunMapping
from archive.runs.history.table_files import read_rows
from archive.runs.history.table_rows import runs_of_rows
from archive.runs.imported import import_runs
from archive.store.records import State
from tests.support.networks.cells import GATED, renamed
from tests.support.stores import count

PLAIN = {
    "f": {"op": "linear", "input": ["x", "h_prev_0"]},
    "h_new_0": {"op": "tanh", "input": ["f"]},
}
ROWS = [
    {"id": 1, "of": None, "cell": json.dumps(PLAIN), "loss": "5.5 5.2", "size": 4, "status": "OK"},
    {"id": 2, "of": 1, "cell": GATED, "loss": [5.0, 4.5], "size": 4, "status": "OK"},
    {"id": 2, "of": 1, "cell": renamed(GATED, 7), "loss": "5.1 4.7", "size": 4, "status": "OK"},
    {"id": 3, "of": 2, "cell": GATED, "loss": "7.5 nan", "size": 8, "status": "loss is nan!"},
    {"id": 4, "of": None, "loss": 6.0, "size": 4, "status": "no cell"},
]
MAPPING = RunMapping(
    objective="loss",
    direction="minimise",
    identity="id",
    parent="of",
    status="status",
    curves=("loss",),
    graph="cell",
)


@pytest.mark.every_server
def test_each_run_builds_its_cell(archive):
    result = import_runs(archive, "s", ROWS, MAPPING)
    assert (result.runs, result.added, result.failed, result.networks) == (5, 5, 1, 2)
    assert import_runs(archive, "s", ROWS, MAPPING).added == 0

    runs = {run.run: run for run in find_runs(archive.connection, [])[0]}
    wider, again = runs["s#00001"], runs["s#00002"]
    assert wider.network == again.network == read_graph(GATED).key
    assert wider.network_changes == ["1 blend more", "1 elementwise_sum more"]
    assert (wider.changes, wider.repeats, wider.parent, wider.motivation) == (
        [],
        2,
        "s#00000",
        None,
    )
    assert wider.gain == pytest.approx(5.2 - 4.6)
    assert runs["s#00003"].reason == "loss is nan!, as the table says"
    assert (runs["s#00004"].network, runs["s#00004"].motivation) == (None, "[no cell]")

    failure = archive.proposals.list("s")[3]
    assert failure.state is State.FAILED
    assert archive.studies.evaluation("s#00001").curve["loss"] == [5.0, 4.5]
    same = runs_of_network(archive.connection, read_graph(renamed(GATED, 3)).functional_key)
    assert {run.run for run in same} == {"s#00001", "s#00002", "s#00003"}
    (near,) = similar(archive, read_graph(PLAIN)).neighbours
    assert (near.key, near.evaluations) == (wider.network, 2)
    operations = {row.run: row.operations for row in read_tree(archive.connection, "s").runs}
    assert operations["s#00001"] == wider.network_changes
    (row,) = archive.query(
        "MATCH (p:Proposal {study: 's', number: 1})-[:OF]->()-[:BUILDS]->(n:Architecture) "
        "MATCH (n)-[:HAS_LAYER]->(:Layer {module: 'gate'})-[f:FEEDS]->(b:Layer {op: 'blend'}) "
        "RETURN n.space, b.module, f.arguments"
    ).rows
    assert row == ("graph", "h_new_0", [0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cell": "{"}, "row 1 has no graph in the column cell: the graph is no JSON"),
        ({"cell": {"a": {"op": 7}}}, "row 1 has no graph in .*'a' has no operation"),
        ({"id": 2}, "rows 1 and 2 have one id, '2'"),
        ({"id": 2, "cell": GATED, "size": 5}, "rows 1 and 2 have one id, '2'"),
    ],
)
def test_rows_without_a_graph_or_with_one_id_are_one_line(changes, message):
    with pytest.raises(UsageError, match=message):
        runs_of_rows([{**ROWS[0], **changes}, *ROWS[1:]], MAPPING)


def test_a_repeat_never_takes_the_id_of_another_row():
    rows = []
    for identity, loss in (("2 (2)", 1.0), ("2", 2.0), ("2", 3.0)):
        rows.append({**ROWS[1], "id": identity, "of": None, "loss": loss})

    runs = runs_of_rows(rows, MAPPING).runs
    expected = [("2 (2)", 1.0), ("2", 2.0), ("2 (3)", 3.0)]
    assert [(run.identity, run.metrics["loss"]) for run in runs] == expected


def test_a_cell_without_a_value_has_no_graph():
    rows = [{"cell": cell, "loss": 1.0} for cell in (None, "", math.nan, GATED)]
    mapping = RunMapping("loss", "minimise", graph="cell")
    networks = [run.network for run in runs_of_rows(rows, mapping).runs]
    assert networks[:3] == [None] * 3 and networks[3] is not None


def test_an_unordered_operation_is_one_of_the_graphs():
    runs_of_rows(ROWS, replace(MAPPING, unordered=("Linear",)))
    with pytest.raises(UsageError, match=r"no graph has the operation 'liner'.* blend, .*linear"):
        runs_of_rows(ROWS, replace(MAPPING, unordered=("liner",)))


def test_runs_that_were_imported_without_their_graphs_get_none(archive):
    import_runs(archive, "s", ROWS[:1], replace(MAPPING, graph=None, values=("size",)))
    result = import_runs(archive, "s", ROWS[:1], replace(MAPPING, values=("size",)))
    assert (result.added, result.networks) == (0, None)
    assert count(archive.connection, "(:Architecture {space: 'graph'})") == 0


def test_published_recurrent_cells(shared_data):
    networkx = pytest.importorskip("networkx")
    path = shared_data / "data" / "records" / "nas_bench_nlp_wikitext2.csv.gz"
    if not path.exists():
        pytest.skip(f"no {path}")

    rows = read_rows(path)
    mapping = RunMapping(
        objective="valid_loss_by_epoch",
        direction="minimise",
        identity="recipe_id",
        status="status",
        metrics=("params", "epochs"),
        curves=("valid_loss_by_epoch",),
        graph="recipe_json",
    )
    runs = runs_of_rows(rows, mapping).runs
    assert len(runs) == 345
    assert sum(run.reason is not None for run in runs) == 4
    assert [run.identity for run in runs if run.identity.startswith("1002429")] == [
        "1002429",
        "1002429 (2)",
    ]
    networks = {run.network.key: run.network for run in runs if run.network is not None}
    assert len(networks) == 275
    unordered = runs_of_rows(rows, replace(mapping, unordered=("linear",))).runs
    assert len({run.network.key for run in unordered if run.network is not None}) == 265

    # The oracle: of cells with equal numbers of each operation, no two are isomorphic.
    groups: dict[tuple, list] = {}
    for network in list(networks.values())[:120]:
        labels = tuple(sorted(layer.op for layer in network.layers))
        groups.setdefault((labels, len(network.edges)), []).append(network)

    for group in groups.values():
        graphs = []
        for network in group:
            graph = networkx.DiGraph()
            for position, layer in enumerate(network.layers):
                graph.add_node(position, op=layer.op)

            for (tail, head), places in network.argument_of.items():
                graph.add_edge(tail, head, places=places)

            for earlier in graphs:
                assert not networkx.is_isomorphic(
                    graph, earlier, lambda a, b: a == b, lambda a, b: a == b
                )

            graphs.append(graph)
