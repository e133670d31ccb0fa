"""`archive import` of the histories of other tools, typed as a user does."""

import subprocess

import pytest

from tests.support.commands import Shell
from tests.support.json_documents import check
from tests.support.tools.histories import write_mlflow_tables, write_neptune


def write_git(folder):
    for command in (
        ["git", "init", "-q"],
        ["git", "config", "user.email", "a@b.c"],
        ["git", "config", "user.name", "n"],
        ["git", "commit", "-q", "--allow-empty", "-m", "a idea\n\nloss: 0.5"],
        ["git", "commit", "-q", "--allow-empty", "-m", "a idea\n\nloss: 0.25"],
    ):
        subprocess.run(command, cwd=folder, check=True)


def write_events(folder):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder / "a idea")) as writer:
        writer.add_scalar("loss", 0.5, 1)
        writer.add_text("note", "x")


def write_table(folder):
    (folder / "runs.csv").write_text(
        "Name,State,lr,loss\na idea,finished,0.1,0.5\nb,running,0.1,\n"
    )


def write_attributes(folder):
    run = {"project_id": "p/q", "run_id": "a idea", "attribute_path": "loss"}
    write_neptune(folder / "x.parquet", [{**run, "attribute_type": "float", "float_value": 0.5}])


@pytest.mark.parametrize(
    ("write", "command", "study", "runs", "left_out"),
    [
        (write_git, ("git",), None, 2, None),
        (write_events, ("tensorboard", ".", "--minimise", "loss"), None, 1, "note/text_summary"),
        (write_table, ("wandb", "runs.csv", "--task", "t"), "runs.csv", 1, "still run: 1 (b)"),
        (write_attributes, ("neptune", "x.parquet"), "p/q", 1, None),
        (
            lambda folder: write_mlflow_tables(folder / "m.db"),
            ("mlflow", "sqlite:///m.db", "--maximise", "val/acc x"),
            "tuning",
            1,
            None,
        ),
    ],
)
def test_a_history_becomes_runs(
    archive, store_settings, tmp_path, monkeypatch, write, command, study, runs, left_out
):
    folder = tmp_path / "my runs"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write(folder)
    user = Shell(store_settings, folder)
    first = user.types("import", *command, "--license", "CC0")
    assert f"added    {runs}" in first.stdout
    assert left_out is None or left_out in first.stderr
    tool = command[0]
    (document,) = check(f"import {tool}", user.types("import", *command, "--json").stdout)
    assert document["study"] == (study or "my runs")
    assert (document["runs"], document["added"]) == (runs, 0)
    provenance = archive.studies.evaluations(document["study"])[0].provenance
    assert provenance["license"] == "CC0"
    assert provenance["source"].startswith(tool)
    assert "a" in user.types("tried", "a").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("wandb", "none"), "there is no none"),
        (("tensorboard", "."), "has no event files of TensorBoard"),
        (("git", ".", "--minimise", "a", "--maximise", "b"), "judged by one metric"),
        (("wandb", "odd.csv"), "--minimise METRIC or --maximise METRIC, of gap"),
        (("wandb", "odd.csv", "--minimise", "los"), "no run has the metric 'los': they have gap"),
        (("wandb", "busy.csv"), "busy.csv has no run to import: runs that still run: 1 (a)"),
    ],
)
def test_a_mistake_is_one_line_and_stores_nothing(
    archive, store_settings, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.csv").write_text("Name,summary.gap\na,1\n")
    (tmp_path / "busy.csv").write_text("Name,State,loss\na,running,1\n")
    failed = Shell(store_settings, tmp_path).types("import", *arguments, code=2)
    assert message in " ".join(failed.stderr.split())
    assert archive.studies.names() == []
