"""The live table of a search on a terminal."""

from __future__ import annotations

import dataclasses
import re
import signal

import pytest

from archive.cli import render
from archive.cli.search.live import LiveView
from archive.cli.search.screen import ScreenContents, screen_lines
from archive.searches.interruption import Interruption
from archive.store.records import State, Study
from archive.store.snapshots import ProposalView, Snapshot
from tests.support.commands import Screen

STUDY = Study("mine", "digits", "digits/1", "mlp", budget=3)
VIEW = ProposalView("mine#00000", 0, State.RUNNING, "0" * 32, "0" * 32)
SNAPSHOT = Snapshot(STUDY, (VIEW,), {state: int(state is State.RUNNING) for state in State}, None)


def drawn(output):
    """Return the lines of a terminal after an output: text, line breaks, moves upwards and erased
    lines."""
    lines = [""]
    row = 0
    column = 0
    for part in re.findall(r"\x1b\[[\d;?]*[a-zA-Z]|\r|\n|[^\x1b\r\n]+", output):
        if part == "\n":
            row = row + 1
            column = 0
            lines += [""] * (row + 1 - len(lines))
        elif part == "\r":
            column = 0
        elif part.endswith("A") and part.startswith("\x1b"):
            row -= int(part[2:-1] or 1)
        elif part == "\x1b[2K":
            lines[row] = ""
        elif not part.startswith("\x1b"):
            lines[row] = lines[row][:column].ljust(column) + part + lines[row][column + len(part) :]
            column += len(part)

    return [line.rstrip() for line in lines]


@pytest.mark.parametrize("width", [60, 120])
def test_messages_during_a_live_table_stand_above_it(monkeypatch, width):
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", str(width))
    with (
        Interruption(lambda: render.print_message("stopping …")) as interruption,
        LiveView(STUDY, "random", "here", None, 0) as view,
    ):
        view.update(SNAPSHOT)
        view._live.refresh()
        screen.write("^C")  # by the terminal
        signal.raise_signal(signal.SIGINT)
        render.print_message("a warning")
        view.update(SNAPSHOT)
        view._live.refresh()
        with pytest.raises(KeyboardInterrupt):
            interruption.check()

    render.print_message("interrupted")
    lines = drawn(screen.getvalue())
    assert lines[:2] == ["stopping …", "a warning"]
    assert [line for line in lines if line.startswith("mine ")] == [lines[2]]
    assert lines[-2] == "interrupted"


def test_a_regression_shows_its_error_in_the_own_unit(capsys):
    study = Study("mine", "diabetes", "diabetes/1", "mlp", "valid_mse", "minimise", budget=3)
    metrics = {"valid_mse": 0.5, "valid_rmse": 55.25}
    done = ProposalView(
        "mine#00000",
        0,
        State.COMPLETE,
        "0" * 32,
        "0" * 32,
        metrics=metrics,
        latest=metrics,
        value=0.5,
        configuration={f"p{number}": number for number in range(40)},
    )
    counts = {state: int(state is State.COMPLETE) for state in State}
    snapshot = Snapshot(study, (done,), counts, done, changed=(done,))
    with LiveView(study, "random", "here", None, 0) as view:
        view._begun = True
        view.update(snapshot)

    line = capsys.readouterr().err.splitlines()[-1]
    assert "p7=7 … 32 more) complete: valid_mse 0.5, valid_rmse 55.25; best 0.5; 1 of 3" in line
    lines = [line.plain for line in screen_lines(ScreenContents(snapshot, "about"), 160, 24)]
    assert "valid_mse 0.5, valid_rmse 55.25 (p0=0" in lines[1]
    heading = next(line for line in lines if line.startswith("#"))
    assert heading.split("┃")[-3:] == [" valid_mse ", " valid_rmse ", " seconds"]
    assert lines[-1].split("│")[-2].strip() == "55.25"


def test_a_long_configuration_takes_one_line_of_a_narrow_terminal(monkeypatch):
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", "100")
    settings = {f"knob_{number:02}": 0.25 for number in range(40)}
    rows = [dataclasses.replace(VIEW, number=n, configuration=settings) for n in range(2)]
    with LiveView(STUDY, "random", "here", None, 0) as view:
        view.update(dataclasses.replace(SNAPSHOT, proposals=tuple(rows)))
        view._live.refresh()

    lines = [line for line in drawn(screen.getvalue()) if "knob_" in line]
    assert len(lines) == 2
    assert all("running" in line and "knob_00=0.25 knob_01" in line for line in lines)
