"""Effects over the results of an archive: planted effects are found, confounded pairs left out."""

from __future__ import annotations

from itertools import product

import pytest

from archive.architecture.nasbench_codec import from_nasbench201, nasbench201_text
from archive.effects.effects import effects
from archive.errors import UnknownNameError
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


def test_unknown_names_are_refused(cells):
    with pytest.raises(UnknownNameError, match="unknown task 'cell': did you mean cells"):
        effects(cells, task="cell")

    with pytest.raises(UnknownNameError, match="unknown change 'operatio'"):
        effects(cells, "operatio")

    with pytest.raises(UnknownNameError, match="unknown space 'nasbench'"):
        effects(cells, space="nasbench")
