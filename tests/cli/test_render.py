"""Rendering of the commands: texts from the archive are shown as text, without control
sequences."""

from __future__ import annotations

import os
import re
import sys

import hypothesis.strategies as st
import pytest
from hypothesis import given
from rich.text import Text

from archive.cli import names, render
from archive.cli.main import archive as root
from archive.cli.main import main
from archive.cli.render import print_fields, print_table
from archive.cli.render.layout import GAP, column_widths, fold_words
from archive.cli.search.command import archive_command
from archive.cli.study import log
from archive.queue.event_log import Entry
from tests.support.commands import Screen


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("conv[3x3] [red]x[/nope]", "conv[3x3] [red]x[/nope]"),
        ({"reason": "[/nope]"}, '{"reason": "[/nope]"}'),
        (float("inf"), "–"),
        (float("nan"), "–"),
        (["[bold]", [1, 2]], '["[bold]", [1, 2]]'),
        ("\x1b[2J\x1b]0;title\x07\x9b1m", r"\x1b[2J\x1b]0;title\x07\x9b1m"),
    ],
)
def test_a_cell_shows_what_there_is(capsys, value, shown):
    print_table(("value",), [(value,)])
    assert capsys.readouterr().out.splitlines()[-1].strip() == shown


@given(
    st.integers(1, 4).flatmap(
        lambda count: st.lists(
            st.lists(st.text("ab ", max_size=30), min_size=count, max_size=count), min_size=2
        )
    ),
    st.integers(1, 90),
)
def test_columns_have_the_width_that_there_is_and_names_stay_whole(rows, width):
    columns = [["x", *column] for column in zip(*rows, strict=True)]
    found = column_widths(columns, width)
    longest = [max(map(len, column)) for column in columns]
    names = max((len(word) for name in columns[0] for word in name.split()), default=0)
    if found is None:
        assert sum(longest) + GAP * (len(columns) - 1) > width
        return

    assert sum(found) + GAP * (len(columns) - 1) <= width
    assert all(1 <= one <= most for one, most in zip(found, longest, strict=True))
    assert found[0] >= names
    assert found == longest or sum(longest) + GAP * (len(columns) - 1) > width


def test_the_columns_of_the_longest_texts_are_folded_first():
    # Without a fold they take 7, 20, 20 and 100; no word longer than 8 needs to stay whole.
    columns = [["number", "1234567"], ["k", "a" * 20], ["k", "b" * 20], ["path", "c" * 100]]
    assert column_widths(columns, 100 + 3 * GAP) == [7, 20, 20, 53]
    assert column_widths(columns, 49 + 3 * GAP) == [7, 14, 14, 14]
    assert column_widths(columns, 30 + 3 * GAP) is None


@pytest.fixture
def narrow(monkeypatch):
    """Output for a terminal of fifty columns, without its colours."""
    monkeypatch.setattr(
        render, "console", lambda file: render.Console(file=file, width=50, force_terminal=False)
    )


def test_on_a_narrow_terminal_a_table_is_folded_between_words(capsys, narrow):
    print_table(
        ("agent", "method"), [("gp-gromov-wasserstein", "a Gaussian process on distances")] * 3
    )
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 50
    assert [line.split("│")[1].strip() for line in lines[2:]] == [
        "a Gaussian process on",
        "distances",
    ] * 3


def test_where_a_table_would_be_too_high_or_too_wide_a_row_is_a_block_of_lines(capsys, narrow):
    print_table(
        ("agent", "method", "choose it for"),
        [("gp-wl", "words " * 60, "cells"), ("gp", "one", None)],
    )
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["agent", "gp-wl"] and lines.count([]) == 1
    assert lines[-3:] == [["agent", "gp"], ["method", "one"], ["choose", "it", "for", "–"]]
    print_table([f"column{at}" for at in range(9)], [range(9)])
    assert capsys.readouterr().out.split() == [
        word for at in range(9) for word in (f"column{at}", str(at))
    ]


PATH = "file:///home/somebody/.archive/weights/0123456789abcdef0123456789abcdef.safetensors"


@pytest.mark.parametrize(
    "show",
    [
        lambda: print_table(("number", "weights"), [(1, PATH), (2, "no")]),
        lambda: print_table(("number", "reason"), [(1, f"no file at {PATH} on this machine")]),
        lambda: print_fields({"number": 1, "weights": PATH}, 8),
        lambda: render.print_line("the weights are at ", PATH),
    ],
)
@pytest.mark.parametrize("width", [30, 90])
def test_an_address_is_on_one_line_of_any_terminal(capsys, monkeypatch, show, width):
    monkeypatch.setattr(
        render, "console", lambda file: render.Console(file=file, width=width, force_terminal=True)
    )
    show()
    assert PATH in capsys.readouterr().out


KEY = "fedcba9876543210" * 2


@pytest.mark.parametrize(
    ("width", "address"),
    [
        (80, "~/weights/digits.safetensors"),
        (120, "file:///home/somebody/.archive/weights/digits.safetensors"),
        (120, PATH),
    ],
)
def test_a_key_is_on_one_line_beside_an_address(capsys, monkeypatch, width, address):
    monkeypatch.setattr(
        render, "console", lambda file: render.Console(file=file, width=width, force_terminal=True)
    )
    columns = ("number", "architecture", "accuracy", "epochs", "seconds", "weights")
    print_table(columns, [(1, KEY, 0.912, 9, 12.5, address), (2, KEY, 0.9, 9, 12.5, None)])
    out = capsys.readouterr().out
    assert out.count(KEY) == 2 and address in out


def test_lines_of_a_long_value_begin_below_each_other(capsys, monkeypatch):
    monkeypatch.setattr(
        render, "console", lambda file: render.Console(file=file, width=30, force_terminal=True)
    )
    print_fields({"name": "tw", "summary": "a Gaussian process on distances"}, 9)
    lines = [
        re.sub(r"\x1b\[[\d;]*m", "", line).rstrip() for line in capsys.readouterr().out.splitlines()
    ]
    assert lines == ["name      tw", "summary   a Gaussian process", "          on distances"]


def test_mappings_are_shown_as_settings(capsys):
    print_fields(
        {"counts": {"complete": 20, "rate": 0.123456}, "empty": {}, "nested": {"a": {"b": 1}}}, 8
    )
    shown = capsys.readouterr().out.splitlines()
    assert shown == ["counts   complete=20, rate=0.1235", "empty    –", 'nested   {"a": {"b": 1}}']


@pytest.mark.parametrize("at", [None, -(2**63), 2**63 - 1])
@pytest.mark.parametrize("basis", [{"observations": [1, 2]}, {"observations": {"other": "0-3"}}])
def test_an_entry_that_somebody_made_up_is_told(capsys, tmp_path, at, basis):
    details = {"architecture": "0" * 32, "based_on": basis}
    entry = Entry(
        at=at,
        proposal="s#00000",
        number=0,
        event="proposed",
        who="a\x1b[2J",
        details=details,
        log="\x1b[2J",
    )
    for as_json in (False, True):
        log.LogWriter(tmp_path, None, as_json).write([entry])

    text, line = capsys.readouterr().out.split("\n{", 1)
    assert "\x1b" not in text and text.startswith("–")
    assert '"time": null' in line


def test_a_file_is_named_by_any_study():
    files = {
        "../a b/ü": "a-b-ü",
        "/": "study",
        "--help": "help",
        "../../etc/x": "etc-x",
        "-.": "study",
        "a-.": "a-.",
    }
    assert {name: names.as_file(name) for name in files} == files
    first, second = (names.as_file("ü" * 300 + end) for end in "ab")
    assert first != second
    assert all(len(one.encode()) <= names.MOST_BYTES for one in (first, second))


def test_plain_lines_have_no_colours_and_no_tables(capsys, monkeypatch):
    monkeypatch.setenv(render.PLAIN, "1")
    print_table(("number", "reason"), [(1, "words " * 60), (2, None)], styles={"1": "red"})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "number 1" and lines[1].startswith("reason words words")
    assert lines[2:] == ["", "number 2", "reason –"]


@pytest.mark.parametrize(("rows", "paged"), [(3, False), (300, True)])
def test_a_pager_shows_what_is_higher_than_the_terminal(monkeypatch, rows, paged):
    pages = []
    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setattr(render.click, "echo_via_pager", pages.append)
    with render.paged():
        print_table(("number",), [(number,) for number in range(rows)])

    shown = pages[0] if paged else screen.getvalue()
    assert len(pages) == paged and shown.splitlines()[-1].strip() == str(rows - 1)


@given(st.text("ab \n", max_size=60), st.integers(1, 20))
def test_lines_break_between_words_alone(content, width):
    lines = [line.plain for line in fold_words(Text(content), width)]
    assert " ".join(lines).split() == content.split()
    assert all(len(line) <= width or len(line.split()) == 1 for line in lines)


def test_options_for_plain_output_hold_for_the_command_and_its_errors(monkeypatch):
    monkeypatch.setattr("sys.stderr", Screen())
    monkeypatch.setenv(render.PLAIN, "")
    for option, variable in (("--plain", render.PLAIN), ("--no-color", "NO_COLOR")):
        with pytest.raises(SystemExit):
            main([option, "serch"])

        assert not os.environ.get(variable)

    # The command that continues a search repeats the options before its name.
    context = root.make_context("archive", ["--plain", "search"])
    assert archive_command(context) == "archive --plain"
    assert "\x1b[31m" not in sys.stderr.getvalue() and "unknown command" in sys.stderr.getvalue()
