"""Columns of results on each server: current values of the nodes, after writes by any client."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from archive import frames
from archive.agents import provenance
from archive.database.user_query import run_query
from archive.errors import QueryError
from archive.exchange import load, study_rows
from archive.exchange.dump import dump
from archive.queries import catalogue, columnar, saved
from archive.store import result_columns
from archive.store.evaluations import Evaluations
from archive.store.properties import evaluation_from
from archive.store.records import Result, State
from archive.store.studies import rows
from tests.support.stores import Suggestion, answer, cells, study, suggest

COLUMNS = ["value", "architecture", "metric_accuracy", "motifs"]
QUESTIONS = {
    "best-per-operation": [{}, {"task": "digits", "minimise": True}, {"task": "errors"}],
    "contributions": [{}, {"study": "two"}],
    "cost": [{}, {"task": "digits"}, {"task": "errors"}],
    "duplicates": [{}, {"protocol": "digits/1"}],
    "frontier": [
        {"task": "digits"}, {"task": "digits", "cost": "flips", "minimise": True}, {"task": "digits", "cost": "seed"},
        {"task": "errors", "cost": "flips"}, {"task": "errors", "cost": "flips", "minimise": False},
    ],
    "lineage": [{"study": "one"}, {"study": "two"}, {"study": "three"}],
    "motif": [{}, {"operations": ["skip_connect", "nor_conv_1x1"], "skips": []}],
}  # fmt: skip


def result(number):
    value = math.nan if number == 7 else (number * 37 % 11) / 8
    metrics = {"accuracy": value, **({"flips": number % 4} if number % 3 else {})}
    return Result(value, metrics, {"loss": [1.0, value]}, seconds=float(number), seed=number)


def fill(archive, name="one", total=25, first=0, **settings):
    """Add that many results, of cells from the first on; one proposal failed."""
    archive.studies.create(
        study(name, **{"direction": "minimise" if name == "two" else "maximise", **settings})
    )
    agent = archive.proposals.register_agent(f"agent-{name}", {}, "1")
    networks = cells(100)[first : first + total]
    answered = []
    for at, network in enumerate(networks):
        parent = networks[at - 1] if at % 3 else None
        suggestion = Suggestion(network, parent=parent, operations=("swap",) if parent else ())
        answered.append((suggestion, "no value" if at == 4 else result(at)))

    for at in range(0, total, 10):
        provenance = {"observations": {"one": f"0-{at}"}, "wanted": 1}
        answer(archive, name, agent, answered[at : at + 10], after=at, basis=provenance)

    return networks


def seen(archive, name="one"):
    (found,) = result_columns.read(archive.connection, [name], COLUMNS)
    columns = (found.columns[name] for name in ("number", "value", "architecture"))
    return {number: (value, key) for number, value, key in zip(*columns, strict=True)}


def raw(archive, cypher, **parameters):
    """Write as another client of the database does, without a notice to the archive."""
    archive.connection.write(lambda tx: tx.run(cypher, parameters).consume())


@pytest.mark.every_server
def test_columns_and_evaluations_say_what_was_stored(archive):
    networks = fill(archive)
    whole = archive.studies.evaluations("one")
    observed = archive.studies.result_arrays("one")
    assert (
        [one.number for one in whole]
        == observed.numbers.tolist()
        == [n for n in range(25) if n != 4]
    )
    assert [one.architecture for one in whole] == [networks[one.number].canonical for one in whole]
    assert whole[3].curve == {"epoch": [1, 2], "loss": [1.0, whole[3].value]} and whole[
        3
    ].metrics == {"accuracy": whole[3].value}
    assert (whole[3].seconds, whole[3].seed) == (3.0, 3)
    (found,) = result_columns.read(
        archive.connection, ["one", "none"], [*COLUMNS, "network_mass", "operations"]
    )
    assert found.columns["architecture"] == [one.architecture.key for one in whole]
    assert repr(found.columns["value"]) == repr([one.value for one in whole])
    assert [row["number"] for row in found.others] == [4]
    assert all(mass > 0 for mass in found.columns["network_mass"])
    assert found.columns["operations"][0] == "|".join(result_columns.operations(networks[0]))


@pytest.mark.every_server
def test_evaluations_can_be_read_without_their_curves(archive):
    fill(archive)
    for names in ("one", None):
        whole = archive.studies.evaluations(names)
        assert all(each.curve for each in whole)
        without = archive.studies.evaluations(names, curves=False)
        assert repr(without) == repr([replace(each, curve={}) for each in whole])


def test_tables_of_evaluations_read_no_curves(archive, monkeypatch):
    fill(archive)
    built = []

    def building(row, architecture):
        built.append(evaluation_from(row, architecture))
        return built[-1]

    monkeypatch.setattr("archive.store.evaluations.evaluation_from", building)
    for names in ("one", None):
        assert len(frames.evaluations(archive, names)) == 24
        assert len(built) == 24 and not any(each.curve for each in built)
        built.clear()

    assert len(study_rows.rows_of(archive, "one")) == 25
    assert "curve_" not in rows.select(study_rows._COLUMNS) and not built


@pytest.mark.every_server
def test_a_metric_of_any_name_is_a_column(archive):
    archive.studies.create(study("one"))
    agent = archive.proposals.register_agent("random", {}, "1")
    name = "a `b` {c}"
    answered = [(Suggestion(cells(1)[0]), Result(1.0, {name: 0.5}))]
    answer(archive, "one", agent, answered, after=0)
    (found,) = result_columns.read(archive.connection, ["one"], [f"metric_{name}"])
    assert found.columns[f"metric_{name}"] == [0.5]


@pytest.mark.every_server
@pytest.mark.parametrize("write", ["by the archive's query", "by another client"])
def test_a_changed_value_is_what_everything_reads(archive, write):
    fill(archive)
    look = archive.studies.follow("one")
    assert repr(look()) == repr(look())
    before = archive.studies.evaluations("one")
    cypher = "MATCH (e:Evaluation {id: 'one#00002'}) SET e.value = 99.0, e.metric_accuracy = 99.0"
    if write == "by another client":
        raw(archive, cypher)
    else:
        archive.query(cypher, write=True)
        assert look().incumbent.number == 2

    after = archive.studies.evaluations("one")
    assert [
        one.number for one, other in zip(after, before, strict=True) if repr(one) != repr(other)
    ] == [2]
    assert seen(archive)[2][0] == 99.0
    assert 99.0 in archive.studies.result_arrays("one").values
    history, _ = provenance.history_of(archive, archive.studies.get("one"))
    assert [one.score for one in history.observations if one.id == "one#00002"] == [99.0]
    assert frames.evaluations(archive, "one").loc[
        "one#00002", ["value", "metric_accuracy"]
    ].tolist() == [99.0, 99.0]
    assert max(row[6] for row in archive.named("best-per-operation").rows) == 99.0
    assert archive.studies.list()[0].best == 99.0


@pytest.mark.every_server
def test_deleted_results_are_gone_for_everything(archive):
    fill(archive)
    look = archive.studies.follow("one")
    assert repr(look()) == repr(look())
    archive.query("MATCH (e:Evaluation) WHERE e.seconds >= 20 DETACH DELETE e", write=True)
    archive.query(
        "MATCH (p:Proposal {number: 3})-[:RESULTED_IN]->(e) DETACH DELETE p, e", write=True
    )
    left = [n for n in range(20) if n not in (3, 4)]
    assert [one.number for one in archive.studies.evaluations("one")] == left
    assert sorted(seen(archive)) == left
    assert [view.number for view in look().proposals if view.value is not None] == left
    assert {row[3] for row in archive.named("cost").rows} == {len(left)}
    # The budget counts the existing proposals.
    archive.studies.set_budget("one", 26)
    agent = archive.proposals.register_agent("another", {}, "1")
    assert len(archive.proposals.create("one", agent, suggest(cells(100)[60:70]))) == 3


def test_a_result_whose_network_was_deleted_is_left_out(archive):
    networks = fill(archive)
    raw(archive, "MATCH (a:Architecture {key: $key}) DETACH DELETE a", key=networks[2].key)
    archive.architectures._cached.clear()
    assert 2 not in [one.number for one in archive.studies.evaluations("one")]


def test_what_is_open_shows_once_it_has_a_result(archive):
    archive.studies.create(study("one"))
    agent = archive.proposals.register_agent("random", {}, "1")
    archive.proposals.create("one", agent, suggest(cells(20)))
    claims = {
        claim.proposal.number: claim for claim in archive.proposals.claim_many("w", 20, study="one")
    }
    for number in range(19):
        if number not in (3, 15):
            archive.proposals.complete(f"one#{number:05d}", claims[number].token, result(number))

    archive.proposals.fail("one#00003", claims[3].token, "out of memory")
    assert len(seen(archive)) == 17
    # A late result of a failed proposal counts.
    archive.proposals.complete("one#00003", claims[3].token, Result(0.5))
    assert seen(archive)[3] == (0.5, cells(20)[3].key)
    archive.proposals.complete("one#00015", claims[15].token, result(15), pruned=True)
    assert len(seen(archive)) == 19
    assert archive.proposals.get("one#00015").state is State.PRUNED


@pytest.mark.every_server
def test_an_agent_reads_the_scores_of_whole_evaluations(archive):
    """The history of agents has no metrics; with partial results, it has the curves that their
    scores need."""
    fill(archive)
    raw(
        archive,
        (
            "MATCH (e:Evaluation) WHERE e.seconds < 6 SET e.partial = true, e.epochs = 1, "
            "e.curve_accuracy = e.curve_loss"
        ),
    )
    record = archive.studies.get("one")
    history, _ = provenance.history_of(archive, record)
    whole = archive.studies.evaluations("one")
    assert repr(history.observations) == repr(provenance.observations_of(whole, record, {}))


PARTIAL = "MATCH (e:Evaluation) WHERE e.seconds % 4 = 1 SET e.partial = true"
LIMITED = """
MATCH (s:Study) WHERE s.name <> 'two'
SET s.constrained = ['flips', 'accuracy'], s.operators = ['<', '<='], s.bounds = [3.0, 1.125]
"""


@pytest.mark.parametrize(
    "change", [pytest.param("", marks=pytest.mark.every_server), PARTIAL, LIMITED]
)
def test_every_question_has_the_answer_of_its_text(archive, monkeypatch, change):
    # Three studies are read in two transactions.
    monkeypatch.setattr(result_columns, "AT_ONCE", 2)
    fill(archive)
    fill(archive, "two", 23, first=15)
    # The studies of a task decide which direction is better, in columns and in the text.
    fill(archive, "three", 12, first=40, task="errors", protocol="errors/1", direction="minimise")
    if change:
        archive.query(change, write=True)

    for name, every in QUESTIONS.items():
        query = catalogue.get(name)
        for given in every:
            values = {
                each.name: given.get(each.name, each.default) for each in query.parameters.values()
            }
            text = run_query(archive.connection, query.cypher, values)
            finish = saved.FINISHING.get(name, lambda rows: rows)
            answer = saved.run(archive.connection, name, given)
            assert answer.columns == finish(text).columns or not text.rows
            assert flat(answer.rows) == pytest.approx(flat(finish(text).rows), nan_ok=True)
            by_columns = columnar.ANSWERS[name](archive.connection, values)
            # No network has the cost by default, and there is no lineage without a result.
            assert by_columns is not None or name in ("lineage", "frontier")


def flat(rows):
    """Return rows that compare equal if texts are equal and numbers nearly so."""
    return {(at, place): str(value) if isinstance(value, str | list | None) else value
            for at, row in enumerate(rows) for place, value in enumerate(row)}  # fmt: skip


def test_with_imported_results_the_text_is_asked(archive):
    fill(archive)
    network = cells(100)[99]
    archive.architectures.add([network])
    Evaluations(archive.connection, archive.architectures).add(
        "digits", "digits/1", [("x/1", network.key, Result(9.0))]
    )
    values = {"task": None, "protocol": None, "minimise": False}
    assert columnar.best_per_operation(archive.connection, values) is None
    best = saved.run(archive.connection, "best-per-operation")
    assert max(row[6] for row in best.rows) == 9.0


def test_a_question_that_takes_too_long_is_given_up(archive):
    fill(archive)
    with pytest.raises(QueryError, match="longer than its limit"):
        saved.run(archive.connection, "cost", timeout=1e-9)


@pytest.mark.every_server
def test_a_load_that_changes_results_is_seen(archive, tmp_path):
    fill(archive)
    dump(archive.connection, tmp_path / "one.gz")
    run_query(
        archive.connection,
        "MATCH (e:Evaluation {id: 'one#00002'}) REMOVE e.seconds, e.metric_accuracy",
        write=True,
    )
    assert archive.studies.evaluations("one")[2].seconds is None
    load.load(archive.connection, tmp_path / "one.gz")
    assert archive.studies.evaluations("one")[2].seconds == 2.0
