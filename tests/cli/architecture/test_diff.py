"""`archive arch diff`, run as a user runs it."""

import json

import pytest
from click.testing import CliRunner

from archive.architecture import codec
from archive.cli.architecture.diff import DifferenceDocument
from archive.cli.main import archive as command
from archive.errors import ArchiveError
from tests.support.json_documents import faults
from tests.support.networks.block_nets import language_net
from tests.support.networks.nets import net

FIRST = net("cnn", "conv3/16 max-pool fc/8 softmax")
SECOND = net("cnn", "conv3/32 max-pool conv5/8 fc/8 softmax")


@pytest.fixture
def files(tmp_path):
    for name, network in (("first", FIRST), ("second", SECOND)):
        (tmp_path / f"{name}.json").write_text(codec.to_json(network))

    return [str(tmp_path / "first.json"), str(tmp_path / "second.json")]


def diff(*arguments):
    arguments = ["--home", "unused", "arch", "diff", *arguments]
    return CliRunner().invoke(command, arguments, catch_exceptions=False).stdout


def test_a_difference_as_text_and_as_json(files, tmp_path):
    text = diff(*files)
    assert f"{FIRST.key[:8]} → {SECOND.key[:8]}: edit 1.5" in text
    assert "~ conv3 16 → 32  costs 0.5" in text and "+ conv5 8" in text
    assert "layer │ inserted │      1 │    1" in text and "a layer more costs 1" in text
    for kernel in ("edit", "otmann"):
        document = json.loads(diff(*files, "--kernel", kernel, "--json"))
        assert faults(document, DifferenceDocument) == []
        assert sum(part["cost"] for part in document["parts"]) == pytest.approx(
            document["distance"]
        )
        assert document["first"] == FIRST.key and document["format"] == "text"
        assert document["changes"] == []

    picture = tmp_path / "difference.svg"
    assert json.loads(diff(*files, "-o", str(picture), "--json"))["file"] == str(picture)
    assert "32" in picture.read_text() and "aa-inserted" in picture.read_text()


def test_settings_belong_to_the_kernel(files):
    assert json.loads(diff(*files, "--set", "lam=0", "--json"))["distance"] == 1.5
    found = json.loads(diff(*files, "--kernel", "otmann", "--set", "nu_str=[0.25]", "--json"))
    assert found["component"] == "otmann:0.25"
    with pytest.raises(ArchiveError, match="nu_str"):
        diff(*files, "--set", "nu_str=[0.25]")


def test_the_difference_of_imported_models_is_told_in_blocks(tmp_path):
    paths = []
    for kv_heads in (4, 2):
        path = tmp_path / f"{kv_heads}.json"
        path.write_text(codec.to_json(language_net(kv_heads=kv_heads)))
        paths.append(str(path))

    assert diff(*paths).splitlines() == ["kv heads 4 -> 2 in blocks 1-3"]
    assert diff(paths[0], paths[0]).splitlines() == ["the two are one network"]
    assert "skip" in diff(*paths, "--layers")
    assert "otmann:" in diff(*paths, "--kernel", "otmann")
    for wrong in (["--component", "absent"], ["--set", "absent=1"]):
        with pytest.raises(ArchiveError, match="absent"):
            diff(*paths, *wrong)

    change = {"name": "kv heads", "where": "blocks 1-3", "before": 4, "after": 2}
    assert json.loads(diff(*paths, "--json"))["changes"] == [change]
