"""The official format of NAS-Bench-201, pickled here as its authors did; and pickles that would run
code."""

from __future__ import annotations

import math
import os
import pickle
import subprocess

import pytest
import torch

from archive.architecture import codec
from archive.errors import UsageError
from archive.exchange.importers.external import add
from archive.exchange.importers.nasbench201 import external_results
from archive.exchange.releases.nasbench201 import read
from tests.exchange.nasbench_files import CELLS, trainings


@pytest.fixture(params=[False, True], ids=["legacy", "zip"])
def file(request, tmp_path):
    content = {
        "meta_archs": list(CELLS),
        "arch2infos": {
            index: {"less": trainings(index, 12), "full": trainings(index, 200)} for index in (0, 1)
        },
        "evaluated_indexes": {0, 1},
    }
    path = tmp_path / "NAS-Bench-201-v1_1-096897.pth"
    torch.save(content, path, _use_new_zipfile_serialization=request.param)
    return path


def test_each_training_is_one_result(file):
    found = list(external_results(file, read(file), "nb201-cifar10", 200))
    assert [each.id for each in found] == [
        f"nb201-cifar10/200/{index}/{seed}" for index in (0, 1) for seed in (777, 888)
    ]
    assert [each.architecture.key for each in found[::2]] == [
        codec.from_nasbench201(cell).key for cell in CELLS
    ]
    first = found[2].result
    assert (first.value, first.epochs, first.seconds, first.seed) == (0.81, 200, 1700.0, 777)
    assert first.metrics == pytest.approx(
        {
            "valid_accuracy": 0.81,
            "test_accuracy": 0.8,
            "train_accuracy": 0.699,
            "train_loss": 0.01,
            "latency_ms": 15.0,
        }
    )
    assert first.curve["epoch"][::199] == [1, 200]
    assert set(first.curve["valid_accuracy"]) == {0.81}
    assert (found[0].params, found[0].flops) == (73306, 7783050)
    assert [
        each.result.value for each in external_results(file, read(file), "nb201-cifar100", 12)
    ] == [0.4, 0.4]
    assert list(external_results(file, read(file), "nb201-imagenet16", 12)) == []


def test_they_become_evaluations(archive, tmp_path):
    path = tmp_path / "file.pth"
    torch.save({"arch2infos": {1: {"less": trainings(1, 12)}}}, path)
    for _ in range(2):
        assert (
            add(
                archive,
                "nb201-cifar10",
                "nb201/12",
                external_results(path, read(path), "nb201-cifar10", 12),
            )
            == 2
        )

    found = archive.studies.evaluations(task="nb201-cifar10", protocol="nb201/12")
    assert sorted(each.value for each in found) == [0.81, 0.82]


class Runs:
    def __init__(self, function, *arguments):
        self.reduced = (function, arguments)

    def __reduce__(self):
        return self.reduced


@pytest.mark.parametrize("function", [os.system, subprocess.check_output, eval])
@pytest.mark.parametrize("protocol", [2, 4])
def test_a_pickle_that_would_run_code_is_refused(tmp_path, function, protocol):
    path = tmp_path / "evil.pth"
    content = {"arch2infos": {0: Runs(function, f"touch {tmp_path}/ran")}}
    torch.save(content, path, pickle_protocol=protocol)
    with pytest.raises(UsageError, match=r"is refused") as refused:
        read(path)

    assert not (tmp_path / "ran").exists()
    assert "\n" not in str(refused.value)
    path.write_bytes(pickle.dumps(content, protocol))
    with pytest.raises(UsageError):
        read(path)

    assert not (tmp_path / "ran").exists()


def test_a_file_of_another_format_is_refused(tmp_path):
    path = tmp_path / "file"
    with pytest.raises(UsageError, match="No such file"):
        read(path)

    for content in (b"", b"text", b"PK\x03\x04" + b"0" * 50):
        path.write_bytes(content)
        with pytest.raises(UsageError, match=r"refused|no file of NAS-Bench-201"):
            read(path)

    for content, why in (
        ([1, 2], "no dictionary"),
        ({}, "no arch2infos"),
        ({"arch2infos": {0: 7}}, "cell 0 of"),
    ):
        torch.save(content, path)
        with pytest.raises(UsageError, match=why):
            read(path)

    torch.save({"arch2infos": {0: {"less": {**trainings(0, 12), "arch_str": "|a~0|"}}}}, path)
    with pytest.raises(UsageError, match="cell 0 of"):
        list(external_results(path, read(path), "nb201-cifar10", 12))

    for size in (math.inf, math.nan):
        held = trainings(0, 12)
        held["all_results"] = {
            at: {**result, "params": size} for at, result in held["all_results"].items()
        }
        torch.save({"arch2infos": {0: {"less": held}}}, path)
        with pytest.raises(UsageError, match="cell 0 of"):
            list(external_results(path, read(path), "nb201-cifar10", 12))
