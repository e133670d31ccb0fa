"""Runs of Weights & Biases: folders that its package wrote, and exported tables."""

import csv
import math
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from archive.errors import UsageError
from archive.queries.runs import find_runs
from archive.runs.history import wandb_runs
from archive.runs.history.external_run import choose_project
from archive.runs.history.wandb_export import read_export
from archive.runs.history.wandb_runs import SILENT_SECONDS, read_wandb
from archive.runs.imported import import_history
from tests.support.tools.histories import write_wandb


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Folder of three runs: complete, failed, killed."""
    return write_wandb(tmp_path_factory.mktemp("tool"))


@pytest.fixture
def folder(written, tmp_path):
    """A copy, as old as a run that has crashed."""
    copy = tmp_path / "wandb"
    shutil.copytree(written, copy, symlinks=True)
    for path in copy.glob("*/*.wandb"):
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 2 * SILENT_SECONDS))

    return copy


def by_id(history):
    return {run.identity.removeprefix("wandb/"): run for run in history.runs}


def test_folders_of_runs(folder):
    # A patch of the working tree is in the folders of runs that were sent to the service.
    patch = "diff --git a/t.py b/t.py\n--- a/t.py\n+++ b/t.py\n@@ -1 +1 @@\n-a\n+b\n"
    (next(folder.glob("*-aaa")) / "files" / "diff.patch").write_text(patch)
    history = read_wandb(folder.parent)
    runs = by_id(history)
    first = runs["aaa"]
    assert first.project == "p q"
    assert first.values == {"lr": 0.1, "model_width": 8, "api_key": "hunter2222"}
    assert first.seed == 3
    assert first.motivation == "first run: try it [a, group g]"
    assert first.metrics["best"] == 0.9
    assert first.metrics["val.acc/x y"] == 0.5
    assert math.isnan(first.metrics["loss"])
    assert first.curve["epoch"] == [0, 1, 2, 3]
    assert first.curve["loss"][:2] == [1.0, 0.5]
    assert (first.diff, first.changed) == (patch, ["t.py +1 -1"])
    assert "a last line" in first.log_end
    assert 0 < first.finished - first.started < 120_000
    assert first.reason is None
    assert runs["bbb"].reason == "ended with status 1: RuntimeError: out of ideas"
    assert runs["ccc"].reason == "crashed: its record has no end"
    assert runs["ccc"].metrics["loss"] == 3.0
    assert history.left_out[0] == "media and tables: 1 (h)"


def test_a_run_of_the_last_minutes_without_an_end_still_runs(written):
    history = read_wandb(written)
    assert sorted(by_id(history)) == ["aaa", "bbb"]
    assert "runs that still run: 1 (ccc)" in history.left_out


@pytest.mark.parametrize("size", [3, 7, 100, 900, 40_000])
def test_a_file_that_is_cut_is_a_run_that_crashed_or_named(folder, size):
    path = next(folder.glob("*-ccc/*.wandb"))
    content = path.read_bytes()[:size]
    path.write_bytes(content)
    os.utime(path, (0, 0))
    history = read_wandb(folder)
    runs = by_id(history)
    if "ccc" in runs:
        assert runs["ccc"].reason == "crashed: its record has no end"
    else:
        assert any("run-ccc.wandb" in text for text in history.left_out)

    assert {"aaa", "bbb"} <= runs.keys()


def test_damage_within_a_file_ends_it(folder):
    path = next(folder.glob("*-aaa/*.wandb"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    os.utime(path, (0, 0))
    assert by_id(read_wandb(folder))["aaa"].reason == "crashed: its record has no end"


def test_a_resumed_run_has_several_folders(folder):
    first = next(folder.glob("*-bbb"))
    later = folder / "offline-run-20990101_000000-bbb"
    shutil.copytree(first, later)
    assert len(by_id(read_wandb(folder))) == 3


@pytest.mark.parametrize("name", ["missing", "empty", "other"])
def test_a_folder_of_another_kind_is_one_line(tmp_path, name):
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mlflow.db").write_bytes(b"x")
    with pytest.raises(UsageError, match=name) as caught:
        read_wandb(tmp_path / name)

    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_log_is_named(tmp_path):
    (tmp_path / "run-x.wandb").write_bytes(b"no log")
    history = read_wandb(tmp_path)
    assert history.runs == []
    assert "run-x.wandb is no log" in history.left_out[0]


def test_runs_of_the_archive(archive, folder):
    history = choose_project(read_wandb(folder), None, "project")
    imported = import_history(archive, "s", history, objective="val.acc/x y", direction="maximise")
    assert (imported.runs, imported.added, imported.failed) == (3, 3, 2)
    assert import_history(archive, "s", history).added == 0
    runs = {run.motivation: run for run in find_runs(archive.connection, [])[0]}
    first = runs["first run: try it [a, group g]"]
    assert first.value == 0.5
    assert first.seed == 3
    assert first.seconds > 0
    everything = archive.query("MATCH (n) WHERE n:Proposal OR n:RunText RETURN properties(n)").rows
    assert "hunter2222" not in str(everything)
    assert "token *** and a last line" in str(everything)


def test_metrics_of_a_file_within_a_recording(folder):
    measurements = wandb_runs.Measurements()
    wandb_runs.read_metrics(next(folder.glob("*-aaa/*.wandb")), measurements)
    assert measurements.latest["best"] == 0.9
    assert measurements.points[1]["loss"] == 0.5


ROWS = [
    {"id": "x", "name": "one", "state": "finished", "created_at": "2026-08-01T00:00:00"},
    {"id": "y", "name": "two", "state": "crashed", "created_at": "2026-08-02T00:00:00"},
    {"id": "z", "name": "three", "state": "running", "created_at": "2026-08-03T00:00:00"},
]
CONFIG = [{"lr": 0.1, "seed": 1, "_wandb": {}}, {"lr": {"value": 0.2}}, {}]
SUMMARY = [{"loss": 1.5, "_runtime": 3}, {"loss": 2.5}, {}]


@pytest.mark.parametrize("form", ["python", "flat", "parquet", "page"])
def test_exported_tables(tmp_path, form):
    path = tmp_path / ("runs.parquet" if form == "parquet" else "runs.csv")
    rows = []
    for row, config, summary in zip(ROWS, CONFIG, SUMMARY, strict=True):
        lr = config.get("lr")
        lr = lr["value"] if isinstance(lr, dict) else lr
        if form in ("python", "parquet"):
            rows.append({**row, "config": str(config), "summary": str(summary)})
        elif form == "flat":
            numbers = {"config.lr": lr, "config.seed": config.get("seed")}
            rows.append({**row, **numbers, "summary.loss": summary.get("loss")})
        else:
            page = {"ID": row["id"], "Name": row["name"], "State": row["state"], "Tags": "a, b"}
            page |= {"Created": row["created_at"], "Runtime": 60, "User": "me"}
            rows.append(page | {"lr": lr, "seed": config.get("seed"), "loss": summary.get("loss")})

    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)

    history = read_export(path)
    first, second = history.runs
    assert (first.identity, first.values, first.metrics) == ("wandb/x", {"lr": 0.1}, {"loss": 1.5})
    assert first.seed == 1
    assert first.started == 1_785_542_400_000
    assert second.reason == "crashed, as the table says"
    assert (second.values, second.metrics) == ({"lr": 0.2}, {"loss": 2.5})
    assert history.left_out == ["runs that still run: 1 (z)"]
    if form == "page":
        assert first.motivation == "one [a, b]"
        assert first.finished - first.started == 60_000


def test_metrics_of_a_table_are_named_where_their_names_say_nothing(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("Name,lr,gap\na,0.1,3\n")
    assert read_export(path).runs[0].metrics == {}
    assert read_export(path, ["gap"]).runs[0].metrics == {"gap": 3.0}
    with pytest.raises(UsageError, match="no column 'gip'"):
        read_export(path, ["gip"])


def test_an_id_that_is_there_twice_is_one_line(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("ID,loss\na,1\na,2\n")
    with pytest.raises(UsageError, match=r"row 2 of .* has the id of an earlier one"):
        read_export(path)
