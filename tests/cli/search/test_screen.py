"""A running study on terminals of every width: whole words, the best row, and no line too long."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from archive.cli.search.screen import ScreenContents, describe_rate, join_parts, screen_lines
from archive.searches.pace import LATEST, Pace, pace
from archive.store.records import State, Study
from archive.store.snapshots import ProposalView, snapshot_of
from tests.support import WHOLE

REASON = "RuntimeError: expected 4 channels of the input, got 3 (layer conv3x3 of stage 2)"


def proposals(count, *, configuration=0, metric="valid_accuracy"):
    """Return proposals in every state; the best one is number 2."""
    views = []
    for number in range(count):
        state = list(State)[number % len(State)] if number > 4 else State.COMPLETE
        value = 0.99 if number == 2 else 0.5 + number / 1000
        has_value = state.evaluated
        views.append(
            ProposalView(
                f"study#{number:05}",
                number,
                state,
                f"{number:032x}",
                f"{number:032x}",
                acquisition=0.123456,
                epochs=4 if has_value else None,
                metrics={metric: value} if has_value else {},
                latest={metric: value} if has_value else {},
                value=value if has_value else None,
                seconds=1234.5 if has_value else None,
                reason=REASON if state is State.FAILED else None,
                finished=1000 * number if has_value else None,
                configuration={
                    f"setting_{index}": number + index for index in range(configuration)
                },
            )
        )

    return views


def contents(count=60, *, name="study", metric="valid_accuracy", **options):
    study = Study(name, "digits", "digits/1", "mlp", metric, budget=100)
    return ScreenContents(
        snapshot_of(study, proposals(count, metric=metric, **options)),
        "nasbot:preset=paper on digits (digits/1), space mlp",
        "the embedded archive in /home/somebody/a-long-folder/of-this-archive",
        epochs=16,
        warm=12,
        elapsed=3700.0,
        pace=Pace(0.05, 800.0),
        notes=("#59 waits: no trainer serves the study; start one with archive trainer",),
    )


KINDS = {
    "networks": contents(),
    "few": contents(4),
    "configurations": contents(configuration=4),
    "long configurations": contents(configuration=40),
    "an own unit": contents(metric="valid_mse"),
    "long names": contents(name="a-study-of-" + "n" * 60, metric="an_objective_with_a_long_name"),
}


def words(lines):
    """Return the words of lines, without the rules between columns."""
    return [word for line in lines for word in re.split(r"[\s┃│━╇,]+", line) if word]


@pytest.mark.parametrize("kind", KINDS)
def test_at_every_width_words_are_whole_and_the_best_row_is_there(kind):
    shown = KINDS[kind]
    whole = set(words(line.plain for line in screen_lines(shown, 10_000, 60)))
    for width in range(20, 201, 1 if WHOLE else 7):
        lines = [line.plain for line in screen_lines(shown, width, 24)]
        assert max(map(cell_len, lines)) <= width
        assert len(lines) <= 23 or width < 60
        for word in words(lines):
            # The number of settings that are left out depends on the width.
            counted = re.fullmatch(r"\d+|more\)?|…\)?", word)
            cut = word.endswith("…") and any(
                other.startswith(word[:-1]) and cell_len(other) > width - 2 for other in whole
            )
            assert word in whole or counted or cut, (width, word)

        assert any(line.startswith("best: #2 ") for line in lines)
        assert "of 100" in " ".join(lines)
        head = next(index for index, line in enumerate(lines) if line.startswith("━"))
        rows = lines[head + 1 :]
        assert sum(line.split("│")[0].strip() == "2" for line in rows) == 1
        assert lines[head - 1].split("┃")[0].strip() == "#"


def test_a_low_terminal_has_fewer_rows_and_keeps_the_head():
    for height in range(6, 40):
        lines = [line.plain for line in screen_lines(KINDS["networks"], 160, height)]
        assert len(lines) < max(height, 9)
        assert lines[1].startswith("best: #2 ")


def test_narrow_terminals_leave_columns_out_and_cut_none():
    headings = {}
    for width in (20, 40, 60, 80, 120):
        lines = [line.plain for line in screen_lines(KINDS["networks"], width, 24)]
        heading = next(line for line in lines if line.startswith(("#", " #")))
        headings[width] = [name.strip() for name in heading.split("┃")]

    assert headings[20] == ["#", "valid_accuracy"]
    assert headings[40] == ["#", "state", "epoch", "valid_accuracy"]
    assert headings[60] == ["#", "state", "architecture", "epoch", "valid_accuracy"]
    assert headings[120][-1] == "seconds" and len(headings[120]) == 7


def test_a_reason_stands_over_the_columns_of_results():
    lines = [line.plain for line in screen_lines(KINDS["networks"], 140, 24)]
    failed = [line for line in lines if "failed" in line and "│" in line]
    assert failed and all(line.endswith(REASON) for line in failed)


def test_the_pace_is_of_the_latest_results_and_falls_while_nothing_ends():
    study = Study("study", "digits", "digits/1", "mlp", budget=100)
    views = [view for view in proposals(60) if view.state.evaluated]
    snapshot = snapshot_of(study, views)
    ends = [view.finished for view in views]
    latest = ends[-LATEST:]
    measured = pace(snapshot, since=0, now=latest[-1])
    assert measured.per_second == pytest.approx((LATEST - 1) * 1000 / (latest[-1] - latest[0]))
    assert measured.remaining == pytest.approx((100 - len(views)) / measured.per_second)
    assert pace(snapshot, since=0, now=latest[-1] + 60_000).per_second < measured.per_second
    assert pace(snapshot, since=latest[-1] + 1, now=latest[-1] + 2) is None
    few = pace(snapshot_of(study, views[:3]), since=0, now=6000)
    assert few.per_second == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("rate", "words"),
    [(12.34, "12 a second"), (0.5, "30 a minute"), (0.001, "3.6 an hour"), (1e-4, "8.6 a day")],
)
def test_a_rate_is_told_in_a_unit_of_at_least_one(rate, words):
    assert describe_rate(rate) == words


def test_parts_break_between_parts_before_words():
    assert join_parts(["one two", "three", "four five"], 16) == ["one two · three", "four five"]
    assert join_parts(["one two three"], 8) == ["one two", "three"]
