"""Commits of a repository as runs."""

import json
import subprocess

import pytest

from archive.errors import UsageError
from archive.queries.runs import find_runs
from archive.runs.history.git_commits import CommitPattern, read_git
from archive.runs.imported import import_history


@pytest.fixture
def repository(tmp_path):
    """A repository without commits, and a function that commits files."""
    folder = tmp_path / "my repo"
    folder.mkdir()
    moments = iter(range(1_785_600_000, 1_785_700_000, 60))

    def git(*arguments):
        subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)

    def commit(message, **files):
        for name, content in files.items():
            path = folder / name.replace("_dot_", ".")
            path.write_text(content if isinstance(content, str) else json.dumps(content))

        git("add", "-A")
        date = f"--date=@{next(moments)} +0000"
        git("commit", "-q", "--allow-empty", "-m", message, date)

    git("init", "-q", "-b", "main")
    git("config", "user.email", "a@b.c")
    git("config", "user.name", "n")
    commit.git = git
    commit.folder = folder
    return commit


def test_values_of_messages(archive, repository):
    commit = repository
    commit("start", train_dot_py="a\n")
    commit("wider\n\nval_loss: 0.5\nseed: 3", train_dot_py="a\nb\n")
    commit("clean up", train_dot_py="a\nb\nc\n")
    commit("deeper\n\nval_loss: 0.25", train_dot_py="a\nc\n")
    history = read_git(commit.folder, CommitPattern())
    first, second = history.runs
    assert history.name == "my repo"
    assert (first.motivation, first.metrics, first.seed) == ("wider", {"val_loss": 0.5}, 3)
    assert first.started == 1_785_600_060_000
    assert first.parent is None
    assert first.changed == ["train.py +1 -0"]
    assert second.parent == first.identity
    # From its parent, over the commit between them.
    assert second.changed == ["train.py +1 -1"]
    assert second.branch == "main"
    assert len(second.commit) == 40
    assert history.left_out[0].startswith("commits without val_loss: 2 (")
    assert import_history(archive, "s", history).added == 2
    commit("last\n\nval_loss: 0.2", train_dot_py="d\n")
    assert import_history(archive, "s", read_git(commit.folder, CommitPattern())).added == 1
    last, *_ = find_runs(archive.connection, ["last"])[0]
    assert last.gain == pytest.approx(0.05)
    assert last.changed == ["train.py +1 -2"]


def test_values_of_a_file_at_each_commit_that_changes_it(repository):
    commit = repository
    commit("a", results_dot_json={"loss": 0.5, "config": {"lr": 0.1, "act": "relu"}})
    commit("unchanged", train_dot_py="x\n")
    commit("b", results_dot_json={"loss": 0.25, "config": {"lr": 0.2, "act": "relu"}})
    where = CommitPattern(file="results.json", values=("config/lr", "config/act"))
    history = read_git(commit.folder, where, objective="loss")
    assert [run.metrics for run in history.runs] == [{"loss": 0.5}, {"loss": 0.25}]
    assert history.runs[1].values == {"config_lr": 0.2, "config_act": "relu"}
    assert history.left_out[0].startswith("commits that do not change results.json: 1 (")


def test_a_pattern_and_a_merge(repository):
    commit = repository
    commit("base acc=90%")
    commit.git("checkout", "-q", "-b", "side")
    commit("side acc=95%", side_dot_py="x\n")
    commit.git("checkout", "-q", "main")
    commit("note")
    commit.git("merge", "-q", "--no-ff", "-m", "merged acc=96%", "side")
    where = CommitPattern(pattern=r"acc=(?P<acc>\d+)%")
    runs = {run.motivation: run for run in read_git(commit.folder, where).runs}
    # The first parent comes first, and its nearest run is the base.
    assert runs["merged acc=96%"].parent == runs["base acc=90%"].identity
    assert runs["side acc=95%"].parent == runs["base acc=90%"].identity
    branch = read_git(commit.folder, where, revision="side")
    assert len(branch.runs) == 2
    assert {run.branch for run in branch.runs} == {"side"}


def test_a_commit_without_a_time(repository):
    repository("loss: 1")
    lines = [
        "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        "author x <y>",
        "committer x <y>",
        "",
        "loss: 2",
    ]
    made = subprocess.run(
        ["git", "hash-object", "-t", "commit", "-w", "--literally", "--stdin"],
        cwd=repository.folder,
        input="\n".join(lines).encode(),
        check=True,
        capture_output=True,
    )
    (run,) = read_git(
        repository.folder, CommitPattern(), revision=made.stdout.decode().strip()
    ).runs
    assert (run.metrics, run.started) == ({"loss": 2.0}, None)


@pytest.mark.parametrize(
    ("where", "options", "message"),
    [
        (CommitPattern(), {"revision": "none"}, "git cannot read .*Needed a single revision"),
        (CommitPattern(), {"revision": "--all"}, "git cannot read"),
        (CommitPattern(file="none.json"), {}, "no commit has the file 'none.json'"),
        (CommitPattern(file=".."), {}, "no commit has the file"),
        (CommitPattern(pattern="("), {}, "--pattern is no regular expression"),
        (CommitPattern(), {"objective": "acc"}, "no commit of HEAD has the metric 'acc'"),
        (CommitPattern(pattern="x(?P<odd>1)"), {}, "no run has a metric"),
    ],
)
def test_what_cannot_be_read_is_one_line(repository, where, options, message):
    repository("loss: 0.5")
    with pytest.raises(UsageError, match=message) as caught:
        read_git(repository.folder, where, **options)

    assert "\n" not in str(caught.value)


def test_no_repository_and_no_commit(repository, tmp_path):
    with pytest.raises(UsageError, match="Needed a single revision"):
        read_git(repository.folder, CommitPattern())

    with pytest.raises(UsageError, match="not a git repository"):
        read_git(tmp_path, CommitPattern())
