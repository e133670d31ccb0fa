"""Predictions from the results of an archive, as the library, a command and its JSON return them."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from click.testing import CliRunner

from archive import agents
from archive.agents.prediction.predicting import LEAST_OF_PROTOCOL, MOST_ROWS, choose, results_of
from archive.architecture.nasbench_codec import to_nasbench201
from archive.cli.main import archive as command
from archive.errors import UnknownNameError, UsageError
from archive.queries.results_by_task import TaskResult
from archive.store.evaluations import Evaluations
from archive.store.records import Result, Study
from tests.support.json_documents import check
from tests.support.networks import torch_nets
from tests.support.stores import cells, suggest

COUNT = 60


def value_of(cell) -> float:
    """An accuracy that grows with the convolutions, within (0, 100)."""
    return 60.0 + 5.0 * sum(layer.op.startswith("nor_conv") for layer in cell.layers)


def add(archive, protocol: str, rows) -> None:
    evaluations = Evaluations(archive.connection, archive.architectures)
    evaluations.add("images", protocol, rows, direction="maximise")


@pytest.fixture
def filled(archive):
    networks = cells(COUNT)
    archive.architectures.add(networks)
    for side in (32, 64):
        rows = []
        for number, cell in enumerate(networks[:-1]):
            origin = {
                "source": "table",
                "family": f"family {number % 7}",
                "model": f"cell {number}",
            }
            metrics = {"latency_ms": 1.0 + number}
            result = Result(value_of(cell) + side / 32, metrics=metrics, provenance=origin)
            rows.append((f"{side}/{number}", cell.key, result))

        add(archive, f"table/a1@{side}", rows)

    return archive


def test_a_network_without_a_result_is_predicted_from_its_relatives(filled):
    unseen = cells(COUNT)[-1]
    document = agents.predict(filled, unseen, "images", "table/a1@64", relatives=3)
    assert document.low < value_of(unseen) + 2 < document.high
    assert document.value == pytest.approx(value_of(unseen) + 2, abs=3.0)
    assert (document.results, document.networks, document.of_protocol) == (118, 59, 59)
    assert document.validation.families == 7
    assert document.validation.rank_correlation > 0.8
    assert [relative.protocol for relative in document.relatives] == ["table/a1@64"] * 3
    order = [relative.similarity for relative in document.relatives]
    assert order == sorted(order, reverse=True)
    assert document.relatives[0].model.startswith("cell ")
    # From the files of the first call.
    assert agents.predict(filled, unseen, "images", "table/a1@64", relatives=3) == document


def test_new_results_change_the_prediction(filled):
    unseen = cells(COUNT)[-1]
    before = agents.predict(filled, unseen, "images", "table/a1@64")
    result = Result(99.0, provenance={"source": "table", "family": "another"})
    add(filled, "table/a1@64", [("new", unseen.key, result)])
    after = agents.predict(filled, unseen.key, "images", "table/a1@64")
    assert after.relatives[0].value == 99.0
    assert after.value > before.value


def test_what_cannot_be_predicted_is_refused_in_one_line(filled):
    cell = cells(1)[0]
    with pytest.raises(UnknownNameError, match="image"):
        agents.predict(filled, cell, "image", "table/a1@64")

    with pytest.raises(UnknownNameError, match="latency_ms"):
        agents.predict(filled, cell, "images", "table/a1@64", metric="latency")

    with pytest.raises(UsageError, match="0 networks of the space torch"):
        agents.predict(filled, torch_nets.residual(), "images", "table/a1@64")

    with pytest.raises(UsageError, match="relatives must be >= 0"):
        agents.predict(filled, cell, "images", "table/a1@64", relatives=-1)


def test_the_command_renders_the_document(filled, monkeypatch):
    monkeypatch.setattr("archive.cli.predict.open_archive", lambda ctx: nullcontext(filled))
    text = to_nasbench201(cells(COUNT)[-1])
    words = ["predict", text, "--task", "images", "--protocol", "table/a1@64"]
    shown = CliRunner().invoke(command, words, catch_exceptions=False).stdout
    assert "90 %" in shown
    assert "from 118 results of 59 networks, 59 under this protocol" in shown
    assert "cell " in shown
    answer = CliRunner().invoke(command, [*words, "-k", "1", "--json"], catch_exceptions=False)
    (document,) = check("predict", answer.stdout)
    assert len(document["relatives"]) == 1


def test_results_of_another_objective_and_of_hyperparameters_are_left_out(filled):
    cell = cells(1)[0]
    add(filled, "table/a1+objective:loss", [("loss", cell.key, Result(0.1))])
    filled.studies.create(Study("tuned", "images", "table/a1@64", "nasbench201", budget=9))
    agent = filled.proposals.register_agent("random", {}, "1")
    filled.proposals.create("tuned", agent, suggest([cell], hyperparameters={"rate": 0.5}))
    results = results_of(filled, "images", "table/a1@32")
    assert {result.protocol for result in results} == {"table/a1@32", "table/a1@64"}
    of_cell = [result.protocol for result in results if result.architecture == cell.key]
    assert of_cell == ["table/a1@32"]
    (other,) = results_of(filled, "images", "table/a2+objective:loss")
    assert other.value == 0.1


def test_the_command_exports_a_model_for_its_inputs(tmp_path, monkeypatch):
    (tmp_path / "small.py").write_text("import torch\nbuild = lambda: torch.nn.Linear(4, 2)\n")
    networks = []

    def predict(archive, network, *arguments, **options):
        networks.append(network)
        raise UsageError("seen")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("archive.cli.predict.open_archive", lambda ctx: nullcontext(None))
    monkeypatch.setattr("archive.agents.prediction.predicting.predict", predict)
    words = ["predict", "small.py:build", "--task", "images", "--protocol", "a", "--input", "4"]
    CliRunner().invoke(command, words)
    assert networks[0].layers[0].attributes["input"] == "4"


def test_a_large_table_is_learned_from_all_over():
    results = []
    for number in range(3 * MOST_ROWS):
        identity = f"table/{number:05}"
        results.append(TaskResult("a", identity, "torch", identity, 1.0, None, None, None))

    chosen = choose(results, "a")
    assert chosen == choose(results[::-1], "a")
    late = sum(result.evaluation >= results[2 * MOST_ROWS].evaluation for result in chosen)
    assert 0.25 < late / MOST_ROWS < 0.42


def test_results_of_the_protocol_are_enough_where_there_are_many():
    results = []
    for number in range(LEAST_OF_PROTOCOL):
        for protocol in ("gpu/amp@224", "cpu/fp32@224"):
            identity = f"{protocol} {number}"
            results.append(
                TaskResult(protocol, f"{number}", "torch", identity, 1.0, None, None, None)
            )

    chosen = choose(results, "gpu/amp@288")
    assert {result.protocol for result in chosen} == {"gpu/amp@224"}
    assert len(choose(results[:-2], "gpu/amp@288")) == len(results) - 2
