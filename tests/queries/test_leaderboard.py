"""Leaderboards: configurations by their means, and which of them differ by more than noise."""

import pytest

from archive.errors import UnknownNameError, UsageError
from archive.objectives import Objective
from archive.queries.leaderboard import leaderboard
from archive.runs.history.table_columns import RunMapping
from archive.runs.imported import import_runs
from archive.store.records import Result
from tests.support.stores import Repeat, answer, cells, study, suggest


def fill(archive, values, direction="minimise", name="s", **options):
    """Store the runs of configurations by width."""
    rows = []
    for width, losses in values.items():
        rows += [{"width": width, "loss": loss, "why": f"width {width}"} for loss in losses]

    mapping = RunMapping("loss", direction, motivation="why")
    import_runs(archive, name, rows, mapping, **options)


@pytest.mark.every_server
@pytest.mark.parametrize("direction", ["minimise", "maximise"])
def test_ranks_are_by_means_and_groups_by_noise(archive, direction):
    values = {1: [3.0, 3.1], 2: [1.0, 1.1, 1.2], 3: [1.05, 1.1, 1.25], 4: [2.0]}
    if direction == "maximise":
        values = {width: [-loss for loss in losses] for width, losses in values.items()}

    fill(archive, values, direction)
    board = leaderboard(archive.connection)
    rows = board.rows
    assert (board.task, board.protocol, board.configurations, board.results) == (
        ("s", "s/recorded", 4, 9)
    )
    assert [row.values["width"] for row in rows] == [2, 3, 4, 1]
    assert [row.group for row in rows] == [1, 1, 1, 2]
    assert [row.beats for row in rows] == [[4], [4], [], []]
    assert rows[0].repeats == sorted(values[2], reverse=direction == "maximise")
    assert rows[0].low < rows[0].mean < rows[0].high
    assert (rows[2].low, rows[2].high, rows[2].motivation) == (None, None, "width 4")
    verdicts = {(pair.better, pair.worse): pair.verdict for pair in board.pairs}
    assert verdicts == {
        (1, 2): "noise",
        (1, 3): "unknown",
        (1, 4): "better",
        (2, 3): "unknown",
        (2, 4): "better",
        (3, 4): "unknown",
    }
    (last,) = [pair for pair in board.pairs if (pair.better, pair.worse) == (1, 4)]
    assert last.gain == pytest.approx(1.95)
    assert 0 < last.low < last.gain < last.high


def test_results_of_all_kinds_of_studies_stand_side_by_side(archive):
    network, other = cells(2)
    archive.studies.create(study("searched", objective="accuracy"))
    agent = archive.proposals.register_agent("random", {}, "1")
    seeds = [(suggestion, Result(0.5)) for suggestion in suggest([network])]
    answer(archive, "searched", agent, seeds)
    archive.studies.create(study("again", objective="accuracy"))
    answer(archive, "again", agent, [(suggest([network])[0], Result(0.7))])
    tuned = Repeat(network, hyperparameters={"lr": 0.1})
    answer(archive, "again", agent, [(tuned, Result(0.9)), (suggest([other])[0], Result(0.1))])
    board = leaderboard(archive.connection, "digits")
    assert [(row.mean, row.values) for row in board.rows] == [
        (0.9, {"lr": 0.1}),
        (pytest.approx(0.6), {}),
        (0.1, {}),
    ]
    assert board.rows[1].repeats == [0.7, 0.5]
    assert board.rows[1].study == "again"


def test_values_that_are_no_numbers_do_not_count(archive):
    archive.studies.create(study("s", objective="accuracy"))
    agent = archive.proposals.register_agent("random", {}, "1")
    results = [Result(float("nan")), Result(0.5, partial=True), Result(0.25, {"seconds": 2.0})]
    answer(archive, "s", agent, list(zip(suggest(cells(3)), results, strict=True)))
    assert [row.mean for row in leaderboard(archive.connection).rows] == [0.25]
    metric = Objective("seconds", "minimise")
    assert [row.mean for row in leaderboard(archive.connection, metric=metric).rows] == [2.0]
    with pytest.raises(UsageError, match="no result of digits has a finite value of params"):
        leaderboard(archive.connection, metric=Objective("params", "minimise"))


def test_what_is_not_comparable_is_not_ranked_together(archive):
    with pytest.raises(UsageError, match="no results yet"):
        leaderboard(archive.connection)

    fill(archive, {1: [1.0]})
    with pytest.raises(UnknownNameError, match="unknown task 't'"):
        leaderboard(archive.connection, "t")

    fill(archive, {1: [1.0]}, "maximise", name="other", task="s")
    choice = "choose one of --maximise loss, --minimise loss"
    with pytest.raises(UsageError, match=choice):
        leaderboard(archive.connection, "s")

    metric = Objective("loss", "minimise")
    assert leaderboard(archive.connection, "s", metric=metric).rows[0].repeats == [1.0, 1.0]
    archive.studies.create(study("searched", task="s", protocol="s/long"))
    agent = archive.proposals.register_agent("random", {}, "1")
    answer(archive, "searched", agent, [(suggest(cells(1))[0], Result(0.5))])
    with pytest.raises(
        UsageError, match=r"--protocol NAME chooses one of s/long \(1\), s/recorded"
    ):
        leaderboard(archive.connection, "s")

    assert leaderboard(archive.connection, "s", protocol="s/long").rows[0].mean == 0.5
    fill(archive, {1: [1.0]}, name="t")
    with pytest.raises(UsageError, match="--task NAME chooses one of s, t"):
        leaderboard(archive.connection)
