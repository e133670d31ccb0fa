"""Files to pass on: what they have, and that each property of the data model is classified."""

from __future__ import annotations

import getpass
import json
import platform
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.architecture.graph import Architecture
from archive.errors import UsageError
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
    # A dump has the texts of a run in the record of its proposal.
    declared["Proposal"] |= declared.pop("RunText")
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/Ann Smith/x.csv", "x.csv"),
        ("see /home/ann, or /Users/ann", "see , or "),
        ("file:///home/Ann Smith/x", "x"),
        ("cc -I/home/ann/include -L/opt/ann/lib", "cc -I~/include -Llib"),
        ("lib64:/home/ann/lib", "lib64:lib"),
        ("gpu07:/srv/ann/x", "-:x"),
        ("//nas/ann/x", "x"),
        ("~ann/x.py:build", "x.py:build"),
        (r"C:\Users\Ann Smith\x", "x"),
        (r"\\nas\ann\x", "x"),
        ("https://ann:tok@h/x", "https://h/x"),
        ("sqlite:////srv/ann/x.db", "sqlite:x.db"),
        ("/data/people/lee-a", "~"),
        ("/data/people/lee-a/x and /data/people/lee-ab", "x and lee-ab"),
        ("GPU07 and gpu07_run, gpu071", "- and -_run, gpu071"),
        ("gpu07.site.org", "-"),
        ("5/10 of a/b, ~5/10", "5/10 of a/b, ~5/10"),
    ],
)
def test_places_and_names_are_cut_out_of_texts(text, expected, monkeypatch):
    assert environment_of(text, monkeypatch) == expected


def environment_of(text, monkeypatch):
    """Return what is published of a text in an environment."""
    monkeypatch.setenv("HOME", "/data/people/lee-a")
    monkeypatch.setattr(getpass, "getuser", lambda: "random")
    selection = Publication()
    selection.hide(["gpu07.site.org"])
    environment = json.dumps({"host": "elsewhere", "text": text})
    record = {"id": "a#00001", "task": "digits", "protocol": "p", "architecture": "a"}
    record |= {"properties": {"environment": environment}, "weights": None}
    return json.loads(selection.select("evaluation", record)["properties"]["environment"])["text"]


PIECES = (
    "gpu07", "gpu07.site.org", "random", "/data/people/lee-a", "/home/ann smith/", "/home/ann",
    "C:\\Users\\ann", "~ann/", "/", "\\", ":", " ", "-I", "x", "_", "file:", "https://", "@", '"', "{",
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES)))
def test_no_text_has_a_host_the_user_or_a_home(pieces):
    # Letters and digits delimit names: another word may have the same letters.
    text = " ".join(pieces) + "".join(piece for piece in pieces if piece != "x")
    with pytest.MonkeyPatch.context() as patched:
        cut = environment_of(text, patched)

    for private in ("gpu07", "random"):
        assert private not in re.split(r"[\W_]+", cut)

    assert not re.search(r"/data/people/lee-a(?![^\W_])", cut)
    assert not re.search(r"(home|users)[/\\]+ann", cut, re.IGNORECASE)


def test_names_that_are_words_of_the_archive_stay(archive, connection, tmp_path, monkeypatch):
    fill(archive)
    # The user has the name of the agent, a worker's machine of no identity.
    monkeypatch.setattr(getpass, "getuser", lambda: "random")
    texts = ["at gpu07, by random", "/home/ann smith/x", '{"gpu07": "/home/ann"}']
    texts.append(
        json.dumps({"host": "gpu08", "by": "random@gpu08", "hyperparameters": {"a": "random"}})
    )
    archive.query(
        "MATCH (n) WHERE n:Study OR n:Architecture OR n:Proposal OR n:Evaluation "
        "SET n.note = $texts[0], n.reason = $texts[1], n.hardware = $texts[2], n.environment = $texts[3]",
        {"texts": texts},
        write=True,
    )
    archive.query("MATCH (w:Worker) SET w.host = 'gpu07.site.org'", write=True)
    path = tmp_path / "mine.gz"
    lines = published(archive, path, "notes")
    text = json.dumps(lines)
    for private in ("gpu0", "ann smith", "/home", "by random"):
        assert private not in text

    kinds = {line["kind"] for line in lines if line.get("record") == "agent"}
    studies = set(archive.studies.names())
    results = archive.query(
        "MATCH (e:Evaluation) WHERE e.id CONTAINS '#' RETURN e.id ORDER BY e.id"
    ).rows
    wipe(connection)
    load(connection, path)
    assert (kinds, set(archive.studies.names())) == ({"random"}, studies)
    assert archive.query("MATCH (e:Evaluation) RETURN e.id ORDER BY e.id").rows == results
    environment = json.loads(archive.query("MATCH (e:Evaluation) RETURN e.environment").rows[0][0])
    assert environment == {"by": "-@-", "hyperparameters": {"a": "random"}}


def test_a_study_that_is_named_after_a_host_is_refused(archive, tmp_path):
    fill(archive, "gpu07-run")
    archive.query("MATCH (w:Worker) SET w.host = 'gpu07.site.org'", write=True)
    path = tmp_path / "mine.gz"
    with pytest.raises(UsageError, match=r"the name 'gpu07-run\S*' holds the name of a host"):
        published(archive, path)

    assert not path.exists()
    assert published(archive, path, "hosts")


def test_tasks_that_differ_in_their_folders_only_are_refused():
    selection = Publication()
    task = {"task": "csv:/home/me/x.csv", "protocol": "p", "direction": "maximise"}
    assert selection.select("task", task)["task"] == "csv:x.csv"
    with pytest.raises(UsageError, match="differ in their folders only"):
        selection.select("task", {**task, "task": "csv:x.csv"})


def test_an_unknown_property_is_not_published():
    assert publication.content_of("Study", "mood") is Content.INTERNAL
    assert publication.content_of("Evaluation", "metric_top5") is Content.RESULT
