"""Source files at the start of a run, and their differences."""

import shutil
import subprocess

import pytest

from archive.runs import code_state
from archive.runs.code_state import (
    BlobFolder,
    FileChange,
    changes_of,
    difference_text,
    read_state,
    uncommitted,
)
from archive.runs.secrets import Secrets


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "train.py").write_text("a = 1\nb = 2\n")
    (folder / ".gitignore").write_text("ignored.py\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


@pytest.fixture
def blobs(tmp_path):
    return BlobFolder(tmp_path / "blobs")


def test_a_committed_state_has_no_changes_and_reads_no_file(repository, blobs):
    state = read_state(repository, blobs)
    assert list(state.files) == ["train.py"]
    assert state.branch == "main"
    assert len(state.commit) == 40
    assert uncommitted(state, blobs) == []
    assert not (repository.parent / "blobs").exists()


def test_edited_new_and_deleted_files_are_changes(repository, blobs):
    clean = read_state(repository, blobs)
    (repository / "train.py").write_text("a = 1\nb = 3\nc = 4\n")
    (repository / "new.py").write_text("x = 1\n")
    (repository / "ignored.py").write_text("never\n")
    (repository / "picture.png").write_bytes(b"\0\1")
    edited = read_state(repository, blobs)
    assert list(map(str, uncommitted(edited, blobs))) == ["new.py +1 -0", "train.py +2 -1"]
    assert edited.digest != clean.digest
    text = difference_text(changes_of(clean, edited, blobs), Secrets(()))
    assert "-b = 2\n+b = 3\n+c = 4\n" in text

    (repository / "train.py").unlink()
    deleted = read_state(repository, blobs)
    assert list(map(str, changes_of(edited, deleted, blobs))) == ["train.py +0 -3"]


def test_two_runs_differ_by_their_texts_whatever_was_committed_between(repository, blobs):
    first = read_state(repository, blobs)
    (repository / "train.py").write_text("a = 1\nb = 5\n")
    dirty = read_state(repository, blobs)
    git(repository, "commit", "-qam", "second")
    committed = read_state(repository, blobs)
    assert committed.digest == dirty.digest
    assert changes_of(dirty, committed, blobs) == []
    assert list(map(str, changes_of(first, committed, blobs))) == ["train.py +1 -1"]


def test_a_repository_without_a_commit(tmp_path, blobs):
    folder = tmp_path / "empty"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a.py").write_text("1\n")
    state = read_state(folder, blobs)
    assert state.commit is None
    assert list(state.files) == ["a.py"]
    assert uncommitted(state, blobs) == []


def test_files_of_a_submodule_are_files_of_the_program(repository, blobs):
    inner = repository / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "lib.py").write_text("1\n")
    git(inner, "add", ".")
    git(inner, "commit", "-qm", "inner")
    git(repository, "add", "inner")
    git(repository, "commit", "-qm", "with a submodule")
    state = read_state(repository, blobs)
    assert sorted(state.files) == ["inner/lib.py", "train.py"]
    assert uncommitted(state, blobs) == []
    (inner / "lib.py").write_text("2\n")
    edited = read_state(repository, blobs)
    assert list(map(str, uncommitted(edited, blobs))) == ["inner/lib.py +1 -1"]
    assert "-1\n+2\n" in changes_of(state, edited, blobs)[0].text


def test_a_link_in_place_of_a_submodule_is_not_followed(repository, blobs):
    for name in ("first", "second"):
        inner = repository / name
        inner.mkdir()
        git(inner, "init", "-q")
        git(inner, "commit", "-q", "--allow-empty", "-m", "inner")
        git(repository, "add", name)
        shutil.rmtree(inner)
        inner.symlink_to(repository)

    assert sorted(read_state(repository, blobs).files) == ["train.py"]


def test_a_file_that_is_too_large_is_named_with_its_size(repository, blobs):
    clean = read_state(repository, blobs)
    (repository / "train.py").write_text("x" * (code_state.MOST_FILE_BYTES + 1))
    large = read_state(repository, blobs)
    assert large.digest != clean.digest
    (change,) = changes_of(clean, large, blobs)
    assert (str(change), change.text) == (
        "train.py (large)",
        "train.py: small -> 1.0 MiB, lines are not kept\n",
    )


def test_without_git_the_files_of_the_folder_count(tmp_path, blobs, monkeypatch):
    monkeypatch.setenv("PATH", "")
    folder = tmp_path / "plain"
    (folder / "sub").mkdir(parents=True)
    (folder / "venv" / "lib").mkdir(parents=True)
    (folder / "venv" / "lib" / "module.py").write_text("1\n")
    (folder / "sub" / "b.py").write_text("1\n")
    (folder / "data.csv").write_text("1\n")
    (folder / "link.py").symlink_to("/etc/passwd")
    state = read_state(folder, blobs)
    assert list(state.files) == ["sub/b.py"]
    assert state.commit is None


def test_limits_hold_and_say_what_they_leave_out(tmp_path, blobs, monkeypatch):
    monkeypatch.setattr(code_state, "MOST_FILE_BYTES", 100)
    monkeypatch.setattr(code_state, "MOST_FILES", 3)
    folder = tmp_path / "large"
    folder.mkdir()
    (folder / "a.py").write_text("x" * 101)
    for name in "bcdef":
        (folder / f"{name}.py").write_text("1\n")

    state = read_state(folder, blobs)
    assert len(state.files) == 3
    assert state.omitted == 4


def test_a_huge_difference_is_cut(repository, blobs):
    clean = read_state(repository, blobs)
    (repository / "train.py").write_text("line\n" * 100_000)
    (repository / "zzz.py").write_text("1\n")
    changes = changes_of(clean, read_state(repository, blobs), blobs)
    text = difference_text(changes, Secrets(()))
    assert len(text) < code_state.MOST_DIFF + 100
    assert text.endswith("2 of 2 files are cut\n")


def test_a_secret_at_the_end_of_a_difference_that_is_cut_is_masked(monkeypatch):
    monkeypatch.setattr(code_state, "MOST_DIFF", 20)
    change = FileChange("a.py", 1, 0, f"+{'x' * 12}very-secret\n")
    assert "very" not in difference_text([change], Secrets(["very-secret"]))


def test_a_state_is_the_same_from_json(repository, blobs):
    state = read_state(repository, blobs)
    assert code_state.CodeState.from_json(state.json()) == state
