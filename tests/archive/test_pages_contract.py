"""Pages on each server: whoever reads by the page sees what he would see one by one, whatever changes meanwhile."""

from __future__ import annotations

import math

import pytest

from archive import load, page_answers, pages, saved_queries
from archive.dump import dump
from archive.evaluations import Evaluations
from archive.records import Result, State
from tests.archive.stores import Suggestion, cells, count, study, suggest

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


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Pages of ten, of which two may be open."""
    monkeypatch.setattr(pages, "SIZE", 10)
    monkeypatch.setattr(pages, "MOST_OPEN", 2)


def result(number):
    value = math.nan if number == 7 else (number * 37 % 11) / 8
    metrics = {"accuracy": value, **({"flips": number % 4} if number % 3 else {})}
    return Result(value, metrics, {"loss": [1.0, value]}, seconds=float(number), seed=number)


def fill(archive, name="one", total=25, first=0, **settings):
    """Add that many results, of cells from the first on; one proposal failed."""
    archive.studies.create(study(name, **{"direction": "minimise" if name == "two" else "maximise", **settings}))
    agent = archive.proposals.register_agent(f"agent-{name}", {}, "1")
    networks = cells(100)[first : first + total]
    answered = []
    for at, network in enumerate(networks):
        parent = networks[at - 1] if at % 3 else None
        suggestion = Suggestion(network, parent=parent, operations=("swap",) if parent else ())
        answered.append((suggestion, "no value" if at == 4 else result(at)))
    for at in range(0, total, 10):
        basis = {"observations": {"one": f"0-{at}"}, "wanted": 1}
        archive.proposals.create_answered(name, agent, answered[at : at + 10], after=at, basis=basis)
    return networks


def seen(archive, name="one"):
    (found,) = pages.read(archive.connection, [name], COLUMNS)
    columns = (found.columns[name] for name in ("number", "value", "architecture"))
    return {number: (value, key) for number, value, key in zip(*columns, strict=True)}


def test_pages_are_written_as_they_fill_and_say_what_nodes_say(archive):
    networks = fill(archive)
    assert count(archive.connection, "(:Study)-[:HAS_PAGE]->(:Page)-[:HAS_WHOLE]->(:Whole)") == 2
    by_page = archive.studies.evaluations("one")
    observed = archive.studies.observed("one")
    (columns,) = pages.read(archive.connection, ["one"], COLUMNS)
    archive.connection.write(lambda tx: pages.forget(tx, ["one"]))
    assert count(archive.connection, "(:Page)") == count(archive.connection, "(:Whole)") == 0
    pages.MOST_OPEN = -1  # nothing is paged any more
    one_by_one = archive.studies.evaluations("one")
    assert repr(by_page) == repr(one_by_one)
    assert [one.number for one in by_page] == observed.numbers.tolist() == [n for n in range(25) if n != 4]
    assert repr(pages.read(archive.connection, ["one"], COLUMNS)) == repr([columns])
    assert by_page[3].architecture == networks[3].canonical
    assert [row["number"] for row in columns.others] == [4]


def test_what_was_open_when_its_page_was_written_is_looked_up(archive):
    archive.studies.create(study("one"))
    agent = archive.proposals.register_agent("random", {}, "1")
    archive.proposals.create("one", agent, suggest(cells(20)))
    claims = {claim.proposal.number: claim for claim in archive.proposals.claim_many("w", 20, study="one")}
    for number in range(19):
        if number not in (3, 15):
            archive.proposals.complete(f"one#{number:05d}", claims[number].token, result(number))
    archive.proposals.fail("one#00003", claims[3].token, "out of memory")
    assert len(seen(archive)) == 17
    assert count(archive.connection, "(:Page)") == 2
    # A result is taken for what was given up, and shows at once though its page is written.
    archive.proposals.complete("one#00003", claims[3].token, Result(0.5))
    assert seen(archive)[3] == (0.5, cells(20)[3].key)
    archive.proposals.complete("one#00015", claims[15].token, result(15), pruned=True)
    assert len(seen(archive)) == 19
    assert archive.proposals.get("one#00015").state is State.PRUNED


def test_every_question_has_the_answer_of_its_text(archive):
    fill(archive)
    fill(archive, "two", 23, first=15)
    # What a task's studies want is what is best, here and in the text.
    fill(archive, "three", 12, first=40, task="errors", protocol="errors/1", direction="minimise")
    assert count(archive.connection, "(:Page)") == 5
    for name, every in QUESTIONS.items():
        query = saved_queries.get(name)
        for given in every:
            values = {each.name: given.get(each.name, each.default) for each in query.parameters.values()}
            text = archive.connection.query(query.cypher, values)
            finish = saved_queries.FINISHING.get(name, lambda rows: rows)
            answer = saved_queries.run(archive.connection, name, given)
            assert answer.columns == finish(text).columns or not text.rows
            assert flat(answer.rows) == pytest.approx(flat(finish(text).rows), nan_ok=True)
            by_page = page_answers.ANSWERS[name](archive.connection, values)
            # No page knows the cost by default, and there is no lineage without a result.
            assert by_page is not None or name in ("lineage", "frontier")


def flat(rows):
    """Texts are compared as such, numbers as what they are nearly."""
    return {(at, place): str(value) if isinstance(value, str | list | None) else value
            for at, row in enumerate(rows) for place, value in enumerate(row)}  # fmt: skip


def test_results_of_others_have_no_pages_and_are_asked_of_the_text(archive):
    fill(archive)
    network = cells(100)[99]
    archive.architectures.add([network])
    Evaluations(archive.connection, archive.architectures).add(
        "digits", "digits/1", [("x/1", network.key, Result(9.0))]
    )
    values = {"task": None, "protocol": None, "minimise": False}
    assert page_answers.best_per_operation(archive.connection, values) is None
    best = saved_queries.run(archive.connection, "best-per-operation")
    assert max(row[5] for row in best.rows) == 9.0


def test_a_load_that_changes_results_deletes_their_pages(archive, tmp_path):
    fill(archive)
    dump(archive.connection, tmp_path / "one.gz")
    # What the page says is not what the file says.
    archive.connection.query("MATCH (e:Evaluation {id: 'one#00002'}) REMOVE e.seconds, e.metric_accuracy", write=True)
    archive.connection.write(lambda tx: pages.forget(tx, ["one"]))
    assert archive.studies.evaluations("one")[2].seconds is None
    assert count(archive.connection, "(:Page)") == 2
    load.load(archive.connection, tmp_path / "one.gz")
    assert archive.studies.evaluations("one")[2].seconds == 2.0


def test_costs_that_come_to_be_known_delete_the_pages_of_their_networks(archive):
    networks = fill(archive)
    assert count(archive.connection, "(:Page)") == 2
    archive.connection.write(lambda tx: pages.forget_networks(tx, [networks[0].key]))
    assert count(archive.connection, "(:Page)") == 0
