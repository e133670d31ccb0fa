"""Tables that are made of official files: the files hold published numbers, and other readers agree
on their form."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import os
import pickle
from collections import Counter
from itertools import islice

import nats_bench
import numpy as np
import pytest
import torch
from click.testing import CliRunner

from archive.architecture.nasbench_codec import NB201_SLOTS
from archive.cli.main import archive as archive_command
from archive.errors import UsageError
from archive.exchange.releases import tables
from archive.exchange.releases.nasbench101 import LENGTHS
from archive.exchange.releases.pickles import content_of
from archive.spaces.tables.reader import Table
from archive.trainer.tasks.benchmark_tables import NB101
from tests.exchange.nasbench_files import CELLS, framed, row, trainings
from tests.support.commands import shell


def published(shared_data, file: str, count: int) -> list[dict[str, str]]:
    """Return rows of a table with published numbers."""
    with gzip.open(shared_data / "data" / file, "rt") as lines:
        return list(islice(csv.DictReader(lines), count))


def made(name, release, folder):
    """Make a table of a release, and return it with its rows."""
    content, count = tables.encode(tables.RELEASES[name].rows(release))
    path = folder / f"{name}.csv.gz"
    path.write_bytes(content)
    rows = list(csv.DictReader(io.StringIO(gzip.decompress(content).decode())))
    assert len(rows) == count
    return Table.load(path), rows


def spread(value, number):
    """Return the value of one of three trainings with a mean."""
    return float(value) + (number - 1) / 100


def test_a_row_of_nasbench101_is_the_mean_of_its_trainings(shared_data, tmp_path, monkeypatch):
    expected = published(shared_data, "nb101_sample.csv.gz", 30)
    release = tmp_path / "nasbench_full.tfrecord"
    # The trainings of a cell are not together in the file.
    release.write_bytes(
        b"".join(
            framed(
                row(
                    each["module_hash"],
                    epochs,
                    spread(each[f"val_acc_{epochs}ep"], number),
                    matrix(each),
                    ops(each),
                )
            )
            for number in range(3)
            for epochs in LENGTHS
            for each in expected
        )
    )
    table, rows = made("nb101", release, tmp_path)
    columns = [f"val_acc_{epochs}ep" for epochs in LENGTHS]
    for found, each in zip(rows, expected, strict=True):
        assert [found[name] for name in ("n_vertices", "adjacency_rowmajor", "ops")] == [
            each[name] for name in ("n_vertices", "adjacency_rowmajor", "ops")
        ]
        assert [float(found[name]) for name in columns] == pytest.approx(
            [float(each[name]) for name in columns]
        )
        assert float(found["test_acc_36ep"]) == pytest.approx(float(each["val_acc_36ep"]) - 0.05)
        assert (found["params"], float(found["train_time_108ep_s"])) == ("2694282", 1400.25)

    assert (len(table), table.cost_column) == (30, "train_time_108ep_s")
    # The task has test accuracies where the table has, unlike the sample of the table.
    monkeypatch.setenv("ARCHIVE_DATA_DIR", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "nb101.csv.gz").rename(tmp_path / "home" / "nb101.csv.gz")
    result = NB101.answer(table.architectures[0], "nb101/36")
    assert result.metrics["test_accuracy"] == pytest.approx(result.value - 0.05)


def test_a_release_with_one_length_has_no_other_columns(tmp_path):
    (tmp_path / "release").write_bytes(framed(row()))
    assert [
        name for name in made("nb101", tmp_path / "release", tmp_path)[1][0] if "ep" in name
    ] == [*("val_acc_108ep", "test_acc_108ep", "train_time_108ep_s")]


@pytest.fixture(params=["pth", "pbz2", "folder"])
def nasbench201(request, tmp_path):
    """A release of two cells in each of its forms."""
    infos = {index: {"12": trainings(index, 12), "200": trainings(index, 200)} for index in (1, 0)}
    meta = {"meta_archs": list(CELLS), "evaluated_indexes": {0, 1}}
    if request.param == "pth":
        names = {"12": "less", "200": "full"}
        infos = {
            index: {names[length]: held for length, held in cell.items()}
            for index, cell in infos.items()
        }
        path = tmp_path / "NAS-Bench-201-v1_1-096897.pth"
        torch.save({**meta, "arch2infos": infos}, path, _use_new_zipfile_serialization=False)
        return path

    if request.param == "pbz2":
        path = tmp_path / "NATS-tss-v1_0-3ffb9.pickle.pbz2"
        path.write_bytes(bz2.compress(pickle.dumps({**meta, "arch2infos": infos})))
        return path

    path = tmp_path / "NATS-tss-v1_0-3ffb9-simple"
    path.mkdir()
    for name, content in {
        "meta": meta,
        **{f"{index:06d}": cell for index, cell in infos.items()},
    }.items():
        (path / f"{name}.pickle.pbz2").write_bytes(bz2.compress(pickle.dumps(content)))

    return path


def test_all_forms_of_nasbench201_give_one_table(nasbench201, tmp_path):
    table, rows = made("nb201", nasbench201, tmp_path)
    assert [each["arch_str"] for each in rows] == list(CELLS)
    numbers = [{name: float(each[name]) for name in each if name != "arch_str"} for each in rows]
    assert numbers[1] == pytest.approx(
        {
            "cifar10_valid_12ep": 81.5, "cifar10_test_12ep": 89.12, "cifar10_valid_200ep": 81.5,
            "cifar10_test_200ep": 91.0, "cifar100_valid_12ep": 40.0, "cifar100_test_12ep": 39.0,
            "cifar100_valid_200ep": 40.0, "cifar100_test_200ep": 39.0, "train_seconds_200ep": 1700.0,
            "params_millions": 0.073306, "flops_millions": 7.78305, "latency_ms": 15.0,
        }
    )  # fmt: skip
    assert table.cost_column == "train_seconds_200ep"


@pytest.mark.parametrize("nasbench201", ["pbz2", "folder"], indirect=True)
def test_the_package_of_nats_bench_reads_the_same(nasbench201, tmp_path):
    api = nats_bench.create(str(nasbench201), "tss", fast_mode=nasbench201.is_dir(), verbose=False)
    _, rows = made("nb201", nasbench201, tmp_path)
    for index, found in enumerate(rows):
        assert api.meta_archs[index] == found["arch_str"]
        for length in (12, 200):
            valid = api.get_more_info(index, "cifar10-valid", hp=str(length), is_random=False)
            whole = api.get_more_info(index, "cifar10", hp=str(length), is_random=False)
            other = api.get_more_info(index, "cifar100", hp=str(length), is_random=False)
            expected = [
                valid["valid-accuracy"],
                whole["test-accuracy"],
                other["valid-accuracy"],
                other["test-accuracy"],
            ]
            names = [
                f"{name}_{length}ep"
                for name in ("cifar10_valid", "cifar10_test", "cifar100_valid", "cifar100_test")
            ]
            assert [float(found[name]) for name in names] == pytest.approx(expected)

        cost = api.get_cost_info(index, "cifar10-valid", hp="200")
        assert [
            float(found[name])
            for name in ("params_millions", "flops_millions", "train_seconds_200ep")
        ] == [*(pytest.approx(cost[name]) for name in ("params", "flops", "T-train@total"))]
        assert float(found["latency_ms"]) == pytest.approx(1000 * cost["latency"])


def test_a_wrong_size_in_nasbench201_is_that_of_the_trusted_seed(tmp_path):
    cell = trainings(0, 12)
    cell["all_results"]["cifar10-valid", 777]["params"] = np.float64(9.0)
    path = tmp_path / "one.pickle.pbz2"
    path.write_bytes(
        bz2.compress(
            pickle.dumps(
                {"arch2infos": {0: {"12": cell}}, "meta_archs": CELLS[:1], "evaluated_indexes": {0}}
            )
        )
    )
    (found,) = tables.nb201(path)
    assert found["params_millions"] == 0.073306
    assert (
        nats_bench.create(str(path), "tss", verbose=False).get_cost_info(0, "cifar10-valid")[
            "params"
        ]
        == 0.073306
    )


def test_a_compressed_pickle_that_would_run_code_is_refused(tmp_path):
    class Runs:
        def __reduce__(self):
            return os.system, (f"touch {tmp_path}/ran",)

    path = tmp_path / "evil.pickle.pbz2"
    path.write_bytes(bz2.compress(pickle.dumps({"arch2infos": {0: Runs()}})))
    for name in ("nb201", "transnas-micro"):
        with pytest.raises(UsageError, match=r"is refused: it names (posix|nt)\.system"):
            list(tables.RELEASES[name].rows(path))

    assert not (tmp_path / "ran").exists()
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(UsageError, match="it cannot be read"):
        list(tables.nb201(path))


NUMBERS = {"none": "0", "skip_connect": "1", "nor_conv_1x1": "2", "nor_conv_3x3": "3"}


def transnas_name(text: str) -> str:
    """Return the name of a cell in TransNAS-Bench-101."""
    operations = [each.partition("~")[0] for each in text.strip("|").replace("|+|", "|").split("|")]
    codes = "".join(NUMBERS[operation] for operation in operations)
    return f"64-41414-{codes[0]}_{codes[1:3]}_{codes[3:]}"


def test_transnas_is_the_last_epoch_of_each_task(shared_data, tmp_path):
    assert NB201_SLOTS == ((0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))
    expected = published(shared_data, "transnas_micro_three_tasks.csv.gz", 200)[::7]
    metrics = {
        "class_scene": "valid_top1",
        "class_object": "valid_top1",
        "autoencoder": "valid_ssim",
    }
    micro = {
        transnas_name(each["arch_str"]): {
            task: {
                "total_epochs": 2,
                "metrics": {
                    metric: [99.0, float(each[task])],
                    "valid_loss": [0.0, 0.0],
                    "train_top1": [1.0, 1.0],
                },
            }
            for task, metric in metrics.items()
        }
        for each in expected
    }
    path = tmp_path / "transnas-bench_v10141024.pth"
    torch.save(
        {"task_list": [*metrics], "data": {"macro": {"64-1234-basic": {}}, "micro": micro}}, path
    )
    table, rows = made("transnas-micro", path, tmp_path)
    assert rows == expected
    assert table.space == "nasbench201"
    for name in ("64-41414-4_02_333", "64-41414-1_02_33", 7):
        torch.save({"data": {"micro": {name: {}}}}, path)
        with pytest.raises(UsageError, match="has another form"):
            list(tables.transnas_micro(path))

    torch.save({"data": {"macro": {}}}, path)
    with pytest.raises(UsageError, match="no data of the micro space"):
        list(tables.transnas_micro(path))


def macro(expected):
    return {
        each["arch"]: {
            "test_acc": [float(each[f"acc{number}"]) for number in (1, 2, 3)],
            "mean_acc": float(each["mean_acc"]),
            "std": float(each["std"]),
            "params": int(each["params"]),
            "flops": int(each["flops"]),
        }
        for each in expected
    }


def test_nasbench_macro_is_its_json(shared_data, tmp_path):
    expected = published(shared_data, "nasbenchmacro_cifar10.csv.gz", 40)
    path = tmp_path / "nas-bench-macro_cifar10.json"
    path.write_text(json.dumps(macro(expected)))
    _, rows = made("nbmacro", path, tmp_path)
    assert rows == expected
    for content, why in (
        (b"", "no JSON"),
        (b"[]", "no object"),
        (b'{"0123": {}}', "has another form"),
        (b'{"01210210": {"test_acc": 7}}', "has another form"),
    ):
        path.write_bytes(content)
        with pytest.raises(UsageError, match=why):
            list(tables.nbmacro(path))


def test_a_made_table_is_found(archive, store_settings, shared_data, tmp_path):
    """`archive table make` writes into the folder of the archive, where tasks look for it."""
    expected = published(shared_data, "nasbenchmacro_cifar10.csv.gz", 40)
    release = tmp_path / "nas-bench-macro_cifar10.json"
    home = tmp_path / "home"
    release.write_text(json.dumps(macro(expected)))
    with shell(store_settings, tmp_path) as user:
        of_server = dict(user.environment)
        user.environment |= {"ARCHIVE_DATA_DIR": "", "ARCHIVE_HOME": str(home)}
        listed = json.loads(user.types("table", "list", "--json").stdout)["tables"]
        assert Counter(each["file"] for each in listed) == {None: 4}
        search = ("search", "--agent", "random", "--task", "nbmacro", "--budget", "3")
        assert "archive table make nbmacro FILE" in user.types(*search, code=2).stderr
        document = json.loads(user.types("table", "make", "nbmacro", str(release), "--json").stdout)
        assert (document["rows"], document["tasks"]) == (40, ["nbmacro"])
        assert document["file"] == str(home / "data" / "nbmacro.csv.gz")
        assert "exists" in user.types("table", "make", "nbmacro", str(release), code=2).stderr
        user.types("table", "make", "nbmacro", str(release), "--force")
        listed = json.loads(user.types("table", "list", "--json").stdout)["tables"]
        assert {each["table"]: each["file"] for each in listed if each["file"]} == {
            "nbmacro": document["file"]
        }
        assert "make a missing table" in user.types("table", "list").stderr
        for arguments, why in (
            (("nb301", str(release)), "unknown table 'nb301'"),
            (("nb101", str(release)), "no TFRecord file"),
            (("nbmacro", str(tmp_path / "none"), "--force"), "cannot read"),
            (("nb201", str(tmp_path)), "is no folder of NAS-Bench-201"),
        ):
            assert why in user.types("table", "make", *arguments, code=2).stderr

        assert [each.name for each in (home / "data").iterdir()] == ["nbmacro.csv.gz"]
        user.environment = of_server | {"ARCHIVE_DATA_DIR": str(home)}
        assert (
            json.loads(user.types("import", "table", "nbmacro", "--json").stdout)["evaluations"]
            == 40
        )

    values = [
        each.value for each in archive.studies.evaluations(task="nbmacro", protocol="nbmacro/1")
    ]
    assert sorted(values) == pytest.approx(
        sorted(float(each["mean_acc"]) / 100 for each in expected)
    )


def test_a_table_is_made_where_searches_find_it(shared_data, tmp_path, monkeypatch):
    """A file in the folder `data` comes before one beside that folder."""
    monkeypatch.setenv("ARCHIVE_DATA_DIR", str(tmp_path))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "nbmacro.csv.gz").write_bytes(b"old")
    (tmp_path / "release.json").write_text(
        json.dumps(macro(published(shared_data, "nasbenchmacro_cifar10.csv.gz", 5)))
    )
    arguments = ["table", "make", "nbmacro", str(tmp_path / "release.json")]
    assert "exists" in str(CliRunner().invoke(archive_command, arguments).exception)
    assert CliRunner().invoke(archive_command, [*arguments, "--force"]).exit_code == 0
    assert len(Table.named("nbmacro")) == 5
    assert not (tmp_path / "nbmacro.csv.gz").exists()


class Reduced:
    """Pickles as a call, with a state."""

    def __init__(self, function, arguments, state=None):
        self.reduced = (function, arguments) if state is None else (function, arguments, state)

    def __reduce__(self):
        return self.reduced


@pytest.mark.parametrize(
    "kind",
    [
        Reduced(np.dtype, ("O", False, True), (3, "|", None, None, None, -1, -1, 0)),
        Reduced(np.dtype, ("f8", False, True), (3, "x", None, None, None, -1, -1, 0)),
        Reduced(np.dtype, ("V8", False, True)),
        Reduced(np.dtype, (["a"],)),
        7,
    ],
)
def test_a_pickle_that_makes_addresses_of_bytes_is_refused(tmp_path, kind):
    """numpy would take the bytes for the address of an object, and the process would end."""
    number = Reduced(np._core.multiarray.scalar, (kind, b"A" * 8))
    path = tmp_path / "evil.pickle.pbz2"
    path.write_bytes(bz2.compress(pickle.dumps({"arch2infos": {0: {"12": {"arch_str": number}}}})))
    with pytest.raises(UsageError, match=r"is refused|is no file of"):
        list(tables.nb201(path))


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize(
    "number",
    [
        np.float64(0.1),
        np.float32(0.5),
        np.int64(-7),
        np.uint8(200),
        np.bool_(True),
        np.array([2.5], ">f8")[0],
    ],
)
def test_numbers_of_numpy_are_read_from_a_compressed_pickle(tmp_path, number, protocol):
    path = tmp_path / "numbers.pickle.pbz2"
    path.write_bytes(bz2.compress(pickle.dumps({"number": number}, protocol)))
    found = content_of(path, "a benchmark")["number"]
    assert found == number.item() and type(found) is type(number.item())


def test_a_release_without_networks_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.json").write_text("{}")
    (tmp_path / "empty.tfrecord").write_bytes(b"")
    for name, file in (("nbmacro", "empty.json"), ("nb101", "empty.tfrecord")):
        done = CliRunner().invoke(
            archive_command, ["table", "make", name, file, "--to", "table.csv"]
        )
        assert "has no networks" in str(done.exception)
        assert not (tmp_path / "table.csv").exists()

    (tmp_path / "one.tfrecord").write_bytes(framed(row()))
    assert (
        CliRunner()
        .invoke(archive_command, ["table", "make", "nb101", "one.tfrecord", "--to", "table.csv"])
        .exit_code
        == 0
    )
    assert Table.load("table.csv").column("val_acc_108ep").tolist() == [0.9]


def matrix(each):
    n = int(each["n_vertices"])
    digits = each["adjacency_rowmajor"]
    return [[int(digit) for digit in digits[at : at + n]] for at in range(0, n * n, n)]


def ops(each):
    return each["ops"].split("|")
