"""Users of the embedded server for other clients:

`root`, and `reader`, whose writes ArcadeDB refuses.
"""

from __future__ import annotations

import json

import neo4j
import pytest
from neo4j.exceptions import AuthError, Neo4jError

from archive.database.user_query import run_query
from archive.server.engine import ensure_users
from archive.server.run_file import DATABASE, READER, Folder

CHANGES = [
    "CREATE (:Study {name: 'new'})",
    "CREATE (:NewLabel)",
    "MERGE (:Study {name: 'new'})",
    "MATCH (s:Study) SET s.name = 'other'",
    "MATCH (s:Study) SET s:Other",
    "MATCH (s:Study) REMOVE s.name",
    "MATCH (s:Study) DETACH DELETE s",
    "MATCH (s:Study) CREATE (s)-[:NEW]->(s)",
    "FOREACH (i IN [1] | CREATE (:Study))",
    "CREATE CONSTRAINT FOR (n:New) REQUIRE n.key IS UNIQUE",
    "CREATE INDEX new FOR (s:Study) ON (s.new)",
    "CREATE USER another SET PASSWORD 'a long password'",
    "ALTER USER root SET PASSWORD 'a long password'",
    "DROP USER root",
    "SHOW USERS",
    "LOAD CSV FROM 'file:///etc/passwd' AS line RETURN line",
]


@pytest.fixture
def reader(connection, store_settings):
    """A session of the user that may only read, as another client has it."""
    if connection.dialect != "embedded":
        pytest.skip("a user of the embedded server")

    password = Folder(store_settings.home).reader_password.read_text().strip()
    with neo4j.GraphDatabase.driver(connection.login[0], auth=(READER, password)) as driver:
        with driver.session(database=DATABASE, default_access_mode=neo4j.WRITE_ACCESS) as session:
            yield session


def test_a_reader_reads_and_cannot_change_anything(connection, reader):
    run_query(connection, "CREATE (:Study {name: 'kept'})", write=True)
    everything = (
        "MATCH (n) WHERE NOT n:SchemaMigration RETURN labels(n) AS labels, "
        "properties(n) AS properties"
    )
    before = run_query(connection, everything).rows
    assert [record["name"] for record in reader.run("MATCH (s:Study) RETURN s.name AS name")] == [
        "kept"
    ]
    accepted = []
    for change in CHANGES:
        try:
            reader.run(change).consume()
            accepted.append(change)
        except Neo4jError:
            pass

    assert accepted == []
    assert run_query(connection, everything).rows == before
    assert reader.run("RETURN 1 AS one").single()["one"] == 1


@pytest.mark.parametrize("password", ["", "wrong"])
def test_a_reader_needs_the_password(connection, reader, password):
    with neo4j.GraphDatabase.driver(connection.login[0], auth=(READER, password)) as driver:
        with pytest.raises((AuthError, Neo4jError)):
            driver.verify_connectivity()


def test_users_are_created_once_and_follow_their_passwords(tmp_path):
    folder = Folder(tmp_path)
    folder.create()
    ensure_users(folder)
    users = folder.config / "server-users.jsonl"
    groups = folder.config / "server-groups.json"
    before = users.read_text(), groups.read_text()
    for path in (users, groups, folder.password, folder.reader_password):
        assert path.stat().st_mode & 0o777 == 0o600

    ensure_users(folder)
    assert (users.read_text(), groups.read_text()) == before

    named = [json.loads(line)["name"] for line in users.read_text().splitlines()]
    assert named == ["root", READER]
    secrets = [path.read_text() for path in (folder.password, folder.reader_password)]
    assert secrets[0] != secrets[1]
    assert not any(secret in users.read_text() for secret in secrets)

    folder.password.write_text("another one")
    ensure_users(folder)
    assert users.read_text() != before[0]


def test_an_archive_of_an_earlier_release_gets_the_reader(tmp_path):
    folder = Folder(tmp_path)
    folder.create()
    folder.password.write_text("kept")
    users = folder.config / "server-users.jsonl"
    groups = folder.config / "server-groups.json"
    users.write_text('{"name":"root","databases":{"*":["admin"]},"password":"x"}\n')
    groups.write_text(
        json.dumps({"databases": {"*": {"groups": {"admin": {"own": 1}}}}, "version": 3})
    )
    ensure_users(folder)
    assert folder.password.read_text() == "kept"
    assert READER in users.read_text()
    content = json.loads(groups.read_text())
    assert content["version"] == 3
    assert content["databases"]["*"]["groups"]["admin"] == {"own": 1}
    assert content["databases"]["*"]["groups"][READER]["types"]["*"]["access"] == ["readRecord"]
