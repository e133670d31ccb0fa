"""Runs that people keep in tables, with parents, reasons and curves."""

import gzip
import json
import math

import pytest

from archive.errors import UsageError
from archive.queries.runs import find_runs
from archive.runs import imported
from archive.runs.history.table_columns import RunMapping
from archive.runs.history.table_files import read_rows
from archive.runs.imported import import_runs
from archive.store.records import State

ROWS = [
    {"id": "b", "up": "a", "why": "wider", "width": 8, "loss": 0.5, "time": "2026-08-02"},
    {"id": "a", "up": None, "why": "first", "width": 4, "loss": 0.75, "time": 1785600000},
    {"id": "c", "up": "z", "why": "crash", "width": 16, "loss": None},
    {"id": "d", "up": "b", "why": "again", "width": 8, "loss": 0.4, "time": "2026-08-03T12:00:00Z"},
]
MAPPING = RunMapping(
    "loss", "minimise", identity="id", parent="up", motivation="why", started="time"
)


@pytest.mark.every_server
def test_rows_are_runs_with_parents_in_any_order(archive):
    result = import_runs(archive, "s", ROWS, MAPPING, provenance={"source": "notes"})
    assert (result.runs, result.added) == (4, 4)
    assert (result.without_value, result.without_parent) == (1, 1)
    again, wider, *_ = find_runs(archive.connection, [])[0][1:]
    assert (again.motivation, again.parent, again.gain) == ("again", "s#00000", None)
    assert (wider.motivation, wider.parent) == ("wider", "s#00001")
    assert wider.gain == pytest.approx(0.75 - (0.5 + 0.4) / 2)
    assert wider.started == "2026-08-02T00:00:00.000Z"
    proposals = archive.proposals.list("s")
    assert [proposal.repeat for proposal in proposals] == [False, False, False, True]
    assert proposals[2].state is State.FAILED
    assert archive.studies.evaluation("s#00001").provenance == {"source": "notes"}
    (morph,) = archive.query("MATCH ()-[m:MORPHED_INTO]->() RETURN m.operations").rows
    assert morph[0] == ["width: 4 -> 8"]


def test_parents_are_right_where_another_process_adds_to_the_study(archive, monkeypatch):
    import_runs(archive, "s", [{"loss": 1.0, "lr": 1}], RunMapping("loss", "minimise"))
    read_tokens = imported._tokens_of

    def read_and_lose_the_race(*arguments):
        tokens = read_tokens(*arguments)
        monkeypatch.setattr(imported, "_tokens_of", read_tokens)
        import_runs(archive, "s", [*[{"loss": 1.0, "lr": 1}] * 2], RunMapping("loss", "minimise"))
        return tokens

    monkeypatch.setattr(imported, "_tokens_of", read_and_lose_the_race)
    result = import_runs(archive, "s", ROWS, MAPPING)
    assert (result.added, result.without_value, result.without_parent) == (4, 1, 1)
    runs = {run.motivation: run for run in find_runs(archive.connection, [])[0]}
    assert runs["wider"].parent == runs["first"].run == "s#00003"
    assert runs["again"].parent == runs["wider"].run


def test_a_longer_table_adds_its_new_rows_alone(archive):
    import_runs(archive, "s", ROWS[:3], MAPPING)
    assert import_runs(archive, "s", ROWS[:3], MAPPING).added == 0
    assert import_runs(archive, "s", ROWS, MAPPING).added == 1
    ((parent,),) = archive.query(
        "MATCH (p:Proposal {motivation: 'again'}) RETURN p.derived_from"
    ).rows
    assert parent == "s#00000"


def test_curves_are_lists_or_columns_with_steps(archive):
    rows = [
        {"name": "x", "loss_1": 3.0, "loss_100": 1.0, "by_epoch": "5.0 4.0"},
        {"name": "y", "loss_1": 2.0, "by_epoch": [3.0, math.nan, 2.0]},
    ]
    mapping = RunMapping("by_epoch", "minimise", curves=("loss", "by_epoch"))
    import_runs(archive, "s", rows, mapping)
    first, second = archive.studies.evaluations("s")
    assert first.value == 4.0
    assert first.curve["epoch"] == [1, 2, 100]
    assert first.curve["loss"][::2] == [3.0, 1.0]
    assert second.curve["by_epoch"] == [3.0, 2.0]


def test_values_that_no_server_holds(archive):
    rows = [
        {"loss": 1.0, "lr": math.nan, "large": 2**70, "text": "\udcff", "why": "\udcff"},
        {"loss": 2.0, "in": {"a": [math.inf]}},
    ]
    mapping = RunMapping("loss", "minimise", motivation="why")
    assert import_runs(archive, "s", rows, mapping).added == 2
    ((second, first), _) = find_runs(archive.connection, [])
    assert {**first.values, **second.values} == {
        "large": str(2**70),
        "text": "?",
        "in": {"a": ["inf"]},
    }


def test_ids_are_texts_and_parents_may_be_written_as_decimals(archive, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",commit,up,loss\n0,12e4567,,1\n1,34e9999,12e4567,2\n2,7,,1\n3,8,7.0,1\n")
    rows = read_rows(path, None, ("commit", "up"))
    assert rows[0] == {"commit": "12e4567", "loss": 1}
    mapping = RunMapping("loss", "minimise", identity="commit", parent="up")
    assert import_runs(archive, "s", rows, mapping).without_parent == 0


def test_a_crash_is_no_result_whatever_its_value(archive):
    rows = [
        {"loss": 0.5, "why": "first", "status": "keep", "lr": 0.1},
        {"loss": 0.0, "why": "twice", "status": "crash", "lr": 0.2},
        {"loss": 0.75, "why": "half", "status": "", "lr": 0.05},
    ]
    mapping = RunMapping("loss", "minimise", motivation="why", status="status")
    result = import_runs(archive, "s", rows, mapping)
    assert (result.added, result.failed, result.without_value) == (3, 1, 0)
    runs = {run.motivation: run for run in find_runs(archive.connection, [])[0]}
    assert runs["twice"].reason == "crash, as the table says"
    assert runs["twice"].value is None
    assert (runs["first [keep]"].value, runs["half"].value) == (0.5, 0.75)
    assert runs["first [keep]"].values == {"lr": 0.1}


@pytest.mark.parametrize(
    ("changes", "repeats", "values"),
    [
        ({}, [3, 3, 3], {"lr": 0.1, "trial": 3}),
        ({"seed": "trial"}, [1, 2, 2], {"lr": 0.1, "seed": 1}),
        ({"values": ("lr", "seed")}, [1, 2, 2], {"lr": 0.1, "seed": 1}),
    ],
)
def test_rows_that_differ_in_their_seeds_are_repeats(archive, changes, repeats, values):
    rows = [
        {"loss": 1.0, "lr": 0.1, "seed": 0, "trial": 3},
        {"loss": 2.0, "lr": 0.1, "seed": 1, "trial": 3},
        {"loss": 3.0, "lr": 0.1, "seed": 1, "trial": 3},
    ]
    result = import_runs(archive, "s", rows, RunMapping("loss", "minimise", **changes))
    assert result.left_out == (["trial"] if "values" in changes else [])
    runs = find_runs(archive.connection, [])[0][::-1]
    assert [run.repeats for run in runs] == repeats
    assert runs[1].values == values
    seeds = {"seed": [3, 3, 3], "values": [None] * 3}
    assert [run.seed for run in runs] == seeds.get(next(iter(changes), ""), [0, 1, 1])


def test_a_study_keeps_its_task_at_a_later_import(archive):
    import_runs(archive, "s", ROWS[:2], MAPPING, task="digits")
    assert import_runs(archive, "s", ROWS, MAPPING).added == 2
    assert archive.studies.get("s").task == "digits"


def test_two_columns_of_one_name_are_an_error(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("loss,,, loss \n1,,,2\n")
    with pytest.raises(UsageError, match="has two columns 'loss': rename one"):
        read_rows(path)


def test_a_line_of_json_may_hold_other_ends_of_lines(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"why": "a\u2028b\x85c"}\r\n\n{"why": "d"}\n', encoding="utf-8")
    assert read_rows(path) == [{"why": "a\u2028b\x85c"}, {"why": "d"}]


def test_rows_without_values_are_different_runs(archive):
    import_runs(archive, "s", [{"loss": 1.0}, {"loss": 2.0}], RunMapping("loss", "minimise"))
    assert len({each.architecture.key for each in archive.studies.evaluations("s")}) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objective": "los"}, "no column 'los': it has id, up, why, width, loss, time"),
        ({"metrics": ("acc",)}, "no column 'acc'"),
        ({"curves": ("acc",)}, "no column 'acc', nor acc_1"),
        ({"identity": "width"}, "rows 1 and 4 have one id, '8'"),
        ({"identity": "up"}, "row 2 has no id in the column 'up'"),
        ({"started": "why"}, "no time: 'wider'; times are as 2026-08-31"),
        ({"started": "odd"}, "no time: nan"),
    ],
)
def test_a_wrong_mapping_is_one_line_and_stores_nothing(archive, changes, message):
    mapping = RunMapping(**{**vars(MAPPING), **changes})
    rows = [{**row, "up": row["up"] or "", "odd": math.nan} for row in ROWS]
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        import_runs(archive, "s", rows, mapping)

    assert archive.query("MATCH (p:Proposal) RETURN count(p)").rows[0][0] == 0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", "a,b\n1,x\n2.5,\n"),
        ("t.tsv", "a\tb\n1\tx\n2.5\t\n"),
        ("t.jsonl", '{"a": 1, "b": "x"}\n\n{"a": 2.5}\n'),
        ("t.json", '[{"a": 1, "b": "x"}, {"a": 2.5}]'),
        ("t.v2.json", '{"total": 2, "runs": [{"a": 1, "b": "x"}, {"a": 2.5}]}'),
    ],
)
@pytest.mark.parametrize("compress", [False, True])
def test_a_table_of_any_form(tmp_path, name, content, compress):
    path = tmp_path / (name + (".gz" if compress else ""))
    path.write_bytes(gzip.compress(content.encode()) if compress else content.encode())
    assert read_rows(path) == [{"a": 1, "b": "x"}, {"a": 2.5}]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.txt", b"", "a table of runs is a file .csv"),
        ("t.csv", b"a\n1,2\n", "line 2 of .* has more cells than the head"),
        ("t.csv", b'a\n"x\n', "is no row"),
        ("t.csv", b"a\n\xff\n", "no text in UTF-8"),
        ("t.jsonl", b"{}\n[1]\n", "line 2 of .* is no object with names"),
        ("t.jsonl", b"{}\n{\n", "line 2 of .* is no JSON"),
        ("t.json", b'{"a": [], "b": []}', "--items names its list of runs, of a, b"),
        ("t.json", b"3", "is no list of runs"),
        ("t.json.gz", b"no gzip", "cannot be read"),
        ("t.json.gz", gzip.compress(b"x" * 99, mtime=0)[:11] + b"\xff" * 20, "cannot be read"),
    ],
)
def test_a_broken_table_is_one_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=message):
        read_rows(tmp_path / name)


def test_histories_as_people_keep_them(archive, shared_data):
    folder = shared_data / "data" / "records"
    rows = read_rows(folder / "parameter_golf_submissions.jsonl")
    mapping = RunMapping(
        "val_bpb", "minimise", identity="folder", motivation="blurb", values=("name",)
    )
    assert import_runs(archive, "golf", rows, mapping).added == len(rows) == 55
    found, count = find_runs(archive.connection, ["lora"])
    assert count == len(found) > 0
    tree = json.loads((folder / "asi_arch_tree.json").read_text())["results"][:40]
    mapping = RunMapping("score", "maximise", identity="index", parent="parent", values=("name",))
    assert import_runs(archive, "designs", tree, mapping).without_parent == 0
