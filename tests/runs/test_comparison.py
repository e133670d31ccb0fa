"""Two runs side by side: their differences, and whether these are more than noise."""

import numpy as np
import pytest
from scipy.stats import ttest_ind

from archive.errors import UnknownNameError, UsageError
from archive.runs import comparison
from archive.runs.comparison import compare_runs
from archive.runs.history.table_columns import RunMapping
from archive.runs.imported import import_runs


def fill(archive, first, second, direction="minimise"):
    """Store repeats of two configurations, and return the ids of the first run of each."""
    rows = [{"width": 4, "loss": value} for value in first]
    rows += [{"width": 8, "loss": value} for value in second]
    import_runs(archive, "s", rows, RunMapping("loss", direction))
    return "s#00000", f"s#{len(first):05d}"


@pytest.mark.parametrize("direction", ["minimise", "maximise"])
def test_the_interval_is_that_of_welch(archive, direction):
    rng = np.random.default_rng(1)
    first = rng.normal(1.0, 0.1, 4).tolist()
    second = rng.normal(0.5, 0.02, 3).tolist()
    compared = compare_runs(archive, *fill(archive, first, second, direction))
    better, worse = (second, first) if direction == "maximise" else (first, second)
    expected = ttest_ind(better, worse, equal_var=False).confidence_interval(0.95)
    assert (compared.low, compared.high) == pytest.approx((expected.low, expected.high))
    assert compared.gain == pytest.approx(np.mean(better) - np.mean(worse))
    side = "better" if direction == "minimise" else "worse"
    assert f"the second is {side} by" in compared.words
    assert "more than noise explains" in compared.words
    assert [(change.name, change.first, change.second) for change in compared.changes] == [
        ("width", 4, 8)
    ]


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ([1.0], [0.5], "better by 0.5 in loss; whether that is more than noise is unknown"),
        ([1.0, 2.0], [1.5], "neither better nor worse by 0 in loss; whether"),
        ([1.0, 2.0], [1.2, 2.2], "no more than noise: -0.2"),
        ([1.0, 1.0], [0.5, 0.5], "more than noise explains: +0.5 [+0.5, +0.5], 2 and 2 runs"),
        ([1.0], [None], "one of them has no result"),
    ],
)
def test_the_outcome_in_words(archive, first, second, words):
    assert words in compare_runs(archive, *fill(archive, first, second)).words


def test_two_runs_of_one_configuration_are_repeats(archive):
    fill(archive, [1.0, 3.0], [2.0])
    compared = compare_runs(archive, "s#00000", "s#00001")
    assert compared.words == "both are one configuration with 2 results, from 1 to 3"
    assert (compared.gain, compared.changes) == (None, [])


def test_what_cannot_be_compared_is_one_line(archive):
    first, _ = fill(archive, [1.0], [2.0])
    import_runs(archive, "t", [{"loss": 1.0}], RunMapping("loss", "minimise"))
    with pytest.raises(UsageError, match="two runs, got s#00000 twice"):
        compare_runs(archive, first, first)

    with pytest.raises(UsageError, match="different studies"):
        compare_runs(archive, first, "t#00000")

    with pytest.raises(UnknownNameError, match="s#00009"):
        comparison.compare_runs(archive, first, "s#00009")
