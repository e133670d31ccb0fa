"""Read-only queries: every form of a write is tried on both servers, and changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from archive.database.read_only import WRITING_WORDS, require_read_only
from archive.database.time_limit import QueryLimit
from archive.database.user_query import _run_and_roll_back, run_query
from archive.errors import ArchiveError, QueryError, ReadOnlyError

pytestmark = pytest.mark.dialect

WRITES = [
    "CREATE (n:Intruder)",
    "create (n:Intruder)",
    "INSERT (n:Intruder)",
    "MATCH (s:Study) CREATE (n:Intruder)",
    "MATCH (s:Study) CREATE (s)-[:INTRUDES]->(s)",
    "MATCH (s:Study) WITH s CREATE (n:Intruder) RETURN n",
    "UNWIND [1, 2] AS i CREATE (n:Intruder {i: i})",
    "MERGE (n:Intruder)",
    "MATCH (s:Study) MERGE (s)-[:ON]->(n:Intruder)",
    "MERGE (s:Study {name: 'a'}) ON MATCH SET s.budget = 0",
    "MERGE (s:Study {name: 'b'}) ON CREATE SET s.budget = 0",
    "MATCH (s:Study) SET s.budget = 0",
    "MATCH (s:Study) SET s:Intruder",
    "MATCH (s:Study) SET s += {budget: 0}",
    "MATCH (s:Study)\nSET\ts = {}",
    "MATCH (s:Study) REMOVE s.budget",
    "MATCH (s:Study) REMOVE s:Study",
    "MATCH (s:Study) DELETE s",
    "MATCH (s:Study) DETACH DELETE s",
    "MATCH (s:Study) NODETACH DELETE s",
    "MATCH ()-[r]->() DELETE r",
    "MATCH (s:Study) FOREACH (x IN [1] | SET s.budget = x)",
    "FOREACH (x IN [1] | CREATE (:Intruder))",
    "MATCH (s:Study) CALL (s) { SET s.budget = 0 }",
    "CALL { CREATE (:Intruder) }",
    "CALL { CREATE (n:Intruder) RETURN n } RETURN n",
    "CALL () { CREATE (:Intruder) } RETURN 1",
    "CALL { CREATE (n:Intruder) } IN TRANSACTIONS",
    "MATCH (s:Study) CALL (s) { SET s.budget = 0 } IN TRANSACTIONS OF 1 ROWS",
    "MATCH (s:Study) CALL (s) { SET s.budget = 0 } IN 2 CONCURRENT TRANSACTIONS",
    "MATCH (s:Study) CALL { WITH s SET s.budget = 0 } IN TRANSACTIONS",
    "RETURN 1 UNION CREATE (n:Intruder) RETURN 1",
    "USE archive CREATE (n:Intruder)",
    "CREATE CONSTRAINT intruder FOR (n:Intruder) REQUIRE n.id IS UNIQUE",
    "CREATE INDEX intruder FOR (n:Study) ON (n.budget)",
    "CREATE TEXT INDEX intruder FOR (n:Study) ON (n.objective)",
    "CREATE FULLTEXT INDEX intruder FOR (n:Study) ON EACH [n.objective]",
    "CREATE VECTOR INDEX intruder FOR (n:Study) ON (n.v)",
    "CREATE LOOKUP INDEX intruder FOR (n) ON EACH labels(n)",
    "DROP CONSTRAINT study_name_unique",
    "DROP CONSTRAINT `constraint_Study_name_unique`",
    "DROP INDEX layer_op",
    "DROP INDEX study_name_unique IF EXISTS",
    "CREATE DATABASE intruder",
    "DROP DATABASE archive",
    "CREATE USER intruder SET PASSWORD 'secret-secret' CHANGE NOT REQUIRED",
    "ALTER CURRENT USER SET PASSWORD FROM 'a' TO 'b'",
    "ALTER USER neo4j SET PASSWORD 'secret-secret'",
    "DROP USER neo4j",
    "RENAME USER neo4j TO intruder",
    "GRANT ROLE admin TO neo4j",
    "DENY READ {*} ON GRAPH * TO PUBLIC",
    "REVOKE ROLE admin FROM neo4j",
    "START DATABASE neo4j",
    "STOP DATABASE neo4j",
    "ENABLE SERVER 'x'",
    "DEALLOCATE DATABASES FROM SERVER 'x'",
    "TERMINATE TRANSACTIONS 'neo4j-transaction-1'",
    (
        "SHOW TRANSACTIONS YIELD transactionId AS id TERMINATE TRANSACTIONS id YIELD message "
        "RETURN "
        "message"
    ),
    "LOAD CSV FROM 'file:///etc/passwd' AS line RETURN line",
    "LOAD CSV WITH HEADERS FROM 'http://127.0.0.1:1/x.csv' AS line RETURN line",
    "USING PERIODIC COMMIT LOAD CSV FROM 'file:///etc/passwd' AS line CREATE (:Intruder)",
    "CALL db.createLabel('Intruder')",
    "CALL db.createProperty('intruder')",
    "CALL db.createRelationshipType('INTRUDES')",
    "CALL `db`.`createLabel`('Intruder')",
    "CALL db . createLabel ('Intruder')",
    "CALL db./* hidden */createLabel('Intruder')",
    "CALL db.clearQueryCaches()",
    "CALL db.prepareForReplanning()",
    "CALL db.resampleOutdatedIndexes()",
    "CALL db.awaitIndexes(1)",
    "CALL dbms.setConfigValue('db.logs.query.enabled', 'OFF')",
    "CALL dbms.killTransaction('x')",
    "CALL dbms.security.createUser('x', 'y')",
    "CALL dbms.listConfig()",
    "CALL merge.node(['Intruder'], {id: 1})",
    "CALL apoc.merge.node(['Intruder'], {id: 1})",
    "CALL apoc.create.node(['Intruder'], {})",
    "CALL apoc.cypher.doIt('CREATE (:Intruder)', {})",
    "CALL apoc.periodic.iterate('MATCH (n) RETURN n', 'DELETE n', {})",
    "CALL apoc.load.json('http://127.0.0.1:1/')",
    "CALL do.when(true, 'CREATE (:Intruder)', '', {})",
    "CALL apoc.do.when(true, 'CREATE (:Intruder)', '', {})",
    "CALL refactor.cloneNodes([])",
    "CALL apoc.refactor.mergeNodes([])",
    "CALL db.migrateLegacyTemporals()",
    "MATCH (s:Study) CALL apoc.create.addLabels(s, ['Intruder']) YIELD node RETURN node",
    "OPTIONAL CALL db.createLabel('Intruder')",
    "RETURN file()",
    "RETURN linenumber()",
    "RETURN apoc.cypher.runFirstColumnSingle('RETURN 1', {})",
    "RETURN `apoc.cypher.runFirstColumnSingle`('RETURN 1', {})",
    "RETURN `apoc`.`cypher`.`runFirstColumnSingle`('RETURN 1', {})",
    "RETURN genai.vector.encode('x', 'OpenAI', {})",
    "EXPLAIN CREATE (n:Intruder)",
    "PROFILE CREATE (n:Intruder)",
    "EXPLAIN MATCH (s:Study) DELETE s",
    "PROFILE MATCH (s:Study) SET s.budget = 0",
    "CYPHER 5 CREATE (n:Intruder)",
    "CYPHER 25 INSERT (n:Intruder)",
    "CYPHER runtime = slotted CREATE (n:Intruder)",
    "RETURN 1; CREATE (n:Intruder)",
    "CREATE (n:Intruder); RETURN 1",
    "RETURN 1; RETURN 2",
    "// harmless\nCREATE (n:Intruder)",
    "/* harmless */CREATE/**/(n:Intruder)",
    "RETURN 1 AS x // \rCREATE (n:Intruder)",
    "MATCH (s:Study)/*\n*/SET/**/s.budget=0",
    "RETURN '// ' AS x UNION CREATE (n:Intruder) RETURN '' AS x",
    "RETURN \"it's\" AS x UNION CREATE (n:Intruder) RETURN 'it\\'s' AS x",
    "MATCH (s:Study) WHERE s.name <> '\\\\' SET s.budget = 0 RETURN '\\\\'",
    "MATCH (`a``b`:Study) SET `a``b`.budget = 0",
    "MATCH (s:Study)SET s.budget=0",
    "MATCH (s:Study{name:'a'})SET s.budget=1.SET s.x=2",
    "RETURN 1.CREATE (n:Intruder)",
    "RETURN 1CREATE (n:Intruder)",
    "MATCH (s:Study) WHERE s.budget > 1SET s.budget = 0",
    "C\\u0052EATE (n:Intruder)",
    "MATCH (s:Study) \\u0053ET s.budget = 0",
    "RETURN '\\u0027 AS x CREATE (n:Intruder) //'",
    "/* \\u002a/ CREATE (n:Intruder) // */ RETURN 1",
    "MATCH (s:Study) \u017fET s.budget = 0",
    "MATCH (s:Study)\u00a0SET\u2003s.budget = 0",
    "\ufeffCREATE (n:Intruder)",
    "MATCH (s:Study) WHERE s.set = 1 SET s.budget = 0",
    "MATCH (s:SET) SET s.budget = 0",
    "MATCH (s:Study) WITH {set: 1} AS m, s SET s.budget = 0",
    "WITH 1 AS set MATCH (s:Study) SET s.budget = set",
    "MATCH (s:Study) RETURN [x IN [1] | x] AS list UNION MATCH (s:Study) DELETE s RETURN [] AS list",
    "MATCH (s:Study) WHERE EXISTS { CREATE (n:Intruder) } RETURN s",
    "RETURN COUNT { CREATE (n:Intruder) }",
    "RETURN COLLECT { MERGE (n:Intruder) RETURN n }",
    "'RETURN 1' CREATE (n:Intruder)",
    "IMPORT DATABASE file:///etc/passwd",
    "INSERT INTO Study SET name = 'c'",
    "UPDATE Study SET budget = 0",
    "TRUNCATE TYPE Study UNSAFE",
    "BACKUP DATABASE",
    "",
    "   // nothing\n",
    "RETURN 'not closed",
    "RETURN `not closed",
    "RETURN 1 /* not closed",
    "MATCH (as:Study) WITH as CREATE (n:Intruder) RETURN 1",
    "MATCH (as:Study) WITH as SET as.budget = 0 RETURN as.budget",
    "WITH 1 AS as LOAD CSV FROM 'file:///etc/hostname' AS line RETURN line",
    "UNWIND [1] AS as CALL dbms.killQuery('1') YIELD queryId RETURN queryId",
]

READS = [
    "MATCH (s:Study) RETURN s.name",
    "MATCH (n) RETURN n.set, n.delete, n.create, n . merge, n.`set`",
    "MATCH (n:Create) RETURN n",
    "MATCH (n:Study|Delete) RETURN n",
    "MATCH ()-[r:SET|DELETE]->() RETURN r",
    "MATCH (n) WHERE n:Merge OR n:Set RETURN n",
    "RETURN {delete: 1, set: 2, create: {merge: 3}} AS m",
    "RETURN {delete: 1}.delete AS deleted",
    "WITH 1 AS `create` RETURN `create`",
    "RETURN 'CREATE (n)' AS text, \"it's SET\" AS other, 'a\\'; DELETE' AS third",
    "RETURN 1 // CREATE (n)",
    "/* DELETE */ RETURN 1 /* SET x */",
    "RETURN 1;",
    "  match (n) return count(n) ; // done",
    "MATCH (n) RETURN n { .set, .name, call: 1 }",
    "RETURN $p AS `call`",
    "UNWIND range(1, 3) AS i WITH i WHERE i > 1 RETURN collect(i)",
    "CALL { RETURN 1 AS x } RETURN x",
    "UNWIND [1, 2] AS i CALL (i) { RETURN i * 2 AS j } RETURN i, j",
    "MATCH (s:Study) WHERE EXISTS { MATCH (s)-[:ON]->() } RETURN COUNT { (s)--() }",
    "CALL db.labels()",
    "CALL db.labels() YIELD label RETURN label",
    "CALL db.relationshipTypes",
    "CALL db.propertyKeys()",
    "CALL dbms.components() YIELD name RETURN name",
    "SHOW INDEXES",
    "SHOW CONSTRAINTS YIELD name, type RETURN name",
    "SHOW TRANSACTIONS YIELD transactionId, currentQuery",
    "EXPLAIN MATCH (n) RETURN n",
    "PROFILE MATCH (n) RETURN n",
    "RETURN 1 AS x UNION ALL RETURN 2 AS x",
    "OPTIONAL MATCH (n:Nothing) RETURN n",
    (
        "RETURN date.truncate('day', date()) AS d, duration.between(date(), date()) AS e, "
        "point.distance(null, null) AS f"
    ),
    "RETURN reduce(total = 0, x IN [1, 2] | total + x) AS total, [x IN [1] WHERE x > 0 | x] AS list",
    "MATCH p = (a)-[*1..3]->(b) RETURN length(p)",
    "RETURN 1.5e3 AS a, 0x1F AS b, [1, 2, 3][0..1] AS c, -.5 AS d",
    "MATCH (start:Study) RETURN start ORDER BY start.name SKIP 0 LIMIT 5",
    "RETURN CASE WHEN true THEN 'set' ELSE 'delete' END AS x",
    "MATCH (a:Architecture)-[:HAS_LAYER]->(l) RETURN a.key, count(l) ORDER BY count(l) DESC LIMIT 5",
]


@pytest.fixture
def filled(connection):
    run_query(
        connection,
        (
            "CREATE (s:Study {name: 'a', budget: 20, objective: 'o'})-[:ON]->(:Task {id: 't'}) "
            "CREATE (:Layer {id: 'l'})"
        ),
        write=True,
    )
    return connection


def contents(connection):
    """Return everything that a query could have changed: data, schema, users, databases."""
    nodes = run_query(connection, "MATCH (n) RETURN labels(n), properties(n)").rows
    edges = run_query(
        connection, "MATCH (a)-[r]->(b) RETURN labels(a), type(r), properties(r), labels(b)"
    ).rows
    schema = [
        run_query(connection, f"SHOW {what} YIELD name RETURN name").rows
        for what in ("INDEXES", "CONSTRAINTS")
    ]
    others = [run_query(connection, f"SHOW {what}").rows for what in ("DATABASES", "USERS")]
    return [
        sorted(map(repr, rows))
        for rows in (nodes, edges, *schema, [row[:2] for row in others[0]], others[1])
    ]


def test_no_write_gets_through(filled):
    before = contents(filled)
    for cypher in WRITES:
        with pytest.raises(ReadOnlyError):
            run_query(filled, cypher)

        if contents(filled) != before:
            pytest.fail(f"changed by {cypher!r}")


@pytest.mark.parametrize("cypher", WRITES)
def test_a_write_is_refused(cypher):
    with pytest.raises(ReadOnlyError):
        require_read_only(cypher)


def test_a_write_past_the_guard_is_rolled_back(filled):
    """The other two protections, without the guard.

    The embedded server commits the parts of `IN … TRANSACTIONS` even so: there the guard stands
    alone.
    """
    before = contents(filled)
    for cypher in [cypher for cypher in WRITES[:31] if "TRANSACTIONS" not in cypher]:
        try:
            _run_and_roll_back(filled, cypher, {}, (0, None), QueryLimit(filled, None))
        except Exception as error:
            assert type(error).__module__.startswith("neo4j."), error

        assert contents(filled) == before, cypher


@pytest.mark.parametrize("cypher", READS)
def test_a_read_is_allowed(cypher):
    require_read_only(cypher)


def test_reads_are_answered(filled):
    for cypher in READS:
        run_query(filled, cypher, {"p": 1})
        run_query(filled, cypher, {"p": 1}, timeout=30)


def test_write_lets_it_write(filled):
    run_query(filled, "CREATE (:Worker {id: 'w'})", write=True)
    run_query(
        filled,
        "UNWIND range(1, 5) AS i CALL (i) { CREATE (:Worker {id: toString(i)}) } IN TRANSACTIONS",
        write=True,
    )
    assert run_query(filled, "MATCH (w:Worker) RETURN count(w)").rows == [(6,)]


def test_the_message_names_the_place_and_the_way_out():
    with pytest.raises(
        ReadOnlyError,
        match=r"SET is not allowed \(line 2, column 3\); "
        r".*--write.*backticks",
    ):
        require_read_only("MATCH (n)\n  SET n.x = 1")

    with pytest.raises(ReadOnlyError, match=r"the procedure apoc.create.node is not known"):
        require_read_only("CALL apoc.create.node([], {})")


def test_a_query_is_a_usage_error_and_not_a_query_error():
    assert not issubclass(ReadOnlyError, QueryError)
    assert issubclass(ReadOnlyError, ArchiveError)


@given(st.text())
@example("'")
@example("\\u")
@example("1..2..")
def test_any_text_is_accepted_or_refused_in_order(text):
    try:
        require_read_only(text)
    except ReadOnlyError:
        pass


SPACES = st.sampled_from([" ", "\n", "\t", "/**/", "/* ' */", '// "\n', " \r\n "])
HARMLESS = st.sampled_from(
    ["'SET'", '"it\'s"', "`x`", "1", "n.set", "$set", "[1]", "{a: 1}", "f(1)", ")", "]", "}"]
)


@given(
    st.lists(st.tuples(HARMLESS, SPACES), max_size=6),
    st.sampled_from(sorted(WRITING_WORDS)),
    SPACES,
    st.booleans(),
)
def test_a_writing_word_is_found_wherever_a_clause_may_stand(before, word, space, lower):
    text = "RETURN 1 " + "".join(piece + between for piece, between in before)
    with pytest.raises(ReadOnlyError):
        require_read_only(f"{text} {word.lower() if lower else word}{space}(n)")
