"""Importing a table on each server: every row, every metric, isomorphic cells once, and again without harm."""

from __future__ import annotations

import csv

import pytest

from archive import codec
from archive.errors import CodecError
from archive.imports import import_nasbench201
from tests.archive.stores import Forgetful, count
from tests.support import data_lines

ROWS = 400
# One path of two layers, drawn over the first inner node and over the second.
ONE_NETWORK = (
    "|nor_conv_3x3~0|+|none~0|none~1|+|none~0|skip_connect~1|none~2|",
    "|none~0|+|nor_conv_3x3~0|none~1|+|none~0|none~1|skip_connect~2|",
)


@pytest.fixture(scope="module")
def table():
    rows = list(csv.DictReader(data_lines("nb201.csv.gz")))
    return [*rows[: ROWS - 2], *(row for row in rows if row["arch_str"] in ONE_NETWORK)]


def test_every_row_is_an_evaluation_and_every_network_an_architecture(archive, table):
    assert import_nasbench201(archive.connection, table) == ROWS
    networks = {cell.key: cell for cell in (codec.from_nasbench201(row["arch_str"]) for row in table)}
    found = archive.studies.evaluations(task="nb201-cifar10", space="nasbench201")
    assert len(networks) < ROWS == len(found) == len(table)
    assert count(archive.connection, "(a:Architecture)") == len(networks)
    assert count(archive.connection, "(:Layer)-[:FEEDS]->(:Layer)") == sum(len(n.edges) for n in networks.values())
    by_id = {each.id: each for each in found}
    for row in table[::37]:
        evaluation = by_id[f"nb201-cifar10/{row['index']}"]
        assert evaluation.architecture.key == codec.from_nasbench201(row["arch_str"]).key
        assert evaluation.value == pytest.approx(float(row["cifar10_valid_200ep"]) / 100)
        assert evaluation.metrics["cifar100_test_12ep"] == pytest.approx(float(row["cifar100_test_12ep"]) / 100)
        assert evaluation.metrics["latency_ms_raspi4"] == float(row["latency_ms_raspi4"])
        assert (evaluation.study, evaluation.epochs) == (None, 200)
        assert evaluation.seconds == float(row["train_seconds_200ep"])
    details = archive.architectures.details(codec.from_nasbench201(table[0]["arch_str"]).key)
    assert details["params"] == round(1e6 * float(table[0]["params_millions"]))


def test_an_import_goes_on_where_it_stopped(archive, connection, table):
    import_nasbench201(connection, table[:150])
    import_nasbench201(Forgetful(connection), table)
    assert count(connection, "(e:Evaluation)-[:OF]->(:Architecture)") == ROWS
    assert count(connection, "(e:Evaluation)-[:ON]->(:Task)") == ROWS


def test_a_row_that_is_no_cell_is_an_error(archive, table):
    with pytest.raises(CodecError):
        import_nasbench201(archive.connection, [{**table[0], "arch_str": "|conv~0|"}])
