"""Column names of empty results: on each server, those of an answer with rows."""

from __future__ import annotations

import pytest

from archive.database.user_query import columns_of

pytestmark = pytest.mark.dialect

NAMED = [
    ("RETURN 1 AS one, 'a, b' AS `two, three` LIMIT 0", ["one", "two, three"]),
    ("UNWIND [] AS x RETURN x, 2 AS limit ORDER BY x", ["x", "limit"]),
    ("MATCH (n:Nobody) RETURN DISTINCT n.a as a, count(n) AS many SKIP 1", ["a", "many"]),
    ("MATCH (n:Nobody) RETURN n.order, n.return, n.`as b`", ["n.order", "n.return", "n.`as b`"]),
    (
        (
            "MATCH (n:Nobody) RETURN [x IN [1, 2] | x] AS list, {a: 1, b: 2} AS map // RETURN 3 AS "
            "three"
        ),
        ["list", "map"],
    ),
    ("MATCH (n:Nobody) RETURN n.a AS a UNION ALL MATCH (n:Nobody) RETURN n.b AS a", ["a"]),
    ("MATCH (n:Nobody) RETURN CASE WHEN n.a > 1 THEN 'RETURN 1' ELSE 2 END AS chosen;", ["chosen"]),
]


@pytest.mark.parametrize(("cypher", "columns"), NAMED)
def test_no_rows_and_yet_columns(archive, cypher, columns):
    found = archive.query(cypher)
    assert (found.columns, found.rows) == (columns, [])


@pytest.mark.parametrize(
    ("cypher", "columns"),
    [
        *NAMED,
        ("MATCH (n) RETURN *", []),
        ("MATCH (n) RETURN *, n.a AS a", []),
        ("CREATE (n:Return)", []),
        ("CALL db.labels()", []),
        ("MATCH (n) RETURN", []),
        ("MATCH (n) RETURN (", ["("]),
        ("", []),
        (
            "MATCH (n) CALL { RETURN 1 AS one } RETURN n.a + 1 , size([ 1,2 ])",
            ["n.a + 1", "size([ 1,2 ])"],
        ),
    ],
)
def test_column_names_from_the_text(cypher, columns):
    assert columns_of(cypher) == columns
