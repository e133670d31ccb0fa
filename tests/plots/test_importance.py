"""Importance of a study's columns: of parameters with conditions, of decisions, of hyperparameters."""

from __future__ import annotations

import numpy as np
import pytest

from archive import plots, space, spaces
from archive.errors import UnknownNameError, UsageError
from archive.plots.data import slices
from archive.plots.data.columns import parameter_columns, read_table
from archive.plots.data.importance import Analysis, importance
from archive.spaces.parameters import Parameters
from archive.store.records import Result
from tests.support.stores import cells, study, suggest

SEARCH = space.Space(
    depth=space.integer(1, 4),
    act=space.choice(["relu", "gelu", "elu"]),
    lr=space.real(1e-4, 1.0, log=True),
    dropout=space.real(0.0, 0.5, when="depth >= 3"),
    idle=space.constant(7),
)


def error(values):
    """Return a value that depends on all but act; dropout matters most where it exists."""
    off = np.log10(values["lr"]) + 2.0
    return 0.1 * values["depth"] + 0.2 * off**2 + 2.0 * values.get("dropout", 0.25)


def add(archive, networks, values, **settings):
    archive.studies.create(study(**settings))
    agent = archive.proposals.register_agent("random", {}, "1")
    outcomes = [Result(float(value)) for value in values]
    archive.proposals.create("study", agent, suggest(networks), outcomes=outcomes)


@pytest.fixture
def tuned(archive):
    """A study of 120 random configurations."""
    whole = Parameters(SEARCH)
    rng = np.random.default_rng(0)
    drawn = [SEARCH.sample(rng) for _ in range(120)]
    add(
        archive, list(map(whole.network_of, drawn)), map(error, drawn),
        space="parameters", space_config=whole.config, objective="error", direction="minimise",
    )  # fmt: skip
    return archive


def test_a_conditional_parameter_counts_where_it_exists(tuned):
    report = importance(tuned, "study")
    by_name = {column.name: column for column in report.parameters}
    assert set(by_name) == {"depth", "act", "lr", "dropout"}
    assert (report.results, report.direction) == (120, "minimise")
    assert report.explained > 0.6
    dropout = by_name["dropout"]
    assert 30 < dropout.results < 90
    # The variances of 2 dropout, of 0.2 off^2 and of 0.1 depth, which has two values there.
    parts = np.array([1 / 12, 0.04 * 64 / 45, 0.0025])
    assert dropout.variance.share == pytest.approx((parts / parts.sum())[0], abs=0.15)
    assert dropout.variance.low < dropout.variance.share < dropout.variance.high
    assert by_name["act"].variance.share < 0.05
    assert sum(column.near_best.share for column in report.parameters) == pytest.approx(1.0)
    assert by_name["dropout"].near_best.share > by_name["act"].near_best.share
    pairs = {frozenset([pair.first, pair.second]): pair.results for pair in report.pairs}
    assert pairs[frozenset(["depth", "lr"])] == 120
    assert pairs[frozenset(["dropout", "lr"])] == dropout.results
    assert importance(tuned, "study") == report


def test_the_marginal_prediction_of_a_parameter_follows_its_effect(tuned):
    analysis = Analysis(read_table(tuned, "study"))
    column = analysis.table.column("lr")
    active = analysis.set_of(column)
    ends = active.forest.marginals(active.columns.index(column), np.array([0.0, 0.5, 1.0]))
    low, middle, high = ends.mean(axis=0)
    assert min(low, high) > middle + 0.1
    assert analysis.set_of(column, analysis.table.column("dropout")).rows.sum() < 120
    with pytest.raises(UnknownNameError, match="unknown parameter that differs 'rl'"):
        analysis.table.column("rl")


def test_codes_have_the_domain_of_their_parameter():
    values = [{"depth": 4, "act": "elu", "lr": 1e-2, "dropout": 0.5, "idle": 7}, {"depth": 9}]
    depth, act, lr, dropout = parameter_columns(Parameters(SEARCH), values)
    assert [column.measure.levels for column in (depth, lr, dropout)] == [4, 0, 0]
    assert act.measure.options == 3
    assert (lr.scaling, act.scaling, depth.scaling) == ("logarithmic", "categories", "linear")
    assert [word for _, word in depth.ticks] == ["1", "2", "3", "4"]
    assert [word for _, word in lr.ticks] == ["0.0001", "0.001", "0.01", "0.1", "1"]
    assert [word for _, word in act.ticks] == ["relu", "gelu", "elu"]
    assert [float(column.codes[0]) for column in (depth, act, lr)] == pytest.approx([1.0, 2.0, 0.5])
    # A configuration that the space does not allow has no code.
    assert np.isnan([depth.codes[1], act.codes[1], lr.codes[1], dropout.codes[1]]).all()


def test_decisions_of_a_built_in_space_have_an_importance(archive):
    space_of_cells = spaces.get("nasbench201")
    networks = cells(60)
    values = [network.layers[1].op == "nor_conv_3x3" for network in networks]
    vectors = [space_of_cells.decisions().encode(network) for network in networks]
    values = [float(vector[5] == 0) for vector in vectors]
    add(archive, networks, values)
    report = importance(archive, "study")
    first = report.parameters[0]
    assert first.name == space_of_cells.decisions().decisions[5].name
    assert first.variance.share > 0.9


def test_what_has_no_names_or_too_few_results_is_refused_in_one_line(archive, tuned):
    with pytest.raises(UnknownNameError):
        importance(archive, "nothing")

    archive.studies.create(study("few"))
    with pytest.raises(UsageError, match="'few' has 0 whole results, and an analysis needs 10"):
        importance(archive, "few")


def test_results_of_one_value_have_nothing_to_explain(archive):
    add(archive, cells(12), [0.5] * 12)
    with pytest.raises(UsageError, match="have the same accuracy: there is no difference"):
        importance(archive, "study")


def test_a_slice_has_the_results_and_the_prediction_of_each_column(tuned):
    data = slices.slices(tuned, "study")
    names = [part.axis.name for part in data.slices]
    ranked = [column.name for column in importance(tuned, "study").parameters]
    assert names == ranked
    by_name = {part.axis.name: part for part in data.slices}
    assert len(by_name["depth"].grid) == 4
    assert by_name["depth"].mean[-1] > by_name["depth"].mean[0]
    dropout = by_name["dropout"]
    assert len(dropout.value) == len(dropout.places) < 120
    assert (dropout.low <= dropout.high).all()
    (one,) = slices.slices(tuned, "study", ["act"]).slices
    assert sorted(set(one.places.tolist())) == [0.0, 0.5, 1.0]


def test_a_pair_has_the_ranks_of_its_results(tuned):
    data = slices.pair_slice(tuned, "study", ["lr", "dropout"])
    assert data.mean.shape == (len(data.grids[0]), len(data.grids[1]))
    assert np.isfinite(data.mean).all()
    assert data.mean[20, -1] > data.mean[20, 0]
    best = int(np.argmin(data.value))
    assert (data.rank[best], data.rank.max()) == (0.0, 1.0)
    usual = slices.pair_slice(tuned, "study")
    assert {usual.across.name, usual.up.name} <= {"lr", "dropout", "depth"}
    with pytest.raises(UsageError, match="this plot has two different axes, got 1"):
        slices.pair_slice(tuned, "study", ["lr"])


def test_figures_show_what_the_data_have(tuned):
    variance, near = plots.importance(tuned, "study").axes
    names = [text.get_text() for text in variance.get_yticklabels()]
    assert {"depth", "act", "lr", "dropout"} <= set(names[:4])
    assert len(near.patches) == 4
    panels = plots.slice(tuned, "study", axes=["lr", "act"]).axes
    assert panels[0].get_xlabel().startswith("lr\nlogarithmic, ")
    assert [text.get_text() for text in panels[1].get_xticklabels()] == ["relu", "gelu", "elu"]
    axes = plots.contour(tuned, "study", axes=["depth", "act"]).axes[0]
    assert axes.get_xlabel().startswith("depth\n")
    assert len(axes.collections[-1].get_offsets()) == 120
    axes, bar = plots.rank(tuned, "study").axes
    assert bar.get_yticklabels()[0].get_text() == "best"
    (axes,) = plots.edf(tuned, "study").axes
    assert axes.lines[0].get_ydata()[-1] == 1.0


def test_values_that_cannot_be_drawn_are_counted(archive):
    values = [1e200, *(float(number) for number in range(12))]
    add(archive, cells(13), values)
    table = read_table(archive, "study")
    assert (table.left_out, len(table.value)) == (1, 12)


def test_networks_that_no_decision_describes_are_counted(archive):
    mlp = spaces.get("mlp")
    networks = [network for network in mlp.initial_pool()]
    rng = np.random.default_rng(0)
    while len(networks) < 40:
        networks.append(mlp.mutate(networks[len(networks) // 2], rng).child)

    networks = list({network.functional_key: network for network in networks}.values())
    described = [mlp.decisions().encode(network) is not None for network in networks]
    add(archive, networks, [float(network.depth) for network in networks], space="mlp")
    assert len(read_table(archive, "study").value) == sum(described) < len(networks)
