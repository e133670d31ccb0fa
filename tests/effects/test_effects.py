"""Effects over the results of an archive: planted effects are found, confounded pairs left out."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from archive.architecture.nasbench_codec import from_nasbench201, nasbench201_text
from archive.cli.effects import print_report
from archive.effects.columns import columns_of
from archive.effects.effects import effects
from archive.effects.networks import edits_of
from archive.errors import UnknownNameError
from archive.queries.results_by_task import TaskResult, TaskResults
from archive.store.evaluations import Evaluations, TaskProtocol
from archive.store.records import Result
from tests.support.networks import torch_nets

GAINS = {"nor_conv_1x1": 1.0, "nor_conv_3x3": 3.0}


def add(archive, rows):
    """Add results: network, task, protocol, value, and provenance."""
    places = {}
    stored = []
    for number, (network, task, protocol, value, about) in enumerate(rows):
        place = places.setdefault((task, protocol), TaskProtocol(task, protocol, "maximise"))
        provenance = {"source": "test 1", **about} if about else {}
        result = Result(value, {"accuracy": value}, provenance=provenance)
        stored.append((f"{task}/{protocol}/{number}", network.key, place, result))

    archive.architectures.add([row[0] for row in rows])
    Evaluations(archive.connection, archive.architectures).add_many(list(places.values()), stored)


def cell(*operations):
    return from_nasbench201(
        nasbench201_text((*operations, *["nor_conv_1x1"] * (6 - len(operations))))
    )


@pytest.fixture
def cells(archive):
    """Cells with a planted effect of each convolution, under two protocols of another level."""
    rows = []
    for operations in product(GAINS, repeat=4):
        value = sum(map(GAINS.__getitem__, operations))
        rows.append((cell(*operations), "cells", "cells/1", value, {}))
        rows.append((cell(*operations), "cells", "cells/2", value + 50.0, {}))

    add(archive, rows)
    return archive


def row(report, change, metric="accuracy"):
    (found,) = [e for e in report.effects if (e.change, e.metric) == (change, metric)]
    return found


@pytest.mark.every_server
def test_a_planted_effect_is_found(cells):
    report = effects(cells, task="cells")
    found = row(report, "operation nor_conv_1x1 -> nor_conv_3x3")
    assert found.effect == pytest.approx(2.0)
    assert found.low == pytest.approx(2.0) and found.high == pytest.approx(2.0)
    # Each of 16 cells has four neighbours, under two protocols; none across the protocols.
    assert (found.pairs, found.results, found.larger) == (32, 64, 64)
    assert (found.clusters, found.over, found.space) == (16, "networks", "nasbench201")
    assert not report.pairs


def test_the_pairs_of_a_change_are_listed(cells):
    report = effects(cells, "operation", task="cells")
    assert len(report.pairs) == 64
    assert {pair.where for pair in report.pairs} == {"0-1", "0-2", "1-2", "0-3"}
    assert {pair.protocol == pair.protocol_after for pair in report.pairs} == {True}
    assert all(pair.effect == pytest.approx(2.0) for pair in report.pairs)


def test_a_thousand_pairs_at_most_are_listed_with_their_models(archive, monkeypatch, capsys):
    monkeypatch.setattr("archive.effects.effects.MOST_PAIRS", 3)
    rows = []
    for operations in product(GAINS, repeat=3):
        network = cell(*operations)
        rows.append((network, "t", "t/1", 1.0, {"model": f"model {network.key}"}))

    add(archive, rows)
    report = effects(archive, "operation")
    assert (len(report.pairs), report.comparisons) == (3, 12)
    assert all(pair.before.startswith("model") for pair in report.pairs)
    assert all(pair.after.startswith("model") for pair in report.pairs)
    print_report(report, "operation", 2)
    print_report(report, "operation", 3)
    messages = capsys.readouterr().err.splitlines()
    assert messages == ["10 further pairs: raise --pairs", "9 further pairs"]


def test_a_ratio_without_a_value_above_zero_is_unknown():
    rows = []
    for key, value in (("a", 0.0), ("b", 2.0), ("c", -1.0)):
        rows.append(TaskResult("t/1", key, "torch", key, value, None, None, None))

    results = [TaskResults("t", "t/1", rows), TaskResults("u", "u/1", rows)]
    places = {"a": 0, "b": 1, "c": 2}
    ratio, plain = columns_of(results, {"t": "seconds", "u": "accuracy"}, places)
    np.testing.assert_array_equal(ratio.values, [np.nan, np.log(2.0), np.nan])
    np.testing.assert_array_equal(plain.values, [0.0, 2.0, -1.0])


def test_too_few_pairs_have_no_estimate(archive):
    values = {("nor_conv_1x1",): 1.0, ("nor_conv_3x3",): 2.0}
    add(archive, [(cell(*ops), "cells", "cells/1", value, {}) for ops, value in values.items()])
    (found,) = effects(archive).effects
    assert (found.pairs, found.effect, found.low) == (1, None, None)


def test_other_pretraining_and_other_recipes_are_not_mixed_in(archive):
    plain = {"model": "a", "family": "f"}
    tuned = {"model": "b", "family": "f", "pretraining": "in22k"}
    rows = []
    for rest in product(GAINS, repeat=4):
        one = cell("nor_conv_1x1", *rest)
        other = cell("nor_conv_3x3", *rest)
        rows.append((one, "t", "timm/fb_in1k@224", 1.0, plain))
        rows.append((one, "t", "timm/fb_dist_in1k@224", 2.5, plain))
        rows.append((other, "t", "timm/fb_in22k_ft_in1k@224", 9.0, tuned))

    add(archive, rows)
    report = effects(archive, task="t")
    at_first_edge = [pair for pair in effects(archive, "operation").pairs if pair.where == "0-1"]
    assert not at_first_edge
    distillation = row(report, "distillation added")
    assert distillation.effect == pytest.approx(1.5)
    assert (distillation.pairs, distillation.over) == (16, "networks")


def test_imported_models_differ_in_outlines(archive):
    rows = []
    for network in torch_nets.classifiers():
        rows.append((network, "t", "timm/a@8", 1.0, {"model": "m", "family": "f"}))

    add(archive, rows)
    again = effects(archive)
    assert again == effects(archive)


def test_the_side_of_several_inputs_is_of_the_images(archive):
    keys = []
    for given in ("3x8x6", "3x8x6 4:int64", "4:int64 3x8x6", "scalar"):
        network = torch_nets.chain(torch_nets.layer("relu"), given=given)
        archive.architectures.add([network])
        keys.append(network.key)

    assert edits_of(archive, "torch", keys).sides.tolist() == [6, 6, 6, 0]


def test_unknown_names_are_refused(cells):
    with pytest.raises(UnknownNameError, match="unknown task 'cell': did you mean cells"):
        effects(cells, task="cell")

    with pytest.raises(UnknownNameError, match="unknown change 'operatio'"):
        effects(cells, "operatio")

    with pytest.raises(UnknownNameError, match="unknown space 'nasbench'"):
        effects(cells, space="nasbench")

    with pytest.raises(UnknownNameError, match="unknown metric 'acuracy': did you mean accuracy"):
        effects(cells, metric="acuracy")
