"""Runs of MLflow: its file store and its databases, written by its own package."""

import math
import sqlite3

import pytest

from archive.errors import UsageError
from archive.queries.runs import find_runs
from archive.runs.history.external_run import choose_project
from archive.runs.history.mlflow_runs import read_mlflow
from archive.runs.imported import import_history
from tests.support.tools.histories import write_mlflow, write_mlflow_tables


def check_runs(history, ids):
    """Check the runs that `write_mlflow` writes."""
    assert len(history.runs) == 5
    runs = {run.identity.removeprefix("mlflow/"): run for run in history.runs}
    first = runs[ids["a"]]
    assert first.values == {"opt_lr_rate": 0.1}
    assert first.seed == 3
    assert first.metrics["val/acc x"] == 0.2
    assert math.isnan(first.metrics["loss"])
    assert first.metrics["high"] == math.inf
    assert first.curve["val/acc x"] == [0.0, 0.1, 0.2]
    assert first.motivation == "a: why [team=vision]"
    assert (first.started, first.finished) == (1_785_600_000_000, 1_785_600_000_500)
    assert (first.program, first.commit) == ("train.py", "1" * 40)
    assert runs[ids["b"]].parent == first.identity
    assert runs[ids["b"]].reason == "failed, as MLflow says"
    assert runs[ids["c"]].cause == "crash"
    assert runs[ids["e"]].curve == {"epoch": [0, 1], "val/acc x": [0.0, 0.5]}
    # The client reads the newest run first.
    assert sorted(history.left_out) == [
        "metrics of the machine: 1 (system/cpu)",
        f"runs that still run: 1 ({ids['d']})",
    ]


@pytest.mark.lasts(6)
def test_a_file_store(archive, tmp_path):
    ids = write_mlflow((tmp_path / "mlruns").as_uri())
    history = read_mlflow(str(tmp_path))
    check_runs(history, ids)
    assert repr(read_mlflow((tmp_path / "mlruns").as_uri())) == repr(history)
    with pytest.raises(UsageError, match="2 experiments: --experiment names one of other, tuning"):
        choose_project(history, None, "experiment")

    with pytest.raises(UsageError, match="no experiment 'tune': there is other, tuning"):
        choose_project(history, "tune", "experiment")

    history = choose_project(history, "tuning", "experiment")
    imported = import_history(archive, "tuning", history)
    assert imported.objective == "val/acc x"
    assert (imported.added, imported.failed, imported.without_value) == (4, 2, 0)
    assert import_history(archive, "tuning", history).added == 0
    runs = {run.motivation: run for run in find_runs(archive.connection, [])[0]}
    assert runs["b"].parent == runs["a: why [team=vision]"].run
    assert runs["b"].reason == "failed, as MLflow says"


# MLflow's own use of SQLAlchemy is deprecated there.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.whole
@pytest.mark.lasts(25)
def test_a_database_that_the_client_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ids = write_mlflow(f"sqlite:///{tmp_path}/mlflow.db")
    check_runs(read_mlflow("sqlite:///mlflow.db"), ids)


@pytest.mark.lasts(4)
def test_a_database(tmp_path):
    path = tmp_path / "mlflow.db"
    write_mlflow_tables(path)
    before = path.read_bytes()
    history = read_mlflow(f"sqlite:///{path}")
    assert repr(read_mlflow(str(path))) == repr(history)
    (run,) = history.runs
    assert run.metrics["val/acc x"] == 0.2
    assert run.metrics["high"] == math.inf
    assert math.isnan(run.metrics["loss"])
    assert run.curve["val/acc x"] == [0.1, 0.2]
    assert (run.project, run.motivation, run.values) == ("tuning", "a: why", {"opt_lr_rate": 0.1})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "there is no .*missing"),
        ("empty", "is no file store of MLflow"),
        ("text", "cannot be read: file is not a database"),
        ("other.db", "is no database of MLflow"),
    ],
)
def test_a_store_of_another_kind_is_one_line(tmp_path, name, message):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("no database" * 100)
    database = sqlite3.connect(tmp_path / "other.db")
    database.execute("CREATE TABLE trials (id)")
    database.close()
    with pytest.raises(UsageError, match=message):
        read_mlflow(str(tmp_path / name))
