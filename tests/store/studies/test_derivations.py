"""Runs and those that they are changes of: one relationship each, in whatever order they are stored."""

import pytest

from archive.exchange.dump import dump
from archive.exchange.load import load
from archive.runs.history.table_columns import RunMapping
from archive.runs.imported import import_runs
from archive.store import schema
from archive.store.studies import derivations

# Parents before, after, in a circle, itself, and missing.
ROWS = [
    {"id": "a", "up": None, "loss": 1.0},
    {"id": "b", "up": "a", "loss": 2.0},
    {"id": "c", "up": "e", "loss": 3.0},
    {"id": "d", "up": "d", "loss": 4.0},
    {"id": "e", "up": "c", "loss": 5.0},
    {"id": "f", "up": "z", "loss": 6.0},
]
MAPPING = RunMapping("loss", "minimise", identity="id", parent="up")
EXPECTED = [(1, 0), (2, 4), (4, 2)]
LINKS = """
MATCH (p:Proposal)-[:DERIVED_FROM]->(parent:Proposal)
RETURN p.study, parent.study, p.number, parent.number ORDER BY p.study, p.number
"""


def links(archive, study="s"):
    """Return the numbers of runs and their parents, which are all of one study."""
    rows = archive.query(LINKS).rows
    assert {name for row in rows for name in row[:2]} <= {study}
    return [tuple(row[2:]) for row in rows]


@pytest.mark.every_server
def test_each_run_leads_to_the_one_that_it_is_a_change_of(archive):
    import_runs(archive, "s", ROWS, MAPPING)
    import_runs(archive, "s", ROWS, MAPPING)
    assert links(archive) == EXPECTED
    walk = "MATCH (p:Proposal {number: 1})-[:DERIVED_FROM*1..5]->(q:Proposal) RETURN q.number"
    assert archive.query(walk).rows == [(0,)]


@pytest.mark.every_server
def test_runs_of_an_earlier_release_are_linked(archive):
    import_runs(archive, "s", ROWS, MAPPING)
    archive.query("MATCH ()-[r:DERIVED_FROM]->() DELETE r", write=True)
    archive.query("MATCH (m:SchemaMigration) WHERE m.version > 10 DELETE m", write=True)
    schema.migrate(archive.connection)
    assert links(archive) == EXPECTED


def test_an_import_that_was_interrupted_is_completed(archive, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("archive.exchange.importers.additions.link_missing", interrupt)
        with pytest.raises(KeyboardInterrupt):
            import_runs(archive, "s", ROWS, MAPPING)

    import_runs(archive, "s", ROWS, MAPPING)
    assert links(archive) == EXPECTED


def interrupt(*_):
    raise KeyboardInterrupt


def test_more_than_a_batch_is_linked(archive, monkeypatch):
    monkeypatch.setattr(derivations, "BATCH", 1)
    import_runs(archive, "s", ROWS, MAPPING)
    assert links(archive) == EXPECTED


@pytest.mark.parametrize("name", ["s", "other"])
def test_a_dump_keeps_the_parents_under_new_names_too(archive, tmp_path, name):
    import_runs(archive, "s", ROWS, MAPPING)
    dump(archive.connection, tmp_path / "runs.jsonl.gz")
    archive.studies.delete("s")
    assert archive.query(LINKS).rows == []
    load(archive.connection, tmp_path / "runs.jsonl.gz", rename={"s": name})
    assert links(archive, name) == EXPECTED
