"""What the commands show: texts from the archive are shown as they are, and command no terminal."""

from __future__ import annotations

import pytest

from archive.cli.render import print_table
from archive.cli.study import log
from archive.queue.event_log import Entry


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("conv[3x3] [red]x[/nope]", "conv[3x3] [red]x[/nope]"),
        ({"reason": "[/nope]"}, '{"reason": "[/nope]"}'),
        (["[bold]", [1, 2]], '["[bold]", [1, 2]]'),
        ("\x1b[2J\x1b]0;title\x07\x9b1m", r"\x1b[2J\x1b]0;title\x07\x9b1m"),
    ],
)
def test_a_cell_shows_what_there_is(capsys, value, shown):
    print_table(("value",), [(value,)])
    assert capsys.readouterr().out.splitlines()[-1].rstrip() == shown


@pytest.mark.parametrize("at", [None, -(2**63), 2**63 - 1])
@pytest.mark.parametrize("basis", [{"observations": [1, 2]}, {"observations": {"other": "0-3"}}])
def test_an_entry_that_somebody_made_up_is_told(capsys, tmp_path, at, basis):
    details = {"architecture": "0" * 32, "based_on": basis}
    entry = Entry(at=at, proposal="s#00000", number=0, event="proposed", who="a\x1b[2J", details=details, log="\x1b[2J")
    for as_json in (False, True):
        log.LogWriter(tmp_path, None, as_json).write([entry])
    text, line = capsys.readouterr().out.split("\n{", 1)
    assert "\x1b" not in text and text.startswith("–")
    assert '"time": null' in line
