"""Files to pass on: what they have, and that each property of the data model is classified."""

from __future__ import annotations

import getpass
import json
import platform

import pytest

from archive.architecture.graph import Architecture
from archive.exchange import publication
from archive.exchange.dump import dump
from archive.exchange.load import load
from archive.exchange.publication import CONTENTS, Content, Publication
from archive.queries import data_model
from archive.store.evaluations import Evaluations
from archive.store.records import Result
from tests.conftest import wipe
from tests.support.dumped import fill, records
from tests.support.stores import cells


def test_every_property_of_the_data_model_is_classified():
    model = data_model.read()
    declared = {}
    for label, entry in {**model["labels"], **model["relationships"]}.items():
        if entry["properties"]:
            declared[label] = set(entry["properties"])

    classified = {label: set(contents) for label, contents in CONTENTS.items()}
    # A block follows from the layers as a whole.
    assert classified.pop("Block") == {"*"}
    assert declared.pop("Block")
    assert classified == declared


def published(archive, path, *contents, **options):
    dump(archive.connection, path, force=True, publication=Publication(contents, **options))
    return records(path)


def test_a_published_file_names_no_host_path_or_note(archive, connection, tmp_path, monkeypatch):
    fill(archive)
    monkeypatch.setattr(platform, "node", lambda: "my-machine")
    monkeypatch.setattr(getpass, "getuser", lambda: "ann-lee")
    archive.query(
        "MATCH (e:Evaluation) SET e.environment = $text, e.by = 'Ann'",
        {"text": json.dumps({"cache": "/home/ann-lee/x/y.csv", "at": "ann-lee@my-machine"})},
        write=True,
    )
    archive.query("MATCH (n) WHERE n:Study OR n:Architecture SET n.note = 'secret'", write=True)
    path = tmp_path / "mine.gz"
    lines = published(archive, path, source="our paper", license="CC-BY-4.0")
    text = json.dumps(lines)
    for private in ("secret", "ann-lee", "my-machine", "/home", "worker-one", "file:///", "Ann"):
        assert private not in text

    results = [line for line in lines if line.get("record") == "evaluation"]
    assert {line["properties"]["source"] for line in results} == {"our paper"}
    assert json.loads(results[0]["properties"]["environment"]) == {
        "cache": "y.csv",
        "at": "-@-",
    }
    before = archive.query("MATCH (e:Evaluation) RETURN e.id, e.value ORDER BY e.id").rows
    load(archive.connection, path)
    whole = json.dumps(published(archive, path, "hosts", "paths", "notes"))
    for asked in ("secret", "ann-lee", "worker-one", "file:///", "a traceback"):
        assert asked in whole

    wipe(connection)
    load(archive.connection, path)
    assert len(archive.query("MATCH (e:Evaluation) RETURN e.id").rows) == len(before) - 1


def test_imported_results_keep_their_source(archive, connection, tmp_path):
    network: Architecture = next(iter(cells(1)))
    archive.architectures.add([network])
    source = {"source": "timm 1.0", "license": "Apache-2.0", "commit": "v1.0", "model": "a.b"}
    Evaluations(connection, archive.architectures).add(
        "table", "table/1", [("table/a", network.key, Result(1.0, provenance=source))]
    )
    path = tmp_path / "zoo.gz"
    assert not [line for line in published(archive, path) if line.get("record") == "evaluation"]
    published(archive, path, imported=True, source="mine")
    wipe(connection)
    for expected in (1, 0):
        _, changed = load(connection, path)
        assert changed.get("evaluation", 0) == expected

    stored = Evaluations(connection, archive.architectures).get("table/a")
    assert stored.provenance == source


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("csv:/home/me/data.csv", "csv:data.csv"),
        ("~/runs/a.pt", "a.pt"),
        ("file:///tmp/a/b", "b"),
        ('{"folder": "/srv/x/y"}', '{"folder": "y"}'),
        ("timm/a1_in1k@224", "timm/a1_in1k@224"),
        ("digits/1+recipe:sgd", "digits/1+recipe:sgd"),
        ("1 / 2 and /", "1 / 2 and /"),
        ("https://example.org/a/b", "https://example.org/a/b"),
    ],
)
def test_folders_are_cut_out(text, expected):
    task = {"task": text, "protocol": "p", "direction": "maximise"}
    assert Publication().select("task", task)["task"] == expected
    assert Publication(["paths"]).select("task", task)["task"] == text


def test_an_unknown_property_is_not_published():
    assert publication.content_of("Study", "mood") is Content.INTERNAL
    assert publication.content_of("Evaluation", "metric_top5") is Content.RESULT
