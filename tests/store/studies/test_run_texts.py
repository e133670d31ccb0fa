"""Long texts of runs: a node each, which goes where its proposal goes, in archives of any release."""

import os
import signal
import subprocess
import sys

import pytest

from archive import settings
from archive.database.user_query import run_query
from archive.exchange.dump import dump
from archive.exchange.load import load
from archive.queries.runs import search_runs
from archive.queries.tried.details import details_of_run
from archive.queries.tried.filters import RunFilter
from archive.queries.tried.matches import PlannedRun, find_matches
from archive.store import schema
from archive.store.studies import run_texts
from tests.conftest import wipe
from tests.dashboard.recorded_runs import StoredRun, store_runs
from tests.support.dumped import dumped
from tests.support.stores import count, everywhere

DIFF = "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-width = 1\n+width = 2\n"
RUNS = [
    StoredRun({"lr": 0.1}, 1.0, properties={"diff": DIFF, "log_end": "Muon diverged"}),
    StoredRun({"lr": 0.2}, "out of memory", properties={"log_end": "CUDA"}),
    StoredRun({"lr": 0.3}, 3.0, why="muon"),
]
EXPECTED = [(DIFF, "Muon diverged"), (None, "CUDA"), (None, None)]
TO_SCHEMA_11 = (
    "MATCH (p:Proposal)-[:HAS_TEXT]->(t:RunText) SET p.diff = t.diff, p.log_end = t.log_end",
    "MATCH (t:RunText) DETACH DELETE t",
    "DROP CONSTRAINT runtext_id_unique IF EXISTS",
    "MATCH (m:SchemaMigration) WHERE m.version > 11 DELETE m",
)
MIGRATE_AND_DIE = """
import os, signal
from archive import settings
from archive.database.connection import Connection
from archive.store import schema
from archive.store.studies import run_texts

remove = run_texts._move_some
calls = []

def move_and_die(tx, ids):
    remove(tx, ids)
    calls.append(ids)
    if len(calls) == 2:
        os.kill(os.getpid(), signal.SIGKILL)

run_texts._move_some = move_and_die
run_texts.BATCH = 1
with Connection.open(settings.load()) as connection:
    schema.migrate(connection)
"""


def texts(archive, study="study"):
    """Return difference and output of each run."""
    found = []
    for number in range(len(RUNS)):
        details = details_of_run(archive.connection, f"{study}#{number:05d}")
        found.append((details.diff, details.log_end))

    return found


@pytest.mark.every_server
def test_texts_are_found_and_shown_and_no_part_of_the_proposal(archive):
    store_runs(archive, RUNS)
    assert texts(archive) == EXPECTED
    assert count(archive.connection, "(:Proposal)-[:HAS_TEXT]->(:RunText)") == 2
    assert count(archive.connection, "(p:Proposal) WHERE p.diff + p.log_end <> ''") == 0
    for words, numbers in ((["muon"], [2, 0]), (["MUON", "width"], [0]), (["cuda"], [1])):
        found = search_runs(archive.connection, RunFilter(words)).runs
        assert [int(run.run[-1]) for run in found] == numbers

    for study, matches in (("study", ["study#00000"]), (None, ["study#00000"]), ("other", [])):
        found, _ = find_matches(archive.connection, PlannedRun(diff=DIFF), study=study)
        assert [match.run for match in found] == matches


@pytest.mark.every_server
def test_texts_go_with_their_study(archive):
    store_runs(archive, RUNS)
    store_runs(archive, RUNS, "other")
    archive.studies.delete("study")
    assert texts(archive, "other") == EXPECTED
    assert count(archive.connection, "(:RunText)") == 2
    # Runs of the same ids begin without texts.
    store_runs(archive, RUNS[2:], "study")
    assert details_of_run(archive.connection, "study#00000").diff is None


@pytest.mark.every_server
def test_a_dump_has_the_texts_with_their_proposals(archive, connection, tmp_path):
    store_runs(archive, RUNS)
    path = tmp_path / "all.jsonl.gz"
    dump(connection, path)
    before = dumped(archive, tmp_path / "before")
    assert not any(load(connection, path)[1].values())
    wipe(connection)
    load(connection, path)
    assert texts(archive) == EXPECTED
    assert dumped(archive, tmp_path / "after") == before
    load(connection, path, rename={"study": "other"})
    assert texts(archive, "other") == EXPECTED


@pytest.fixture
def former(archive):
    """An archive of schema 11, with the texts in the proposals."""
    store_runs(archive, RUNS)
    for statement in TO_SCHEMA_11:
        run_query(archive.connection, statement, write=True)

    assert (schema.version(archive.connection), count(archive.connection, "(:RunText)")) == (11, 0)
    yield archive
    schema.migrate(archive.connection)


def check_migrated(archive):
    assert texts(archive) == EXPECTED
    assert count(archive.connection, "(p:Proposal)-[:HAS_TEXT]->(t {id: p.id})") == 2
    assert count(archive.connection, "(:RunText)") == 2
    assert count(archive.connection, "(p:Proposal) WHERE p.diff + p.log_end <> ''") == 0
    assert schema.version(archive.connection) == schema.LATEST


@pytest.mark.every_server
def test_runs_of_an_earlier_release_get_their_texts(former):
    schema.migrate(former.connection)
    check_migrated(former)


@pytest.mark.every_server
def test_a_killed_migration_goes_on(former, store_settings):
    environment = {**os.environ, **settings.environment(store_settings)}
    ended = subprocess.run(
        [sys.executable, "-c", MIGRATE_AND_DIE], env=environment, timeout=100, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    # The second batch was not committed.
    assert (count(former.connection, "(:RunText)"), schema.version(former.connection)) == (1, 11)
    schema.migrate(former.connection)
    check_migrated(former)


@pytest.mark.every_server
def test_many_may_migrate_at_once(former, open_connection, monkeypatch):
    monkeypatch.setattr(run_texts, "BATCH", 1)
    connections = [open_connection() for _ in range(4)]
    everywhere(lambda number: schema.migrate(connections[number]), 4)
    check_migrated(former)
