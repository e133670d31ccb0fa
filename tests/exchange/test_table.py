"""Import of a table on each server: every network once with every column, also when repeated."""

from __future__ import annotations

import csv
import itertools
from collections import defaultdict

import pytest

from archive.api import Archive
from archive.architecture import codec
from archive.exchange.importers.external import add
from archive.exchange.importers.table import external_results
from archive.trainer.tasks import registry
from tests.support import data_lines
from tests.support.stores import Forgetful, count

ROWS = 400
# One path of two layers, drawn over the first inner node and over the second.
ONE_NETWORK = (
    "|nor_conv_3x3~0|+|none~0|none~1|+|none~0|skip_connect~1|none~2|",
    "|none~0|+|nor_conv_3x3~0|none~1|+|none~0|none~1|skip_connect~2|",
)
COLUMN = "cifar10_valid_200ep"


@pytest.fixture(scope="module")
def rows():
    """Rows of NAS-Bench-201 by functional key, two of which are one network."""
    found = list(csv.DictReader(data_lines("nb201.csv.gz")))
    chosen = [*found[: ROWS - 2], *(row for row in found if row["arch_str"] in ONE_NETWORK)]
    grouped = defaultdict(list)
    for row in chosen:
        grouped[codec.from_nasbench201(row["arch_str"]).functional_key].append(row)
    return grouped


@pytest.fixture(scope="module")
def task(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "cells.csv"
    with path.open("w") as file:
        every = [row for group in rows.values() for row in group]
        writer = csv.DictWriter(file, every[0])
        writer.writeheader()
        writer.writerows(every)
    return registry.get(f"table:{path}#{COLUMN}")


def imported(archive, task, most=None):
    protocol = task.protocol().name
    return add(
        archive, task.name, protocol, itertools.islice(external_results(task, protocol), most), direction=task.direction
    )


def test_every_network_is_an_evaluation_with_the_means_of_its_rows(archive, task, rows):
    assert imported(archive, task) == len(rows) < ROWS
    found = archive.studies.evaluations(task=task.name, space="nasbench201")
    assert {each.architecture.functional_key for each in found} == rows.keys()
    assert count(archive.connection, "(a:Architecture)") == len(rows)
    edges = sum(len(each.architecture.edges) for each in found)
    assert count(archive.connection, "(:Layer)-[:FEEDS]->(:Layer)") == edges
    for each in found[::37]:
        group = rows[each.architecture.functional_key]

        def mean(column, group=group):
            return sum(float(row[column]) for row in group) / len(group)

        assert (each.study, each.direction, each.protocol) == (None, "maximise", task.protocol().name)
        assert each.value == pytest.approx(mean(COLUMN))
        assert each.metrics["cifar100_test_12ep"] == pytest.approx(mean("cifar100_test_12ep"))
        assert each.metrics["latency_ms_raspi4"] == pytest.approx(mean("latency_ms_raspi4"))
        details = archive.architectures.details(each.architecture.key)
        assert details["params"] == round(1e6 * mean("params_millions"))
        assert details["flops"] == round(1e6 * mean("flops_millions"))


@pytest.mark.every_server
def test_an_import_goes_on_where_it_stopped(archive, connection, task, rows):
    assert imported(archive, task, 150) == 150
    imported(Archive(Forgetful(connection)), task)
    assert count(connection, "(e:Evaluation)-[:OF]->(:Architecture)") == len(rows)
    assert count(connection, "(e:Evaluation)-[:ON]->(:Task)") == len(rows)
