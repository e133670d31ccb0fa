"""Columns of parallel coordinates: hyperparameters, decisions under their names, sizes; and what is
said of none."""

from __future__ import annotations

import itertools

import pytest

from archive import spaces
from archive.errors import UnknownNameError, UsageError
from archive.plots.data import hyperparameters
from archive.plots.data.hyperparameters import AxisColumn
from archive.store.records import Result
from tests.support.stores import cells, study, suggest

DECISIONS = {"depth": ("4", "2"), "act": ("relu", "gelu", "elu"), "rate": ("0.1", "0.01")}


def size(*values):
    return AxisColumn("size", values)


def shown(settings, decisions=None, names=(), **sizes):
    """Return the axes of results with these hyperparameters as columns by name."""
    columns = hyperparameters._together(
        hyperparameters.hyperparameter_columns(settings), decisions or {}, sizes
    )
    return {
        name: list(column.values)
        for name, column in hyperparameters._select("study", columns, names).items()
    }


def test_a_list_has_an_axis_for_its_mean():
    settings = [{"rate": [1.0, 3.0], "width": 4}, {"rate": [5.0], "width": 4}]
    assert shown(settings, layers=size(7, 8)) == {"rate (mean)": [2.0, 5.0]}
    assert shown(settings, layers=size(7, 8), names=["rate[1]", "layers"]) == {
        "rate[1]": [3.0, None],
        "layers": [7, 8],
    }
    assert shown([{"width": 4}] * 2, layers=size(7, 8)) == {"layers": [7, 8]}
    turned = [{"rate": [1.0, 3.0]}, {"rate": [3.0, 1.0]}]
    assert shown(turned, layers=size(7, 8)) == {"rate[0]": [1.0, 3.0], "rate[1]": [3.0, 1.0]}


def test_what_is_alike_is_named_and_nothing_else():
    sizes = "sizes of networks (layers, depth, edges, mass)"
    decision = {"act": AxisColumn("decision", ["relu"] * 2, ["relu", "gelu"])}
    for settings, decisions, alike in (
        ([{}, {}], {}, sizes),
        ([{"width": 4}] * 2, {}, f"hyperparameters and {sizes}"),
        ([{}, {}], decision, f"decisions and {sizes}"),
    ):
        with pytest.raises(UsageError) as raised:
            shown(settings, decisions, layers=size(7, 7))

        assert f"of the study 'study' have the same {alike}: no axis" in str(raised.value)


def test_equal_names_are_told_apart():
    decisions = {
        name: AxisColumn("decision", ["a", "b"], ["a", "b"]) for name in ("width", "depth")
    }
    columns = hyperparameters._together(
        hyperparameters.hyperparameter_columns([{"width": 4}]), decisions, {"depth": size(1, 2)}
    )
    assert list(columns) == ["width", "width (decision)", "depth", "depth (size)"]


@pytest.mark.parametrize("form", ["chain", "set"])
@pytest.mark.parametrize("table", [{}, {"table": "/nowhere/choices.csv"}])
def test_decisions_of_a_study_on_choices_are_axes_under_their_names(archive, form, table):
    space = spaces.get("choices", decisions=DECISIONS, form=form)
    archive.studies.create(study(space="choices", space_config={**space.config, **table}))
    agent = archive.proposals.register_agent("random", {}, "1")
    members = [member for member in space.members() if space.named(member)["rate"] == "0.1"]
    outcomes = [Result(float(at)) for at in range(len(members))]
    archive.proposals.create("study", agent, suggest(members), outcomes=outcomes)

    data = hyperparameters.parallel_coordinates(archive, "study")
    assert [(axis.name, axis.kind) for axis in data.axes] == [
        ("depth", "decision"), ("act", "decision"), ("accuracy", "objective"),
    ]  # fmt: skip
    depth, act, _ = data.axes
    # In the order of the space, though 2 is less than 4 and elu comes before gelu.
    assert depth.ticks == ((0.0, "4"), (1.0, "2"))
    assert act.ticks == ((0.0, "relu"), (0.5, "gelu"), (1.0, "elu"))
    for at, number in enumerate(data.number):
        names = space.named(members[number])
        assert depth.places[at] == DECISIONS["depth"].index(names["depth"])
        assert act.places[at] == DECISIONS["act"].index(names["act"]) / 2

    assert {"rate", "layers", "depth (size)"} <= set(data.known)
    (rate, _) = hyperparameters.parallel_coordinates(archive, "study", ["rate"]).axes
    assert set(rate.places) == {0.0}
    with pytest.raises(UnknownNameError, match="unknown axis 'acts': did you mean act"):
        hyperparameters.parallel_coordinates(archive, "study", ["acts"])


def test_decisions_that_this_version_cannot_read_leave_the_sizes(archive):
    archive.studies.create(
        study(space="choices", space_config={"decisions": [["act", ["relu"]]], "later": 1})
    )
    agent = archive.proposals.register_agent("random", {}, "1")
    networks = list(itertools.islice(cells(3), 3))
    archive.proposals.create(
        "study", agent, suggest(networks), outcomes=[Result(0.1), Result(0.2), Result(0.3)]
    )
    names = {
        axis.kind
        for axis in hyperparameters.parallel_coordinates(archive, "study", ["layers"]).axes
    }
    assert names == {"size", "objective"}
