"""Runs of Neptune, in Parquet files as its exporter writes them."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from archive.errors import UsageError
from archive.runs.history import external_run
from archive.runs.history.neptune_runs import read_neptune
from archive.runs.imported import import_history
from tests.support.tools.histories import write_neptune

MOMENT = datetime(2026, 8, 1, 12, tzinfo=UTC)


def rows_of(run_id, *attributes):
    """Return rows of a run: path, type, value, and the step of a point."""
    rows = []
    for path, kind, value, *step in attributes:
        column = kind.removesuffix("_series")
        row = {"project_id": "me/proj", "run_id": run_id, "attribute_path": path}
        row |= {"attribute_type": kind, f"{column}_value": value}
        if step:
            row |= {"step": Decimal(str(step[0])), "timestamp": MOMENT}

        rows.append(row)

    return rows


FIRST = rows_of(
    "R-1",
    ("sys/id", "string", "SYS-1"),
    ("sys/name", "string", "first run"),
    ("sys/description", "string", "why"),
    ("sys/tags", "string_set", ["a", "b"]),
    ("sys/creation_time", "datetime", MOMENT),
    ("sys/running_time", "float", 60.0),
    ("sys/state", "string", "Inactive"),
    ("sys/failed", "bool", False),
    ("parameters/lr", "float", 0.1),
    ("parameters/loss weight", "float", 0.5),
    ("parameters/seed", "int", 3),
    ("parameters/since", "datetime", MOMENT),
    ("test/acc", "float", 0.75),
    ("source_code/entrypoint", "string", "src/train.py"),
    ("metrics/loss x", "float_series", 2.0, 0),
    ("metrics/loss x", "float_series", 1.0, 1),
    ("metrics/at half", "float_series", 5.0, 0.5),
    ("metrics/at half", "float_series", 6.0, 1.5),
    ("monitoring/a1/cpu", "float_series", 99.0, 0),
    ("monitoring/a1/stdout", "string_series", "last line\n", 0),
    ("notes", "string_series", "a text", 0),
    ("model", "file", {"path": "x/y"}),
)
SECOND = rows_of(
    "R-2",
    ("sys/forking/parent", "string", "SYS-1"),
    ("sys/failed", "bool", True),
    ("metrics/loss x", "float_series", float("nan"), 0),
)
THIRD = rows_of("R-3", ("sys/state", "string", "Active"), ("parameters/lr", "float", 0.5))


def test_files_of_the_exporter(archive, tmp_path):
    folder = tmp_path / "proj_1f2e"
    # A run has several parts.
    write_neptune(folder / "R-1_part_0.parquet", FIRST[:9])
    write_neptune(folder / "R-1_part_1.parquet", FIRST[9:])
    write_neptune(folder / "R-2_part_0.parquet", SECOND)
    write_neptune(folder / "R-3_part_0.parquet", THIRD)
    (folder / "damaged.parquet").write_bytes(b"PAR1 and no more")
    history = read_neptune(tmp_path)
    runs = {run.identity.rpartition("/")[2]: run for run in history.runs}
    assert runs.keys() == {"R-1", "R-2"}
    first = runs["R-1"]
    assert first.project == "me/proj"
    assert first.values["parameters_lr"] == 0.1
    assert first.values["parameters_loss_weight"] == 0.5
    assert first.values["parameters_since"] == "2026-08-01T12:00:00+00:00"
    assert first.seed == 3
    assert first.metrics == {"test/acc": 0.75, "metrics/loss x": 1.0, "metrics/at half": 6.0}
    assert first.curve["metrics/loss x"] == [2.0, 1.0]
    assert first.curve["metrics/at half"] == [5.0, 6.0]
    assert first.motivation == "first run: why [a, b]"
    assert first.finished - first.started == 60_000
    assert (first.program, first.log_end) == ("train.py", "last line")
    assert runs["R-2"].parent == first.identity
    assert runs["R-2"].reason == "failed, as Neptune says"
    left_out = " ".join(history.left_out)
    for name in ("R-3", "monitoring/a1/cpu", "notes", "model", "damaged.parquet"):
        assert name in left_out

    imported = import_history(archive, "s", history)
    assert imported.objective == "test/acc"
    assert (imported.added, imported.failed) == (2, 1)
    assert import_history(archive, "s", history).added == 0


TABLE = """\
,sys/id,sys/name,sys/tags,sys/creation_time,sys/running_time,sys/state,sys/failed,parameters/lr,parameters/seed,metrics/at end,val/acc,source_code/git,monitoring/cpu
0,PRO-2,second,"a,b",2026-08-01 12:00:00+00:00,60.5,Inactive,False,0.1,3,7.0,0.75,1234567,99.0
1,PRO-1,first,,2026-08-01T10:00:00Z,30,Inactive,True,0.2,4,,,,
2,PRO-3,third,,2026-08-02T10:00:00Z,5,Active,False,0.2,4,,,,
"""


def test_a_table_of_the_older_client(archive, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(TABLE)
    history = read_neptune(path)
    first, second = history.runs
    assert (first.identity, first.project, first.reason) == (
        *("neptune/PRO/PRO-1", "PRO"),
        "failed, as Neptune says",
    )
    assert second.values == {"parameters_lr": 0.1}
    assert second.metrics == {"metrics/at end": 7.0, "val/acc": 0.75}
    assert (second.seed, second.motivation) == (3, "second [a, b]")
    assert second.finished - second.started == 60_500
    assert (second.commit, second.code) == ("1234567", "1234567")
    left_out = " ".join(history.left_out)
    assert "PRO-3" in left_out and "monitoring/cpu" in left_out
    assert import_history(archive, "s", history).added == 2
    named = read_neptune(path, ["parameters/lr"]).runs[0]
    assert (named.metrics, named.values) == ({"parameters/lr": 0.2}, {})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sys/id", "id", "has no column 'sys/id'"),
        ("PRO-1", "PRO-2", "row 2 of .* has the id of an earlier one, 'PRO-2'"),
        ("PRO-1", "", "row 2 of .* has no id in the column sys/id"),
    ],
)
def test_a_table_without_ids_is_one_line(tmp_path, old, new, message):
    (tmp_path / "runs.csv").write_text(TABLE.replace(old, new))
    with pytest.raises(UsageError, match=message):
        read_neptune(tmp_path / "runs.csv")


@pytest.mark.parametrize("name", ["missing", "empty", "other"])
def test_a_folder_of_another_kind_is_one_line(tmp_path, name):
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other" / "a.parquet")
    with pytest.raises(UsageError, match=name) as caught:
        read_neptune(tmp_path / name)

    assert "\n" not in str(caught.value)


def test_a_file_with_other_types_is_named(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    write_neptune(tmp_path / "good.parquet", FIRST)
    names = pq.read_schema(tmp_path / "good.parquet").names
    row = dict.fromkeys(names, "text") | {"attribute_type": "float_series"}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "odd.parquet")
    history = read_neptune(tmp_path)
    assert any(text.startswith("files that cannot be read: 1") for text in history.left_out)
    assert [run.identity for run in history.runs] == ["neptune/me/proj/R-1"]


def test_more_files_than_are_read_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(external_run, "MOST_FILES", 1)
    for name in ("a", "b"):
        write_neptune(tmp_path / f"{name}.parquet", FIRST)

    with pytest.raises(UsageError, match="has more than 1 files: name a folder in it"):
        read_neptune(tmp_path)
