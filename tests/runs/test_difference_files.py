"""Differences of source files by file and line, and the text of programs without control sequences."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.queries.tried.differences import changed_lines, count_lines, split_files
from archive.runs.texts.difference_files import (
    MOST_LETTERS,
    files_of_difference,
    list_changed_files,
)
from archive.runs.texts.plain_text import plain_text

TWO_FILES = """--- a/train.py
+++ b/train.py
@@ -1,3 +1,3 @@
 import numpy
--- a/y
+++ b/y
 # end
\\ No newline at end of file
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-print()
… 3 of 5 files are cut
"""

OF_GIT = """diff --git a/old.py b/new.py
similarity index 90%
index 1234..5678 100644
--- a/old.py
+++ b/new.py
@@ -1 +1 @@
-a
+b
diff --git a/logo.png b/logo.png
index 1234..5678 100644
Binary files a/logo.png and b/logo.png differ
"""


def test_a_line_that_looks_like_the_head_of_a_file_is_a_line():
    train, gone = files_of_difference(TWO_FILES)
    assert (train.path, train.added, train.removed) == ("train.py", 1, 1)
    kinds = ["place", "same", "removed", "added", "same", "note"]
    assert [kind for kind, _ in train.lines] == kinds
    assert train.lines[2][1] == "-- a/y"
    assert (gone.path, gone.lines[-1]) == ("gone.py", ("note", "… 3 of 5 files are cut"))


def test_a_difference_of_git_names_files_without_lines():
    new, logo = files_of_difference(OF_GIT)
    assert (new.path, [text for _, text in new.lines[1:]]) == ("new.py", ["a", "b"])
    assert logo.path == "logo.png"
    assert logo.lines == [("note", "Binary files a/logo.png and b/logo.png differ")]


def test_lines_and_letters_are_bounded_and_counted():
    lines = [f"+{'x' * 10_000}"] * 50
    text = "--- a/a\n+++ b/a\n@@ -0,0 +1,50 @@\n" + "\n".join(lines)
    [file] = files_of_difference(text, most=10)
    assert (file.added, len(file.lines), file.left_out) == (50, 10, 41)
    assert len(file.lines[1][1]) < MOST_LETTERS + 40
    assert file.lines[1][1].endswith("9,600 letters more")


def test_files_beyond_the_limit_are_counted_by_their_names():
    first, second = files_of_difference(TWO_FILES, most=1)
    assert (first.path, first.left_out) == ("train.py", 5)
    assert (second.path, second.removed, second.left_out) == ("gone.py", 1, 3)
    assert list_changed_files(TWO_FILES) == ["train.py +1 -1", "gone.py +0 -1"]


def test_names_of_a_difference_without_prefixes():
    text = "diff --git m.py m.py\nindex 1..2 100644\n--- m.py\n+++ m.py\n@@ -1 +1,2 @@\n a\f\n+b\n"
    assert list_changed_files(text) == ["m.py +1 -0"]
    assert list_changed_files(OF_GIT) == ["new.py +1 -1", "logo.png +0 -0"]
    assert list_changed_files(None) == []


RENAMED = """diff --git a/old.py b/new.py
similarity index 90%
rename from old.py
rename to new.py
index 1..2 100644
--- a/old.py
+++ b/new.py
@@ -1 +1 @@
-a
+b
"""


def test_a_renamed_file_is_one_file():
    (file,) = files_of_difference(RENAMED)
    kinds = [kind for kind, _ in file.lines]
    assert (file.path, kinds) == ("new.py", ["place", "removed", "added"])


def test_numbers_of_a_hunk_may_have_any_length():
    text = f"--- a/m.py\n+++ b/m.py\n@@ -1,{'9' * 5000} +1 @@\n+b\n"
    assert changed_lines(text) == {("m.py", "+b"): 1}


MISCOUNTED = """--- a/train.py
+++ b/train.py
@@ -1,9 +1,9 @@
-lr = 1
\\ No newline at end of file
+lr = 2
--- a/new.py
+++ b/new.py
@@ def step():
+a
+b

+c
--
2.40
"""


def test_hunks_that_models_miscount_and_files_without_numbers():
    train, new = files_of_difference(MISCOUNTED)
    assert (train.path, train.added, train.removed) == ("train.py", 1, 1)
    assert (new.path, new.added, new.removed) == ("new.py", 3, 0)
    assert sorted(changed_lines(MISCOUNTED)) == [
        *(("new.py", "+a"), ("new.py", "+b"), ("new.py", "+c")),
        *(("train.py", "+lr = 2"), ("train.py", "-lr = 1")),
    ]


@pytest.mark.parametrize(
    "diff", [TWO_FILES, OF_GIT, RENAMED, MISCOUNTED, "+a\n-b\n", "prose\n- item\n"]
)
def test_all_readers_count_the_same_lines(diff):
    files = [file for file in files_of_difference(diff) if file.added or file.removed]
    counts = {file.path: (file.added, file.removed) for file in files}
    assert counts == {name: count_lines(text) for name, text in split_files(diff).items()}
    changed = Counter(path for path, _ in changed_lines(diff).elements())
    assert changed == {path: sum(numbers) for path, numbers in counts.items()}


@given(st.text(alphabet=st.sampled_from("+-@ a/b\n\x1b[0m1,"), max_size=200))
def test_any_text_is_read(text):
    for file in files_of_difference(text, most=5):
        assert len(file.lines) <= 5


@pytest.mark.parametrize(
    "text, plain",
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07end", "end"),
        ("10 %\r50 %\r100 %\r\nnext", "100 %\nnext"),
        ("a\x00b\tc\x9b1mD", "a\\x00b\tcD"),
    ],
)
def test_control_sequences_are_left_out(text, plain):
    assert plain_text(text) == plain
