"""Numbers that are too large to draw: the plots are drawn without them, and say how many there
are."""

from __future__ import annotations

import math

import numpy as np
import pytest

from archive import plots, report
from archive.errors import UsageError
from archive.plots.data import hyperparameters
from archive.plots.data.results import LARGEST, describe_undrawable
from archive.plots.figures import files, style
from archive.store.records import Objective, Result
from tests.support import whole
from tests.support.stores import Suggestion, cells, study

KINDS = {
    "best_so_far": 2,
    "value_and_cost": 4,
    "learning_curves": 16,
    "parallel_coordinates": 3,
    "predictions": 4,
    "operation_gains": 2,
    "network_map": 2,
}
"""Number of large numbers that each plot leaves out."""


@pytest.fixture(params=["maximise", whole("minimise")])
def filled(archive, request):
    """A function that adds a study of eight results, some of whose numbers are so large, and
    returns the archive."""

    def fill(large):
        archive.studies.create(study(objective="accuracy", direction=request.param))
        agent = archive.proposals.register_agent("nasbot", {}, "1")
        networks = cells(8)
        values = [0.5, large, -large, 0.6, 0.7, 0.8, 0.9, 0.4]
        means = {5: large}
        stds = {6: large}
        rates = {2: large, 4: large}
        costs = {3: large, 4: -large}
        suggestions = [
            Suggestion(
                network,
                mean=means.get(at, 0.6),
                std=stds.get(at, 0.1),
                parent=networks[at - 1] if at else None,
                operations=("mutate",) if at else (),
                hyperparameters={"rate": rates.get(at, 10.0**-at)},
            )
            for at, network in enumerate(networks)
        ]
        outcomes = [
            Result(
                value,
                {"params": costs.get(at, 1000.0 * (at + 1))},
                {"accuracy": [-large, large, 0.5]},
                seconds=large if at == 3 else 60.0,
            )
            for at, value in enumerate(values)
        ]
        archive.proposals.create("study", agent, suggestions, outcomes=outcomes)
        return archive

    return fill


def notes(figure):
    """Return the line below a figure."""
    return figure.get_supxlabel()


@pytest.mark.parametrize("large", [1e308, whole(LARGEST)])
def test_plots_leave_out_what_cannot_be_drawn(filled, large):
    archive = filled(large)
    for kind, count in KINDS.items():
        figure = getattr(plots, kind)(archive, "study")
        assert notes(figure) == (
            f"{count} numbers are left out, beyond 1e150" if large == 1e308 else ""
        ), kind
        assert files.render(figure, "png")

    (axes,) = plots.best_so_far(archive, "study", against="seconds").axes
    assert notes(axes.figure) == ("3 numbers are left out, beyond 1e150" if large == 1e308 else "")
    assert notes(plots.best_so_far(archive, "study", by="agent")) == notes(
        plots.best_so_far(archive, "study")
    )


def test_a_report_leaves_out_what_cannot_be_drawn(filled):
    text = report.html(filled(1e308), "study")
    for count in (2, 3, 4, 16):
        assert f" {count} numbers are left out, beyond 1e150." in text

    assert ">1e+308<" in text  # in the table


def test_a_report_of_objectives_that_cannot_be_drawn(archive):
    further = (Objective("loss", "minimise"), Objective("params", "minimise"))
    archive.studies.create(study(objective="accuracy", further=further))
    agent = archive.proposals.register_agent("parego", {}, "1")
    rows = [(0.5, 3.0, 1.0), (1e308, 1e308, 2.0), (-1e308, -1e308, 1e308), (0.3, 4.0, 4.0)]
    outcomes = [
        Result(value, {"accuracy": value, "loss": loss, "params": params})
        for value, loss, params in rows
    ]
    archive.proposals.create(
        "study", agent, [Suggestion(one) for one in cells(4)], outcomes=outcomes
    )
    text = report.html(archive, "study")
    assert " 4 numbers are left out, beyond 1e150." in text  # accuracy and loss
    assert "no hypervolume can be drawn; 4 numbers are left out, beyond 1e150" in text


def test_a_study_of_large_values_says_why_it_has_no_plot(archive):
    archive.studies.create(study(objective="accuracy"))
    agent = archive.proposals.register_agent("nasbot", {}, "1")
    outcomes = [Result(1e200, {"params": 1e200}), Result(-1e200, {"params": 1.0})]
    archive.proposals.create(
        "study", agent, [Suggestion(one) for one in cells(2)], outcomes=outcomes
    )
    for kind in ("best_so_far", "parallel_coordinates"):
        with pytest.raises(
            UsageError, match="no evaluation with a value yet; 2 numbers are left out, beyond 1e150"
        ):
            getattr(plots, kind)(archive, "study")

    with pytest.raises(
        UsageError, match="shows the costs on record; 3 numbers are left out, beyond 1e150"
    ):
        plots.value_and_cost(archive, "study")


def test_integers_of_any_size_have_no_place():
    settings = [{"width": 10**400, "widths": [1, -(10**400)]}, {"width": 3, "widths": [1, 2]}]
    columns = hyperparameters.hyperparameter_columns(settings)
    assert columns["widths (mean)"].values == [-math.inf, 1.5]
    axis = hyperparameters.axis("width", columns["width"].values)
    assert axis.left_out == 1
    np.testing.assert_array_equal(axis.places, [math.nan, 0.5])


def test_costs_next_to_zero_have_a_linear_axis():
    assert not style.spans_orders(np.array([1e-310, 1.0]))
    assert style.spans_orders(np.array([1e-3, 1.0]))


def test_one_number_is_counted_as_one():
    assert describe_undrawable(1) == "1 number is left out, beyond 1e150"
    assert describe_undrawable(0, "; ") == ""
