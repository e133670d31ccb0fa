"""Endpoints of recorded runs: the table, the tree, one run, and the search for runs."""

from __future__ import annotations

import math

import pytest

from archive.store.studies.builds import Build
from tests.dashboard.recorded_runs import StoredRun, store_runs
from tests.support.stores import cells, evaluate

DIFF = "--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-relu\n+<b>tanh</b>\x1b[31m\n"

RUNS = [
    StoredRun({"lr": 0.1}, 3.0, why="the first one", seed=0),
    StoredRun({"lr": 0.1}, 3.5, why="the first one", seed=1),
    StoredRun({"lr": 0.2, "width": 8}, 2.0, 0, "wider", properties={"log_end": "step 1: Muon"}),
    StoredRun({"lr": 0.4}, "diverged", 0, properties={"curve_loss": [9.0], "curve_epoch": [1.0]}),
    StoredRun(
        {"lr": 0.2, "width": 8, "act": "tanh"},
        1.0,
        2,
        "tanh",
        curve={"epoch": [1.0, 2.0], "loss": [2.0, 1.0]},
        properties={"diff": DIFF, "changed": ["train.py +1 -1"], "code_commit": "abc"},
    ),
    StoredRun({"lr": 0.3, "width": 8}, 2.5, 2),
]


def numbers(client, **query):
    answer = client.get("/api/study/runs", params={"study": "study", **query}).json()
    return [run["number"] for run in answer["runs"]], answer["total"]


@pytest.mark.every_server
def test_runs_are_sorted_paged_and_found_by_the_server(archive, client):
    store_runs(archive, RUNS)
    assert numbers(client, sort="value") == ([4, 2, 5, 0, 1, 3], 6)
    assert numbers(client, sort="value", order="desc", limit=2, offset=1) == ([0, 5], 6)
    # Those without a value come last in either order.
    assert numbers(client, sort="gain", order="desc") == ([2, 4, 5, 0, 1, 3], 6)
    assert numbers(client, sort="parameter_width", order="asc")[0] == [2, 4, 5, 0, 1, 3]
    assert numbers(client, sort="metric_doubled", order="asc", limit=1)[0] == [4]
    assert numbers(client, state="FAILED") == ([3], 1)
    # Words of the log, of the difference, of values and reasons; all of them.
    assert numbers(client, find="muon") == ([2], 1)
    assert numbers(client, find="TANH train.py")[0] == [4]
    assert numbers(client, find="diverged")[0] == [3]
    assert numbers(client, find="#5") == ([5], 1)
    assert numbers(client, find="adam") == ([], 0)
    # A run that is recorded later is found as well, by words and by values.
    store_runs(archive, [StoredRun({"lr": 0.05, "width": 1}, 0.5, 4, "muon")])
    client.app.state.news.hurry("study:study")
    assert numbers(client, find="muon") == ([2, 6], 2)
    assert numbers(client, sort="parameter_width", order="asc", limit=1)[0] == [6]


def test_a_row_says_what_a_run_changed_and_has_the_chosen_columns(archive, client):
    store_runs(archive, RUNS)
    query = {
        "study": "study",
        "sort": "value",
        "limit": 1,
        "column": ["parameter_act", "metric_doubled"],
    }
    answer = client.get("/api/study/runs", params=query).json()
    [row] = answer["runs"]
    assert answer["best"] == row["number"] == 4
    assert row["steps"] == [
        {"name": "act", "first": None, "second": "tanh"},
        {"file": "train.py +1 -1"},
    ]
    assert (row["gain"], row["parent_number"], row["motivation"]) == (1.0, 2, "tanh")
    assert row["cells"] == {"parameter_act": "tanh", "metric_doubled": 2.0}
    named = client.get("/api/study/run_columns?study=study").json()
    assert {entry["name"]: entry["differs"] for entry in named["values"]} == {
        "lr": True,
        "width": True,
        "act": True,
    }
    assert named["metrics"] == ["doubled", "loss"] and named["parents"]


@pytest.mark.parametrize(
    "query, words",
    [
        ("sort=diff", "sort must be one of"),
        ("column=password", "column must be a value or a metric"),
        ("limit=5000", "limit must be between 1 and 1000"),
        ("order=up", "order must be one of"),
    ],
)
def test_a_table_refuses_what_it_has_not(archive, client, query, words):
    store_runs(archive, RUNS[:1])
    answer = client.get(f"/api/study/runs?study=study&{query}")
    assert answer.status_code == 400
    assert words in answer.json()["error"]


@pytest.mark.parametrize(
    "query, words",
    [
        ("", "the address needs a run: number=NUMBER, or number=best"),
        ("&number=first", "number must be an integer, got 'first'"),
        ("&number=-1", "number must be between 0 and"),
    ],
)
def test_an_address_of_no_run_is_refused_with_the_way_out(archive, client, query, words):
    store_runs(archive, RUNS[:1])
    answer = client.get(f"/api/run?study=study{query}")
    assert answer.status_code == 400
    assert words in answer.json()["error"]


def test_texts_of_a_table_are_bounded(archive, client):
    long = "x" * 100_000
    values = {"lr": 0.1, "note": long}
    run = StoredRun(values, 1.0, why=f"{long}\x1b[31m", properties={"changed": [long] * 50})
    store_runs(archive, [run])
    answer = client.get("/api/study/runs?study=study&column=parameter_note")
    assert len(answer.content) < 5000
    answer = client.get("/api/run?study=study&number=0")
    assert len(answer.content) < 10_000


@pytest.mark.parametrize(
    "argument, shown, is_whole",
    [
        ("a = 1\n  b = 2\n", "a = 1\n  b = 2\n", True),
        ("", "", True),
        ("red \x1b[31m", "red ", False),
        ("x" * 3000, f"{'x' * 2000} … 1,000 letters more", False),
    ],
)
def test_only_a_whole_command_is_offered_for_copying(archive, client, argument, shown, is_whole):
    command = ["python", "-c", argument]
    store_runs(archive, [StoredRun({"lr": 0.1}, 1.0, properties={"command": command})])
    answer = client.get("/api/run?study=study&number=0").json()
    assert answer["command"] == ["python", "-c", shown]
    assert answer["is_whole_command"] is is_whole


def rows_of_tree(client, query=""):
    answer = client.get(f"/api/study/run_tree?study=study{query}").json()
    return [(row["kind"], row.get("number", row.get("of")), row["level"]) for row in answer["rows"]]


def test_the_tree_has_the_way_to_the_best_and_opens_what_was_beside_it(archive, client):
    store_runs(archive, RUNS)
    assert rows_of_tree(client) == [("run", 0, 1), ("run", 2, 1), ("run", 4, 1)]
    answer = client.get("/api/study/run_tree?study=study").json()
    assert (answer["best"], answer["lone"], answer["trees"]) == (4, 1, 1)
    assert [row["below"] for row in answer["rows"]] == [1, 1, 0]
    opened = [("run", 0, 1), ("run", 3, 2), ("run", 2, 1), ("run", 5, 2), ("run", 4, 1)]
    assert rows_of_tree(client, "&open=0&open=2") == opened
    assert client.get("/api/study/run_tree?study=study&open=a").status_code == 400


def test_a_long_line_and_many_changes_are_folded(archive, client):
    chain = [
        StoredRun({"lr": number}, 100.0 - number, max(0, number - 1)) for number in range(1, 30)
    ]
    side = [StoredRun({"width": number}, 200.0, 0) for number in range(15)]
    store_runs(archive, [StoredRun({"lr": 0.5}, 101.0), *chain, *side])
    kinds = [kind for kind, _, _ in rows_of_tree(client)]
    assert kinds == ["run", "run", "fold", *["run"] * 10]
    fold = client.get("/api/study/run_tree?study=study").json()["rows"][2]
    assert fold["runs"] == 30 - 12
    whole = rows_of_tree(client, "&open=0&whole=0")
    assert len(whole) == 45 and {kind for kind, _, _ in whole} == {"run"}
    assert rows_of_tree(client, "&open=0")[11] == ("more", 0, 2)


@pytest.mark.every_server
def test_a_run_has_its_change_and_what_it_brought(archive, client):
    graphs = store_runs(archive, RUNS)
    first, second = cells(2)
    archive.builds.add(
        [
            Build(graphs[2], first, "m", None, None, None),
            Build(graphs[4], second, "m", None, None, None),
        ]
    )
    found = client.get("/api/run?study=study&number=best").json()
    assert (found["number"], found["rank"], found["gain"]) == (4, {"place": 1, "of": 5}, 1.0)
    [file] = found["files"]
    assert (file["path"], file["lines"][2]) == ("train.py", ["added", "<b>tanh</b>"])
    assert [run["number"] for run in found["ancestors"]] == [0, 2]
    assert found["values"][0] == {"name": "act", "parent": None, "value": "tanh", "differs": True}
    assert found["curve"] == {"steps": [1.0, 2.0], "curves": {"loss": [2.0, 1.0]}}
    assert (found["network"], found["parent_network"]) == (second.key, first.key)
    assert (found["gain_low"], found["results"], found["parent_results"]) == (None, 1, 1)
    kinds = [next(iter(step)) for step in found["steps"]]
    assert kinds[0] == "name" and kinds[-1] == "file"
    assert set(kinds[1:-1]) == {"network"}
    repeated = client.get("/api/run?study=study&number=0").json()
    assert [(run["number"], run["seed"]) for run in repeated["repeats"]] == [(0, 0), (1, 1)]
    assert repeated["spread"]["mean"] == 3.25
    assert math.isclose(repeated["spread"]["high"] - 3.25, 12.706 * 0.25, rel_tol=1e-3)
    assert [run["number"] for run in repeated["children"]] == [2, 3]
    failed = client.get("/api/run?study=study&number=3").json()
    assert (failed["reason"], failed["value"], failed["rank"]) == ("diverged", None, None)
    assert failed["curve"] == {"steps": [1.0], "curves": {"loss": [9.0]}}
    assert client.get("/api/run?study=study&number=99").status_code == 404


def test_a_long_way_to_a_run_has_its_first_step_and_the_last_ones(archive, client):
    chain = [StoredRun({"lr": number}, 100.0 - number, number - 1) for number in range(1, 30)]
    store_runs(archive, [StoredRun({"lr": 0}, 100.0), *chain])
    answer = client.get("/api/run?study=study&number=29").json()
    assert [run["number"] for run in answer["ancestors"]] == [0, *range(18, 29)]
    assert answer["skipped_ancestors"] == 17
    answer = client.get("/api/run?study=study&number=12").json()
    assert [run["number"] for run in answer["ancestors"]] == list(range(12))
    assert answer["skipped_ancestors"] == 0


def test_a_value_that_the_last_run_introduced_is_a_column(archive, client):
    store_runs(archive, [StoredRun({"lr": number}, 1.0) for number in range(20)])
    before = client.get("/api/study/run_columns?study=study").json()
    assert ([entry["name"] for entry in before["values"]], before["parents"]) == (["lr"], False)
    store_runs(archive, [StoredRun({"lr": 0, "momentum": 0.9}, 0.5, 0)])
    client.app.state.news.hurry("study:study")
    after = client.get("/api/study/run_columns?study=study").json()
    assert [entry["name"] for entry in after["values"]] == ["lr", "momentum"]
    assert after["parents"]


def test_a_study_without_runs_with_a_result_has_no_best_run(archive, client):
    store_runs(archive, [StoredRun({"lr": 9}, "diverged")])
    answer = client.get("/api/run?study=study&number=best")
    assert answer.status_code == 404
    assert client.get("/api/study/leaderboard?study=study").json() == {"rows": []}


def test_the_leaderboard_is_there_where_runs_are_repeats(archive, client):
    store_runs(archive, RUNS)
    rows = client.get("/api/study/leaderboard?study=study").json()["rows"]
    assert [(row["rank"], row["number"], row["results"]) for row in rows][-1] == (4, 0, 2)
    store_runs(archive, RUNS[2:], "other")
    assert client.get("/api/study/leaderboard?study=other").json()["rows"] == []


def test_runs_of_all_studies_are_found_by_their_words(archive, client):
    store_runs(archive, RUNS)
    store_runs(archive, RUNS[:1], "other")
    evaluate(archive, [0.5], "search")
    found = client.get("/api/runs?find=first one&most=2").json()
    assert found["total"] == 3 and len(found["runs"]) == 2
    assert found["runs"][0]["study"] == "other"
    assert client.get("/api/runs?find=").json() == {"runs": [], "total": 0}


def test_a_search_has_no_columns_of_runs_but_answers(archive, client):
    evaluate(archive, [0.5, 0.25])
    assert numbers(client, sort="value") == ([1, 0], 2)
    assert client.get("/api/study/run_tree?study=study").json()["rows"] == []
