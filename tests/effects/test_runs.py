"""Effects of one's own edits: planted ones are found, what changes at once is kept apart."""

import numpy as np
import pytest

from archive.architecture.parameter_operations import graph_of_values
from archive.cli.effects import print_report
from archive.effects.runs import effects_of_runs
from archive.errors import UnknownNameError
from archive.runs.history.table_columns import RunMapping
from archive.runs.imported import import_runs
from archive.store.studies.builds import Build
from tests.support.networks import torch_nets
from tests.support.stores import cells

MAPPING = RunMapping("loss", "minimise", identity="id", parent="up", values=("lr", "act", "base"))


def fill(archive, edits, parents=4):
    """Store parents with different losses, and changes of each: values, and the difference."""
    rng = np.random.default_rng(0)
    rows = []
    for base in range(parents):
        parent = {"id": f"{base}", "lr": 0.1, "act": "relu", "base": base, "loss": 10.0 * base}
        rows.append(parent)
        for number, (values, difference) in enumerate(edits):
            loss = parent["loss"] + difference + rng.normal(0, 0.01)
            child = {**parent, **values, "id": f"{base}.{number}", "up": f"{base}", "loss": loss}
            rows.append(child)

    import_runs(archive, "s", rows, MAPPING)


def row(report, change):
    (found,) = [effect for effect in report.effects if effect.change == change]
    return found


@pytest.mark.every_server
def test_a_planted_effect_is_found_in_both_directions(archive):
    edits = [({"lr": 0.2}, 1.0), ({"lr": 0.4}, 2.0), ({"lr": 0.05}, -1.0), ({"act": "gelu"}, -3.0)]
    fill(archive, edits)
    report = effects_of_runs(archive, "s")
    doubled = row(report, "lr doubled")
    assert doubled.effect == pytest.approx(1.0, abs=0.02)
    assert doubled.low < doubled.effect < doubled.high < 1.05
    assert (doubled.pairs, doubled.clusters, doubled.over) == (12, 4, "parents")
    assert row(report, "lr larger").effect == pytest.approx(4 / 3, abs=0.02)
    assert (row(report, "lr about x2").pairs, row(report, "lr about x4").pairs) == (8, 4)
    few = row(report, "act relu -> gelu")
    assert (few.effect, few.pairs, few.larger, few.is_alone) == (None, 4, 0, True)
    assert {effect.space for effect in report.effects} == {"values"}


def test_a_metric_that_no_run_has_is_named(archive):
    fill(archive, [({"lr": 0.2}, 1.0)], parents=1)
    with pytest.raises(UnknownNameError, match="has no metric 'los': did you mean loss"):
        effects_of_runs(archive, "s", metric="los")

    assert effects_of_runs(archive, "s", metric="loss").effects


def test_several_changes_at_once_are_no_effect_of_one_of_them(archive):
    fill(archive, [({"lr": 0.2, "act": "gelu"}, 5.0), ({"lr": 0.2}, 1.0)], parents=9)
    report = effects_of_runs(archive, "s")
    both = [effect for effect in report.effects if effect.change == "lr about x2"]
    assert [(effect.is_alone, effect.pairs) for effect in both] == [(True, 9), (False, 9)]
    assert both[0].effect == pytest.approx(1.0, abs=0.02)
    assert both[1].effect is None
    (activation,) = [effect for effect in report.effects if "gelu" in effect.change]
    assert not activation.is_alone


def test_changes_of_one_parent_share_its_luck(archive):
    fill(archive, [({"lr": 0.1 * 2**power}, power) for power in range(1, 10)], parents=1)
    effect = row(effects_of_runs(archive, "s"), "lr doubled")
    assert effect.effect == pytest.approx(1.0, abs=0.02)
    assert (effect.low, effect.high) == (None, None)


def test_the_pairs_of_a_change_are_listed_once(archive, capsys):
    fill(archive, [({"lr": 0.2}, 1.0), ({"lr": 0.05}, -1.0), ({"lr": 0.2, "act": "gelu"}, 1.0)])
    report = effects_of_runs(archive, "s", "lr")
    assert report.comparisons == len(report.pairs) == 12
    assert {pair.where for pair in report.pairs} == {
        "lr 0.1 -> 0.2",
        "lr 0.1 -> 0.05",
        "lr 0.1 -> 0.2, act relu -> gelu",
    }
    assert {pair.before for pair in report.pairs} <= {f"s#{4 * base:05d}" for base in range(4)}
    print_report(report, "lr", 2, of_runs=True)
    shown = capsys.readouterr().out
    assert "8 of 8" in shown and "too few pairs" not in shown
    assert "with other changes at once" in shown
    with pytest.raises(UnknownNameError, match="unknown change 'depth'"):
        effects_of_runs(archive, "s", "depth")


@pytest.mark.parametrize("space", ["torch", "nasbench201"])
def test_networks_of_runs_are_compared(archive, space):
    fill(archive, [({"act": "gelu"}, 1.0)], parents=1)
    networks = cells(2)
    if space == "torch":
        networks = (torch_nets.residual(3), torch_nets.residual(5))

    builds = []
    for act, network in zip(("relu", "gelu"), networks, strict=True):
        graph = graph_of_values({"lr": 0.1, "act": act, "base": 0}, name="program")
        builds.append(Build(graph, network, "m", None, None, None))

    archive.builds.add(builds)
    report = effects_of_runs(archive, "s")
    of_network = [effect for effect in report.effects if effect.space == space]
    assert of_network
    assert all(effect.change.startswith("network ") for effect in of_network)


def test_source_files_are_edits(archive):
    rows = [{"id": "a", "loss": 1.0}, {"id": "b", "up": "a", "loss": 2.0}]
    import_runs(archive, "s", rows, MAPPING_OF_FILES)
    archive.query(
        "MATCH (p:Proposal {number: 1}) SET p.changed = ['my train.py +3 -1', 'w.bin (large)']",
        write=True,
    )
    changes = {effect.change: effect for effect in effects_of_runs(archive, "s").effects}
    assert set(changes) == {"my train.py changed", "w.bin changed"}
    assert {effect.space for effect in changes.values()} == {"files"}
    archive.query("MATCH (p:Proposal) SET p.code = 'same'", write=True)
    assert effects_of_runs(archive, "s").effects == []
    archive.query(
        "MATCH (p:Proposal {number: 1}) SET p.code = 'other', p.changed = null", write=True
    )
    assert [effect.change for effect in effects_of_runs(archive, "s").effects] == [
        "source files changed"
    ]


MAPPING_OF_FILES = RunMapping("loss", "minimise", identity="id", parent="up", values=())
