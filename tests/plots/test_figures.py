"""What the figures show: lines, marks, labels; and that names of others stay text."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

import archive as archive_package
from archive import plots
from archive.errors import SettingsError, UnknownNameError, UsageError
from archive.plots import kinds
from archive.plots.figures import files, style
from archive.store.records import Result
from tests.support.stores import Suggestion, cells, propose, study

ODD = "_$\\frac{$ <b>\x1b"
"""A name that is broken TeX, hidden from a legend, markup and a control character."""


@pytest.fixture
def filled(archive):
    """Two studies of six results each; the second has an odd name and is worse by 0.1."""
    agent = archive.proposals.register_agent("nasbot", {}, "1")
    networks = cells(6)
    for name, worse in (("study", 0.0), (ODD, 0.1)):
        archive.studies.create(study(name, objective="accuracy", config={"agent": "nasbot"}))
        values = [0.5, 0.4, 0.7, 0.6, math.nan, 0.8]
        suggestions = [
            Suggestion(
                network,
                mean=0.6,
                std=0.1,
                parent=networks[at - 1] if at else None,
                operations=("mutate",) if at else (),
                hyperparameters={"rate": 10.0**-at},
            )
            for at, network in enumerate(networks)
        ]
        outcomes = [
            Result(
                value - worse,
                {"params": 1000.0 * (at + 1)},
                {"accuracy": [value / 2, value - worse]},
                seconds=60.0,
            )
            for at, value in enumerate(values)
        ]
        archive.proposals.create(name, agent, suggestions, outcomes=outcomes)

    return archive


def labels(figure):
    """Return every text of a figure."""
    import matplotlib.text

    return [text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_text()]


def test_lines_are_the_best_so_far(filled):
    (axes,) = plots.best_so_far(filled, ["study", ODD], against="seconds").axes
    first, second = axes.lines
    assert first.get_drawstyle() == "steps-post"
    assert first.get_xydata().tolist() == [[60.0, 0.5], [180.0, 0.7], [360.0, 0.8], [360.0, 0.8]]
    np.testing.assert_allclose(second.get_ydata(), [0.4, 0.6, 0.7, 0.7])
    assert (axes.get_xlabel(), axes.get_ylabel()) == (
        "training time (s)",
        "best accuracy (maximise) so far",
    )
    assert first.get_color() != second.get_color()
    (axes,) = plots.best_so_far(filled, ["study", ODD], by="agent").axes
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [0.45, 0.65, 0.75])
    assert "nasbot (2)" in labels(axes.figure)


def test_the_front_of_each_study_is_drawn_over_the_results(filled):
    (axes,) = plots.value_and_cost(filled, ["study", ODD]).axes
    first, second = axes.lines
    assert first.get_xydata().tolist() == [
        [1000.0, 0.5],
        [3000.0, 0.7],
        [6000.0, 0.8],
        [6000.0, 0.8],
    ]
    assert second.get_ydata()[-1] == pytest.approx(0.7)
    assert first.get_color() != second.get_color()
    assert "study: front of 3" in labels(axes.figure)
    (axes,) = plots.value_and_cost(filled, "study").axes
    assert len(axes.lines) == 1 and "front of 3" in labels(axes.figure)


def test_a_logarithmic_axis_has_few_plain_numbers():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    axes.set_xlim(0.1, 3000.0)
    style.logarithmic(axes.xaxis)
    style.large_numbers(axes.xaxis)
    axes.figure.canvas.draw()
    shown = [text.get_text() for text in axes.get_xticklabels() if text.get_text()]
    assert {"0.2", "1", "50", "1 k", "2 k"} <= set(shown) and len(shown) < 20
    assert not [text.get_text() for text in axes.get_xticklabels(minor=True) if text.get_text()]


def test_results_are_drawn_with_what_is_left_out(filled):
    (axes,) = plots.value_and_cost(filled, ["study", ODD]).axes
    assert sum(len(marks.get_offsets()) for marks in axes.collections[:2]) == 10
    assert "2 left out" in axes.get_title(loc="left")


def test_curves_of_the_best_are_on_top(filled):
    (axes,) = plots.learning_curves(filled, "study", best=2, others=1).axes
    assert [line.get_ydata()[-1] for line in axes.lines] == [0.5, 0.7, 0.8]
    assert {"#5  0.8", "others (1)"} <= set(labels(axes.figure))
    with pytest.raises(
        UnknownNameError, match="unknown metric of the curves 'accurac': did you mean accuracy"
    ):
        plots.learning_curves(filled, "study", metric="accurac")


def test_every_axis_of_parallel_coordinates_is_named(filled):
    (axes,) = plots.parallel_coordinates(filled, "study").axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["rate\nlogarithmic", "accuracy"]
    lines = axes.collections[0].get_segments()
    np.testing.assert_allclose(lines[-1], [[0.0, 0.0], [1.0, 1.0]])  # the best: the smallest rate
    with pytest.raises(UnknownNameError, match="unknown axis 'rat': did you mean rate"):
        plots.parallel_coordinates(filled, "study", axes=["rat"])


def test_predictions_and_gains_are_those_of_the_data(filled):
    left, right = plots.predictions(filled, "study").axes
    np.testing.assert_allclose(left.collections[-1].get_offsets()[:, 0], 0.6)
    assert right.lines[-1].get_ydata()[-1] == 1.0
    left, right = plots.operation_gains(filled, "study").axes
    (name,) = (text.get_text() for text in left.get_yticklabels())
    assert name == "mutate  (3, 33% better)"
    assert right.patches[0].get_width() == pytest.approx(0.2)


def test_the_time_line_has_a_row_for_each_worker(archive):
    propose(archive, cells(3))
    for worker in ("one", "two"):
        claim = archive.proposals.claim(worker, study="study")
        archive.proposals.complete(claim.id, claim.token, Result(0.5, {}))

    archive.proposals.claim("two", study="study")
    (axes,) = plots.worker_timeline(archive, "study").axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["one", "two"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["complete", "running"]
    assert axes.get_title(loc="left") == "study: 3 trials"
    archive.studies.create(study("other"))
    with pytest.raises(UsageError, match="no worker has claimed a proposal in the last 2 hours"):
        plots.worker_timeline(archive, "other", hours=2)

    for hours in (1e300, float("inf")):
        (axes,) = plots.worker_timeline(archive, "study", hours=hours).axes
        assert [text.get_text() for text in axes.get_yticklabels()] == ["one", "two"]


def test_the_map_has_every_network_and_a_path(filled):
    (axes, _) = plots.network_map(filled, "study").axes
    assert len(axes.collections[0].get_offsets()) == 6
    path = axes.lines[-1].get_xydata()
    assert len(path) == 3  # of three improvements
    np.testing.assert_array_equal(axes.collections[-1].get_offsets()[0], path[-1])
    with pytest.raises(UnknownNameError, match="unknown distance 'profil': did you mean profile"):
        plots.network_map(filled, "study", distance="profil")


def test_names_of_others_stay_text(filled):
    figure = plots.best_so_far(filled, ["study", ODD])
    picture = files.render(figure, "svg")
    assert " _$\\frac{$ <b>?" in labels(figure)
    assert b"<b>" not in picture
    assert files.render(plots.best_so_far(filled, ["study", ODD]), "svg") == picture
    assert style.shorten("x" * 100) == "x" * 47 + "…"


def test_studies_without_a_common_axis_are_refused(filled):
    filled.studies.create(study("other", task="naval", protocol="naval/1"))
    with pytest.raises(
        UsageError, match="'study' and 'other' have no common axis: task 'digits' and 'naval'"
    ):
        plots.best_so_far(filled, ["study", "other"])

    with pytest.raises(UsageError, match="the study 'other' has no evaluation with a value yet"):
        plots.best_so_far(filled, "other")


def test_every_kind_has_a_function_with_its_options():
    import inspect

    assert sorted(kind.replace("-", "_") for kind in kinds.KINDS) == plots.__all__
    for kind, about in kinds.KINDS.items():
        parameters = inspect.signature(getattr(plots, kind.replace("-", "_"))).parameters
        assert set(about.options) <= set(parameters)
        assert ("studies" in parameters) == about.several


def test_plots_need_no_import_statement():
    assert archive_package.plots is plots


def test_without_matplotlib_the_way_out_is_named(filled, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(SettingsError, match=r"pip install 'nas-archive\[plots\]'"):
        plots.best_so_far(filled, "study")
