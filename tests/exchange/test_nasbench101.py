"""The official format of NAS-Bench-101, written here byte by byte as TensorFlow and protoc write
it, and damaged."""

from __future__ import annotations

import base64
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.architecture import codec
from archive.errors import UsageError
from archive.exchange.importers.external import add
from archive.exchange.importers.nasbench101 import external_results
from archive.exchange.releases import nasbench101
from archive.exchange.releases.nasbench101 import crc32c
from archive.store.records import Evaluation
from tests.exchange.nasbench_files import LABELS, MATRIX, framed, message, row
from tests.support import examples

METRICS = json.loads(row())[-1].encode()
ENDLESS = base64.b64encode(message((1, message((1, math.inf))), (2, 5)))
HUGE = base64.b64encode(message((1, message((1, 108.0))), (2, 2**63)))


ROWS = [
    row(),
    row(valid=0.91),
    row(epochs=36, valid=0.8),
    row("b" * 32, valid=0.7, labels=["input", *LABELS[2:0:-1], "output"]),
]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "nasbench_only108.tfrecord"
    path.write_bytes(b"".join(map(framed, ROWS)))
    return path


def test_the_checksum_is_castagnolis():
    # RFC 3720, appendix B.4, and the check value of the catalogue of CRCs.
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(b"") == 0


@examples(5)
@given(st.binary(max_size=300))
def test_the_compiled_checksum_is_the_plain_one(data):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(nasbench101, "_LONG", 300)
        plain = crc32c(data)
        patched.setattr(nasbench101, "_LONG", -1)
        assert crc32c(data) == plain


def test_each_training_is_one_result(file):
    first, second, third = external_results(file, 108)
    assert (
        first.architecture.key
        == codec.from_nasbench101(MATRIX, LABELS).key
        == second.architecture.key
    )
    assert third.architecture.key != first.architecture.key
    assert len({first.id, second.id, third.id}) == 3
    assert first.params == 2_694_282
    result = first.result
    assert (result.value, result.epochs, result.seconds) == (0.9, 108, 1400.25)
    assert result.metrics == pytest.approx(
        {"train_accuracy": 0.95, "valid_accuracy": 0.9, "test_accuracy": 0.85}
    )
    assert result.curve["epoch"] == [0, 54, 108]
    assert result.curve["valid_accuracy"] == [0.1, 0.5, 0.9]
    assert [each.result.value for each in external_results(file, 36)] == [0.8]


def test_they_become_evaluations_once(archive, file):
    for _ in range(2):
        assert add(archive, "nb101", "nb101/108", external_results(file, 108)) == 3

    found: list[Evaluation] = archive.studies.evaluations(task="nb101", protocol="nb101/108")
    assert sorted(each.value for each in found) == [0.7, 0.9, 0.91]
    assert len({each.architecture.key for each in found}) == 2
    assert archive.architectures.details(found[0].architecture.key)["params"] == 2_694_282
    assert archive.named("frontier", task="nb101").rows[0][3] == 0.91


@examples(5)
@given(at=st.integers(0, 4000), bit=st.integers(0, 7))
def test_every_altered_bit_is_noticed(tmp_path_factory, at, bit):
    content = bytearray(b"".join(map(framed, ROWS)))
    content[at % len(content)] ^= 1 << bit
    path = tmp_path_factory.mktemp("altered") / "file"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"altered|cut off"):
        list(external_results(path, 108))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"[]", "unpack"),
        (b"\xff", "record 0"),
        (b"[" * 100_000, "record 0"),
        (json.dumps(["a", 108, "01", "input,output", ""]).encode(), "n²"),
        (json.dumps(["a", 108, "0100", "input,output", "!!"]).encode(), "record 0"),
        (json.dumps(["a", 108, "0100", "input,output", ""]).encode(), "no evaluation"),
        (json.dumps(["a", 108, "0100", "input,output", "Cn8="]).encode(), "cut off"),
        (json.dumps(["a", 108, "0100", "input,output", "/////////////////w=="]).encode(), "without end"),
        (json.dumps(["a", 108, "0000", "input,other", ""]).encode(), "no evaluation|output"),
        (row(labels=["input", "conv9x9", "maxpool3x3", "output"]), "conv9x9"),
        (json.dumps(["a", 108, 7, None, ""]).encode(), "record 0"),
        (row(epochs=108).replace(METRICS, ENDLESS), "record 0"),
        (row(epochs=108).replace(METRICS, HUGE), "beyond 63 bits"),
    ],
)  # fmt: skip
def test_an_invalid_record_is_refused(tmp_path, data, why):
    path = tmp_path / "file"
    path.write_bytes(framed(data))
    with pytest.raises(UsageError, match=why) as refused:
        list(external_results(path, 108))

    assert "\n" not in str(refused.value)
    assert str(path) in str(refused.value)


def test_a_file_of_another_format_is_refused(tmp_path, file):
    (tmp_path / "text").write_text("this is no tfrecord file at all")
    for path, why in (
        (tmp_path / "text", "no TFRecord"),
        (tmp_path / "none", "cannot read"),
        (tmp_path, "cannot read"),
    ):
        with pytest.raises(UsageError, match=why):
            list(external_results(path, 108))

    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(UsageError, match="cut off in record 3"):
        list(external_results(file, 108))
