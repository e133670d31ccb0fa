"""`archive arch nearest` with models of a user's own, and with published relatives."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from archive.cli.architecture.argument import is_key, is_model
from archive.cli.main import archive as command
from archive.errors import UsageError
from archive.queries.relatives import relatives
from archive.store.evaluations import Evaluations, TaskProtocol
from archive.store.records import Result
from tests.support.stores import cells


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("my_model.py:build", True),
        ("folder/my_model.py:build", True),
        ("torchvision.models:resnet18", True),
        ("package.module:Net.tiny", True),
        ("0123abcd", False),
        ("network.json", False),
        ("|nor_conv_3x3~0|+|none~0|none~1|+|none~0|none~1|none~2|", False),
        ('{"space": "mlp"}', False),
        ("Genotype(normal=[], normal_concat=[])", False),
    ],
)
def test_models_are_told_from_keys_and_texts(text, expected):
    assert is_model(text) is expected
    assert not (expected and is_key(text))


def test_a_missing_file_of_a_model_is_one_line(tmp_path):
    with pytest.raises(UsageError, match="there is no module 'absent'"):
        CliRunner().invoke(
            command,
            ["--home", str(tmp_path), "arch", "nearest", f"{tmp_path}/absent.py:build"],
            catch_exceptions=False,
        )


@pytest.mark.every_server
def test_relatives_have_a_common_protocol_their_best_and_their_speeds(archive):
    first, second, stranger = cells(3)
    archive.architectures.add([first, second, stranger])
    results = [
        (first, "t", "timm/a@8", 1.0, {"model": "one.a"}, {}),
        (first, "t", "timm/b@8", 2.0, {"model": "one.b"}, {}),
        (second, "t", "timm/a@8", 1.5, {"model": "two.a"}, {}),
        (second, "t", "timm/c@8", 9.0, {"model": "two.c", "pretraining": "in22k"}, {}),
        (first, "inference", "timm/rtx/amp@8", 100.0, {"model": "one"}, {"latency_ms": 10.0}),
    ]
    places = {}
    rows = []
    for number, (network, task, protocol, value, about, metrics) in enumerate(results):
        place = places.setdefault((task, protocol), TaskProtocol(task, protocol, "maximise"))
        if metrics:
            metrics = {**metrics, "samples_per_second": value}

        provenance = {**about, "family": "f", "source": "timm 1"}
        result = Result(value, metrics, provenance=provenance)
        rows.append((f"{number}", network.key, place, result))

    Evaluations(archive.connection, archive.architectures).add_many(list(places.values()), rows)
    keys = [second.key, stranger.key, first.key]
    two, one = relatives(archive.connection, keys, "t")
    assert (two.model, one.model) == ("two", "one")
    assert [(row.protocol, row.comparable) for row in one.results] == [
        ("timm/a@8", True),
        ("timm/b@8", False),
    ]
    assert [(row.value, row.comparable) for row in two.results] == [(1.5, True), (9.0, False)]
    assert [speed.latency_ms for speed in one.speeds] == [10.0]
    assert relatives(archive.connection, keys, "t", "RTX")[1].speeds == one.speeds
    assert relatives(archive.connection, keys, "t", "cpu")[1].speeds == []
    assert relatives(archive.connection, [stranger.key]) == []
