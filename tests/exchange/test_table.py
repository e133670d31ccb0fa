"""Import of a table on each server: every network once with every column, also when repeated;
entries of any kind."""

from __future__ import annotations

import csv
import io
import itertools
import math
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from archive.api import Archive
from archive.architecture import codec
from archive.errors import ArchiveError
from archive.exchange.importers.external import add, external_results, left_out
from archive.store.properties import result_properties
from archive.trainer.tasks import registry
from tests.support import data_lines, examples
from tests.support.stores import Forgetful, cells, count

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
        archive,
        task.name,
        protocol,
        itertools.islice(external_results(task, protocol), most),
        direction=task.direction,
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

        assert (each.study, each.direction, each.protocol) == (
            None,
            "maximise",
            task.protocol().name,
        )
        assert each.value == pytest.approx(mean(COLUMN))
        assert each.provenance == {"source": "cells.csv"}
        assert each.metrics["cifar100_test_12ep"] == pytest.approx(mean("cifar100_test_12ep"))
        assert each.metrics["latency_ms_raspi4"] == pytest.approx(mean("latency_ms_raspi4"))
        details = archive.architectures.details(each.architecture.key)
        assert details["params"] == round(1e6 * mean("params_millions"))
        assert details["flops"] == round(1e6 * mean("flops_millions"))


def test_an_import_goes_on_where_it_stopped(archive, connection, task, rows):
    assert imported(archive, task, 150) == 150
    imported(Archive(Forgetful(connection)), task)
    assert count(connection, "(e:Evaluation)-[:OF]->(:Architecture)") == len(rows)
    assert count(connection, "(e:Evaluation)-[:ON]->(:Task)") == len(rows)


COSTS = {"params": 1.0, "flops_millions": 1e6, "train_seconds": None, "latency_ms": None}
"""Columns of costs with the factor of a size; None for a duration."""
ENTRIES = [
    "1", "0", "-0", "2.5", "1e3", "-5", "-1e-300", "inf", "-inf", "nan", "", " ", "1e30", "1e305", "1e400", "-1e400",
    str(2**63), str(2**63 - 1025), "9.3e12", "1_000", "0x10", "x", '"1\n2"', "\x00", "\u0661",
]  # fmt: skip


def is_cost(number, factor):
    return math.isfinite(number) and number >= 0 and (factor is None or number * factor < 2**63)


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False

    return "_" not in text


@st.composite
def tables(draw):
    """Texts of tables: cells, a value and costs, with blank lines, missing entries and repeated
    networks."""
    names = draw(st.lists(st.sampled_from([*COSTS]), unique=True))
    entry = st.one_of(
        st.sampled_from(ENTRIES[:12]), st.sampled_from(ENTRIES), st.floats().map(repr)
    )
    lines = [["arch_str", "acc", *names]]
    for _ in range(draw(st.integers(1, 6))):
        cell = codec.to_nasbench201(cells(4)[draw(st.integers(0, 3))])
        lines.append(
            [
                cell,
                draw(st.sampled_from(["0.5", "1", "", "-inf", "1e308"])),
                *(draw(entry) for _ in names),
            ]
        )
        lines += [[draw(st.sampled_from(["", "  ", "," * len(names)]))]] * draw(st.integers(0, 1))

    return "\n".join(map(",".join, lines)) + draw(st.sampled_from(["", "\n", "\n\n"]))


@pytest.mark.whole
@examples(4)
@given(tables())
@example("\n\narch_str,acc,params\n\n" + f"{codec.to_nasbench201(cells(1)[0])},1,-1\n,,\n")
def test_any_table_is_read_or_refused_in_one_line(text):
    """The store's check is the one of `result_properties`; sizes are those of the network."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cells.csv"
        path.write_text(text, encoding="utf-8")
        try:
            task = registry.get(f"table:{path}#acc")
            results = list(external_results(task, task.protocol().name))
            lines = list(left_out(task.table))
        except ArchiveError as error:
            assert len(str(error).splitlines()) == 1
            return

    rows = [
        row
        for row in csv.reader(io.StringIO(text, newline=""))
        if any(entry.strip() for entry in row)
    ]
    head = rows.pop(0)
    keys = [codec.from_nasbench201(row[0]).functional_key for row in rows]
    for external in results:
        stored = result_properties(external.result)
        found = {
            "params": external.params, "flops_millions": external.flops, "train_seconds": stored["seconds"],
            "latency_ms": stored.get("metric_latency_ms"),
        }  # fmt: skip
        for name, factor in COSTS.items():
            column = (
                [row[head.index(name)].strip() or "nan" for row in rows] if name in head else []
            )
            if not all(map(is_number, column)):
                assert found[name] is None
                continue

            of_network = zip(keys, map(float, column), strict=False)
            numbers = [
                number for key, number in of_network if key == external.architecture.functional_key
            ]
            numbers = [number for number in numbers if not math.isnan(number)]
            if numbers and all(is_cost(number, factor) for number in numbers):
                mean = sum(numbers) / len(numbers) * (factor or 1.0)
                expected = mean if factor is None else round(mean)
                assert found[name] == pytest.approx(
                    expected, abs=0.5 if factor else None
                ) or math.isinf(mean)
            else:
                assert found[name] is None
                assert not numbers or any(
                    f"the column {name!r} is left out" in line for line in lines
                )


def test_entries_that_are_no_costs_are_named_by_row_and_column(archive, tmp_path):
    path = tmp_path / "cells.csv"
    costs = ["10,1", "-1,1", "1e30,nan", "inf,1e305", "5,-3"]
    texts = [
        f"{codec.to_nasbench201(cell)},0.5,{cost}"
        for cell, cost in zip(cells(5), costs, strict=True)
    ]
    path.write_text("\n\n".join(["arch_str,acc,params,train_time_s", *texts]))
    task = registry.get(f"table:{path}#acc")
    assert imported(archive, task) == 5
    assert list(left_out(task.table)) == [
        f"the column 'params' is left out for 3 networks of {path}: row 4 has '-1', which is not "
        "a size from 0 to "
        "2^63 - 1",
        f"the column 'train_time_s' is left out for 1 network of {path}: row 10 has '-3', which "
        "is not a finite "
        "number >= 0",
    ]
    found = {each.architecture.key: each for each in archive.studies.evaluations()}
    assert [found[cell.key].seconds for cell in cells(5)] == [1.0, 1.0, None, 1e305, None]
    assert [found[cell.key].metrics.get("params") for cell in cells(5)] == [
        10.0,
        None,
        None,
        None,
        5.0,
    ]
    sizes = [archive.architectures.details(cell.key).get("params") for cell in cells(5)]
    assert sizes == [10, None, None, None, 5]
    # As the value of a task, a column is read as it is.
    assert registry.get(f"table:{path}#-params").answer(cells(2)[1]).value == -1.0
